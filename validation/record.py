"""The committed records: how each was made, and whether today's code gives the same numbers.

    python -m validation.record check [FILE ...] [--jobs N]
    python -m validation.record reprobe FILE --because REASON

A record is a JSON file in ``validation/results``: the command that made it, the commit, versions,
machine and date, its content, and a hash of all of these (the seal), which reveals manual changes.
A record of an experiment also holds ``settings``, the sizes of the run, and ``probe``, the numbers
of the experiment's quick form at the same commit.

``check`` lets the module in the record's command compare it with today's code: an experiment its
settings and its quick form, column by column, kernels the bits of fixed outputs, and cheap studies
all. Records of speed and of long searches are evidence of their commit, so only their seals are
checked. A new probe needs a new full run, or a reason (``reprobe``), which the experiment's page
shows.
"""

import argparse
import datetime
import json
import math
import multiprocessing
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from validation.output import (
    SEAL,
    CommandError,
    Record,
    complain,
    emit,
    provenance,
    seal,
    write_record,
)
from validation.paths import RESULTS, ROOT

PROGRAM = "python -m validation.record"
TOLERANCE = 1e-5
"""The largest difference of a number from the probe, relative to the largest of its column.

Another instruction set, or another vector library of PyTorch, changes the numbers by at most 2e-6,
and a wrong divergence by at least 9e-4.
"""
ROUNDING = 1e-14  # allowed difference of numbers near zero in a repeated study
DIGITS = 9  # per number in a probe
CLOCK = ("*seconds*",)  # columns that depend on the clock
_UNUSUAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def commit() -> str | None:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "logunif_kl", "validation/*.py")
        return git("rev-parse", "--short=7", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return None


def about(command: str, *packages: str) -> Record:
    found = provenance(command, *packages)
    return {"command": found.pop("command"), "commit": commit(), **found}


def is_sealed(path: Path) -> bool:
    document = json.loads(path.read_text(encoding="utf-8"))
    return bool(document.get(SEAL) == seal(document))


def read(path: Path) -> Record:
    """Read a record, and turn strings for NaN and infinity into numbers."""
    return dict(_with_numbers(json.loads(path.read_text(encoding="utf-8"))))


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_numbers(item) for item in value]
    return _UNUSUAL.get(value, value) if isinstance(value, str) else value


def columns(document: Record, without: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the content of a document by path, with ``*`` for the indices of lists.

    Leave out columns that depend on the clock, and those that match a pattern of ``without``.
    """
    found: dict[str, list[Any]] = {}

    def add(path: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                add(f"{path}.{key}" if path else str(key), item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                add(f"{path}.*", item)
        elif not any(fnmatch(path, pattern) for pattern in (*CLOCK, *without)):
            found.setdefault(path, []).append(_rounded(value))

    add("", document)
    return found


def _rounded(value: Any) -> Any:
    """Round a number, or a string that holds one, such as NaN or infinity."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def differences(
    before: dict[str, list[Any]], now: dict[str, list[Any]], *, each: bool = False
) -> Iterator[str]:
    """Say which columns differ: numbers by more than `TOLERANCE`, other values at all.

    The tolerance is relative to the largest number of the column or, with ``each``, to the number
    itself; near zero `ROUNDING` is allowed.
    """
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, []), now.get(name, [])
        if len(old) != len(new):
            yield f"{name} has {len(new)} values, not {len(old)}"
            continue
        sizes = [abs(x) for x in old if _is_number(x) and math.isfinite(x)]
        largest = None if each else max(sizes, default=0.0)
        off = [_off(x, y, largest) for x, y in zip(old, new, strict=True)]
        worst = max(off, default=0.0)
        if worst > TOLERANCE:
            place = off.index(worst)
            yield f"{name} is {new[place]!r}, not {old[place]!r}"


def computed_again(
    made: Record, now: Record, without: Sequence[str] = (), keys: Iterable[str] = ()
) -> Iterator[str]:
    """Compare the repeated parts of a record with the parts that it holds.

    All parts under the ``keys`` in the record must have been repeated.
    """
    old = {key: made[key] for key in (*now, *keys) if key in made}
    new = columns(json.loads(json.dumps(now)), without)
    changed = list(differences(columns(old, without), new, each=True))
    if changed:
        yield f"{len(changed)} columns changed: {changed[0]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _off(old: Any, new: Any, size: float | None) -> float:
    """Return the distance of two values, relative to a size or, with None, to the first value."""
    if not (_is_number(old) and _is_number(new) and math.isfinite(old) and math.isfinite(new)):
        return 0.0 if old == new or (old != old and new != new) else math.inf
    if size is None:
        size = max(abs(old), ROUNDING / TOLERANCE)
    return 0.0 if new == old else abs(new - old) / size if size else math.inf


class Judged(NamedTuple):
    """The result of `check` for a record: why it does not hold, and whether numbers were tried."""

    complaints: list[str]
    replayed: bool


def judge(path: Path, *, replay: bool = True) -> Judged:
    """Check the seal of a record, and let its module compare it with today's code.

    Without ``replay``, an experiment compares only the settings.
    """
    if not is_sealed(path):
        return Judged(["it is not what its command wrote: its content was changed"], False)
    try:
        document = read(path)
        complaints = _maker(document["command"])
        if complaints is None:
            return Judged([], False)
        return Judged(list(complaints(document, replay=replay)), replay)
    except (Exception, SystemExit) as error:  # one record must not end the check of all
        return Judged([f"it could not be compared ({error!r})"], False)


def _maker(command: str) -> Any:
    name = shlex.split(command)[2]
    found = find_spec(name)
    is_package = found is not None and found.submodule_search_locations is not None
    module = import_module(f"{name}.__main__" if is_package else name)
    return getattr(getattr(module, "EXPERIMENT", module), "complaints", None)


def committed() -> list[Path]:
    return sorted(path for path in RESULTS.rglob("*.json") if "." not in path.stem)


def check(paths: Sequence[Path], jobs: int) -> int:
    """Print which records do not hold, and their number; return 1 if there are any."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that repeat quick forms
    failed, tried, replaced = 0, 0, 0
    spawned = multiprocessing.get_context("spawn")
    # Use a process for each record: some frameworks abort after another one is imported.
    with ProcessPoolExecutor(jobs, spawned, max_tasks_per_child=1) as pool:
        for path, found in zip(paths, pool.map(judge, paths), strict=True):
            record = read(path)
            tried += found.replayed
            replaced += len(record.get("replaced_probes", ()))
            failed += bool(found.complaints)
            for complaint in found.complaints:
                name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
                emit(f"{name}: {complaint}. {record['command']} makes it again.\n")
    emit(
        f"{len(paths) - failed} of {len(paths)} records hold. {tried} were computed again, at "
        f"least in part; the others are evidence of their commit. {replaced} probes were "
        "replaced without a new run.\n"
    )
    return 1 if failed else 0


def reprobe(path: Path, reason: str) -> None:
    """Replace the probe of an experiment's record; keep the old probe with the reason."""
    if not is_sealed(path):
        raise CommandError(f"{path.name} was changed by hand, so it gets no new probe")
    record = read(path)
    experiment = getattr(import_module(shlex.split(record["command"])[2]), "EXPERIMENT", None)
    if experiment is None:
        raise CommandError(f"{path.name} has no probe: only the records of experiments have one")
    old = {
        "because": reason,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "probe": record["probe"],
    }
    probes = [*record.get("replaced_probes", []), old]
    write_record(str(path), {**record, "probe": experiment.probe(), "replaced_probes": probes})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=PROGRAM)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("check", help="find the records that do not hold")
    one.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all")
    one.add_argument("--jobs", type=int, default=2, metavar="N", help="at a time (default: 2)")
    one = commands.add_parser("reprobe", help="replace a probe, and keep the old one")
    one.add_argument("file", type=Path, metavar="FILE")
    one.add_argument("--because", required=True, metavar="REASON", help="why no new run is needed")
    options = parser.parse_args(arguments)
    try:
        if options.command == "check":
            return check([p.resolve() for p in options.files] or committed(), options.jobs)
        reprobe(options.file.resolve(), options.because)
    except CommandError as error:
        complain(f"{PROGRAM}: error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
