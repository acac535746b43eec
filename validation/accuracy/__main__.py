"""The commands ``python -m validation.accuracy measure | search | exhaustive | check | claims``."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from . import beside, driver, plan
from .driver import Job
from .exhaustive import cpus
from .functions import EMULATED, FUNCTIONS, UNARY

CONSOLE = Console(stderr=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validation.accuracy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    check = commands.add_parser("check", help="compare the truth used here with rigorous balls")
    check.add_argument("--count", type=int, default=20_000, help="points for each function")
    check.add_argument("--seed", type=int, default=1)

    measure = commands.add_parser(
        "measure",
        help="make a report: measure all that it lacks of today's sources",
        description="Make a report. What it has of today's sources is left out, so that an "
        "interrupted run can be continued.",
    )
    measure.add_argument("report", choices=list(plan.PARTS))
    measure.add_argument("--again", action="store_true", help="leave nothing out")
    _common(measure)

    search = commands.add_parser("search", help="look for the worst errors: a part of a report")
    _chosen(search, list(FUNCTIONS), ["float64", "float32", "float16"])
    search.add_argument(
        "--count",
        type=int,
        default=plan.COUNT,
        help="samples before climbing; a tenth of them in float64 on a framework",
    )
    search.add_argument("--rounds", type=int, default=plan.ROUNDS, help="rounds of climbing")
    search.add_argument("--seed", type=int, default=plan.SEED)

    exhaustive = commands.add_parser(
        "exhaustive", help="try every input of a narrow type: a part of a report"
    )
    _chosen(exhaustive, list(UNARY), list(plan.NARROW))

    for command in (measure, exhaustive):
        command.add_argument("--jobs", type=int, default=cpus(), help="processes")

    commands.add_parser("claims", help="write logunif_kl/accuracy.py from the results")

    plot = commands.add_parser("plot", help="draw signed errors in ulp")
    plot.add_argument("--out", type=Path, required=True)
    plot.add_argument("--seed", type=int, default=1)
    return parser


def _chosen(parser: argparse.ArgumentParser, functions: list[str], dtypes: list[str]) -> None:
    parser.add_argument("--functions", nargs="+", choices=functions, default=functions)
    parser.add_argument("--kernels", nargs="+", choices=driver.kernels(), default=driver.kernels())
    parser.add_argument("--dtypes", nargs="+", choices=dtypes, help="default: those of the reports")
    parser.add_argument(
        "--resume", action="store_true", help="leave out what the report has of today's sources"
    )
    _common(parser)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        default=driver.RESULTS,
        help="folder (default: validation/results/accuracy)",
    )


def _jobs(options: argparse.Namespace) -> list[Job]:
    if options.command == "search":
        return plan.search_jobs(
            options.kernels,
            options.functions,
            options.dtypes,
            count=options.count,
            rounds=options.rounds,
            seed=options.seed,
        )
    if options.command == "exhaustive":
        return plan.exhaustive_jobs(
            options.kernels, options.functions, options.dtypes, processes=options.jobs
        )
    missing = [k for k in plan.kernels(options.report) if k not in driver.kernels()]
    jobs = plan.jobs(options.report, driver.kernels(), options.jobs)
    if not jobs:
        elsewhere = "; python -m validation.tools.emulated --measure does it"
        raise RuntimeError(
            f"none of {', '.join(missing)} can be measured here"
            f"{elsewhere if set(missing) <= set(EMULATED) else ''}"
        )
    if missing:
        CONSOLE.print(f"[yellow]not available here, and so left out: {', '.join(missing)}")
    return jobs


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
    """Return the command line without --out, --resume and --again."""
    kept = [argument for argument in given if argument not in ("--resume", "--again")]
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
    return _measure(_jobs(options), _without_path(given), options)


class _Target(NamedTuple):
    """The file for the rows of a kernel, and the conditions that they are measured under."""

    path: Path
    about: dict[str, Any]


def _measure(jobs: list[Job], command: str, options: argparse.Namespace) -> int:
    """Do the jobs, write the rows, and compare those outside of the committed reports with them."""
    resume = not options.again if options.command == "measure" else options.resume
    # Read all conditions first, so that nothing is measured that could not be written.
    targets: dict[tuple[str, str], _Target] = {}
    todo: list[Job] = []
    for kernel, method in dict.fromkeys((job["kernel"], job["method"]) for job in jobs):
        target = _target(kernel, method, command, jobs, options.out)
        targets[kernel, method] = target
        rows = driver.kept(*target)
        todo += [
            job
            for job in jobs
            if (job["kernel"], job["method"]) == (kernel, method)
            and not (resume and driver.is_done(job, rows))
        ]
    if not todo:
        CONSOLE.print("nothing is left to measure")
    with closing(driver.measure(todo, CONSOLE)) as found:
        for row in found:
            # Write each row at once, so that an interrupted run loses nothing.
            target = targets[row["kernel"], row["method"]]
            driver.save([row], *target)
            if beside.is_committed(target.path):
                driver.remember([row])
    return _compare(jobs, {target.path for target in targets.values()})


def _target(kernel: str, method: str, command: str, jobs: list[Job], folder: Path) -> _Target:
    name = driver.report(kernel, method)
    seeds = [
        job["seed"]
        for job in jobs
        if driver.report(job["kernel"], job["method"]) == name and "seed" in job
    ]
    about = driver.conditions(command, method, kernel, seeds[0] if seeds else None)
    return _Target(beside.place(folder / name, about), about)


def _compare(jobs: list[Job], paths: set[Path]) -> int:
    """Compare the rows of other files with the committed reports; return 1 if one is worse."""
    wanted = {(job["kernel"], job["function"], job["dtype"]) for job in jobs}
    worse = 0
    for path in sorted(path for path in paths if not beside.is_committed(path) and path.exists()):
        report = driver.RESULTS / f"{path.name.partition('.')[0]}.json"
        here = json.loads(path.read_text(encoding="utf-8"))
        before = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {"rows": []}
        rows = [r for r in here["rows"] if (r["kernel"], r["function"], r["dtype"]) in wanted]
        changed = driver.differences(before, here) if before["rows"] else []
        with_what = f", which was measured with {'; '.join(changed)}" if changed else ""
        CONSOLE.print(f"{path}, compared with the committed {report.name}{with_what}:")
        for line in beside.compared(rows, before["rows"]):
            print(line)
            worse += line.is_worse
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
