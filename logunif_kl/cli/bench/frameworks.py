"""The parts that the benches of all frameworks share: rounds over sizes, document, tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._output import new_table, track
from ..provenance import provenance
from ..timing import Job, Spread, ratio, repetitions, rounds

FORWARD, BACKWARD = "forward", "forward+backward"
COPY = "copy"
# For each float32 weight the forward pass reads the mean and log sigma^2. The backward pass reads
# both again and writes two gradients. Copying moves each byte twice.
BYTES = {FORWARD: 8, BACKWARD: 24}
# For smaller arrays the cost of the call dominates: a target in one piece is for large ones.
LARGE = 1_000_000
SMALL = 100  # weights of a small tensor

Target = str | Mapping[int, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A ratio of the times of two jobs, with its targets: one, or by the least size of each."""

    over: str
    under: str
    part: str
    must: Target = ""
    aim: Target = ""

    @property
    def what(self) -> str:
        """The name of the ratio in tables and documents."""
        copying = f"copying {BYTES[self.part]} bytes a weight"
        over, under = (copying if n == COPY else n for n in (self.over, self.under))
        return f"{over} / {under}, {self.part}"

    def targets(self, size: int) -> tuple[str, str]:
        """Return what must hold for a size, and what is aimed at."""
        must, aim = (_target(asked, size) for asked in (self.must, self.aim))
        return must, aim


def _target(asked: Target, size: int) -> str:
    by_size = {LARGE: asked} if isinstance(asked, str) else asked
    return by_size.get(max((least for least in by_size if least <= size), default=0), "")


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
    # Jobs on SMALL weights, whose time is that of a call.
    small: Callable[[int], dict[str, Job]] | None = None
    # Jobs on one thread and on two, and how they compare.
    on_threads: Callable[[int], dict[str, Job]] | None = None
    across_threads: Sequence[Comparison] = ()


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
        """Return the ratios, with the targets for this size."""
        found = []
        for c in comparisons:
            over, under = (f"{name}: {c.part}" for name in (c.over, c.under))
            must, aim = c.targets(self.size)
            asked = dataclasses.replace(c, must=must, aim=aim)
            found.append((asked, ratio(self.samples, over, under)))
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """All measurements of a suite."""

    suite: Suite
    sizes: list[Sized]
    small: list[dict[str, float]]
    on_threads: list[Sized]

    def small_microseconds(self) -> dict[str, Spread]:
        """Return the microseconds of a call on few weights."""
        names = self.small[0] if self.small else ()
        return {n: Spread.of([s[n] for s in self.small]).scaled(1e6) for n in names}


def measure(suite: Suite, sizes: Sequence[int], number: int) -> Measured:
    """Time all jobs in interleaved rounds, size by size, then measure their memory."""
    found = []
    for size in sizes:
        jobs = suite.jobs(size)
        samples = _samples(suite, jobs, f"{size:,} weights", number)
        programs = {n: job for n, job in jobs.items() if not n.startswith(COPY)}
        memory = {n: suite.peak_bytes(job) for n, job in programs.items()}
        counted = {n: suite.counts(job) for n, job in programs.items()} if suite.counts else {}
        found.append(Sized(size, samples, memory, counted))
    small = _samples(suite, suite.small(SMALL), f"{SMALL} weights", number) if suite.small else []
    # After all else, because a thread that has worked spins for a while.
    on_threads = []
    if suite.on_threads:
        for size in sizes:
            samples = _samples(suite, suite.on_threads(size), f"{size:,} on threads", number)
            on_threads.append(Sized(size, samples, {}, {}))
    return Measured(suite, found, small, on_threads)


def _samples(suite: Suite, jobs: dict[str, Job], what: str, number: int) -> list[dict[str, float]]:
    counts = repetitions(jobs, seconds=suite.seconds)
    turns = rounds(jobs, counts, number, seconds=suite.seconds)
    return list(track(turns, f"{suite.framework}, {what}", number))


def document(measured: Sequence[Measured], command: str) -> dict[str, Any]:
    """Return the measurements as a document, with the machine and versions."""
    packages = [package for each in measured for package in each.suite.packages]
    kinds = [f"bench_{each.suite.framework}" for each in measured]
    return {
        **provenance(command, *packages, of=kinds),
        "suites": [_suite(each) for each in measured],
    }


def _suite(found: Measured) -> dict[str, Any]:
    suite = found.suite
    return {
        "framework": suite.framework,
        "device": suite.device,
        "threads": suite.threads,
        "rounds": len(found.sizes[0].samples),
        "sizes": [_sized(sized, suite.comparisons) for sized in found.sizes],
        "small": {
            "weights": SMALL,
            "microseconds": {
                n: dataclasses.asdict(s) for n, s in found.small_microseconds().items()
            },
        },
        "on_threads": [
            {"size": sized.size, "ratios": _ratios(sized, suite.across_threads)}
            for sized in found.on_threads
        ],
    }


def _ratios(found: Sized, comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    return [
        {"what": c.what, **dataclasses.asdict(s), "must": c.must, "aim": c.aim}
        for c, s in found.ratios(comparisons)
    ]


def _sized(found: Sized, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    times = found.times()
    return {
        "size": found.size,
        "ratios": _ratios(found, comparisons),
        "nanoseconds_a_weight": {name: dataclasses.asdict(s) for name, s in times.items()},
        "copied_gigabytes_a_second": {
            part: count / times[f"{COPY}: {part}"].median for part, count in BYTES.items()
        },
        "peak_bytes_a_weight": {name: peak / found.size for name, peak in found.memory.items()},
        "counts": found.counts,
    }


def tables(measured: Measured) -> list[Any]:
    """Make tables of the ratios, the times and the memory, with a column for each size."""
    suite, found = measured.suite, measured.sizes
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
    for comparisons, several in (
        (suite.comparisons, found),
        (suite.across_threads, measured.on_threads),
    ):
        for index in range(len(comparisons)):
            for sized in several:
                c, s = sized.ratios(comparisons)[index]
                quartiles = f"{s.lower_quartile:.2f} to {s.upper_quartile:.2f}"
                ratios.add_row(
                    c.what, f"{sized.size:,}", f"{s.median:.2f}", quartiles, c.must, c.aim
                )
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
    return [ratios, times, *_small(measured), memory, *_counts(found[-1])]


def _small(found: Measured) -> list[Any]:
    if not found.small:
        return []
    table = new_table(
        f"Microseconds a call on {SMALL} weights: {found.suite.framework}",
        [("float32", False), ("median", True), ("quartiles", True)],
    )
    for name, s in found.small_microseconds().items():
        quartiles = f"{s.lower_quartile:.2f} to {s.upper_quartile:.2f}"
        table.add_row(name, f"{s.median:.2f}", quartiles)
    return [table]


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
