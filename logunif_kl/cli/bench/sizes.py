"""``logunif-kl bench --sizes``: every ufunc from a hundred elements to a hundred million."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import special
from ..._numpy import ufuncs
from .._output import new_table, track
from ..provenance import provenance
from ..timing import Job, Spread, ratio, rounds
from . import cold

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 30_000_000, 100_000_000)
MIDDLE = 100_000  # in the caches, and large beside the cost of a call
ROUNDS = 5
# Above this size three rounds are enough, and more would take minutes.
LONG, ROUNDS_OF_LONG = 30_000_000, 3
MUST, AIM, MUST_AT = "<= 1.5", "<= 1.2", 30_000_000
PATTERN = 1_000_000  # random elements, which repeat in larger arrays

NEW, OUT = "new arrays", "out="
DTYPES = ("float64", "float32")


@dataclasses.dataclass(frozen=True, slots=True)
class Ufunc:
    """A ufunc, the names of its arguments, and how many results it has."""

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
    """Draw arguments of the magnitudes that training has."""
    log_alpha = rng.uniform(-10.0, 10.0, number)
    found = {
        "u": np.exp(-log_alpha) / 2.0,
        "log_alpha": log_alpha,
        "mu": rng.standard_normal(number),
        "log_sigma2": -8.0 + 2.0 * rng.standard_normal(number),
    }
    return {name: values.astype(dtype) for name, values in found.items()}


def _measure(
    sizes: Sequence[int], number: int, seed: int
) -> Iterator[tuple[Ufunc, str, str, int, list[dict[int, float]]]]:
    """Yield the seconds an element of each ufunc at each size and at the middle, by rounds."""
    for dtype in DTYPES:
        pattern = usual(np.random.default_rng(seed), PATTERN, dtype)
        for size in sizes:
            for arguments in dict.fromkeys(ufunc.arguments for ufunc in UFUNCS):
                # `resize` repeats the pattern.
                large = [np.resize(pattern[name], size) for name in arguments]
                middle = [np.resize(pattern[name], MIDDLE) for name in arguments]
                group = [ufunc for ufunc in UFUNCS if ufunc.arguments == arguments]
                for kind in (NEW, OUT):
                    yield from _group(group, dtype, kind, large, middle, number)


def _group(
    group: Sequence[Ufunc],
    dtype: str,
    kind: str,
    large: Sequence[np.ndarray],
    middle: Sequence[np.ndarray],
    number: int,
) -> Iterator[tuple[Ufunc, str, str, int, list[dict[int, float]]]]:
    size = large[0].size
    sets = {size: large, MIDDLE: middle}
    outputs = {n: _outputs(group, n, dtype) if kind == OUT else {} for n in sets}
    jobs: dict[str, Job] = {}
    for ufunc in group:
        for n, arrays in sets.items():
            keywords = {"out": outputs[n][ufunc.outputs]} if kind == OUT else {}
            jobs[f"{ufunc.name} {n}"] = partial(ufunc.function, *arrays, **keywords)
    counts = {name: _count(int(name.rpartition(" ")[2])) for name in jobs}
    for name, job in jobs.items():
        if counts[name] > 1:
            job()
    turns = number if size <= LONG else min(number, ROUNDS_OF_LONG)
    samples = list(rounds(jobs, counts, turns))
    for ufunc in group:
        yield (
            ufunc,
            dtype,
            kind,
            size,
            [{n: sample[f"{ufunc.name} {n}"] / n for n in sets} for sample in samples],
        )


def _count(size: int) -> int:
    """Return how many calls take milliseconds together."""
    return min(2_000, max(1, 2_000_000 // size))


def _outputs(group: Sequence[Ufunc], size: int, dtype: str) -> dict[int, tuple[np.ndarray, ...]]:
    """Make result arrays whose pages are there, which the ufuncs of a group share."""
    arrays = [np.full(size, 0.5, dtype) for _ in range(max(u.outputs for u in group))]
    return {u.outputs: tuple(arrays[: u.outputs]) for u in group}


def document(sizes: Sequence[int], number: int, seed: int, command: str) -> dict[str, Any]:
    """Measure everything, and return it with the machine and versions."""
    total = len(UFUNCS) * len(DTYPES) * 2 * len(sizes)
    rows = [
        {
            "function": ufunc.name,
            "dtype": dtype,
            "results": kind,
            "size": size,
            "rounds": len(samples),
            "nanoseconds_an_element": dataclasses.asdict(
                Spread.of([sample[size] for sample in samples]).scaled(1e9)
            ),
            "against_middle": dataclasses.asdict(_against_middle(samples, size)),
            "must": MUST if size == MUST_AT else "",
            "aim": AIM if size == MUST_AT else "",
        }
        for ufunc, dtype, kind, size, samples in track(
            _measure(sizes, number, seed), "timing by size", total
        )
    ]
    return {
        **provenance(command, of="bench"),
        "threads": 1,
        "seed": seed,
        "sizes": list(sizes),
        "middle": MIDDLE,
        "by_size": rows,
        "cold": cold.measure(number, seed, cold.SIZE),
    }


def _against_middle(samples: list[dict[int, float]], size: int) -> Spread:
    names = [{"size": sample[size], "middle": sample[MIDDLE]} for sample in samples]
    return ratio(names, "size", "middle")


def tables(found: dict[str, Any]) -> list[Any]:
    """Make a table for each type and kind of result arrays, and one of cold caches."""
    sizes = [(f"{size:,}", True) for size in found["sizes"]]
    shown = []
    for dtype in DTYPES:
        for kind in (NEW, OUT):
            table = new_table(
                f"Nanoseconds an element by elements, and against {found['middle']:,}: "
                f"{dtype}, {kind}, one thread",
                [("", False), *sizes],
            )
            for ufunc in UFUNCS:
                rows = [
                    row
                    for row in found["by_size"]
                    if (row["function"], row["dtype"], row["results"]) == (ufunc.name, dtype, kind)
                ]
                cells = (
                    f"{row['nanoseconds_an_element']['median']:.2f} "
                    f"({row['against_middle']['median']:.2f})"
                    for row in rows
                )
                table.add_row(ufunc.name, *cells)
            shown.append(table)
    return [*shown, cold.table(found["cold"])]
