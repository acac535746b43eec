"""Write the claims of ``logunif_kl`` into its two modules, from the reports."""

import json
import math
from pathlib import Path
from typing import Any

from validation.output import Record
from validation.paths import PACKAGE

from .driver import RESULTS, key
from .functions import FUNCTIONS
from .proved import proved

CLAIMS = PACKAGE / "accuracy.py"
ISOTROPIC = PACKAGE / "isotropic" / "_accuracy.py"


def rounded_up(ulp: float) -> float:
    """Round up to three decimals, so that the claim includes the measured error."""
    return math.ceil(ulp * 1000) / 1000


def results(folder: Path = RESULTS) -> list[Record]:
    paths = sorted(path for path in folder.glob("*.json") if "." not in path.stem)
    return [row for path in paths for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def render(rows: list[Record]) -> dict[Path, str]:
    """Return the modules with the worst error found for each function, type and kernel."""
    worst: dict[Any, Record] = {}
    for row in sorted(rows, key=lambda row: row["ulp"], reverse=True):
        if not math.isfinite(row["ulp"]):
            raise RuntimeError(
                f"{row['function']}, {row['dtype']}, kernel {row['kernel']} is wrong at "
                f"{', '.join(row['inputs'])}: it gives {row['got']}, not {row['wanted']}"
            )
        worst.setdefault(key(row), row)
    opening = "...] = (\n"
    texts = {
        path: path.read_text(encoding="utf-8").partition(opening)[0] + opening
        for path in (CLAIMS, ISOTROPIC)
    }
    for _, row in sorted(worst.items()):
        texts[CLAIMS if row["function"] in FUNCTIONS else ISOTROPIC] += _claim(row)
    return {path: text + ")\n# fmt: on\n" for path, text in texts.items()}


def _claim(row: Record) -> str:
    names = ", ".join(json.dumps(row[k]) for k in ("function", "dtype", "kernel", "range"))
    inputs = ", ".join(map(json.dumps, row["inputs"]))
    found = f"{rounded_up(row['ulp'])}, ({inputs},), {json.dumps(row['method'])}, {row['tried']}"
    bound = proved(*(row[k] for k in ("function", "dtype", "kernel")))
    return f"    Claim({names}, {found}{'' if bound is None else f', {bound}'}),\n"
