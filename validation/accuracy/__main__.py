"""The commands ``python -m validation.accuracy check | search | exhaustive | claims | plot``."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from . import driver
from .exhaustive import cpus
from .functions import ARRAYS, FRAMEWORKS, FUNCTIONS, OF_FRAMEWORKS, UNARY

CONSOLE = Console(stderr=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validation.accuracy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    check = commands.add_parser("check", help="compare the truth used here with rigorous balls")
    check.add_argument("--count", type=int, default=20_000, help="points for each function")
    check.add_argument("--seed", type=int, default=1)

    search = commands.add_parser("search", help="look for the worst errors")
    _common(search, list(FUNCTIONS))
    search.add_argument(
        "--dtypes",
        nargs="+",
        choices=("float64", "float32", "float16"),
        help="default: all three for functions of two arguments, else float64; on a framework "
        "float64 and float32",
    )
    search.add_argument(
        "--count",
        type=int,
        default=10_000_000,
        help="samples before climbing; a tenth of them in float64 on a framework",
    )
    search.add_argument("--rounds", type=int, default=200, help="rounds of climbing")
    search.add_argument("--seed", type=int, default=1)

    exhaustive = commands.add_parser("exhaustive", help="try every input of a narrow type")
    _common(exhaustive, list(UNARY))
    exhaustive.add_argument(
        "--dtypes",
        nargs="+",
        default=["float16", "bfloat16", "float32"],
        choices=("float16", "bfloat16", "float32"),
    )
    exhaustive.add_argument("--jobs", type=int, default=cpus(), help="processes")

    commands.add_parser("claims", help="write logunif_kl/accuracy.py from the results")

    plot = commands.add_parser("plot", help="draw signed errors in ulp")
    plot.add_argument("--out", type=Path, required=True)
    plot.add_argument("--seed", type=int, default=1)
    return parser


def _common(parser: argparse.ArgumentParser, functions: list[str]) -> None:
    parser.add_argument("--functions", nargs="+", choices=functions, default=functions)
    parser.add_argument("--kernels", nargs="+", choices=driver.kernels(), default=driver.kernels())
    parser.add_argument(
        "--out", type=Path, default=driver.RESULTS, help="folder (default: validation/results)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="leave out what the report has of today's sources"
    )


def _dtypes(kernel: str, name: str) -> tuple[str, ...]:
    """In which types a function is searched by default: those in which not all can be tried."""
    # In float64 arrays are `python`, and Triton's kernels have no float64.
    if kernel in (ARRAYS, "triton"):
        return ("float32",)
    if kernel in FRAMEWORKS:
        return ("float64", "float32")
    return ("float64",) if name in UNARY else ("float64", "float32", "float16")


def _search_jobs(options: argparse.Namespace) -> list[driver.Job]:
    jobs = []
    for kernel in options.kernels:
        for name in _functions(kernel, options.functions):
            known = [e for e in driver.worst_inputs() if e["function"] == name]
            for dtype in options.dtypes or _dtypes(kernel, name):
                if kernel in (ARRAYS, "triton") and dtype != "float32":
                    continue
                fewer = kernel in FRAMEWORKS and dtype == "float64"
                jobs.append(
                    {
                        "method": "search",
                        "function": name,
                        "dtype": dtype,
                        "kernel": kernel,
                        "count": options.count // 10 if fewer else options.count,
                        "rounds": options.rounds,
                        "seed": options.seed,
                        "known": [e["inputs"] for e in known if e["dtype"] == dtype],
                    }
                )
    return jobs


def _functions(kernel: str, names: list[str]) -> list[str]:
    return [name for name in names if kernel not in FRAMEWORKS or name in OF_FRAMEWORKS]


def _exhaustive_jobs(options: argparse.Namespace) -> list[driver.Job]:
    return [
        {
            "method": "exhaustive",
            "function": name,
            "dtype": dtype,
            "kernel": kernel,
            "jobs": options.jobs,
        }
        for kernel in options.kernels
        for name in _functions(kernel, options.functions)
        for dtype in options.dtypes
        # 2**32 inputs would take a framework hours, and arrays have only that type.
        if not (kernel == ARRAYS or (kernel in FRAMEWORKS and dtype == "float32"))
    ]


def _check(options: argparse.Namespace) -> int:
    import numpy as np

    from .check import worst_relative_error

    for name in FUNCTIONS:
        rng = np.random.default_rng(options.seed)
        worst, where = worst_relative_error(name, rng, options.count)
        log2 = math.log2(worst) if worst else -math.inf
        CONSOLE.print(f"{name:<26} 2**{log2:.1f} at {', '.join(v.hex() for v in where)}")
        if not worst < 2.0**-64:
            return 1
    return 0


def _without_path(given: Sequence[str]) -> str:
    """Return the command line less where its results go, which is nobody else's business."""
    kept = [argument for argument in given if argument != "--resume"]
    if "--out" in kept:
        place = kept.index("--out")
        del kept[place : place + 2]
    return shlex.join(["python", "-m", "validation.accuracy", *kept])


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(given)
    try:
        return _run(options, given)
    except (RuntimeError, ImportError) as error:
        CONSOLE.print(f"[red]{error}", soft_wrap=True)
        return 1


def _run(options: argparse.Namespace, given: Sequence[str]) -> int:
    if options.command == "check":
        return _check(options)
    if options.command == "claims":
        from . import claims

        if warning := claims.write():
            CONSOLE.print(f"[yellow]{warning}")
        return 0
    if options.command == "plot":
        from .plot import plot

        plot(options.out, options.seed)
        return 0
    jobs = {"search": _search_jobs, "exhaustive": _exhaustive_jobs}[options.command](options)
    command = _without_path(given)
    # All conditions first, so that nothing is measured that could not be kept.
    about, todo = {}, []
    for kernel in dict.fromkeys(job["kernel"] for job in jobs):
        path = options.out / driver.report(kernel, options.command)
        seed = getattr(options, "seed", None)
        about[kernel] = driver.conditions(command, options.command, kernel, seed)
        rows = driver.kept(path, about[kernel])
        todo += [
            job
            for job in jobs
            if job["kernel"] == kernel and not (options.resume and driver.is_done(job, rows))
        ]
    with closing(driver.measure(todo, CONSOLE)) as found:
        for row in found:
            # At once, so that a run that is broken off loses nothing.
            path = options.out / driver.report(row["kernel"], options.command)
            driver.save([row], path, about[row["kernel"]])
            if options.out.resolve() == driver.RESULTS:
                driver.remember([row])
    return 0


if __name__ == "__main__":
    sys.exit(main())
