"""Measurements beside a committed report: on another machine, or with other versions.

A report holds rows of one machine and of one set of versions. What is measured elsewhere goes to a
file of its own, as ``search.MACHINE.json``, and is compared with the committed rows. Such files are
not committed, and no claim is made from them.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from validation.output import Record

from . import driver
from .claims import rounded_up
from .driver import key


def slug(about: Record) -> str:
    machine = " ".join(str(about["machine"].get(k, "")) for k in ("cpu", "architecture"))
    words = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    conditions = json.dumps([about["machine"], about["versions"]], sort_keys=True)
    return f"{words}-{hashlib.sha256(conditions.encode()).hexdigest()[:6]}"


def place(report: Path, about: Record) -> Path:
    """Return the file for new rows: the report, or one beside it if that has other conditions."""
    if not report.exists() or not driver.differences(driver.read(report), about):
        return report
    return report.with_name(f"{report.stem}.{slug(about)}.json")


def is_committed(path: Path) -> bool:
    return path.resolve().parent == driver.RESULTS.resolve() and "." not in path.stem


def compared(rows: Iterable[Record], committed: Sequence[Record]) -> Iterator[tuple[str, bool]]:
    """Put the committed error beside each; say if it is worse than that rounded up, the claim."""
    known = {key(row): row["ulp"] for row in committed}
    for row in rows:
        what = f"{row['function']:<26} {row['dtype']:<9} {row['kernel']:<9}"
        before = known.get(key(row))
        if before is None:
            yield f"{what} committed: nothing; here {row['ulp']:.4f} ulp", False
            continue
        worse = not row["ulp"] <= rounded_up(before)
        verdict = "WORSE" if worse else "not worse"
        yield f"{what} committed {before:.4f}, here {row['ulp']:.4f} ulp: {verdict}", worse
