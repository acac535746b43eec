"""Measure several kernels, each in a process of its own, and write what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

from logunif_kl._numpy import ufuncs
from logunif_kl.cli._output import write_record
from logunif_kl.cli.provenance import cpu_name, provenance
from logunif_kl.cli.sources import EXACT_C, FLOAT32_C, TORCH_C
from logunif_kl.cli.sources import paths as files
from validation import paths
from validation.paths import ROOT

from . import sources
from .functions import ARRAYS, COMPILED, EMULATED, FRAMEWORKS, FUNCTIONS

RESULTS = paths.RESULTS / "accuracy"
WORST_INPUTS = ROOT / "tests" / "golden" / "worst_inputs.json"

EMULATOR = "LOGUNIF_KL_EMULATOR"
"""The variable that names the emulator under which `validation.tools.emulated` runs Python."""

Job = dict[str, Any]
Row = dict[str, Any]


def kernels() -> tuple[str, ...]:
    """Name what can be measured here: the kernels of this CPU, the arrays, the frameworks."""
    packages = {ARRAYS: ("array_api_strict",), **FRAMEWORKS}
    here = (kernel for kernel, needed in packages.items() if all(map(find_spec, needed)))
    return (*ufuncs.available_kernels(), *here)


def report(kernel: str, method: str) -> str:
    """Name the file for the rows of a kernel.

    Each framework has its own, with its versions, and so has each kernel of another architecture.
    PyTorch has two, since the vector library it takes its exponential and logarithm from has code
    of its own for AVX-512, which it runs on processors of Intel alone: an AMD EPYC with AVX-512
    attains each of the figures of one without.
    """
    if kernel in EMULATED:
        return f"{kernel}.json"
    name = FRAMEWORKS[kernel][0] if kernel in FRAMEWORKS else method
    if name == "torch" and not ("avx512" in ufuncs.available_kernels() and "Intel" in cpu_name()):
        name = "torch_avx2"
    return f"{name}.json"


def _packages(kernel: str) -> list[str]:
    """Name the packages whose versions matter to the report that a kernel's rows go to."""
    first = FRAMEWORKS.get(kernel, ("",))[0]
    shared = (needed for needed in FRAMEWORKS.values() if needed[0] == first)
    further = {"jax": ["jaxlib"], "tensorflow": ["tensorflow-cpu"]}.get(first, [])
    return [*dict.fromkeys(package for needed in shared for package in needed), *further]


def inputs_of(job: Job) -> int:
    """Return about how many inputs a job will try."""
    if job["method"] == "exhaustive":
        return 1 << (32 if job["dtype"] == "float32" else 16)
    return int(job["count"]) + 5 * 32 * 256 * int(job["rounds"])


def measure(jobs: list[Job], console: Console) -> Generator[Row, None, None]:
    """Do the jobs, one kernel after the other, with a progress bar; yield a row for each."""
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
    # The truth of an exhaustive run must not come from the arithmetic under test.
    env["LOGUNIF_KL_KERNEL"] = kernel if kernel in COMPILED else ""
    env["OMP_NUM_THREADS"] = "1"
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


def conditions(command: str, method: str, kernel: str, seed: int | None = None) -> dict[str, Any]:
    """Return the conditions under which the measurement of a kernel begins.

    Raises
    ------
    RuntimeError
        If the extension is measured, or used as the truth, and is older than its sources.
    """
    wanted = {
        "_numpy._exact": EXACT_C if kernel in COMPILED or method == "exhaustive" else (),
        "_numpy._float32": FLOAT32_C if kernel == "torch" else (),
        "torch._library": (*FLOAT32_C, *TORCH_C) if kernel == "torch" else (),
    }
    for name, patterns in wanted.items():
        extension = find_spec(f"logunif_kl.{name}") if patterns else None
        if extension is not None and extension.origin is not None:
            built = Path(extension.origin).stat().st_mtime
            if any(path.stat().st_mtime > built for path in files(patterns)):
                raise RuntimeError("the extension is older than its sources: build it again")
    about = provenance(command, "python-flint", *_packages(kernel))
    about.pop("kernel")
    if emulator := os.environ.get(EMULATOR):
        about["machine"]["emulator"] = emulator
    return about | {"seed": seed, "sources_sha256": sources.sha256(kernel)}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Say how the machines and versions of two measurements differ."""
    return [
        f"{k} {before[condition].get(k)}, not {now[condition].get(k)}"
        for condition in ("machine", "versions")
        for k in before[condition] | now[condition]
        if before[condition].get(k) != now[condition].get(k)
    ]


def kept(path: Path, about: dict[str, Any]) -> list[Row]:
    """Return the rows of a report that can stay beside new ones: those of today's sources.

    Raises
    ------
    RuntimeError
        If those rows were measured with other versions, or on another machine.
    """
    if not path.exists():
        return []
    old = json.loads(path.read_text(encoding="utf-8"))
    today = {kernel: sources.sha256(kernel) for kernel in {row["kernel"] for row in old["rows"]}}
    rows = [row for row in old["rows"] if row["sources_sha256"] == today[row["kernel"]]]
    if rows and (changed := differences(old, about)):
        raise RuntimeError(
            f"{path.name} was measured with {'; '.join(changed)}: measure where that is, "
            "or remove the file and measure all of it again"
        )
    return rows


def save(rows: Iterable[Row], path: Path, about: dict[str, Any]) -> None:
    """Write rows of one kernel with their conditions, beside the rows that `kept` returns.

    Raises
    ------
    RuntimeError
        If the sources changed since the measurement began, or as for `kept`.
    """
    about = dict(about)
    mine = {k: about[k] for k in ("command", "date")}
    mine["sources_sha256"] = about.pop("sources_sha256")
    fresh = {}
    for row in rows:
        if mine["sources_sha256"] != sources.sha256(row["kernel"]):
            raise RuntimeError("the sources changed while they were measured: measure them again")
        fresh[key(row)] = row | mine
    fresh = {key(row): row for row in kept(path, about)} | fresh
    path.parent.mkdir(parents=True, exist_ok=True)
    about["rows"] = [fresh[k] for k in sorted(fresh)]
    write_record(str(path), about)


def is_done(job: Job, rows: Sequence[Row]) -> bool:
    """Whether the rows hold what a job would measure, with no fewer samples."""
    return any(
        all(row[k] == job[k] for k in ("function", "dtype", "kernel", "method"))
        and row["tried"] >= job.get("count", 0)
        for row in rows
    )


def remember(rows: Iterable[Row]) -> None:
    """Add the worst inputs to those that the tests always try; none is removed."""
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
