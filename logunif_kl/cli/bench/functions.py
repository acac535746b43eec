"""The functions on NumPy's arrays against NumPy's, SciPy's and Molchanov's formula."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from ... import _api, special
from ..._numpy import ufuncs
from ...methods._molchanov import K1, K2, K3
from .._output import new_table, track
from ..provenance import provenance
from ..timing import Job, Spread, import_seconds, peak_bytes, ratio, repetitions, rounds

IMPORT_ROUNDS = 15


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A ratio of two times, with its targets."""

    what: str
    over: str
    under: str
    must: str = ""
    aim: str = ""


COMPARISONS: tuple[Comparison, ...] = (
    Comparison("scipy dawsn / kl_gap_grad", "scipy dawsn f64", "kl_gap_grad f64", ">= 5", ">= 10"),
    Comparison("scipy dawsn / kl_gap", "scipy dawsn f64", "kl_gap f64"),
    Comparison("neg_kl / np.exp, float32", "neg_kl f32", "np.exp f32", "<= 5", "<= 2.5"),
    Comparison("neg_kl / np.exp, float64", "neg_kl f64", "np.exp f64"),
    Comparison(
        "Molchanov in NumPy / neg_kl, float64", "new array: Molchanov f64", "new array: neg_kl f64"
    ),
    Comparison(
        "Molchanov in NumPy / neg_kl, float32", "new array: Molchanov f32", "new array: neg_kl f32"
    ),
)
ONE_LOG_SIGMA2, ONE_MU = "neg_kl_normal, one log_sigma2", "neg_kl_normal, one mu"
# The other sign, or one number in the place of an array, is to cost no more.
NO_MORE = (
    ("kl", "neg_kl"),
    ("kl_normal", "neg_kl_normal"),
    (ONE_LOG_SIGMA2, "neg_kl_normal"),
    (ONE_MU, "neg_kl_normal"),
)
COMPARISONS += tuple(
    Comparison(
        f"{over} / {under}, {dtype}",
        f"new array: {over} {short}",
        f"new array: {under} {short}",
        aim="<= 1",
    )
    for over, under in NO_MORE
    for dtype, short in (("float64", "f64"), ("float32", "f32"))
)
IMPORT = Comparison("import logunif_kl / import numpy", "logunif_kl", "numpy", "<= 1.2")


def measure(size: int, threads: int, number: int) -> Results:
    """Measure times, imports and memory."""
    with ThreadPoolExecutor(threads) as pool:
        jobs = {name: _shared(pool, threads, *job) for name, job in _jobs(size).items()}
        counts = repetitions(jobs)
        samples = list(track(rounds(jobs, counts, number), "timing", number))
    imports = list(track(_imports(IMPORT_ROUNDS), "importing", IMPORT_ROUNDS))
    return Results(size, threads, samples, imports, _memory(size))


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """All measurements."""

    size: int
    threads: int
    samples: list[dict[str, float]]
    imports: list[dict[str, float]]
    memory: dict[str, tuple[int, int]]

    def times(self) -> dict[str, Spread]:
        """Return the nanoseconds per element."""
        scale = 1e9 / self.size
        names = self.samples[0]
        return {n: Spread.of([s[n] for s in self.samples]).scaled(scale) for n in names}

    def ratios(self) -> list[tuple[Comparison, Spread]]:
        """Return the ratios, that of the imports last."""
        found = [(c, ratio(self.samples, c.over, c.under)) for c in COMPARISONS]
        return [*found, (IMPORT, ratio(self.imports, IMPORT.over, IMPORT.under))]


Arrays = tuple[np.ndarray, ...]


def _jobs(size: int) -> dict[str, tuple[Callable[..., Any], Arrays]]:
    """Return what is timed by name: a function and the arrays that threads share, output last."""
    from scipy.special import dawsn

    x = np.random.default_rng(0).uniform(-10.0, 10.0, size)
    u, root = np.exp(-x) / 2.0, np.sqrt(np.exp(-x) / 2.0)
    jobs: dict[str, tuple[Callable[..., Any], Arrays]] = {}
    for short, dtype in (("f64", np.float64), ("f32", np.float32)):
        xs, us, roots = (a.astype(dtype) for a in (x, u, root))
        out = np.empty_like(xs)
        jobs[f"copy {short}"] = (lambda a, to: np.copyto(to, a), (xs, out))
        jobs[f"np.exp {short}"] = (np.exp, (xs, out))
        jobs[f"scipy dawsn {short}"] = (dawsn, (roots, out))
        jobs[f"kl_gap {short}"] = (special.kl_gap, (us, out))
        jobs[f"kl_gap_grad {short}"] = (special.kl_gap_grad, (us, out))
        jobs[f"kl_gap_hess {short}"] = (special.kl_gap_hess, (us, out))
        jobs[f"neg_kl {short}"] = (ufuncs.neg_kl, (xs, out))
        jobs[f"neg_kl_grad {short}"] = (ufuncs.neg_kl_grad, (xs, out))
        jobs[f"neg_kl_hess {short}"] = (ufuncs.neg_kl_hess, (xs, out))
        jobs[f"new array: neg_kl {short}"] = (_api.neg_kl, (xs,))
        jobs[f"new array: Molchanov {short}"] = (_molchanov_as_written, (xs,))
        jobs[f"new array: kl {short}"] = (_api.kl, (xs,))
        normal = _api.neg_kl_normal
        jobs[f"new array: neg_kl_normal {short}"] = (normal, (roots, xs))
        jobs[f"new array: kl_normal {short}"] = (_api.kl_normal, (roots, xs))
        one = partial(_of_one_log_sigma2, dtype(-8.0))
        jobs[f"new array: {ONE_LOG_SIGMA2} {short}"] = (one, (roots,))
        jobs[f"new array: {ONE_MU} {short}"] = (partial(normal, dtype(0.5)), (xs,))
    return jobs


def _of_one_log_sigma2(log_sigma2: Any, mu: np.ndarray) -> Any:
    return _api.neg_kl_normal(mu, log_sigma2)


def _molchanov_as_written(x: np.ndarray) -> Any:
    """Evaluate Molchanov's Eq. 14 as it is usually written in NumPy."""
    return K1 / (1.0 + np.exp(-(K2 + K3 * x))) - 0.5 * np.log1p(np.exp(-x)) - K1


def _shared(
    pool: ThreadPoolExecutor, threads: int, function: Callable[..., Any], arrays: Arrays
) -> Job:
    """Make a job in which each thread computes a slice; with one thread it is a plain call."""
    if threads == 1:
        return lambda: function(*arrays)
    slices = list(zip(*(np.array_split(array, threads) for array in arrays), strict=True))

    def job() -> None:
        for done in [pool.submit(function, *part) for part in slices]:
            done.result()

    return job


def _imports(number: int) -> Iterator[dict[str, float]]:
    for _ in range(number):
        yield {module: import_seconds(module) for module in (IMPORT.under, IMPORT.over)}


def _memory(size: int) -> dict[str, tuple[int, int]]:
    """Return the bytes of each result, and the peak of the memory beyond it."""
    x = np.random.default_rng(0).uniform(-10.0, 10.0, size)
    u, zeros = np.exp(-x) / 2.0, np.zeros_like(x)
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "special.kl_gap(u)": (lambda: special.kl_gap(u), 1),
        "special.kl_gap_grad(u)": (lambda: special.kl_gap_grad(u), 1),
        "special.kl_gap_hess(u)": (lambda: special.kl_gap_hess(u), 1),
        "neg_kl(log_alpha)": (lambda: _api.neg_kl(x), 1),
        "neg_kl(log_alpha, zero_at=1.0)": (lambda: _api.neg_kl(x, zero_at=1.0), 1),
        "kl(log_alpha)": (lambda: _api.kl(x), 1),
        "neg_kl_grad(log_alpha)": (lambda: _api.neg_kl_grad(x), 1),
        "neg_kl_hess(log_alpha)": (lambda: _api.neg_kl_hess(x), 1),
        "neg_kl_normal(mu, log_sigma2)": (lambda: _api.neg_kl_normal(x, zeros), 1),
    }
    found = {}
    for name, (call, outputs) in calls.items():
        result = outputs * x.nbytes
        found[name] = (result, peak_bytes(call) - result)
    return found


def document(found: Results, command: str) -> dict[str, Any]:
    """Return the measurements as a document, with the machine and versions."""
    return {
        **provenance(command, of="bench"),
        "size": found.size,
        "threads": found.threads,
        "rounds": len(found.samples),
        "nanoseconds_an_element": {n: dataclasses.asdict(s) for n, s in found.times().items()},
        "ratios": [{**dataclasses.asdict(c), **dataclasses.asdict(s)} for c, s in found.ratios()],
        "import_seconds": {
            module: dataclasses.asdict(Spread.of([sample[module] for sample in found.imports]))
            for module in found.imports[0]
        },
        "memory_bytes": {
            name: {"result": result, "beyond": beyond}
            for name, (result, beyond) in found.memory.items()
        },
    }


def tables(found: Results) -> list[Any]:
    """Make tables of the ratios, the times and the memory."""
    quartiles = ("median", "quartiles")
    ratios = new_table(
        "Ratios of times within a round",
        [("ratio", False), *((q, True) for q in quartiles), ("must", True), ("aim", True)],
    )
    for comparison, spread in found.ratios():
        ratios.add_row(comparison.what, *cells(spread, ".2f"), comparison.must, comparison.aim)
    times = new_table(
        f"Nanoseconds an element, {found.size} elements, threads: {found.threads}",
        [
            ("", False),
            *(column for q in quartiles for column in ((f"{q} f64", True), (f"{q} f32", True))),
        ],
    )
    spreads = found.times()
    for name in spreads:
        if name.endswith(" f64"):
            both = (cells(spreads[name], ".3f"), cells(spreads[f"{name[:-4]} f32"], ".3f"))
            times.add_row(name[:-4], *(cells[i] for i in range(2) for cells in both))
    memory = new_table(
        "Memory beyond the result (arrays and Python objects, as tracemalloc counts)",
        [("", False), ("result, MiB", True), ("beyond it, KiB", True)],
    )
    for name, (result, beyond) in found.memory.items():
        memory.add_row(name, f"{result / 2**20:.2f}", f"{beyond / 2**10:.1f}")
    return [ratios, times, memory]


def cells(spread: Spread, form: str) -> tuple[str, str]:
    """Write a median, and its quartiles."""
    return (
        f"{spread.median:{form}}",
        f"{spread.lower_quartile:{form}} to {spread.upper_quartile:{form}}",
    )
