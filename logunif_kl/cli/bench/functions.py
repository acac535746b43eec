"""The functions on NumPy's arrays against NumPy's, SciPy's and Molchanov's formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from ... import _api, special
from ..._numpy import ufuncs
from ...methods._molchanov import K1, K2, K3
from .._output import track
from ..timing import Job, Samples, import_seconds, peak_bytes, ratio, sample, spreads
from .training import Shown, on_threads

IMPORT_ROUNDS = 15
IMPORTS = ("logunif_kl", "numpy")
TYPES = {"float64": "f64", "float32": "f32"}
NEW = "new array: "
ONE_LOG_SIGMA2, ONE_MU = "neg_kl_normal, one log_sigma2", "neg_kl_normal, one mu"
# Two jobs each. With neg_kl and neg_kl_normal is compared the other sign, and one number in the
# place of an array.
IN_FLOAT64 = {f"scipy dawsn / {name}": ("scipy dawsn", name) for name in ("kl_gap_grad", "kl_gap")}
IN_BOTH = {"neg_kl / np.exp": ("neg_kl", "np.exp")} | {
    f"{words} / {under}": (NEW + over, NEW + under)
    for words, over, under in (
        ("Molchanov in NumPy", "Molchanov", "neg_kl"),
        ("kl", "kl", "neg_kl"),
        ("kl_normal", "kl_normal", "neg_kl_normal"),
        (ONE_LOG_SIGMA2, ONE_LOG_SIGMA2, "neg_kl_normal"),
        (ONE_MU, ONE_MU, "neg_kl_normal"),
    )
}
RATIOS = {what: (f"{over} f64", f"{under} f64") for what, (over, under) in IN_FLOAT64.items()} | {
    f"{what}, {dtype}": (f"{over} {short}", f"{under} {short}")
    for what, (over, under) in IN_BOTH.items()
    for dtype, short in TYPES.items()
}

Arrays = tuple[np.ndarray, ...]


def measure(size: int, threads: int, number: int) -> dict[str, Any]:
    """Measure times, imports and memory."""
    with ThreadPoolExecutor(threads) as pool:
        jobs = {name: _shared(pool, threads, *job) for name, job in _jobs(size).items()}
        samples = sample(jobs, number, "timing")
    imports = list(track(_imports(IMPORT_ROUNDS), "importing", IMPORT_ROUNDS))
    ratios: list[tuple[str, Samples, str, str]]
    ratios = [(what, samples, *names) for what, names in RATIOS.items()]
    ratios.append((f"import {IMPORTS[0]} / import {IMPORTS[1]}", imports, *IMPORTS))
    return {
        "size": size,
        "threads": threads,
        "rounds": number,
        "nanoseconds_an_element": spreads(samples, 1e9 / size),
        "ratios": [
            {"what": what, "over": over, "under": under, **ratio(some, over, under)}
            for what, some, over, under in ratios
        ],
        "import_seconds": spreads(imports),
        "memory_bytes": _memory(size),
    }


def _jobs(size: int) -> dict[str, tuple[Callable[..., Any], Arrays]]:
    """Return what is timed by name: a function and the arrays that threads share, output last."""
    from scipy.special import dawsn

    x = np.random.default_rng(0).uniform(-10.0, 10.0, size)
    jobs: dict[str, tuple[Callable[..., Any], Arrays]] = {}
    u = np.exp(-x) / 2.0
    for dtype, short in TYPES.items():
        xs, us, roots = (array.astype(dtype) for array in (x, u, np.sqrt(u)))
        out = np.empty_like(xs)
        normal, number = _api.neg_kl_normal, xs.dtype.type
        of_type: dict[str, tuple[Callable[..., Any], Arrays]] = {
            "copy": (lambda a, to: np.copyto(to, a), (xs, out)),
            "np.exp": (np.exp, (xs, out)),
            "scipy dawsn": (dawsn, (roots, out)),
            "kl_gap": (special.kl_gap, (us, out)),
            "kl_gap_grad": (special.kl_gap_grad, (us, out)),
            "kl_gap_hess": (special.kl_gap_hess, (us, out)),
            "neg_kl": (ufuncs.neg_kl, (xs, out)),
            "neg_kl_grad": (ufuncs.neg_kl_grad, (xs, out)),
            "neg_kl_hess": (ufuncs.neg_kl_hess, (xs, out)),
            f"{NEW}neg_kl": (_api.neg_kl, (xs,)),
            f"{NEW}Molchanov": (_molchanov_as_written, (xs,)),
            f"{NEW}kl": (_api.kl, (xs,)),
            f"{NEW}neg_kl_normal": (normal, (roots, xs)),
            f"{NEW}kl_normal": (_api.kl_normal, (roots, xs)),
            f"{NEW}{ONE_LOG_SIGMA2}": (partial(_of_one_log_sigma2, number(-8.0)), (roots,)),
            f"{NEW}{ONE_MU}": (partial(normal, number(0.5)), (xs,)),
        }
        jobs |= {f"{name} {short}": job for name, job in of_type.items()}
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
        yield {module: import_seconds(module) for module in reversed(IMPORTS)}


def _memory(size: int) -> dict[str, dict[str, int]]:
    """Return the bytes of each result, and the peak of the memory beyond it."""
    x = np.random.default_rng(0).uniform(-10.0, 10.0, size)
    u, zeros = np.exp(-x) / 2.0, np.zeros_like(x)
    calls: dict[str, Job] = {
        "special.kl_gap(u)": lambda: special.kl_gap(u),
        "special.kl_gap_grad(u)": lambda: special.kl_gap_grad(u),
        "special.kl_gap_hess(u)": lambda: special.kl_gap_hess(u),
        "neg_kl(log_alpha)": lambda: _api.neg_kl(x),
        "neg_kl(log_alpha, zero_at=1.0)": lambda: _api.neg_kl(x, zero_at=1.0),
        "kl(log_alpha)": lambda: _api.kl(x),
        "neg_kl_grad(log_alpha)": lambda: _api.neg_kl_grad(x),
        "neg_kl_hess(log_alpha)": lambda: _api.neg_kl_hess(x),
        "neg_kl_normal(mu, log_sigma2)": lambda: _api.neg_kl_normal(x, zeros),
    }
    return {
        name: {"result": x.nbytes, "beyond": peak_bytes(call) - x.nbytes}
        for name, call in calls.items()
    }


def tables(found: dict[str, Any]) -> list[Shown]:
    """Tabulate the times, the ratios and the memory."""
    times = found["nanoseconds_an_element"]
    names = [name.removesuffix(" f64") for name in times if name.endswith(" f64")]
    size = f"{found['size']:,} elements, {on_threads(found['threads'])}"
    return [
        (
            f"ns an element, {size}",
            list(TYPES),
            [[n, *(f"{times[f'{n} {t}']['median']:.2f}" for t in TYPES.values())] for n in names],
        ),
        (
            "ratio of times",
            ["median", "quartiles"],
            [
                [
                    row["what"],
                    f"{row['median']:.2f}",
                    f"{row['lower_quartile']:.2f} to {row['upper_quartile']:.2f}",
                ]
                for row in found["ratios"]
            ],
        ),
        (
            "memory beyond the result (arrays and Python objects, as tracemalloc counts)",
            ["result, MiB", "beyond it, KiB"],
            [
                [name, f"{row['result'] / 2**20:.2f}", f"{row['beyond'] / 2**10:.1f}"]
                for name, row in found["memory_bytes"].items()
            ],
        ),
    ]
