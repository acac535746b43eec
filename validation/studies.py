"""The records of ``logunif-kl compare`` and ``logunif-kl validate``.

python -m validation.studies compare
python -m validation.studies validate
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence

from validation import record
from validation.output import CommandError, Record, write_record
from validation.paths import RESULTS, ROOT

PROGRAM = "python -m validation.studies"
NAMES = ("compare", "validate")
# Times, and the positions of the largest rounding errors of numerical methods.
_NOISE = (
    "*.nanoseconds",
    "rows.*.value.log_alpha",
    "rows.*.gradient.log_alpha",
    "rows.*.honesty.*",
)
_KEPT = ("quantities", "passed", "faults", "rows")  # the other fields describe the run


def document(name: str) -> Record:
    argv = [sys.executable, "-m", "logunif_kl", name, "--json", "-"]
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:  # a failed check has status 1, and still writes its results
        raise CommandError(f"logunif-kl {name} failed with exit status {done.returncode}")
    return {key: value for key, value in json.loads(done.stdout).items() if key in _KEPT}


def complaints(made: Record, *, replay: bool = True) -> Iterator[str]:
    if replay:
        now = document(shlex.split(made["command"])[-1])
        yield from record.computed_again(made, now, _NOISE, _KEPT)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=PROGRAM)
    parser.add_argument("name", choices=NAMES)
    name = parser.parse_args(arguments).name
    path = RESULTS / name / f"{name}.json"
    found = document(name)
    write_record(str(path), {**record.about(f"{PROGRAM} {name}"), **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
