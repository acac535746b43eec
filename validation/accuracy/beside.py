"""Measurements beside a committed report: on another machine, or with other versions.

A report holds rows of one machine and of one set of versions. What is measured elsewhere goes to a
file of its own, as ``search.MACHINE.json``, and is compared with the committed rows. Such files are
not committed, and no claim is made from them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import driver
from .claims import rounded_up
from .driver import Row, key


def slug(about: dict[str, Any]) -> str:
    """Name the machine and the versions of a measurement, as a part of a file's name."""
    machine = " ".join(str(about["machine"].get(k, "")) for k in ("cpu", "architecture"))
    words = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    conditions = json.dumps([about["machine"], about["versions"]], sort_keys=True)
    return f"{words}-{hashlib.sha256(conditions.encode()).hexdigest()[:6]}"


def place(report: Path, about: dict[str, Any]) -> Path:
    """Return the file for new rows: the report, or one beside it if that has other conditions."""
    if not report.exists():
        return report
    before = json.loads(report.read_text(encoding="utf-8"))
    if not driver.differences(before, about):
        return report
    return report.with_name(f"{report.stem}.{slug(about)}.json")


def is_committed(path: Path) -> bool:
    """Whether a file is one of the committed reports."""
    return path.resolve().parent == driver.RESULTS.resolve() and "." not in path.stem


class Compared(NamedTuple):
    """An error that was measured here, and the committed one if there is one."""

    row: Row
    committed: float | None

    @property
    def is_worse(self) -> bool:
        """Whether it is worse than what is claimed, which is the committed error rounded up."""
        return self.committed is not None and not self.row["ulp"] <= rounded_up(self.committed)

    def __str__(self) -> str:
        row = self.row
        what = f"{row['function']:<26} {row['dtype']:<9} {row['kernel']:<9}"
        if self.committed is None:
            return f"{what} committed: nothing; here {row['ulp']:.4f} ulp"
        verdict = "WORSE" if self.is_worse else "not worse"
        return f"{what} committed {self.committed:.4f}, here {row['ulp']:.4f} ulp: {verdict}"


def compared(rows: Iterable[Row], committed: Sequence[Row]) -> list[Compared]:
    """Put the committed error beside each row."""
    known = {key(row): row["ulp"] for row in committed}
    return [Compared(row, known.get(key(row))) for row in rows]
