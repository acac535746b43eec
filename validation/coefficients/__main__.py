"""``python -m validation.coefficients [--check]``: write, or compare, the coefficient files."""

import argparse
import hashlib
import os
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from mpmath import mp

from validation import generated
from validation.coefficients.fit import Table, fit_elementary, fit_table
from validation.coefficients.write import COMMAND, c_source, python_source, sealed
from validation.output import track
from validation.paths import PACKAGE

HERE = Path(__file__).parent
FILES = (
    PACKAGE / "_arithmetic" / "coefficients.py",
    PACKAGE / "_numpy" / "c" / "exact_coefficients.h",
)


def load_spec() -> tuple[dict[str, Any], str]:
    text = (HERE / "spec.toml").read_bytes()
    return tomllib.loads(text.decode()), hashlib.sha256(text).hexdigest()


def fit_entry(entry: dict[str, Any], digits: int, centre_bits: int) -> Table:
    with mp.workdps(digits):
        if "half_width" in entry or "range" in entry:
            return fit_elementary(entry)
        return fit_table(entry, centre_bits)


def sources(jobs: int) -> dict[Path, str]:
    spec, digest = load_spec()
    entries = spec["table"] + spec["elementary"]
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(fit_entry, e, spec["digits"], spec["centre_bits"]) for e in entries]
        done = [job.result() for job in track(running, "fitting", len(running))]
    tables, elementary = done[: len(spec["table"])], done[len(spec["table"]) :]
    with mp.workdps(spec["digits"]):
        writers = dict(zip(FILES, (python_source, c_source), strict=True))
        return {path: sealed(write(tables, elementary, digest)) for path, write in writers.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (all cores)")
    args = parser.parse_args()
    return generated.update(sources(args.jobs), COMMAND, check=args.check)


if __name__ == "__main__":
    sys.exit(main())
