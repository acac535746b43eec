"""Measure several kernels, each in its own process, and write the results."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

from logunif_kl._numpy import ufuncs
from validation import paths
from validation.output import Record, cpus_usable, provenance, write_record
from validation.paths import PACKAGE, ROOT

from .functions import ALL, ARRAYS, COMPILED, FRAMEWORKS, FUNCTIONS

RESULTS = paths.RESULTS / "accuracy"
WORST_INPUTS = ROOT / "tests" / "golden" / "worst_inputs.json"

EMULATOR = "LOGUNIF_KL_EMULATOR"
"""The variable that names the emulator under which `validation.tools.emulated` runs Python."""

Key = tuple[int, str, str]

# The packages whose versions matter to a report, and their extensions with the sources.
_PACKAGES = {
    "torch": ("torch", "triton"),
    "triton": ("torch", "triton"),
    "jax": ("jax", "jaxlib"),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "isotropic": ("torch", "jax"),
}
LIBRARIES = {"numpy", *(name for names in _PACKAGES.values() for name in names)}
_EXTENSIONS = {
    "_numpy/_exact": ("_numpy/c",),
    "_numpy/_float32": ("_numpy/c",),
    "torch/_library": ("_numpy/c", "torch/c"),
    "jax/_ffi": ("_numpy/c", "jax/c"),
}


def kernels() -> tuple[str, ...]:
    """Name the kernels that can be measured here: of this CPU, of arrays, of frameworks."""
    packages = {ARRAYS: ("array_api_strict",), **FRAMEWORKS}
    here = (kernel for kernel, needed in packages.items() if all(map(find_spec, needed)))
    return (*ufuncs.available_kernels(), *here)


def inputs_of(job: Record) -> int:
    if job["method"] == "exhaustive":
        return 1 << (32 if job["dtype"] == "float32" else 16)
    return int(job["count"]) + 5 * 32 * int(job["climbers"]) * int(job["rounds"])


def measure(jobs: list[Record], console: Console) -> Generator[Record, None, None]:
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


def answers(jobs: list[Record]) -> list[Record]:
    def rows(kernel: str) -> list[Record]:
        said = _converse(kernel, [job for job in jobs if job["kernel"] == kernel])
        return [content for kind, content in said if kind == "row"]

    with ThreadPoolExecutor(cpus_usable()) as pool:
        found = pool.map(rows, dict.fromkeys(job["kernel"] for job in jobs))
        return [row for each in found for row in each]


def _converse(kernel: str, jobs: list[Record]) -> Generator[tuple[str, Any], None, None]:
    env = dict(os.environ)
    # The truth of an exhaustive run must not use the arithmetic under test.
    env["LOGUNIF_KL_KERNEL"] = kernel if kernel in COMPILED else ""
    # Suppress the frameworks' warnings.
    env |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
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


def _summary(row: Record) -> str:
    text = (
        f"{row['function']:<26} {row['dtype']:<9} {row['kernel']:<9} {row['ulp']:.4f} ulp at "
        f"{', '.join(row['inputs'])} ({row['tried']:.3g} inputs, {row['seconds']} s)"
    )
    if row.get("not_monotone"):
        text += f"; {row['not_monotone']} steps in the wrong direction"
    return text


def key(row: Record) -> Key:
    """Order rows by function, type and kernel."""
    return list(ALL).index(row["function"]), row["dtype"], row["kernel"]


def conditions(report: str, seed: int | None = None) -> Record:
    """Return the conditions of a measurement; raise if an extension is older than its sources."""
    for name, folders in _EXTENSIONS.items():
        files = [path for folder in folders for path in (PACKAGE / folder).glob("*.[ch]")]
        for extension in (PACKAGE / name).parent.glob(f"{Path(name).name}.*"):
            built = extension.stat().st_mtime
            if any(path.stat().st_mtime > built for path in files):
                raise RuntimeError("the extension is older than its sources: build it again")
    command = f"python -m validation.accuracy measure {report}"
    about = provenance(command, "python-flint", *_PACKAGES.get(report, ()))
    del about["kernel"]
    if emulator := os.environ.get(EMULATOR):
        about["machine"]["emulator"] = emulator
    return about | {"seed": seed}


def versions(names: Iterable[str]) -> dict[str, str]:
    return dict(provenance("", *names)["versions"])


def differences(before: Record, now: Record) -> list[str]:
    """Say which conditions differ; only some machines append a processor's clock to its name."""
    return [
        f"{k} {before[condition].get(k)}, not {now[condition].get(k)}"
        for condition in ("machine", "versions")
        for k in before[condition] | now[condition]
        if not _is_alike(str(before[condition].get(k)), str(now[condition].get(k)))
    ]


def _is_alike(a: str, b: str) -> bool:
    return a == b or a.partition(" @ ")[0] == b or b.partition(" @ ")[0] == a


def read(path: Path) -> Record:
    return dict(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []})


def require_same(path: Path, report: Record, about: Record) -> None:
    """Raise if a report has rows of other conditions."""
    if report["rows"] and (changed := differences(report, about)):
        raise RuntimeError(
            f"{path.name} was measured with {'; '.join(changed)}: measure where that is, name "
            "another folder with --out, or remove the file and measure all of it again"
        )


def save(rows: Iterable[Record], path: Path, about: Record) -> None:
    """Replace the rows of the same functions; raise for rows of other conditions."""
    old = read(path)
    require_same(path, old, about)
    known = {key(row): row for row in old["rows"]}
    known |= {key(row): row | {"date": about["date"]} for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_record(str(path), {**about, "rows": [known[k] for k in sorted(known)]})


def is_done(job: Record, rows: Sequence[Record]) -> bool:
    return any(
        all(row[k] == job[k] for k in ("function", "dtype", "kernel", "method"))
        and row["tried"] >= job.get("count", 0)
        for row in rows
    )


def remember(rows: Iterable[Record]) -> None:
    """Add the worst inputs to those that the tests always try. Keep the earlier ones."""
    known = {_point(entry): entry for entry in worst_inputs()}
    for row in (row for row in rows if row["function"] in FUNCTIONS):
        entry = {k: row[k] for k in ("function", "dtype", "inputs", "wanted")}
        known.setdefault(_point(entry), entry)
    lines = [json.dumps(known[k]) for k in sorted(known)]
    WORST_INPUTS.parent.mkdir(parents=True, exist_ok=True)
    WORST_INPUTS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def worst_inputs() -> list[Record]:
    text = WORST_INPUTS.read_text(encoding="utf-8") if WORST_INPUTS.exists() else "[]"
    return list(json.loads(text))


def _point(entry: Record) -> tuple[str, str, tuple[str, ...]]:
    return entry["function"], entry["dtype"], tuple(entry["inputs"])
