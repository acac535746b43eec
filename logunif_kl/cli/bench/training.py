"""Time -KL and its gradient in PyTorch and JAX. Jobs named "peers" time Molchanov's formula."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ...methods._molchanov import K1, K2, K3
from ..timing import Job, Samples, Spread, Timer, ratio, sample, spreads, wall_seconds

FORWARD, BACKWARD = "forward", "forward+backward"
LOG_SIGMA2 = -8.0
EPSILON, CLAMP = 1e-8, 8.0  # published programs with Molchanov's formula use these

Ratio = tuple[str, str, str]
"""The names of the jobs `over` and `under`, and the pass in which to divide their times."""
Shown = tuple[str, list[str], list[list[str]]]
"""A table: its title, the headings after the first column, and the rows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Suite:
    """The jobs, the ratios and the timer for one framework."""

    framework: str
    device: str
    threads: int
    jobs: Callable[[int], dict[str, Job]]
    ratios: Sequence[Ratio]
    seconds: Timer = wall_seconds


def molchanov_sum(xp: Any, sigmoid: Callable[[Any], Any], mu: Any, log_sigma2: Any) -> Any:
    """Compute the sum of Molchanov's -KL as published programs do, with an epsilon and a clamp."""
    log_alpha = xp.clip(log_sigma2 - xp.log(mu * mu + EPSILON), -CLAMP, CLAMP)
    neg_kl = K1 * sigmoid(K2 + K3 * log_alpha) - 0.5 * xp.log1p(xp.exp(-log_alpha)) - K1
    return neg_kl.sum()


def measure(
    suite: Suite,
    sizes: Sequence[int],
    number: int,
    more: Callable[[int, dict[str, Job], dict[str, Spread]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Time all jobs in ``number`` interleaved rounds for each size.

    ``more(size, jobs, times)`` returns additional results for that size.
    """
    found = []
    for size in sizes:
        jobs = suite.jobs(size)
        taken = sample(jobs, number, f"{suite.framework}, {size:,} weights", suite.seconds)
        times = spreads(taken, 1e9 / size)
        found.append(
            {
                "size": size,
                "ratios": ratios(taken, suite.ratios),
                "nanoseconds_a_weight": times,
                **(more(size, jobs, times) if more else {}),
            }
        )
    return {
        "framework": suite.framework,
        "device": suite.device,
        "threads": suite.threads,
        "rounds": number,
        "sizes": found,
    }


def ratios(samples: Samples, wanted: Sequence[Ratio]) -> list[dict[str, Any]]:
    """Divide the times of two jobs for each wanted ratio, and return medians and quartiles."""
    return [
        {
            "what": f"{over} / {under}, {part}",
            **ratio(samples, f"{over}: {part}", f"{under}: {part}"),
        }
        for over, under, part in wanted
    ]


def tables(found: dict[str, Any]) -> list[Shown]:
    """Tabulate the ratios and the times by size."""
    sizes = found["sizes"]
    columns = [f"{sized['size']:,}" for sized in sizes]
    where = f"{found['framework']} on {found['device']}"
    of = f"{where}, {on_threads(found['threads'])}, by weights"
    by_size = zip(*(sized["ratios"] for sized in sizes), strict=True)
    times = [
        [name, *(f"{sized['nanoseconds_a_weight'][name]['median']:.2f}" for sized in sizes)]
        for name in sizes[0]["nanoseconds_a_weight"]
    ]
    return [
        (
            f"ratio of times: {of}",
            columns,
            [[rows[0]["what"], *map(with_quartiles, rows)] for rows in by_size],
        ),
        (f"ns a float32 weight: {of}", [*columns], times),
    ]


def with_quartiles(row: Spread) -> str:
    """Return a median with its quartiles as text."""
    return f"{row['median']:.2f} ({row['lower_quartile']:.2f} to {row['upper_quartile']:.2f})"


def on_threads(number: int) -> str:
    """Return a number of threads as text."""
    return "one thread" if number == 1 else f"{number} threads"
