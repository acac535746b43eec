"""The options of ``logunif-kl bench``. They choose which benchmark runs."""

from __future__ import annotations

import argparse
import os
from typing import Any

from .._output import CommandError, add_json, check_results, new_table, require, results
from ..provenance import provenance

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # default sizes for --torch and --jax
SIZE_OF_CUDA = 100_000_000  # added for --cuda: at smaller sizes, launches take half of the time
SIZE = 1_000_000
ROUNDS = 25
LEAST = {"size": 1, "rounds": 2, "threads": 1}


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "bench",
        help="time the functions against NumPy's, SciPy's and Molchanov's formula",
        description="Time the functions in interleaved rounds and print medians with quartiles. "
        "Nothing is pinned: on a busy machine look at the quartiles.",
    )
    parser.add_argument(
        "--torch",
        action="store_true",
        help="instead, time training in PyTorch against Molchanov's formula there",
    )
    parser.add_argument("--jax", action="store_true", help="the same in JAX")
    parser.add_argument("--cuda", action="store_true", help="with --torch: on the GPU")
    add_options(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the number of elements, rounds and threads."""
    parser.add_argument(
        "--size",
        type=int,
        nargs="+",
        metavar="N",
        help=f"elements (default: {SIZE}); of a framework, one size or several "
        f"({' '.join(map(str, SIZES))}; with --cuda also {SIZE_OF_CUDA})",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        default=ROUNDS,
        help=f"rounds, 2 or more (default: {ROUNDS}); few are enough to try a command",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads that share each array (default: 1; with --torch, PyTorch's own number)",
    )


def check(options: argparse.Namespace) -> None:
    """Check the options, and check that the packages and the GPU that they need are available."""
    for name, least in LEAST.items():
        given = getattr(options, name)
        for value in given if isinstance(given, list) else [least if given is None else given]:
            if value < least:
                raise CommandError(
                    f"--{name} must be at least {least}, but {value} was given: ask for more"
                )
    if options.cuda and not options.torch:
        raise CommandError("--cuda says where --torch is to run: give --torch as well")
    if options.threads and (options.jax or options.cuda):
        where = "--jax" if options.jax else "--cuda"
        raise CommandError(
            f"--threads cannot be chosen with {where}: leave it out, and restrict the processors "
            "of the whole process if need be"
        )
    if len(options.size or []) > 1 and not (options.torch or options.jax):
        raise CommandError("several sizes need --torch or --jax: give --size one number")
    if options.jax:
        require("jax", "jax", "--jax")
    if options.torch:
        # torch reads this variable on import. Without it the profiler logs every start and stop.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        torch = require("torch", "torch", "--torch")
        if options.cuda and not torch.cuda.is_available():
            raise CommandError(
                f"--cuda needs a GPU, but PyTorch {torch.__version__} finds none that it can use: "
                "leave --cuda out, or install a PyTorch for your GPU"
            )


def sizes_of(options: argparse.Namespace) -> list[int]:
    """Return the sizes to time with --torch or --jax."""
    return options.size or [*SIZES, *([SIZE_OF_CUDA] if options.cuda else [])]


def measure(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """Return the packages whose versions to record, and the measurements."""
    if not options.torch and not options.jax:
        from . import functions

        (size,) = options.size or [SIZE]
        return [], functions.measure(size, options.threads or 1, options.rounds)
    from . import training

    packages: list[str] = []
    suites = []
    if options.torch:
        from . import _torch

        packages += _torch.PACKAGES
        with _torch.threads(options.threads):
            suite = _torch.suite(options.cuda)
            suites.append(training.measure(suite, sizes_of(options), options.rounds))
    if options.jax:
        from . import _jax

        packages += _jax.PACKAGES
        suites.append(training.measure(_jax.suite(), sizes_of(options), options.rounds))
    return packages, {"suites": suites}


def run(options: argparse.Namespace, command: str) -> None:
    """Check the options, measure, then print or write the results."""
    check(options)
    check_results(options.json)
    packages, found = measure(options)
    document = {**provenance(command, *packages), **found}
    results(options.json, document, lambda: tables(found), [note(document)])


def tables(found: dict[str, Any]) -> list[Any]:
    """Make tables of the measurements."""
    from . import functions, training

    shown = [table for each in found.get("suites", []) for table in training.tables(each)]
    made = []
    for title, header, rows in shown or functions.tables(found):
        _split_quartiles(header, rows)
        headings = ["", *(name.replace(", ", ",\n") for name in header)]
        made.append(new_table(title, headings, rows, text=[""]))
    return made


def _split_quartiles(header: list[str], rows: list[list[str]]) -> None:
    """Move quartiles to columns of their own, because `new_table` never wraps numbers."""
    for i in range(len(header), 0, -1):
        if any(" (" in row[i] for row in rows):
            header.insert(i, "quartiles")
            for row in rows:
                median, _, quartiles = row[i].partition(" (")
                row[i : i + 1] = [median, quartiles.rstrip(")")]


def note(document: dict[str, Any]) -> str:
    """Return the line below the tables: processor, instruction set, versions and date."""
    machine = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    return (
        f"{machine['cpu']}, {machine['cpus_usable']} processors usable, "
        f"kernel {document['kernel']}, {versions}, {document['date']}"
    )
