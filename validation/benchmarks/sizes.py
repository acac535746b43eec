"""Times of every ufunc from a hundred to a hundred million elements, and with cold caches."""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from logunif_kl import special
from logunif_kl._numpy import ufuncs
from logunif_kl.cli.timing import Job, ratio, rounds, spread, spreads
from validation.output import Record, track

MIDDLE = 100_000  # fits the caches, and a call costs comparatively little
# Above this size use three rounds, because more would take minutes.
LONG, ROUNDS_OF_LONG = 30_000_000, 3
PATTERN = 1_000_000  # random elements, repeated in larger arrays
NEW, OUT = "new arrays", "out="
DTYPES = ("float64", "float32")

COLD_SIZE = 1_000_000
CACHES_UNKNOWN = 64 * 2**20  # assumed if the system does not tell
BYTES_AT_MOST = 3 * 2**30
TIMES_THE_CACHES = 3
DAWSN, GRAD = "scipy dawsn", "kl_gap_grad"


class Ufunc(NamedTuple):
    """A ufunc, the names of its arguments, and the number of its results."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    outputs: int = 1


_NORMAL = ("mu", "log_sigma2")
UFUNCS = (
    Ufunc("kl_gap", special.kl_gap, ("u",)),
    Ufunc("kl_gap_grad", special.kl_gap_grad, ("u",)),
    Ufunc("kl_gap_hess", special.kl_gap_hess, ("u",)),
    Ufunc("neg_kl", ufuncs.neg_kl, ("log_alpha",)),
    Ufunc("neg_kl_grad", ufuncs.neg_kl_grad, ("log_alpha",)),
    Ufunc("neg_kl_hess", ufuncs.neg_kl_hess, ("log_alpha",)),
    Ufunc("neg_kl_normal, value", ufuncs.neg_kl_normal_value, _NORMAL),
    Ufunc("neg_kl_normal, with gradients", special.neg_kl_normal_and_grad, _NORMAL, 3),
    Ufunc("kl", ufuncs.kl, ("log_alpha",)),
    Ufunc("kl_normal", ufuncs.kl_normal, _NORMAL),
)


def usual(rng: np.random.Generator, number: int, dtype: str) -> dict[str, np.ndarray]:
    """Draw arguments of the magnitudes that occur in training."""
    log_alpha = rng.uniform(-10.0, 10.0, number)
    found = {
        "u": np.exp(-log_alpha) / 2.0,
        "log_alpha": log_alpha,
        "mu": rng.standard_normal(number),
        "log_sigma2": -8.0 + 2.0 * rng.standard_normal(number),
    }
    return {name: values.astype(dtype) for name, values in found.items()}


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    """Time every ufunc at each size next to the middle size, then two ufuncs with cold caches."""
    sizes = sorted({*options.size, MIDDLE})
    total = len(UFUNCS) * len(DTYPES) * 2 * len(sizes)
    rows = track(_rows(sizes, options.rounds, options.seed), "timing by size", total)
    return [], {
        "threads": 1,
        "seed": options.seed,
        "sizes": sizes,
        "middle": MIDDLE,
        "by_size": list(rows),
        "cold": cold(options.rounds, options.seed, COLD_SIZE),
    }


def _rows(sizes: Sequence[int], number: int, seed: int) -> Iterator[Record]:
    for dtype in DTYPES:
        pattern = usual(np.random.default_rng(seed), PATTERN, dtype)
        for size in sizes:
            for arguments in dict.fromkeys(ufunc.arguments for ufunc in UFUNCS):
                # `resize` repeats the pattern.
                sets = {n: [np.resize(pattern[a], n) for a in arguments] for n in (size, MIDDLE)}
                group = [ufunc for ufunc in UFUNCS if ufunc.arguments == arguments]
                for kind in (NEW, OUT):
                    jobs, counts = _jobs(group, sets, dtype, kind == OUT)
                    turns = number if size <= LONG else min(number, ROUNDS_OF_LONG)
                    samples = [
                        {job: seconds / job[1] for job, seconds in sample.items()}
                        for sample in rounds(jobs, counts, turns)
                    ]
                    for ufunc in group:
                        at_size, at_middle = (ufunc.name, size), (ufunc.name, MIDDLE)
                        yield {
                            "function": ufunc.name,
                            "dtype": dtype,
                            "results": kind,
                            "size": size,
                            "rounds": turns,
                            "nanoseconds_an_element": spread([s[at_size] for s in samples], 1e9),
                            "against_middle": ratio(samples, at_size, at_middle),
                        }


def _jobs(
    group: Sequence[Ufunc], sets: dict[int, list[np.ndarray]], dtype: str, out: bool
) -> tuple[dict[Any, Job], dict[Any, int]]:
    """Make the jobs of some ufuncs by name and size, and the number of runs in a round."""
    jobs: dict[Any, Job] = {}
    for size, arrays in sets.items():
        # Result arrays in allocated pages, which the ufuncs share.
        most = max(ufunc.outputs for ufunc in group)
        results = tuple(np.full(size, 0.5, dtype) for _ in range(most if out else 0))
        for ufunc in group:
            keywords = {"out": results[: ufunc.outputs]} if out else {}
            jobs[ufunc.name, size] = partial(ufunc.function, *arrays, **keywords)
    counts = {job: _count(job[1]) for job in jobs}
    for name, job in jobs.items():
        if counts[name] > 1:
            job()
    return jobs, counts


def _count(size: int) -> int:
    """Return the number of calls that take milliseconds together."""
    return min(2_000, max(1, 2_000_000 // size))


def cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Read the size of the first processor's largest cache from Linux."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    found = []
    for path in root.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if text[:-1].isdigit() and text[-1] in units:
            found.append(int(text[:-1]) * units[text[-1]])
    return max(found, default=CACHES_UNKNOWN)


def cold(number: int, seed: int, size: int) -> Record:
    """Time SciPy's Dawson function and the gradient with arrays that no cache holds.

    Call the two in turn, each time with other arrays, whose total size exceeds the caches.
    ``number`` passes go through the arrays.
    """
    from scipy.special import dawsn

    caches = cache_bytes()
    rows = []
    for dtype in DTYPES:
        each = 2 * size * np.dtype(dtype).itemsize  # one argument and one result
        sets = max(4, math.ceil(TIMES_THE_CACHES * caches / (2 * each)))
        sets = max(2, min(sets, BYTES_AT_MOST // (2 * each)))
        draws = np.random.default_rng(seed).uniform(-10.0, 10.0, size)
        u = (np.exp(-draws) / 2.0).astype(dtype)
        jobs = {
            DAWSN: _on_others(dawsn, np.sqrt(u), sets),
            GRAD: _on_others(special.kl_gap_grad, u, sets),
        }
        turns = rounds(jobs, dict.fromkeys(jobs, 1), number * sets)
        samples = list(track(turns, f"cold caches, {dtype}", number * sets))
        rows.append(
            {
                "dtype": dtype,
                "bytes_in_all": 2 * each * sets,
                "nanoseconds_an_element": spreads(samples, 1e9 / size),
                "ratio": ratio(samples, DAWSN, GRAD),
            }
        )
    return {"size": size, "largest_cache_bytes": caches, "rows": rows}


def _on_others(function: Callable[..., Any], argument: np.ndarray, sets: int) -> Job:
    """Make a job that takes the next of `sets` pairs of argument and result in each call."""
    pairs = cycle([(argument.copy(), np.zeros_like(argument)) for _ in range(sets)])
    return lambda: function(*next(pairs))
