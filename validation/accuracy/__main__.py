"""The commands ``python -m validation.accuracy measure | check | claims``.

A report holds rows of one machine and of one set of versions. Measurements elsewhere go to a
separate file, ``REPORT.MACHINE.json``, and are compared with the committed rows. Such files are not
committed, and make no claims.
"""

import argparse
import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from validation.output import Record, cpus_usable

from . import bits, driver, plan
from .bits import complaints
from .claims import rounded_up
from .functions import ALL, EMULATED, FUNCTIONS

__all__ = ["complaints", "main"]  # `validation.record` uses the first

CONSOLE = Console(stderr=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validation.accuracy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    check = commands.add_parser("check", help="compare the truth used here with rigorous balls")
    check.add_argument("--count", type=int, default=20_000, help="points for each function")
    check.add_argument("--seed", type=int, default=1)

    measure = commands.add_parser(
        "measure",
        help="make a report, or a part of it: measure all that it lacks of today's kernels",
        description="Make a report, or a part of it. What it has of today's kernels is left out, "
        "so that an interrupted run can be continued.",
    )
    measure.add_argument("report", choices=list(plan.PARTS))
    kernels = sorted({kernel for report in plan.PARTS for kernel in plan.kernels(report)})
    measure.add_argument("--kernels", nargs="+", choices=kernels, default=kernels)
    measure.add_argument("--functions", nargs="+", choices=list(ALL))
    measure.add_argument("--dtypes", nargs="+", choices=("float64", *plan.NARROW))
    measure.add_argument(
        "--count",
        type=int,
        help="samples before climbing; a tenth of them in float64 on a framework",
    )
    measure.add_argument("--jobs", type=int, default=cpus_usable(), help="processes")
    measure.add_argument(
        "--out",
        type=Path,
        default=driver.RESULTS,
        help="folder (default: validation/results/accuracy)",
    )

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


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except (RuntimeError, ImportError) as error:
        CONSOLE.print(f"[red]{error}", soft_wrap=True)
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "check":
        return _check(options)
    if options.command == "claims":
        from . import claims

        for path, text in claims.render(claims.results()).items():
            path.write_text(text, encoding="utf-8")
        return 0
    return _measure(_jobs(options), options)


def _measure(jobs: list[Record], options: argparse.Namespace) -> int:
    """Do the jobs and write the rows; compare rows of other machines with the committed reports."""
    # Read the conditions first, because a result without them could not be written.
    about = driver.conditions(options.report, plan.SEED)
    path = place(options.out / plan.file(options.report), about)
    before = driver.read(path)
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
            if is_committed(path):
                driver.remember([row])
    return 0 if is_committed(path) else _compare(path)


def _slug(about: Record) -> str:
    machine = " ".join(str(about["machine"].get(k, "")) for k in ("cpu", "architecture"))
    words = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    conditions = json.dumps([about["machine"], about["versions"]], sort_keys=True)
    return f"{words}-{hashlib.sha256(conditions.encode()).hexdigest()[:6]}"


def place(report: Path, about: Record) -> Path:
    """Return the file for new rows: the report, or one next to it for other conditions."""
    if not report.exists() or not driver.differences(driver.read(report), about):
        return report
    return report.with_name(f"{report.stem}.{_slug(about)}.json")


def is_committed(path: Path) -> bool:
    return path.resolve().parent == driver.RESULTS.resolve() and "." not in path.stem


def compared(rows: Iterable[Record], committed: Sequence[Record]) -> Iterator[tuple[str, bool]]:
    """Compare each error with the committed one; it is worse if it exceeds the claim."""
    known = {driver.key(row): row["ulp"] for row in committed}
    for row in rows:
        what = f"{row['function']:<26} {row['dtype']:<9} {row['kernel']:<9}"
        before = known.get(driver.key(row))
        if before is None:
            yield f"{what} committed: nothing; here {row['ulp']:.4f} ulp", False
            continue
        worse = not row["ulp"] <= rounded_up(before)
        verdict = "WORSE" if worse else "not worse"
        yield f"{what} committed {before:.4f}, here {row['ulp']:.4f} ulp: {verdict}", worse


def _compare(path: Path) -> int:
    """Compare another file with the committed report; return 1 if one of its errors is larger."""
    report = driver.RESULTS / f"{path.name.partition('.')[0]}.json"
    here, before = driver.read(path), driver.read(report)
    changed = driver.differences(before, here) if before["rows"] and here["rows"] else []
    with_what = f", which was measured with {'; '.join(changed)}" if changed else ""
    CONSOLE.print(f"{path}, compared with the committed {report.name}{with_what}:")
    worse = False
    for line, is_worse in compared(here["rows"], before["rows"]):
        print(line)
        worse |= is_worse
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
