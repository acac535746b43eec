"""``logunif-kl bench --magnitudes``: the slowest magnitudes against the usual.

All magnitudes are timed in few rounds, each beside the usual one, and compared by the least times.
The slowest of each function are then timed in more rounds, and the medians of the ratios reported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._output import new_table, track
from ..provenance import provenance
from ..timing import Job, Spread, ratio, repetitions, rounds
from .cells import SHARES, Arrays, Cell, cells, mixed
from .sizes import DTYPES, UFUNCS, Ufunc, usual

ROUNDS = 15  # of the slowest; the search has fewer
_ROUNDS_OF_SEARCH = 3
_SLOWEST = 10
_CHUNK = 15  # cells timed together, and the usual magnitude beside them
_SECONDS = 1e-4
_ELEMENTS = 4096  # for a ufunc: within the caches
USUAL = "usual"
MUST, AIM = "<= 2", "<= 1.3"
_AIMED = 1.3
_SPECIAL = ("0", "inf", "-inf", "nan")


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """A function on a framework, in a type: its arguments, and how a call is made of arrays."""

    function: str
    framework: str
    dtype: str
    arguments: tuple[str, ...]
    elements: int
    job: Callable[..., Job]
    threads: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Timed:
    """A cell, which share of the elements it has, and its time against the usual one's."""

    cell: Cell
    share: str
    ratio: float


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What was found of a function."""

    way: Way
    usual: Spread
    all: list[Timed]
    slowest: list[tuple[Timed, Spread, Spread]]


def ufuncs() -> list[Way]:
    """List the ufuncs in each type."""
    return [
        Way(ufunc.name, "numpy", dtype, ufunc.arguments, _ELEMENTS, partial(_job, ufunc))
        for ufunc in UFUNCS
        for dtype in DTYPES
    ]


def _job(ufunc: Ufunc, *arrays: np.ndarray) -> Job:
    out = tuple(np.empty_like(arrays[0]) for _ in range(ufunc.outputs))
    return partial(ufunc.function, *arrays, out=out)


def measure(ways: Sequence[Way], number: int, seed: int) -> list[Found]:
    """Search the slowest magnitudes of each function, and time them in ``number`` rounds."""
    plans = [[(c, s) for c in cells(w.arguments, w.dtype) for s in SHARES] for w in ways]
    total = sum(len(range(0, len(plan), _CHUNK)) for plan in plans)
    steps = track(_search(ways, plans, seed), "magnitudes", total)
    timed: dict[int, list[Timed]] = {index: [] for index in range(len(ways))}
    for index, some in steps:
        timed[index] += some
    return [
        _again(way, timed[index], number, seed)
        for index, way in track(enumerate(ways), "the slowest again", len(ways))
    ]


def _search(
    ways: Sequence[Way], plans: Sequence[list[tuple[Cell, str]]], seed: int
) -> Iterator[tuple[int, list[Timed]]]:
    for index, (way, plan) in enumerate(zip(ways, plans, strict=True)):
        rng = np.random.default_rng(seed)
        among = _usual(way, rng)
        for begin in range(0, len(plan), _CHUNK):
            chunk = plan[begin : begin + _CHUNK]
            samples = _samples(way, chunk, among, rng, _ROUNDS_OF_SEARCH)
            least = {name: min(sample[name] for sample in samples) for name in samples[0]}
            yield (
                index,
                [
                    Timed(cell, share, least[str(i)] / least[USUAL])
                    for i, (cell, share) in enumerate(chunk)
                ],
            )


def _usual(way: Way, rng: np.random.Generator) -> Arrays:
    drawn = usual(rng, way.elements, way.dtype)
    return {name: drawn[name] for name in way.arguments}


def _samples(
    way: Way,
    chunk: Sequence[tuple[Cell, str]],
    among: Arrays,
    rng: np.random.Generator,
    number: int,
) -> list[dict[str, float]]:
    jobs = {USUAL: way.job(*among.values())}
    for i, (cell, share) in enumerate(chunk):
        jobs[str(i)] = way.job(*mixed(cell, SHARES[share], among, rng, way.dtype).values())
    for job in jobs.values():
        job()
    (count,) = repetitions({USUAL: jobs[USUAL]}, _SECONDS).values()
    return list(rounds(jobs, dict.fromkeys(jobs, count), number))


def _again(way: Way, timed: list[Timed], number: int, seed: int) -> Found:
    rng = np.random.default_rng(seed)
    slowest = sorted(timed, key=lambda each: -each.ratio)[:_SLOWEST]
    pairs = [(each.cell, each.share) for each in slowest]
    samples = _samples(way, pairs, _usual(way, rng), rng, number)
    scale = 1e9 / way.elements
    found = [
        (
            each,
            ratio(samples, str(i), USUAL),
            Spread.of([sample[str(i)] for sample in samples]).scaled(scale),
        )
        for i, each in enumerate(slowest)
    ]
    found.sort(key=lambda row: -row[1].median)
    return Found(way, Spread.of([s[USUAL] for s in samples]).scaled(scale), timed, found)


def document(
    ways: Sequence[Way],
    number: int,
    seed: int,
    command: str,
    kinds: Sequence[str],
    packages: Sequence[str],
) -> dict[str, Any]:
    """Measure everything, and return it with the machine and versions."""
    found = measure(ways, number, seed)
    return {
        **provenance(command, *packages, of=kinds),
        "threads": 1,  # where a function does not say otherwise
        "seed": seed,
        "rounds": number,
        "by_function": [_function(each) for each in found],
    }


def _function(found: Found) -> dict[str, Any]:
    way = found.way
    sweeps: dict[str, list[Timed]] = {}
    for each in found.all:
        sweeps.setdefault(each.cell.sweep, []).append(each)
    return {
        "function": way.function,
        "framework": way.framework,
        "dtype": way.dtype,
        "elements": way.elements,
        "threads": way.threads,
        "usual_nanoseconds": dataclasses.asdict(found.usual),
        "must": MUST,
        "aim": AIM,
        "slowest": [
            {
                **_named(each),
                "nanoseconds": dataclasses.asdict(nanoseconds),
                "against_usual": dataclasses.asdict(spread),
            }
            for each, spread, nanoseconds in found.slowest
        ],
        "searched": [
            {
                "argument": sweep,
                "magnitudes": len(some),
                "above_aim": sum(each.ratio > _AIMED for each in some),
                "slowest": {**_named(max(some, key=_ratio)), "ratio": max(map(_ratio, some))},
            }
            for sweep, some in sweeps.items()
        ],
        "special": [
            {**_named(each), "ratio": each.ratio} for each in found.all if each.cell.at in _SPECIAL
        ],
    }


def _ratio(timed: Timed) -> float:
    return timed.ratio


def _named(timed: Timed) -> dict[str, str]:
    return {"argument": timed.cell.sweep, "at": timed.cell.at, "elements": timed.share}


def tables(found: dict[str, Any]) -> list[Any]:
    """Make a table of the slowest magnitude of each function, and one by argument."""
    worst = new_table(
        "The slowest magnitude of each function, against the usual",
        [
            ("", False),
            ("type", False),
            ("usual, ns", True),
            ("slowest, ns", True),
            ("argument", False),
            ("at", False),
            ("elements", False),
            ("ratio", True),
            ("quartiles", True),
            ("must", True),
            ("aim", True),
        ],
    )
    searched = new_table(
        "By argument, the least of few rounds (the slowest above were timed again)",
        [
            ("", False),
            ("type", False),
            ("argument", False),
            ("magnitudes", True),
            (f"above {_AIMED}", True),
            ("slowest at", False),
            ("elements", False),
            ("ratio", True),
        ],
    )
    for row in found["by_function"]:
        several = f", {row['threads']} threads" if row["threads"] > 1 else ""
        name = f"{row['framework']}: {row['function']}{several}"
        slowest, spread = row["slowest"][0], row["slowest"][0]["against_usual"]
        worst.add_row(
            name,
            row["dtype"],
            f"{row['usual_nanoseconds']['median']:.2f}",
            f"{slowest['nanoseconds']['median']:.2f}",
            slowest["argument"],
            slowest["at"],
            slowest["elements"],
            f"{spread['median']:.2f}",
            f"{spread['lower_quartile']:.2f} to {spread['upper_quartile']:.2f}",
            row["must"],
            row["aim"],
        )
        for sweep in row["searched"]:
            top = sweep["slowest"]
            searched.add_row(
                name,
                row["dtype"],
                sweep["argument"],
                str(sweep["magnitudes"]),
                str(sweep["above_aim"]),
                top["at"],
                top["elements"],
                f"{top['ratio']:.2f}",
            )
    return [worst, searched]
