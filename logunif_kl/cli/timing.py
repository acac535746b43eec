"""Timings in interleaved rounds, with medians, quartiles and ratios within a round.

The speed of a machine drifts (clock frequency, other processes), so times taken one after the other
are hard to compare. Here every round runs every candidate once, in an order that rotates. A ratio
is taken between two times of the same round, and the median over all rounds.
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
        """Return the spread of the same samples in another unit."""
        return Spread(
            self.median * factor, self.lower_quartile * factor, self.upper_quartile * factor
        )


def wall_seconds(job: Job, count: int) -> float:
    """Return the mean time of ``count`` runs of a job."""
    began = time.perf_counter()
    for _ in range(count):
        job()
    return (time.perf_counter() - began) / count


def repetitions(
    jobs: Mapping[str, Job], at_least: float = 0.005, seconds: Timer = wall_seconds
) -> dict[str, int]:
    """Find how often each job must run in a round to take ``at_least`` that many seconds."""
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
    """Time ``import module`` in a new interpreter, without the start of the interpreter.

    Bytecode is written where possible, because users compile a package once, on installation.
    """
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    root = str(Path(__file__).resolve().parents[2])
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
    """Return the peak of the memory that a job adds, by tracemalloc, which counts arrays too."""
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
