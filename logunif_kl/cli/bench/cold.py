"""SciPy's Dawson function against the gradient, with arrays that no cache holds.

`timing.rounds` runs its jobs over the same arrays, which a large cache keeps. Here the two are
called in turn, and each call has arrays of its own, larger than the caches in all.
"""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from ... import special
from .._output import new_table, track
from ..timing import Spread, ratio

SIZE = 1_000_000
CACHES_UNKNOWN = 64 * 2**20  # what is assumed where the system does not tell
BYTES_AT_MOST = 3 * 2**30
TIMES_THE_CACHES = 3
MUST = ">= 8"
DAWSN, GRAD = "scipy dawsn", "kl_gap_grad"


def cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Read the size of the largest cache of the first processor, as Linux tells it."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    found = []
    for path in root.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if text[:-1].isdigit() and text[-1] in units:
            found.append(int(text[:-1]) * units[text[-1]])
    return max(found, default=CACHES_UNKNOWN)


def measure(number: int, seed: int, size: int) -> dict[str, Any]:
    """Time both over ``number`` passes through the arrays, for each type."""
    caches = cache_bytes()
    rows = []
    for dtype in (np.float64, np.float32):
        each = 2 * size * np.dtype(dtype).itemsize  # an argument and a result
        sets = max(4, math.ceil(TIMES_THE_CACHES * caches / (2 * each)))
        sets = max(2, min(sets, BYTES_AT_MOST // (2 * each)))
        samples = _samples(number, sets, np.random.default_rng(seed), size, dtype)
        over = ratio(samples, DAWSN, GRAD)
        rows.append(
            {
                "dtype": np.dtype(dtype).name,
                "bytes_in_all": 2 * each * sets,
                "nanoseconds_an_element": {
                    name: dataclasses.asdict(
                        Spread.of([sample[name] for sample in samples]).scaled(1e9 / size)
                    )
                    for name in (DAWSN, GRAD)
                },
                "ratio": dataclasses.asdict(over),
                "must": MUST if dtype is np.float64 else "",
            }
        )
    return {"size": size, "largest_cache_bytes": caches, "rows": rows}


def _samples(
    number: int, sets: int, rng: np.random.Generator, size: int, dtype: Any
) -> list[dict[str, float]]:
    from scipy.special import dawsn

    u = (np.exp(-rng.uniform(-10.0, 10.0, size)) / 2.0).astype(dtype)
    jobs: dict[str, tuple[Any, np.ndarray]] = {
        DAWSN: (dawsn, np.sqrt(u)),
        GRAD: (special.kl_gap_grad, u),
    }
    arrays = {
        name: [(argument.copy(), np.zeros_like(argument)) for _ in range(sets)]
        for name, (_, argument) in jobs.items()
    }
    samples = []
    for index in track(range(number * sets), "cold caches", number * sets):
        took = {}
        for name, (function, _) in jobs.items():
            argument, out = arrays[name][index % sets]
            began = time.perf_counter()
            function(argument, out=out)
            took[name] = time.perf_counter() - began
        samples.append(took)
    return samples


def table(found: dict[str, Any]) -> Any:
    """Make the table."""
    made = new_table(
        f"Cold caches: {found['size']:,} elements, called in turn over separate arrays",
        [
            ("", False),
            (f"{DAWSN}, ns", True),
            (f"{GRAD}, ns", True),
            ("ratio", True),
            ("quartiles", True),
            ("must", True),
        ],
    )
    for row in found["rows"]:
        spread = row["ratio"]
        made.add_row(
            row["dtype"],
            *(f"{row['nanoseconds_an_element'][n]['median']:.2f}" for n in (DAWSN, GRAD)),
            f"{spread['median']:.2f}",
            f"{spread['lower_quartile']:.2f} to {spread['upper_quartile']:.2f}",
            row["must"],
        )
    return made
