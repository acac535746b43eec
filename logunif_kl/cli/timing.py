"""Timings that can be compared: interleaved rounds, medians and quartiles, ratios within a round.

A machine drifts (frequency, neighbours), so the time of one thing and then of another says little.
Here every round runs every candidate once, in an order that rotates, and a ratio is taken between
two times of the same round before the median is taken over rounds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

Job = Callable[[], object]
Timer = Callable[[Job, int], float]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles."""

    median: float
    lower_quartile: float
    upper_quartile: float

    @classmethod
    def of(cls, samples: list[float]) -> Spread:
        """Take the spread of at least two samples."""
        lower, middle, upper = quantiles(samples, n=4, method="inclusive")
        return cls(middle, lower, upper)

    def scaled(self, factor: float) -> Spread:
        """Give the spread of the same samples in another unit."""
        return Spread(
            self.median * factor, self.lower_quartile * factor, self.upper_quartile * factor
        )


def wall_seconds(job: Job, count: int) -> float:
    """Take the mean time of so many runs of a job."""
    began = time.perf_counter()
    for _ in range(count):
        job()
    return (time.perf_counter() - began) / count


def repetitions(
    jobs: Mapping[str, Job], at_least: float = 0.005, seconds: Timer = wall_seconds
) -> dict[str, int]:
    """Find how often to run each job in a round for it to last ``at_least`` that many seconds."""
    counts = {}
    for name, job in jobs.items():
        job()
        counts[name] = max(1, round(at_least / max(seconds(job, 1), 1e-9)))
    return counts


def rounds(
    jobs: Mapping[str, Job],
    counts: Mapping[str, int],
    number: int,
    seconds: Timer = wall_seconds,
) -> Iterator[dict[str, float]]:
    """Yield, for each of ``number`` rounds, the seconds of one run of every job."""
    names = list(jobs)
    for index in range(number):
        turn = index % len(names)
        order = names[turn:] + names[:turn]
        took = {name: seconds(jobs[name], counts[name]) for name in order}
        yield {name: took[name] for name in names}


def ratio(samples: list[dict[str, float]], over: str, under: str) -> Spread:
    """Divide one job's time by another's in each round, and take the spread."""
    return Spread.of([sample[over] / sample[under] for sample in samples])


def import_seconds(module: str) -> float:
    """Time ``import module`` in a fresh interpreter, whose own start is left out.

    Bytecode is written where it can be: users compile a package once, when they install it.
    """
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": path},
    )
    return float(done.stdout)


def peak_bytes(job: Job) -> int:
    """Find the most memory that a job adds, as tracemalloc counts it: NumPy's arrays too."""
    job()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = job()
        _, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return peak - before
