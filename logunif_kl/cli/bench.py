"""``logunif-kl bench``: speed, as ratios of times taken in the same rounds."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .. import _api, special
from .._numpy import ufuncs
from ..methods._molchanov import K1, K2, K3
from ._output import CommandError, check_results, new_table, require, results, track
from .provenance import provenance
from .timing import Job, Spread, import_seconds, peak_bytes, ratio, repetitions, rounds

IMPORT_ROUNDS = 15
SIZES = (10_000, 1_000_000, 10_000_000)  # of a framework
SIZE_OF_CUDA = 100_000_000  # in addition; in smaller arrays launches cost as much as memory


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A ratio of two times, with its targets."""

    what: str
    over: str
    under: str
    must: str = ""
    aim: str = ""


COMPARISONS = (
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
IMPORT = Comparison("import logunif_kl / import numpy", "logunif_kl", "numpy", "<= 1.2")


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "bench",
        help="time the functions against NumPy's, SciPy's and Molchanov's formula",
        description="Time the functions in interleaved rounds and print medians with quartiles. "
        "Nothing is pinned: on a busy machine look at the quartiles.",
    )
    parser.add_argument(
        "--torch", action="store_true", help="instead, time training in PyTorch against its peers'"
    )
    parser.add_argument("--jax", action="store_true", help="the same in JAX")
    parser.add_argument("--cuda", action="store_true", help="with --torch: on the GPU")
    parser.add_argument(
        "--size",
        type=int,
        nargs="+",
        metavar="N",
        help="elements (default: 1000000); with a framework, one size or several "
        f"(default: {' '.join(map(str, SIZES))}; with --cuda also {SIZE_OF_CUDA})",
    )
    parser.add_argument("--rounds", type=int, default=25, metavar="N", help="rounds (default: 25)")
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads that share each array (default: 1; with --torch, PyTorch's own number)",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="also write the results as JSON; - prints that instead"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, command: str) -> None:
    """Measure times, memory and imports, then print or write the results."""
    for name, least in (("size", 1), ("rounds", 2), ("threads", 1)):
        given = getattr(options, name)
        for value in given if isinstance(given, list) else [least if given is None else given]:
            if value < least:
                raise CommandError(
                    f"--{name} must be at least {least}, but {value} was given: ask for more"
                )
    _check_frameworks(options)
    check_results(options.json)
    if options.torch or options.jax:
        _run_frameworks(options, command)
        return
    (size,), threads = options.size or [1_000_000], options.threads or 1
    with ThreadPoolExecutor(threads) as pool:
        jobs = {name: _shared(pool, threads, *job) for name, job in _jobs(size).items()}
        counts = repetitions(jobs)
        samples = list(track(rounds(jobs, counts, options.rounds), "timing", options.rounds))
    imports = list(track(_imports(IMPORT_ROUNDS), "importing", IMPORT_ROUNDS))
    found = Results(size, threads, samples, imports, _memory(size))
    document = _document(found, command)
    machine, versions = document["machine"], document["versions"]
    note = (
        f"{machine['cpu']}, {machine['cpus_usable']} processors usable, "
        f"kernel {document['kernel']}, NumPy {versions['numpy']}, SciPy {versions['scipy']}, "
        f"{document['date']}"
    )
    results(options.json, document, lambda: _tables(found), [note])


def _check_frameworks(options: argparse.Namespace) -> None:
    if options.cuda and not options.torch:
        raise CommandError("--cuda says where --torch is to run: give --torch as well")
    if options.threads and (options.jax or options.cuda):
        where = "--jax" if options.jax else "--cuda"
        raise CommandError(
            f"--threads cannot be chosen with {where}: leave it out, and restrict the processors "
            "of the whole process if need be"
        )
    if len(options.size or []) > 1 and not (options.torch or options.jax):
        raise CommandError("several sizes are for --torch and --jax: give --size one number")
    if options.jax:
        require("jax", "jax", "--jax")
    if options.torch:
        # Read when torch is imported. Without it the profiler logs every start and stop.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        torch = require("torch", "torch", "--torch")
        if options.cuda and not torch.cuda.is_available():
            raise CommandError(
                f"--cuda needs a GPU, but PyTorch {torch.__version__} finds none that it can use: "
                "leave --cuda out, or install a PyTorch for your GPU"
            )


def _run_frameworks(options: argparse.Namespace, command: str) -> None:
    from . import _bench_frameworks as shared

    measured = []
    sizes = options.size or [*SIZES, *([SIZE_OF_CUDA] if options.cuda else [])]
    if options.torch:
        from . import _bench_torch

        with _bench_torch.threads(options.threads):
            suite = _bench_torch.suite(options.cuda)
            measured.append((suite, shared.measure(suite, sizes, options.rounds)))
    if options.jax:
        from . import _bench_jax

        suite = _bench_jax.suite()
        measured.append((suite, shared.measure(suite, sizes, options.rounds)))
    document = shared.document(measured, command)
    machine, versions = document["machine"], document["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    note = f"{machine['cpu']}, {machine['cpus_usable']} processors usable, {packages}"
    results(
        options.json,
        document,
        lambda: [table for pair in measured for table in shared.tables(*pair)],
        [f"{note}, {document['date']}"],
    )


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
    return jobs


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


def _document(found: Results, command: str) -> dict[str, Any]:
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


def _tables(found: Results) -> list[Any]:
    quartiles = ("median", "quartiles")
    ratios = new_table(
        "Ratios of times within a round",
        [("ratio", False), *((q, True) for q in quartiles), ("must", True), ("aim", True)],
    )
    for comparison, spread in found.ratios():
        ratios.add_row(comparison.what, *_cells(spread, ".2f"), comparison.must, comparison.aim)
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
            both = (_cells(spreads[name], ".3f"), _cells(spreads[f"{name[:-4]} f32"], ".3f"))
            times.add_row(name[:-4], *(cells[i] for i in range(2) for cells in both))
    memory = new_table(
        "Memory beyond the result (arrays and Python objects, as tracemalloc counts)",
        [("", False), ("result, MiB", True), ("beyond it, KiB", True)],
    )
    for name, (result, beyond) in found.memory.items():
        memory.add_row(name, f"{result / 2**20:.2f}", f"{beyond / 2**10:.1f}")
    return [ratios, times, memory]


def _cells(spread: Spread, form: str) -> tuple[str, str]:
    return (
        f"{spread.median:{form}}",
        f"{spread.lower_quartile:{form}} to {spread.upper_quartile:{form}}",
    )
