"""Training in PyTorch and JAX as in ``logunif-kl bench``, plus memory, copies, small tensors."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from logunif_kl.cli.bench import training
from logunif_kl.cli.bench.training import BACKWARD, FORWARD, Ratio, Shown, Suite, with_quartiles
from logunif_kl.cli.timing import Job, sample, spreads

# The forward pass reads the mean and log sigma^2 of each float32 weight. The backward pass reads
# both again and writes two gradients. Copying moves each byte twice.
BYTES = {FORWARD: 8, BACKWARD: 24}
COPY = {part: f"copying {count} bytes a weight" for part, count in BYTES.items()}
COPIES = {f"{name}: {part}": BYTES[part] for part, name in COPY.items()}
SMALL = 100  # weights of a small tensor, for which the call itself takes most of the time
KERNEL = "the ufunc, value and gradients"

Jobs = Callable[[int], dict[str, Job]]


class Record(NamedTuple):
    """The content of a record: a suite, and measurements that `logunif-kl bench` lacks."""

    suite: Suite
    peak_bytes: Callable[[Job], int]
    counts: Callable[[Job], dict[str, float]] | None = None
    """Counts that the framework makes of a program: operations, bytes, loops over memory."""
    small: Jobs | None = None
    """Jobs on `SMALL` weights."""
    on_threads: Jobs | None = None
    """Jobs on one thread and on two."""
    across_threads: Sequence[Ratio] = ()


def measure(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    module: Any = importlib.import_module(f"validation.benchmarks.in_{options.name}")
    with module.prepared(options) as record:
        found = of(record, options.size, options.rounds)
    return list(module.PACKAGES), {"suites": [found]}


def of(record: Record, sizes: Sequence[int], number: int) -> dict[str, Any]:
    """Time all jobs in interleaved rounds, size by size, and measure their memory."""
    suite = record.suite

    def more(size: int, jobs: dict[str, Job], times: dict[str, Any]) -> dict[str, Any]:
        programs = {name: job for name, job in jobs.items() if name not in COPIES}
        count = record.counts
        return {
            "copied_gigabytes_a_second": {
                part: BYTES[part] / times[f"{name}: {part}"]["median"]
                for part, name in COPY.items()
            },
            "peak_bytes_a_weight": {n: record.peak_bytes(j) / size for n, j in programs.items()},
            "counts": {n: count(j) for n, j in programs.items()} if count else {},
        }

    found = training.measure(suite, sizes, number, more)
    small = {}
    if record.small:
        what = f"{suite.framework}, {SMALL} weights"
        small = spreads(sample(record.small(SMALL), number, what, suite.seconds), 1e6)
    on_threads = []
    if make := record.on_threads:  # last, because a thread that has worked spins for a while
        for size in sizes:
            what = f"{suite.framework}, {size:,} on threads"
            taken = sample(make(size), number, what, suite.seconds)
            ratios = training.ratios(taken, record.across_threads)
            on_threads.append({"size": size, "ratios": ratios})
    more_found = {"small": {"weights": SMALL, "microseconds": small}, "on_threads": on_threads}
    return {**found, **more_found}


def tables(found: dict[str, Any]) -> list[Shown]:
    """Tabulate the ratios, the times and memory, small tensors, and the compiler's counts."""
    (title, columns, ratios), (title_of_times, _, times) = training.tables(found)
    by_size = zip(*(sized["ratios"] for sized in found["on_threads"]), strict=True)
    ratios += [[rows[0]["what"], *map(with_quartiles, rows)] for rows in by_size]
    last = found["sizes"][-1]
    peaks = last["peak_bytes_a_weight"]
    times = [[*row, f"{peaks[row[0]]:.0f}" if row[0] in peaks else ""] for row in times]
    shown = [
        (title, columns, ratios),
        (title_of_times, [*columns, "bytes a weight, at most"], times),
    ]
    if small := found["small"]["microseconds"]:
        rows = [[name, with_quartiles(row)] for name, row in small.items()]
        where = f"{found['framework']} on {found['device']}"
        title = f"a call on {found['small']['weights']} weights, {where}"
        shown.append((title, ["microseconds"], rows))
    if counted := last["counts"]:  # they hardly depend on the size
        kinds = list(next(iter(counted.values())))
        rows = [[name, *(f"{row[kind]:.0f}" for kind in kinds)] for name, row in counted.items()]
        shown.append(("what the compiler counts, a weight but for loops", kinds, rows))
    return shown
