"""Time one family of benchmarks, print its tables and, with ``--json``, write its record.

    python -m validation.benchmarks NAME [options] [--json FILE]

The tables are those of the site.
"""

import argparse
import importlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from logunif_kl.cli import bench
from validation import record
from validation.benchmarks import frameworks, tables
from validation.output import CommandError, complain, emit, write_record

PROGRAM = "python -m validation.benchmarks"
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 30_000_000, 100_000_000)
SEED = ("seed", 0, "of the random numbers")
# The options of each benchmark: name, default and help. `False` stands for a flag, and several
# numbers for a list.
BENCHMARKS: dict[str, tuple[str, tuple[tuple[str, Any, str], ...]]] = {
    "sizes": (
        "every ufunc over 100 to 1e8 elements, and with cold caches",
        (("size", SIZES, "elements, one size or several"), ("rounds", 5, "rounds"), SEED),
    ),
    "magnitudes": (
        "every ufunc over the decades of its arguments",
        (
            ("torch", False, "training in PyTorch as well"),
            ("jax", False, "training in JAX as well"),
            ("rounds", 15, "rounds of the slowest"),
            SEED,
        ),
    ),
    "log_alpha": (
        "KL as a function of log alpha and its gradient, compiled by PyTorch and JAX",
        (("size", SIZES[:6], "elements, one size or several"), ("rounds", 15, "rounds"), SEED),
    ),
    "training": (
        "the steps of an ordinary run in PyTorch",
        (
            ("size", 100_000, "weights"),
            ("steps", 3_000, "steps"),
            ("threads", 1, "threads of PyTorch"),
            SEED,
        ),
    ),
    "layers": (
        "training steps of whole layers in PyTorch, against other packages'",
        (
            ("rounds", 9, "rounds"),
            ("threads", None, "threads of PyTorch, by default its own number"),
            ("cuda", False, "on the GPU"),
            SEED,
        ),
    ),
    "deployed": (
        "the size and the latency of pruned networks, in PyTorch and ONNX Runtime",
        (("epochs", 150, "epochs of training"), ("rounds", 15, "rounds"), SEED),
    ),
    "memory": (
        "what layers keep for the backward pass in PyTorch, against other packages'",
        (SEED,),
    ),
    "stacked": (
        "networks of one shape in PyTorch, trained by vmap or one after another",
        (("rounds", 15, "rounds"), ("threads", 1, "threads of PyTorch"), SEED),
    ),
}
# These benchmarks are those of `logunif-kl bench`, with its options.
OF_THE_PACKAGE = {
    "functions": "the functions against NumPy's, SciPy's and Molchanov's formula, with memory",
    "torch": "training in PyTorch against Molchanov's formula, with memory and small tensors",
    "jax": "training in JAX against Molchanov's formula, with memory and small tensors",
}
LEAST = {"size": 1, "rounds": 2, "threads": 1, "steps": 30, "epochs": 3, "seed": 0}


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog=PROGRAM, description=__doc__.partition("\n")[0])
    names = whole.add_subparsers(dest="name", metavar="NAME", required=True)
    for name, (text, options) in BENCHMARKS.items():
        one = names.add_parser(name, help=text, description=text)
        for option, default, words in options:
            if default is False:
                one.add_argument(f"--{option}", action="store_true", help=words)
                continue
            several = isinstance(default, tuple)
            shown = " ".join(map(str, default)) if several else default
            one.add_argument(
                f"--{option}",
                type=int,
                nargs="+" if several else None,
                default=default,
                metavar="N",
                help=f"{words} ({LEAST[option]} or more; default: {shown})",
            )
    for name, text in OF_THE_PACKAGE.items():
        one = names.add_parser(name, help=text, description=text)
        bench.add_options(one)
        one.set_defaults(torch=name == "torch", jax=name == "jax", cuda=False)
        if name == "torch":
            one.add_argument("--cuda", action="store_true", help="on the GPU")
    for one in names.choices.values():
        one.add_argument("--json", metavar="FILE", help="also write the record")
    return whole


def check(options: argparse.Namespace) -> None:
    """Check the numbers, that the file can be written, and that a requested GPU exists."""
    if options.json and not Path(options.json).parent.is_dir():
        raise CommandError(f"cannot write {options.json}: its directory does not exist")
    if options.name in OF_THE_PACKAGE:
        return bench.check(options)
    for name, least in LEAST.items():
        given = getattr(options, name, None)
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if value is not None and value < least:
                raise CommandError(f"--{name} must be at least {least}, but {value} was given")
    # torch reads this when it is imported. Without it the profiler logs every start and stop.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    if getattr(options, "cuda", False) and not importlib.import_module("torch").cuda.is_available():
        raise CommandError("--cuda needs a GPU, but PyTorch finds none that it can use")
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(given)
    try:
        check(options)
        notes: list[str] = []
        if options.name in ("torch", "jax"):
            options.size = bench.sizes_of(options)
            packages, found = frameworks.measure(options)
        else:
            module: Any = importlib.import_module(f"validation.benchmarks.{options.name}")
            packages, found = module.measure(options)
            notes = getattr(module, "notes", lambda _: [])(found)
        command = shlex.join([*shlex.split(PROGRAM), *given])
        document = {**record.about(command, *packages), **found}
        if options.json:
            write_record(options.json, document)
    except (CommandError, ImportError) as error:
        complain(f"{PROGRAM}: error: {error}\n")
        return 2
    emit("\n\n".join([tables.SHOWN[options.name](document), *notes]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
