"""Run the tests that show what works in which framework, and write the table.

    python -m validation.tools.capability [--check] [--run RUN] [--jobs N] [--print]

The table is ``validation/results/capability/capability.json``. A row is written if all tests that
record it passed, and nothing if some tests could not run. ``--check`` compares the existing table
instead, for the installed frameworks. ``--run slow`` chooses the tests that are marked slow; rows
of other runs and frameworks are kept. ``--run adapters`` runs the tests of the frameworks that
`logunif_kl._adapters` serves, in an environment that has them. Each framework has its own process.
"""

import argparse
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from validation import record
from validation.output import Record, cpus_usable, write_record
from validation.paths import RESULTS, ROOT
from validation.tools import elsewhere
from validation.tools.capability import table

COMMAND = "python -m validation.tools.capability"
RESULT = RESULTS / "capability" / "capability.json"
RUNS = {"default": "not slow and not gpu", "slow": "slow and not gpu", "gpu": "gpu"}
ADAPTERS = "adapters"
RUNS[ADAPTERS] = "not gpu"
# The longest first.
TESTS = {
    "torch": ("tests/torch", "logunif_kl/torch"),
    "jax": ("tests/jax", "logunif_kl/jax"),
    "tensorflow": ("tests/tensorflow", "logunif_kl/tensorflow"),
    "arrays": (
        "tests/numpy/test_three_results.py",
        "tests/scale",
        "tests/test_dispatch.py",
        "tests/test_public.py",
        "tests/test_reduction.py",
    ),
    ADAPTERS: ("tests/adapters",),
    "readme": (
        "tests/packaging/test_readme.py::test_examples",
        "tests/site/test_examples.py",
        "tests/site/test_alone.py",
        "tests/site/test_gallery.py",
    ),
}
# A package that affects rows of other frameworks.
BESIDE = ("triton",)
NO_TESTS = 5


class Finished(NamedTuple):
    name: str
    status: int
    seconds: float
    output: str
    tests: list[Record] | None  # None if the process ended before it reported


def module(framework: str) -> str:
    return framework.replace("-", "_")


def installed(framework: str) -> bool:
    return find_spec(module(framework)) is not None


def pytest_run(name: str, paths: Sequence[str], run: str) -> Finished:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        plugin = ["-p", "validation.tools.capability.plugin", "--capability-report", str(report)]
        command = [sys.executable, "-m", "pytest", *paths, "-m", RUNS[run], *plugin]
        done = elsewhere.run([*command, "--durations=10"], cwd=ROOT)
        # Any other exit status means that some tests did not run.
        ended = report.exists() and done.returncode in (0, 1, NO_TESTS)
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"] if ended else None
    status = 0 if done.returncode == NO_TESTS else done.returncode
    return Finished(name, status, time.monotonic() - began, done.stdout, tests)


def run_all(run: str, jobs: int) -> list[Finished]:
    names = [name for name in TESTS if name in ("arrays", "readme") or installed(name)]
    if run == ADAPTERS:
        names = [ADAPTERS]
    with ThreadPoolExecutor(jobs) as pool:
        pending = [pool.submit(pytest_run, name, TESTS[name], run) for name in names]
        for future in pending:
            done = future.result()
            print(f"-- {done.name} [{done.seconds:.0f} s]\n{done.output}", flush=True)
    return [future.result() for future in pending]


def on_file() -> tuple[Record, table.Table]:
    if not RESULT.exists():
        return {}, {}
    document = json.loads(RESULT.read_text(encoding="utf-8"))
    return document, table.from_json(document["rows"])


def write(rows: table.Table, before: Record, command: str, run: str) -> None:
    """Write the table, with the versions behind each run and each framework's rows."""
    homes = metadata.packages_distributions()
    shown = sorted({row.framework for row, runs in rows.items() if run in runs})
    # TensorFlow's CPU wheels have another name.
    packages = {name: homes.get(module(name), [name])[0] for name in shown if installed(name)}
    about = record.about(command, *packages.values(), *BESIDE)
    made = {name: dict(runs) for name, runs in before.get("made_with", {}).items()}
    for name, package in packages.items():
        version = f"{package} {metadata.version(package)}"
        made.setdefault(name, {})[run] = {"version": version, "date": about["date"]}
    abouts = {**before.get("runs", {}), run: about}
    abouts = {name: abouts[name] for name in RUNS if name in abouts}
    document = {"command": COMMAND, "runs": abouts, "made_with": made, "rows": table.to_json(rows)}
    write_record(str(RESULT), document)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--run", choices=RUNS, default="default", help="which tests")
    parser.add_argument("--jobs", type=int, default=cpus_usable(), help="processes at a time")
    parser.add_argument("--print", action="store_true", help="print the table on file")
    options = parser.parse_args(arguments)
    before, rows = on_file()
    if options.print:
        print(table.text(rows))
        return 0
    finished = run_all(options.run, max(options.jobs, 1))
    cut_short = [done for done in finished if done.tests is None]
    found = table.outcome(test for done in finished for test in done.tests or ())
    frameworks = {row.framework for row in rows} | {row.framework for row in found.passed}
    there = {name for name in frameworks if installed(name)}
    now = table.merged(rows, found.passed, options.run, there)
    print(table.text({row: runs for row, runs in now.items() if row in found.passed}))
    for name in sorted(frameworks - there):
        kept = sum(row.framework == name for row in rows)
        print(f"\n{name} is not installed: its {kept} rows are as they were on file")
    complaints = [
        f"{row}: {test} failed" for row, tests in found.failures.items() for test in tests
    ]
    complaints += [
        f"the tests of {d.name} failed (pytest: {d.status})" for d in finished if d.status
    ]
    if options.check:
        complaints += table.differences(rows, now)
    elif cut_short:
        names = ", ".join(done.name for done in cut_short)
        complaints.append(
            f"nothing was written, for the tests of {names} did not run to their end: see their "
            "output above (is what `pip install -e '.[dev]'` installs there?)"
        )
    else:
        write(now, before, shlex.join([*COMMAND.split(), *arguments]), options.run)
    seconds = ", ".join(f"{done.name} {done.seconds:.0f} s" for done in finished)
    print(f"\n{len(found.passed)} capabilities shown by this {options.run} run ({seconds})")
    for line in complaints:
        print(line, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
