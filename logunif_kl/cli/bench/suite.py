"""What the benches of all frameworks share: rounds over sizes, the document, the tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ...methods._molchanov import K1, K2, K3
from ..timing import Job, Samples, Spread, ratio, sample, spreads, wall_seconds

FORWARD, BACKWARD = "forward", "forward+backward"
COPY = "copy"
# For each float32 weight the forward pass reads the mean and log sigma^2. The backward pass reads
# both again and writes two gradients. Copying moves each byte twice.
BYTES = {FORWARD: 8, BACKWARD: 24}
SMALL = 100  # weights of a small tensor, for which a call takes the time
LOG_SIGMA2 = -8.0
EPSILON, CLAMP = 1e-8, 8.0  # of Molchanov's formula as published programs have it

Jobs = Callable[[int], dict[str, Job]]
Ratio = tuple[str, str, str]
"""The job over which one is divided, that one, and the part of a training step."""
Shown = tuple[str, list[str], list[list[str]]]
"""A table: its title, the headings after the first column, and the rows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Suite:
    """What to time on a framework, and how."""

    framework: str
    device: str
    threads: int
    jobs: Jobs
    ratios: Sequence[Ratio]
    peak_bytes: Callable[[Job], int]
    seconds: Callable[[Job, int], float] = wall_seconds
    # Counts that the framework makes of a program: operations, bytes, loops over memory.
    counts: Callable[[Job], dict[str, float]] | None = None
    # Jobs on SMALL weights.
    small: Jobs | None = None
    # Jobs on one thread and on two, and how they compare.
    on_threads: Jobs | None = None
    across_threads: Sequence[Ratio] = ()


def molchanov_sum(xp: Any, sigmoid: Callable[[Any], Any], mu: Any, log_sigma2: Any) -> Any:
    """Compute the sum of Molchanov's -KL, with the epsilon and the clamp that it needs.

    Written as in the published implementations, over a namespace that has NumPy's names.
    """
    log_alpha = xp.clip(log_sigma2 - xp.log(mu * mu + EPSILON), -CLAMP, CLAMP)
    neg_kl = K1 * sigmoid(K2 + K3 * log_alpha) - 0.5 * xp.log1p(xp.exp(-log_alpha)) - K1
    return neg_kl.sum()


def measure(suite: Suite, sizes: Sequence[int], number: int) -> dict[str, Any]:
    """Time all jobs in interleaved rounds, size by size, and measure their memory."""

    def samples(jobs: dict[str, Job], what: str) -> Samples:
        return sample(jobs, number, f"{suite.framework}, {what}", suite.seconds)

    found = []
    for size in sizes:
        jobs = suite.jobs(size)
        taken = samples(jobs, f"{size:,} weights")
        times = spreads(taken, 1e9 / size)
        programs = {name: job for name, job in jobs.items() if not name.startswith(COPY)}
        found.append(
            {
                "size": size,
                "ratios": _ratios(taken, suite.ratios),
                "nanoseconds_a_weight": times,
                "copied_gigabytes_a_second": {
                    part: count / times[f"{COPY}: {part}"]["median"]
                    for part, count in BYTES.items()
                },
                "peak_bytes_a_weight": {n: suite.peak_bytes(j) / size for n, j in programs.items()},
                "counts": {n: suite.counts(j) for n, j in programs.items()} if suite.counts else {},
            }
        )
    small: Samples = []
    on_threads: list[dict[str, Any]] = []
    if suite.small:
        small = samples(suite.small(SMALL), f"{SMALL} weights")
    if make := suite.on_threads:  # after all else, because a thread that has worked spins a while
        for size in sizes:
            taken = samples(make(size), f"{size:,} on threads")
            on_threads.append({"size": size, "ratios": _ratios(taken, suite.across_threads)})
    return {
        "framework": suite.framework,
        "device": suite.device,
        "threads": suite.threads,
        "rounds": number,
        "sizes": found,
        "small": {"weights": SMALL, "microseconds": spreads(small, 1e6)},
        "on_threads": on_threads,
    }


def _ratios(samples: Samples, ratios: Sequence[Ratio]) -> list[dict[str, Any]]:
    found = []
    for over, under, part in ratios:
        copying = f"copying {BYTES[part]} bytes a weight"
        names = (copying if name == COPY else name for name in (over, under))
        what = f"{' / '.join(names)}, {part}"
        found.append({"what": what, **ratio(samples, f"{over}: {part}", f"{under}: {part}")})
    return found


def tables(found: dict[str, Any]) -> list[Shown]:
    """Tabulate the ratios, the times and memory, small tensors, and what the compiler counts."""
    sizes = found["sizes"]
    columns = [f"{sized['size']:,}" for sized in sizes]
    where = f"{found['framework']} on {found['device']}"
    of = f"{where}, {on_threads(found['threads'])}, by weights"
    ratios = [
        [rows[0]["what"], *map(with_quartiles, rows)]
        for several in (sizes, found["on_threads"])
        for rows in zip(*(sized["ratios"] for sized in several), strict=True)
    ]
    peaks = sizes[-1]["peak_bytes_a_weight"]
    times = [
        [
            name,
            *(f"{sized['nanoseconds_a_weight'][name]['median']:.2f}" for sized in sizes),
            f"{peaks[name]:.0f}" if name in peaks else "",
        ]
        for name in sizes[0]["nanoseconds_a_weight"]
    ]
    shown = [
        (f"ratio of times: {of}", columns, ratios),
        (f"ns a float32 weight: {of}", [*columns, "bytes a weight, at most"], times),
    ]
    if small := found["small"]["microseconds"]:
        rows = [[name, with_quartiles(row)] for name, row in small.items()]
        title = f"a call on {found['small']['weights']} weights, {where}"
        shown.append((title, ["microseconds"], rows))
    if counted := sizes[-1]["counts"]:  # they hardly depend on the size
        kinds = list(next(iter(counted.values())))
        rows = [[name, *(f"{row[kind]:.0f}" for kind in kinds)] for name, row in counted.items()]
        shown.append(("what the compiler counts, a weight but for loops", kinds, rows))
    return shown


def with_quartiles(row: Spread) -> str:
    """Write a median with its quartiles."""
    return f"{row['median']:.2f} ({row['lower_quartile']:.2f} to {row['upper_quartile']:.2f})"


def on_threads(number: int) -> str:
    """Say on how many threads."""
    return "one thread" if number == 1 else f"{number} threads"
