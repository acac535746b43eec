"""The commands ``python -m validation.accuracy measure | check | claims``.

A report holds rows of one machine and of one set of versions. Elsewhere, ``measure`` needs another
folder for its report: ``--out``.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from rich.console import Console

from validation.output import Record, cpus_usable

from . import bits, claims, driver, plan
from .bits import complaints
from .check import worst_relative_error
from .functions import ALL, EMULATED, FUNCTIONS

__all__ = ["complaints", "main"]  # `validation.record` uses the first

CONSOLE = Console(stderr=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validation.accuracy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    check = commands.add_parser("check", help="compare the truth used here with rigorous balls")
    check.add_argument("--count", type=int, default=20_000, help="points for each function")
    check.add_argument("--seed", type=int, default=1)

    text = "make a report, or a part of it: measure all that it lacks of today's kernels"
    measure = commands.add_parser("measure", help=text)
    measure.add_argument("report", choices=list(plan.PARTS))
    kernels = sorted({kernel for report in plan.PARTS for kernel in plan.kernels(report)})
    measure.add_argument("--kernels", nargs="+", choices=kernels, default=kernels)
    measure.add_argument("--functions", nargs="+", choices=list(ALL))
    measure.add_argument("--dtypes", nargs="+", choices=("float64", *plan.NARROW))
    text = "samples before climbing; a tenth of them in float64 on a framework"
    measure.add_argument("--count", type=int, help=text)
    measure.add_argument("--jobs", type=int, default=cpus_usable(), help="processes")
    text = "folder (default: validation/results/accuracy)"
    measure.add_argument("--out", type=Path, default=driver.RESULTS, help=text)

    commands.add_parser("claims", help="write the claims of logunif_kl from the reports")
    return parser


def _jobs(options: argparse.Namespace) -> list[Record]:
    wanted = [k for k in plan.kernels(options.report) if k in options.kernels]
    missing = [k for k in wanted if k not in driver.kernels()]
    jobs = plan.jobs(
        options.report,
        [k for k in wanted if k not in missing],
        options.jobs,
        functions=options.functions,
        dtypes=options.dtypes,
        count=options.count,
    )
    if missing and not jobs:
        elsewhere = "; python -m validation.tools.emulated --measure does it"
        raise RuntimeError(
            f"none of {', '.join(missing)} can be measured here"
            f"{elsewhere if set(missing) <= set(EMULATED) else ''}"
        )
    if missing:
        CONSOLE.print(f"[yellow]not available here, and so left out: {', '.join(missing)}")
    return jobs


def _check(options: argparse.Namespace) -> int:
    for name in FUNCTIONS:
        rng = np.random.default_rng(options.seed)
        worst, where = worst_relative_error(name, rng, options.count)
        log2 = math.log2(worst) if worst else -math.inf
        CONSOLE.print(f"{name:<26} 2**{log2:.1f} at {', '.join(v.hex() for v in where)}")
        if not worst < 2.0**-64:
            return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.command == "check":
            return _check(options)
        if options.command == "measure":
            return _measure(_jobs(options), options)
        for path, text in claims.render(claims.results()).items():
            path.write_text(text, encoding="utf-8")
    except (RuntimeError, ImportError) as error:
        CONSOLE.print(f"[red]{error}", soft_wrap=True)
        return 1
    return 0


def _measure(jobs: list[Record], options: argparse.Namespace) -> int:
    # Read the conditions first, because a result without them could not be written.
    about = driver.conditions(options.report, plan.SEED)
    path = options.out / plan.file(options.report)
    before = driver.read(path)
    driver.require_same(path, before, about)
    if before["rows"]:
        other = bits.differences(before)
        rows = [row for row in before["rows"] if driver.key(row) not in other]
        jobs = [job for job in jobs if not driver.is_done(job, rows)]
    if not jobs:
        CONSOLE.print("nothing is left to measure")
    with closing(driver.measure(jobs, CONSOLE)) as found:
        for row in found:
            # Write each row at once, so that an interrupted run loses nothing.
            driver.save([row], path, about)
            if options.out.resolve() == driver.RESULTS.resolve():
                driver.remember([row])
    return 0


if __name__ == "__main__":
    sys.exit(main())
