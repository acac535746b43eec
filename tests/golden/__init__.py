"""Golden tables: exact inputs and 40 digits of truth, each with the provenance of its making.

``validation/golden/make.py`` writes them. A row is the inputs as hexadecimal floats, then the
results as decimal strings; a results column of its own for each output.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
NAMES = (
    "kl_gap",
    "kl_gap_grad",
    "kl_gap_hess",
    "neg_kl",
    "neg_kl_grad",
    "neg_kl_hess",
    "neg_kl_normal",
)
ARITY = {name: (2, 3) if name == "neg_kl_normal" else (1, 1) for name in NAMES}
"""Inputs and outputs. Those of neg_kl_normal are its value, d/dmu and d/dlog_sigma2."""


@dataclass(frozen=True)
class Table:
    """One table; ``inputs`` and ``outputs`` have a tuple a row."""

    name: str
    header: dict[str, str]
    text: str
    inputs: tuple[tuple[float, ...], ...]
    outputs: tuple[tuple[str, ...], ...]

    @property
    def sha256(self) -> str:
        """Of the rows as they are written."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def args(self) -> tuple[np.ndarray, ...]:
        """Return one float64 array an input."""
        return tuple(np.array(self.inputs).T)

    def expected(self, output: int = 0) -> np.ndarray:
        """Return the truth rounded to float64."""
        return np.array([float(row[output]) for row in self.outputs])


@cache
def load(name: str) -> Table:
    """Read one table. ``name`` is that of a ufunc."""
    lines = (HERE / f"{name}.txt").read_text(encoding="ascii").splitlines(keepends=True)
    header = dict(line[2:].rstrip("\n").split(": ", 1) for line in lines if line.startswith("# "))
    rows = [line for line in lines if not line.startswith("#")]
    n = ARITY[name][0]
    fields = [row.split() for row in rows]
    return Table(
        name,
        header,
        "".join(rows),
        tuple(tuple(map(float.fromhex, row[:n])) for row in fields),
        tuple(tuple(row[n:]) for row in fields),
    )
