"""The options of ``logunif-kl bench``, and which bench they choose."""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import Any

from .._output import CommandError, check_results, require, results

# Each is a bench of its own; without any, the functions or a framework's training are timed.
KINDS = ("sizes", "magnitudes", "training", "layers")
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # of a framework
SIZE_OF_CUDA = 100_000_000  # in addition; in smaller arrays launches cost as much as memory
ROUNDS = 25


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "bench",
        help="time the functions against NumPy's, SciPy's and Molchanov's formula",
        description="Time the functions in interleaved rounds and print medians with quartiles. "
        "Nothing is pinned: on a busy machine look at the quartiles.",
    )
    parser.add_argument(
        "--sizes", action="store_true", help="instead, time every ufunc over 100 to 1e8 elements"
    )
    parser.add_argument(
        "--magnitudes",
        action="store_true",
        help="instead, time every ufunc over the decades of its arguments; "
        "with --torch and --jax, training there too",
    )
    parser.add_argument(
        "--training",
        action="store_true",
        help="instead, time the steps of an ordinary run in PyTorch",
    )
    parser.add_argument(
        "--layers",
        action="store_true",
        help="instead, time training steps of whole layers in PyTorch against other packages'",
    )
    parser.add_argument(
        "--torch", action="store_true", help="instead, time training in PyTorch against its peers'"
    )
    parser.add_argument("--jax", action="store_true", help="the same in JAX")
    parser.add_argument("--cuda", action="store_true", help="with --torch or --layers: on the GPU")
    parser.add_argument(
        "--size",
        type=int,
        nargs="+",
        metavar="N",
        help="elements (default: 1000000; not with --magnitudes); with --sizes or a framework, "
        "one size or several "
        f"(of a framework: {' '.join(map(str, SIZES))}; with --cuda also {SIZE_OF_CUDA}); "
        "with --training, weights (default: 100000)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help=f"rounds, 2 or more (default: {ROUNDS}; with --sizes 5, with --magnitudes 15, with "
        "--layers 9; not with --training); few are enough to try a command, not to judge a target",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads that share each array (default: 1; with --torch, PyTorch's own number)",
    )
    parser.add_argument(
        "--steps", type=int, metavar="N", help="with --training: steps (30 or more; default: 3000)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="with --sizes, --magnitudes, --training and --layers: of the random numbers "
        "(default: 0)",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="also write the results as JSON; - prints that instead"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, command: str) -> None:
    """Check the options, measure, then print or write the results."""
    for name, least in (("size", 1), ("rounds", 2), ("threads", 1), ("steps", 30), ("seed", 0)):
        given = getattr(options, name)
        for value in given if isinstance(given, list) else [least if given is None else given]:
            if value < least:
                raise CommandError(
                    f"--{name} must be at least {least}, but {value} was given: ask for more"
                )
    kinds = [kind for kind in KINDS if getattr(options, kind)]
    _check_kinds(options, kinds)
    _check_frameworks(options, kinds)
    check_results(options.json)
    if kinds == ["sizes"]:
        _run_sizes(options, command)
    elif kinds == ["magnitudes"]:
        _run_magnitudes(options, command)
    elif kinds == ["training"]:
        _run_training(options, command)
    elif kinds == ["layers"]:
        _run_layers(options, command)
    elif options.torch or options.jax:
        _run_frameworks(options, command)
    else:
        _run_functions(options, command)


def _check_kinds(options: argparse.Namespace, kinds: list[str]) -> None:
    if len(kinds) > 1:
        names = " and ".join(f"--{kind}" for kind in kinds)
        raise CommandError(f"{names} are benches of their own: give one of them at a time")
    kind = kinds[0] if kinds else ""
    if options.seed is not None and not kind:
        raise CommandError(
            "--seed is for --sizes, --magnitudes, --training and --layers: leave it out"
        )
    if options.steps is not None and kind != "training":
        raise CommandError("--steps is for --training: give --training as well, or leave it out")
    # Of each kind, the options that mean nothing there.
    for name in {
        "sizes": ("torch", "jax", "cuda", "threads"),
        "magnitudes": ("cuda", "threads", "size"),
        "training": ("torch", "jax", "cuda", "rounds"),
        "layers": ("torch", "jax", "size"),
    }.get(kind, ()):
        if getattr(options, name):
            raise CommandError(f"--{name} has no meaning with --{kind}: leave it out")


def _check_frameworks(options: argparse.Namespace, kinds: list[str]) -> None:
    if options.cuda and not options.torch and kinds != ["layers"]:
        raise CommandError("--cuda says where --torch is to run: give --torch as well")
    if options.threads and (options.jax or options.cuda):
        where = "--jax" if options.jax else "--cuda"
        raise CommandError(
            f"--threads cannot be chosen with {where}: leave it out, and restrict the processors "
            "of the whole process if need be"
        )
    if len(options.size or []) > 1 and not (options.torch or options.jax or kinds == ["sizes"]):
        raise CommandError(
            "several sizes are for --sizes, --torch and --jax: give --size one number"
        )
    if options.jax:
        require("jax", "jax", "--jax")
    if options.torch or kinds in (["training"], ["layers"]):
        # Read when torch is imported. Without it the profiler logs every start and stop.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        torch = require("torch", "torch", "--torch" if options.torch else f"--{kinds[0]}")
        if options.cuda and not torch.cuda.is_available():
            raise CommandError(
                f"--cuda needs a GPU, but PyTorch {torch.__version__} finds none that it can use: "
                "leave --cuda out, or install a PyTorch for your GPU"
            )


def note(document: dict[str, Any]) -> str:
    """Name the processor, the instruction set, the versions and the date below the tables."""
    machine = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    return (
        f"{machine['cpu']}, {machine['cpus_usable']} processors usable, "
        f"kernel {document['kernel']}, {versions}, {document['date']}"
    )


def _run_functions(options: argparse.Namespace, command: str) -> None:
    from . import functions

    (size,) = options.size or [1_000_000]
    found = functions.measure(size, options.threads or 1, options.rounds or ROUNDS)
    document = functions.document(found, command)
    results(options.json, document, lambda: functions.tables(found), [note(document)])


def _run_sizes(options: argparse.Namespace, command: str) -> None:
    from . import sizes

    document = sizes.document(
        options.size or sizes.SIZES, options.rounds or sizes.ROUNDS, options.seed or 0, command
    )
    results(options.json, document, lambda: sizes.tables(document), [note(document)])


def _run_magnitudes(options: argparse.Namespace, command: str) -> None:
    from . import magnitudes

    ways = magnitudes.ufuncs()
    kinds = ["bench"]
    packages: list[str] = []
    with contextlib.ExitStack() as stack:
        if options.torch:
            from . import _torch

            stack.enter_context(_torch.threads(1))
            ways += _torch.ways()
            kinds.append("bench_torch")
            packages += _torch.PACKAGES
        if options.jax:
            from . import _jax

            ways += _jax.ways()
            kinds.append("bench_jax")
            packages += _jax.PACKAGES
        number, seed = options.rounds or magnitudes.ROUNDS, options.seed or 0
        document = magnitudes.document(ways, number, seed, command, kinds, packages)
    results(options.json, document, lambda: magnitudes.tables(document), [note(document)])


def _run_training(options: argparse.Namespace, command: str) -> None:
    from . import _torch
    from . import _torch_training as training

    (size,) = options.size or [training.WEIGHTS]
    run = training.Run(size, options.steps or training.STEPS, options.seed or 0)
    with _torch.threads(options.threads or 1):
        document = training.document(run, command)
    results(options.json, document, lambda: training.tables(document), [note(document)])


def _run_layers(options: argparse.Namespace, command: str) -> None:
    from . import _layers, _torch
    from ._layers_steps import ROUNDS_OF_LAYERS, Plan

    plan = Plan(
        rounds=options.rounds or ROUNDS_OF_LAYERS,
        seed=options.seed or 0,
        device="cuda" if options.cuda else "cpu",
    )
    with _torch.threads(options.threads):
        document = _layers.document(plan, command)
    notes = [*_layers.notes(document), note(document)]
    results(options.json, document, lambda: _layers.tables(document), notes)


def _run_frameworks(options: argparse.Namespace, command: str) -> None:
    from . import frameworks

    measured = []
    sizes = options.size or [*SIZES, *([SIZE_OF_CUDA] if options.cuda else [])]
    number = options.rounds or ROUNDS
    if options.torch:
        from . import _torch

        with _torch.threads(options.threads):
            suite = _torch.suite(options.cuda)
            measured.append(frameworks.measure(suite, sizes, number))
    if options.jax:
        from . import _jax

        measured.append(frameworks.measure(_jax.suite(), sizes, number))
    document = frameworks.document(measured, command)
    results(
        options.json,
        document,
        lambda: [table for each in measured for table in frameworks.tables(each)],
        [note(document)],
    )
