"""Time jobs in interleaved rounds, and return medians, quartiles and ratios of times.

The speed of a machine drifts (clock frequency, other processes), so times taken one after the other
are hard to compare. This module therefore runs every candidate once in every round, in rotating
order. A ratio of times is computed in each round. Its median over all rounds is returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import quantiles
from typing import Any

from ._output import track

Job = Callable[[], object]
Jobs = Mapping[str, Job]
Samples = Sequence[Mapping[Any, float]]
Spread = dict[str, float]


def spread(samples: Sequence[float], scale: float = 1.0) -> Spread:
    """Return the median and the quartiles of at least two samples, times ``scale``."""
    lower, middle, upper = quantiles(samples, n=4, method="inclusive")
    return {
        "median": middle * scale,
        "lower_quartile": lower * scale,
        "upper_quartile": upper * scale,
    }


def spreads(samples: Samples, scale: float = 1.0) -> dict[str, Spread]:
    """Return the spread of each job over the rounds."""
    names = samples[0] if samples else ()
    return {name: spread([sample[name] for sample in samples], scale) for name in names}


def ratio(samples: Samples, over: object, under: object) -> Spread:
    """Divide the time of `over` by the time of `under` in each round, and return the spread."""
    return spread([sample[over] / sample[under] for sample in samples])


def wall_seconds(job: Job, count: int) -> float:
    """Return the mean time of ``count`` runs of a job."""
    began = time.perf_counter()
    for _ in range(count):
        job()
    return (time.perf_counter() - began) / count


Timer = Callable[[Job, int], float]


def repetitions(
    jobs: Jobs, at_least: float = 0.005, seconds: Timer = wall_seconds
) -> dict[str, int]:
    """Return how often each job must run in a round to take at least ``at_least`` seconds."""
    counts = {}
    for name, job in jobs.items():
        job()
        counts[name] = max(1, round(at_least / max(seconds(job, 1), 1e-9)))
    return counts


def rounds(
    jobs: Mapping[Any, Any],
    counts: Mapping[Any, int],
    number: int,
    seconds: Callable[[Any, int], Any] = wall_seconds,
) -> Iterator[dict[Any, Any]]:
    """Yield, for each of ``number`` rounds, the result of ``seconds`` for every job."""
    names = list(jobs)
    for index in range(number):
        turn = index % len(names)
        order = names[turn:] + names[:turn]
        took = {name: seconds(jobs[name], counts[name]) for name in order}
        yield {name: took[name] for name in names}


def sample(
    jobs: Jobs, number: int, what: str, seconds: Timer = wall_seconds
) -> list[dict[str, float]]:
    """Time the jobs in ``number`` rounds, and show a progress bar titled ``what``."""
    counts = repetitions(jobs, seconds=seconds)
    return list(track(rounds(jobs, counts, number, seconds), what, number))
