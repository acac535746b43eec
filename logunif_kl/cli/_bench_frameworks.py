"""The parts that the benches of all frameworks share: rounds over sizes, document, tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ._output import new_table, track
from .provenance import provenance
from .timing import Job, Spread, ratio, repetitions, rounds

FORWARD, BACKWARD = "forward", "forward+backward"
COPY = "copy"
# For each float32 weight the forward pass reads the mean and log sigma^2. The backward pass reads
# both again and writes two gradients. Copying moves each byte twice.
BYTES = {FORWARD: 8, BACKWARD: 24}
# For smaller arrays the cost of the call dominates, and there is no target.
LARGE = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A ratio of the times of two jobs, with its targets."""

    over: str
    under: str
    part: str
    must: str = ""
    aim: str = ""

    @property
    def what(self) -> str:
        """The name of the ratio in tables and documents."""
        copying = f"copying {BYTES[self.part]} bytes a weight"
        over, under = (copying if n == COPY else n for n in (self.over, self.under))
        return f"{over} / {under}, {self.part}"


@dataclasses.dataclass(frozen=True, slots=True)
class Suite:
    """What to time on a framework, and how."""

    framework: str
    device: str
    threads: int
    packages: Sequence[str]
    jobs: Callable[[int], dict[str, Job]]
    comparisons: Sequence[Comparison]
    seconds: Callable[[Job, int], float]
    peak_bytes: Callable[[Job], int]
    # Counts that the framework makes of a program: operations, bytes, loops over memory.
    counts: Callable[[Job], dict[str, float]] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Sized:
    """The measurements for one size."""

    size: int
    samples: list[dict[str, float]]
    memory: dict[str, int]
    counts: dict[str, dict[str, float]]

    def times(self) -> dict[str, Spread]:
        """Return the nanoseconds per weight."""
        scale = 1e9 / self.size
        return {n: Spread.of([s[n] for s in self.samples]).scaled(scale) for n in self.samples[0]}

    def ratios(self, comparisons: Sequence[Comparison]) -> list[tuple[Comparison, Spread]]:
        """Return the ratios; the targets hold for large sizes only."""
        found = []
        for c in comparisons:
            over, under = (f"{name}: {c.part}" for name in (c.over, c.under))
            asked = c if self.size >= LARGE else dataclasses.replace(c, must="", aim="")
            found.append((asked, ratio(self.samples, over, under)))
        return found


def measure(suite: Suite, sizes: Sequence[int], number: int) -> list[Sized]:
    """Time all jobs in interleaved rounds, size by size, then measure their memory."""
    found = []
    for size in sizes:
        jobs = suite.jobs(size)
        counts = repetitions(jobs, seconds=suite.seconds)
        turns = rounds(jobs, counts, number, seconds=suite.seconds)
        samples = list(track(turns, f"{suite.framework}, {size:,} weights", number))
        programs = {n: job for n, job in jobs.items() if not n.startswith(COPY)}
        memory = {n: suite.peak_bytes(job) for n, job in programs.items()}
        counted = {n: suite.counts(job) for n, job in programs.items()} if suite.counts else {}
        found.append(Sized(size, samples, memory, counted))
    return found


def document(measured: Sequence[tuple[Suite, list[Sized]]], command: str) -> dict[str, Any]:
    """Return the measurements as a document, with the machine and versions."""
    packages = [package for suite, _ in measured for package in suite.packages]
    kinds = [f"bench_{suite.framework}" for suite, _ in measured]
    return {
        **provenance(command, *packages, of=kinds),
        "suites": [
            {
                "framework": suite.framework,
                "device": suite.device,
                "threads": suite.threads,
                "rounds": len(found[0].samples),
                "sizes": [_sized(sized, suite.comparisons) for sized in found],
            }
            for suite, found in measured
        ],
    }


def _sized(found: Sized, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    times = found.times()
    return {
        "size": found.size,
        "ratios": [
            {"what": c.what, **dataclasses.asdict(s), "must": c.must, "aim": c.aim}
            for c, s in found.ratios(comparisons)
        ],
        "nanoseconds_a_weight": {name: dataclasses.asdict(s) for name, s in times.items()},
        "copied_gigabytes_a_second": {
            part: count / times[f"{COPY}: {part}"].median for part, count in BYTES.items()
        },
        "peak_bytes_a_weight": {name: peak / found.size for name, peak in found.memory.items()},
        "counts": found.counts,
    }


def tables(suite: Suite, found: list[Sized]) -> list[Any]:
    """Make tables of the ratios, the times and the memory, with a column for each size."""
    ratios = new_table(
        f"Ratios of times within a round: {suite.framework}",
        [
            ("ratio", False),
            ("weights", True),
            ("median", True),
            ("quartiles", True),
            ("must", True),
            ("aim", True),
        ],
    )
    for index in range(len(suite.comparisons)):
        for sized in found:
            c, s = sized.ratios(suite.comparisons)[index]
            quartiles = f"{s.lower_quartile:.2f} to {s.upper_quartile:.2f}"
            ratios.add_row(c.what, f"{sized.size:,}", f"{s.median:.2f}", quartiles, c.must, c.aim)
    sizes = [(f"{sized.size:,}", True) for sized in found]
    title = (
        f"Nanoseconds a weight, median: {suite.framework}, {suite.device}, threads: {suite.threads}"
    )
    times = new_table(title, [("float32", False), *sizes])
    spreads = [sized.times() for sized in found]
    for name in spreads[0]:
        times.add_row(name, *(f"{each[name].median:.3f}" for each in spreads))
    memory = new_table("Peak of memory beyond the arguments, bytes a weight", [("", False), *sizes])
    for name in found[0].memory:
        memory.add_row(name, *(f"{sized.memory[name] / sized.size:.1f}" for sized in found))
    return [ratios, times, memory, *_counts(found[-1])]


def _counts(found: Sized) -> list[Any]:
    """Make a table of the framework's counts, for the largest size; they hardly depend on it."""
    if not found.counts:
        return []
    kinds = next(iter(found.counts.values()))
    table = new_table(
        "What the compiler counts in a program, a weight but for loops",
        [("", False), *((kind, True) for kind in kinds)],
    )
    for name, counts in found.counts.items():
        table.add_row(name, *(f"{count:.0f}" for count in counts.values()))
    return [table]
