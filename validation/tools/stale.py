"""List the committed results that measured other sources than are here, or were changed by hand.

    python -m validation.tools.stale

Prints a line for each, with the command that makes it again, and fails if there is one.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from logunif_kl.cli import sources
from logunif_kl.cli.provenance import SEAL, seal
from validation.accuracy import sources as of_kernels
from validation.paths import RESULTS, ROOT
from validation.reports import REPORTS, Report

_PNG = b"\x89PNG\r\n\x1a\n"


def committed() -> Iterator[str]:
    """List the files, from the root; not those of accuracy that were measured elsewhere."""
    for path in [ROOT / "docs" / "_static" / "compare.png", *sorted(RESULTS.rglob("*.*"))]:
        if path.is_file() and "." not in path.stem:
            yield path.relative_to(ROOT).as_posix()


def png_text(data: bytes) -> dict[str, str]:
    """Read the text metadata of a PNG file, its tEXt chunks."""
    found, place = {}, len(_PNG)
    while place < len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        if kind == b"tEXt":
            name, _, text = data[place + 8 : place + 8 + length].partition(b"\0")
            found[name.decode("latin-1")] = text.decode("latin-1")
        place += length + 12
    return found


def complaints(file: str, root: Path = ROOT) -> Iterator[str]:
    """Say what of a file was not measured from today's sources, and how to make it again."""
    if file not in REPORTS:
        yield f"{file}: validation/reports.py does not say which command makes it"
        return
    report = REPORTS[file]
    path = root / file
    if path.suffix == ".png":
        yield from _judged(file, report, png_text(path.read_bytes()))
        return
    results = json.loads(path.read_text(encoding="utf-8"))
    if results.get(SEAL) != seal(results):
        yield f"{file}: it does not say what its command wrote; run {report.command} again"
    if not report.of:
        yield from _judged_rows(file, report, results["rows"])
    elif report.of == ("capability",):  # each run has a hash of its own
        for run, about in results["runs"].items():
            option = "" if run == "default" else f" --run {run}"
            yield from _judged(file, report._replace(command=report.command + option), about)
    else:
        yield from _judged(file, report, results)


def _judged(file: str, report: Report, about: dict[str, Any]) -> Iterator[str]:
    sha256 = about.get("sources_sha256")
    if sha256 is None:
        yield f"{file}: it has no hash of what it measured; run {report.command} again"
    elif sha256 != today(*report.of):
        yield f"{file}: it measured other sources than are here; run {report.command} again"


def _judged_rows(file: str, report: Report, rows: list[dict[str, Any]]) -> Iterator[str]:
    measured = {(row["kernel"], row.get("sources_sha256")) for row in rows}
    old = sorted({kernel for kernel, sha256 in measured if sha256 != of_kernels.sha256(kernel)})
    if old:
        yield (
            f"{file}: {', '.join(old)} measured other sources than are here; "
            f"run {report.command} again"
        )


@cache
def today(*kinds: str) -> str | None:
    """Hash today's sources of some kinds of result."""
    return sources.sha256(*kinds)


def main() -> int:
    found = [line for file in committed() for line in complaints(file)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
