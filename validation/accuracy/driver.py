"""Measure several kernels, each in a process of its own, and keep what they found."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

from logunif_kl import _backend
from logunif_kl._provenance import provenance

from .functions import ARRAYS, FUNCTIONS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "validation" / "results"
WORST_INPUTS = ROOT / "tests" / "golden" / "worst_inputs.json"

_SOURCES = (
    "_coefficients.py",
    "_coefficients.h",
    "_kernel.py",
    "_kernels.h",
    "_simd.h",
    "_simd_end.h",
    "_ufuncs.c",
)

Job = dict[str, Any]
Row = dict[str, Any]


def kernels() -> tuple[str, ...]:
    """All that can be measured here: the kernels of this CPU, and ``arrays``."""
    return (*_backend.available_kernels(), ARRAYS)


def sources_sha256() -> str:
    """Identify the sources that the measured numbers depend on."""
    total = hashlib.sha256()
    for name in _SOURCES:
        total.update((ROOT / "logunif_kl" / name).read_bytes())
    return total.hexdigest()


def inputs_of(job: Job) -> int:
    """How many inputs a job will try, nearly."""
    if job["method"] == "exhaustive":
        return 1 << (32 if job["dtype"] == "float32" else 16)
    return int(job["count"]) + 5 * 32 * 256 * int(job["rounds"])


def measure(jobs: list[Job], console: Console) -> Generator[Row, None, None]:
    """Do the jobs, kernel by kernel, with a progress bar; yield a row for each."""
    columns = (*Progress.get_default_columns()[:-1], TimeRemainingColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        overall = bar.add_task("all", total=sum(map(inputs_of, jobs)))
        for kernel in dict.fromkeys(job["kernel"] for job in jobs):
            mine = [job for job in jobs if job["kernel"] == kernel]
            current = bar.add_task(kernel, total=sum(map(inputs_of, mine)))
            for kind, content in _converse(kernel, mine):
                if kind == "progress":
                    bar.advance(current, content)
                    bar.advance(overall, content)
                elif kind == "message":
                    console.print(f"[red]{content}", soft_wrap=True)
                else:
                    console.print(_summary(content), soft_wrap=True, highlight=False)
                    yield content


def _converse(kernel: str, jobs: list[Job]) -> Generator[tuple[str, Any], None, None]:
    env = dict(os.environ)
    # The truth of an exhaustive run should not come from the arithmetic under test.
    env["LOGUNIF_KL_KERNEL"] = "" if kernel in (ARRAYS, "python") else kernel
    with subprocess.Popen(
        [sys.executable, "-m", "validation.accuracy.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=env,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(job) + "\n" for job in jobs))
        process.stdin.close()
        try:
            for line in process.stdout:
                yield from json.loads(line).items()
        except GeneratorExit:
            process.terminate()
            raise
    if process.returncode:
        raise RuntimeError(f"the worker for kernel {kernel} failed; its error is above")


def _summary(row: Row) -> str:
    text = (
        f"{row['function']:<26} {row['dtype']:<9} {row['kernel']:<9} {row['ulp']:.4f} ulp at "
        f"{', '.join(row['inputs'])} ({row['tried']:.3g} inputs, {row['seconds']} s)"
    )
    if row.get("not_monotone"):
        text += f"; {row['not_monotone']} steps in the wrong direction"
    return text


def key(row: Row) -> tuple[int, str, str]:
    """Order rows by function, type and kernel."""
    return list(FUNCTIONS).index(row["function"]), row["dtype"], row["kernel"]


def conditions(command: str, seed: int | None) -> dict[str, Any]:
    """Say under what conditions a measurement begins.

    Raises
    ------
    RuntimeError
        If the extension was built before its sources were last changed.
    """
    extension = sys.modules.get("logunif_kl._ufuncs")
    if extension is not None and extension.__file__ is not None:
        built = Path(extension.__file__).stat().st_mtime
        compiled = [ROOT / "logunif_kl" / name for name in _SOURCES if name[-3:] != ".py"]
        if any(path.stat().st_mtime > built for path in compiled):
            raise RuntimeError("the extension is older than its sources: build it again")
    about = provenance(command, "python-flint")
    about.pop("kernel")
    return about | {"seed": seed, "sources_sha256": sources_sha256()}


def save(rows: Iterable[Row], path: Path, about: dict[str, Any]) -> None:
    """Write rows with the conditions; rows of the same sources and machine are kept beside them.

    Raises
    ------
    RuntimeError
        If the sources are not those with which the measurement began.
    """
    if about["sources_sha256"] != sources_sha256():
        raise RuntimeError("the sources changed while they were measured: measure them again")
    about = dict(about)
    fresh = {key(row): row | {k: about[k] for k in ("command", "date")} for row in rows}
    if path.exists():
        old = json.loads(path.read_text(encoding="utf-8"))
        same = all(old[k] == about[k] for k in ("versions", "machine", "sources_sha256"))
        if same:
            fresh = {key(row): row for row in old["rows"]} | fresh
    path.parent.mkdir(parents=True, exist_ok=True)
    about["rows"] = [fresh[k] for k in sorted(fresh)]
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def remember(rows: Iterable[Row]) -> None:
    """Add the worst inputs to those that are tested for ever; none is removed."""
    known = {_point(entry): entry for entry in worst_inputs()}
    for row in rows:
        entry = {k: row[k] for k in ("function", "dtype", "inputs", "wanted")}
        known.setdefault(_point(entry), entry)
    lines = [json.dumps(known[k]) for k in sorted(known)]
    WORST_INPUTS.parent.mkdir(parents=True, exist_ok=True)
    WORST_INPUTS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def worst_inputs() -> list[dict[str, Any]]:
    """Return the inputs that were worst at some time."""
    if not WORST_INPUTS.exists():
        return []
    found: list[dict[str, Any]] = json.loads(WORST_INPUTS.read_text(encoding="utf-8"))
    return found


def _point(entry: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    return entry["function"], entry["dtype"], tuple(entry["inputs"])
