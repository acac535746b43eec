"""Time this package on NumPy arrays, against np.exp, SciPy's dawsn and Molchanov's formula."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from ... import _api, special
from ..._numpy import ufuncs
from ...methods._molchanov import K1, K2, K3
from ..timing import Job, ratio, sample, spreads
from .training import Shown, on_threads

TYPES = {"float64": "f64", "float32": "f32"}
NEW = "new array: "
ONE_LOG_SIGMA2, ONE_MU = "neg_kl_normal, one log_sigma2", "neg_kl_normal, one mu"
# The name of a ratio -> the two jobs whose times are divided.
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
    """Time the functions in ``number`` interleaved rounds."""
    with ThreadPoolExecutor(threads) as pool:
        jobs = {name: _shared(pool, threads, *job) for name, job in _jobs(size).items()}
        samples = sample(jobs, number, "timing")
    return {
        "size": size,
        "threads": threads,
        "rounds": number,
        "nanoseconds_an_element": spreads(samples, 1e9 / size),
        "ratios": [
            {"what": what, "over": over, "under": under, **ratio(samples, over, under)}
            for what, (over, under) in RATIOS.items()
        ],
    }


def _jobs(size: int) -> dict[str, tuple[Callable[..., Any], Arrays]]:
    """Return the functions to time, by name, each with its arguments."""
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
    """Make a job in which each thread computes one slice of the arrays."""
    if threads == 1:
        return lambda: function(*arrays)
    slices = list(zip(*(np.array_split(array, threads) for array in arrays), strict=True))

    def job() -> None:
        for done in [pool.submit(function, *part) for part in slices]:
            done.result()

    return job


def tables(found: dict[str, Any]) -> list[Shown]:
    """Tabulate the times and the ratios."""
    times = found["nanoseconds_an_element"]
    names = [name.removesuffix(" f64") for name in times if name.endswith(" f64")]
    size = f"{found['size']:,} elements, {on_threads(found['threads'])}"
    return [
        (
            f"ns per element, {size}",
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
    ]
