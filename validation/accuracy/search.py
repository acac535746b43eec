"""Search for the worst error: samples over bit patterns, edges of ranges, hill climbing.

The result is a lower bound of the worst error: some input may be worse. The method is that of
V. Innocente and P. Zimmermann, "Accuracy of Mathematical Functions in Single, Double, Double
Extended, and Quadruple Precision", with strata. The worst points of every quarter of a binade are
kept, so that the search does not end at the first local maximum.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray

from .doubledouble import Array
from .flushing import Errors, plain_error
from .functions import ALL, ISOTROPIC, Evaluate, Function
from .series import hess_zero
from .truth import Truth, truth
from .ulp import FORMATS

Points = list[NDArray]

BLOCK = 1 << 14
_INTEGER = {2: np.int16, 4: np.int32, 8: np.int64}


class Worst(NamedTuple):
    """The largest error found, and its point."""

    ulp: float
    inputs: tuple[str, ...]
    got: str
    wanted: str
    tried: int


def ordinals(values: NDArray) -> NDArray[np.int64]:
    """Number the floats of a type in order: 0 for both zeros, 1 for the smallest above."""
    width = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(_INTEGER[width]).astype(np.int64)
    return np.where(bits < 0, -(bits & ((1 << (8 * width - 1)) - 1)), bits)


def from_ordinals(numbers: NDArray[np.int64], dtype: str) -> NDArray:
    """Return the floats with these numbers, or infinities for numbers out of range."""
    top = int(ordinals(np.array([np.inf], dtype))[0])
    numbers = np.clip(numbers, -top, top)
    kind = _INTEGER[np.dtype(dtype).itemsize]
    magnitude = np.abs(numbers).astype(kind).view(dtype)
    return np.asarray(np.copysign(magnitude, np.where(numbers < 0, -1.0, 1.0).astype(dtype)))


def _bit_patterns(
    rng: np.random.Generator, low: float, high: float, count: int, dtype: str
) -> NDArray:
    ends = ordinals(np.array([low, high], dtype))
    return from_ordinals(rng.integers(ends[0], ends[1], count, endpoint=True), dtype)


def sample(name: str, rng: np.random.Generator, count: int, dtype: str) -> Points:
    """Return arguments: a tenth over all bit patterns, the rest where the function varies."""
    domain = ALL[name].domain
    if name in ISOTROPIC:
        return _sample_isotropic(ISOTROPIC[name], rng, count, dtype)
    tenth = count // 10
    if domain == "u":
        parts = [
            _bit_patterns(rng, 0.0, np.inf, tenth, dtype),
            _bit_patterns(rng, 2.0**-14, 2.0**14, 4 * tenth, dtype),
            rng.uniform(0.0, 40.0, 3 * tenth).astype(dtype),
            _bit_patterns(rng, 0.25, 40.0, count - 8 * tenth, dtype),
        ]
        return [np.concatenate(parts)]
    if domain == "x":
        return [np.concatenate(_sample_x(rng, count, dtype))]
    mu = _bit_patterns(rng, 2.0**-14, 2.0**14, count, dtype)
    mu[:tenth] = _bit_patterns(rng, 0.0, np.inf, tenth, dtype)
    mu *= rng.choice((-1.0, 1.0), count).astype(dtype)
    x = rng.permutation(np.concatenate(_sample_x(rng, count, "float64")))
    with np.errstate(all="ignore"):
        return [mu, (x + 2 * np.log(np.abs(mu.astype(np.float64)))).astype(dtype)]


def _sample_x(rng: np.random.Generator, count: int, dtype: str) -> list[NDArray]:
    tenth = count // 10
    zero = hess_zero()[0]
    return [
        _bit_patterns(rng, -np.inf, np.inf, tenth, dtype),
        rng.uniform(-750.0, 750.0, tenth).astype(dtype),
        rng.uniform(-40.0, 40.0, 2 * tenth).astype(dtype),
        (zero + rng.choice((-1, 1), tenth) * np.exp2(rng.uniform(-60, 0, tenth))).astype(dtype),
        rng.uniform(-6.0, 6.0, count - 5 * tenth).astype(dtype),
    ]


# For each type: the largest |log alpha|, and x of 2^x, the largest mean, and 2^-x, the smallest.
_REACH = {"float64": (740.0, 450.0), "float32": (86.0, 55.0), "float16": (9.0, 3.0)}


def _sample_isotropic(
    function: Function, rng: np.random.Generator, count: int, dtype: str
) -> Points:
    """Return arguments: half where the function varies, the rest over the range of the type."""
    largest, binades = _REACH[dtype]
    half = count // 2
    if function.domain == "complex":
        wide = rng.uniform(-1, 1, count - half) * largest
        log_u = np.concatenate([rng.uniform(-5, 5, half), wide])
        wide = rng.uniform(-binades, binades, count - half)
        size = np.exp2(np.concatenate([rng.uniform(-2, 2, half), wide]))
        angle = np.where(rng.random(count) < 0.2, 0.0, rng.uniform(0, 2 * np.pi, count))
        points = size * np.cos(angle), size * np.sin(angle), 2.0 * np.log(size) - log_u
        return [p.astype(dtype) for p in points]
    low = -np.log(2.0 * max(45.0, function.k)) - 2.0 if function.k else -7.0
    small = np.exp2(rng.uniform(-60, np.log2(largest), count // 4))
    parts = [rng.uniform(low, 3.0, half), rng.uniform(-largest, largest, count // 4)]
    return [np.concatenate([*parts, rng.choice((-1, 1), count // 4) * small]).astype(dtype)]


def beside_edges(name: str, edges: dict[str, list[float]], dtype: str, reach: int = 8) -> Points:
    """Return every edge of the tables' ranges with ``reach`` neighbours on either side."""
    domain = ALL[name].domain
    with np.errstate(all="ignore"):
        if domain != "normal":
            centres = np.array(edges[domain]).astype(dtype)
            numbers = ordinals(centres)[:, None] + np.arange(-reach, reach + 1)
            points = from_ordinals(numbers.ravel(), dtype)
            return [points[points >= 0] if domain == "u" else points]
        u = np.array(edges["u"])
        x = np.concatenate([edges["x"], -np.log(2 * u)])
        ends = [np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max, np.inf]
        mu = np.array([1.0, -1.5, 2.0**-60, 2.0**60, 1 / 3, 0.0, *ends]).astype(dtype)
        mu, x = (a.ravel() for a in np.meshgrid(mu, x))
        shifted = x + 2 * np.log(np.abs(mu.astype(np.float64)))
        centres = np.concatenate([x, shifted]).astype(dtype)
        centres = np.where(np.isnan(centres), np.array(0.0, dtype), centres)
        numbers = ordinals(centres)[:, None] + np.arange(-reach, reach + 1)
        return [np.repeat(np.tile(mu, 2), 2 * reach + 1), from_ordinals(numbers.ravel(), dtype)]


def measure(name: str, evaluate: Evaluate, points: Points, counted: Errors = plain_error) -> Array:
    out = np.empty(len(points[0]))
    for start in range(0, len(out), BLOCK):
        block = [p[start : start + BLOCK] for p in points]
        with np.errstate(all="ignore"):
            got = np.asarray(evaluate(*block))
        out[start : start + BLOCK] = counted(name, got, truth(name, *block), block)
    return out


def _strata(points: Points) -> NDArray[np.int64]:
    """Number each point's stratum: a quarter of a binade, and a binade of another argument."""
    width = FORMATS[points[0].dtype.name].precision
    key = ordinals(points[-1]) >> (width - 3)
    if len(points) > 1:
        key = key * 8192 + (ordinals(points[0]) >> (width - 1))
    return key


def _select(points: Points, errors: NDArray, size: int) -> tuple[Points, NDArray]:
    """Keep the worst points of up to ``size`` strata, and the ``4 * size`` worst of all."""
    order = np.argsort(-errors, kind="stable")
    _, first = np.unique(_strata([p[order] for p in points]), return_index=True)
    kept = np.union1d(np.sort(first)[:size], np.arange(min(4 * size, len(order))))
    order = order[kept]
    return [p[order] for p in points], errors[order]


def _neighbours(points: Points, rng: np.random.Generator, each: int, domain: str) -> Points:
    """Return points that differ by one to millions of bit patterns, in one or more arguments."""
    dtype = points[0].dtype.name
    out = []
    bits = FORMATS[dtype].precision - 6
    for p in points:
        numbers = np.repeat(ordinals(p), each)
        step = np.exp2(rng.uniform(0, bits, len(numbers))).astype(np.int64)
        step *= rng.choice((-1, 1), len(numbers))
        if len(points) > 1:
            step *= rng.integers(0, 2, len(numbers))
        moved = from_ordinals(numbers + step, dtype)
        out.append(np.abs(moved) if domain == "u" else moved)
    return out


def search(
    name: str,
    evaluate: Evaluate,
    *,
    rng: np.random.Generator,
    dtype: str = "float64",
    count: int = 1_000_000,
    rounds: int = 40,
    climbers: int = 256,
    edges: dict[str, list[float]] | None = None,
    known: Sequence[tuple[float, ...]] = (),
    counted: Errors = plain_error,
    progress: Callable[[int], None] = lambda count: None,
) -> Worst:
    """Search for the input with the largest error of ``evaluate``, over arrays of a type.

    First try the breakpoints of the tables (``edges``, by domain), the earlier worst inputs
    (``known``) and ``count`` samples. Then, in each round, every climber tries 32 neighbours:
    ``climbers`` from different strata, and four times as many from anywhere.
    """
    domain = ALL[name].domain
    tried = 0
    pool: Points = []
    errors = np.empty(0)

    def take(points: Points) -> None:
        nonlocal tried, pool, errors
        found = measure(name, evaluate, points, counted)
        tried += len(found)
        progress(len(found))
        if pool:
            points = [np.concatenate([a, b]) for a, b in zip(pool, points, strict=True)]
        pool, errors = _select(points, np.concatenate([errors, found]), climbers)

    if edges is not None:
        take(beside_edges(name, edges, dtype))
    if known:
        take([np.array(column).astype(dtype) for column in zip(*known, strict=True)])
    for start in range(0, count, 16 * BLOCK):
        take(sample(name, rng, min(16 * BLOCK, count - start), dtype))
    for _ in range(rounds):
        take(_neighbours(pool, rng, 32, domain))

    return describe(name, evaluate, [p[:1] for p in pool], tried, counted)


def describe(
    name: str, evaluate: Evaluate, point: Points, tried: int, counted: Errors = plain_error
) -> Worst:
    exact = truth(name, *point)
    with np.errstate(all="ignore"):
        got = np.asarray(evaluate(*point))
    return Worst(
        ulp=float(measure(name, evaluate, point, counted)[0]),
        inputs=tuple(float(p[0]).hex() for p in point),
        got=float(got[0]).hex(),
        wanted=digits(exact),
        tried=tried,
    )


def digits(exact: Truth) -> str:
    with mpmath.workprec(160):
        value = mpmath.mpf(exact.hi[0]) + mpmath.mpf(exact.lo[0])
        return str(mpmath.nstr(value * mpmath.mpf(2) ** int(exact.scale[0]), 24))
