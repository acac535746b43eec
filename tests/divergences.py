"""Divergences of other posteriors: parameters over wide ranges, the truth, and errors."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mp, mpf

import logunif_kl as lk
from logunif_kl import reference

DIGITS = 220
PROPER = mpf("2.05411995593541167909")
ORDERS = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
Orders = tuple[int, int]
Truth = dict[Orders, tuple[mpf, mpf]]  # the derivative, and the largest term of it


class Family(NamedTuple):
    """A family of two parameters: parameters to try, KL + log C and its derivatives there."""

    points: Callable[[type], tuple[np.ndarray, np.ndarray]]
    truth: Callable[[mpf, mpf], Truth]


def mean_log_laplace(x: mpf) -> tuple[mpf, mpf, mpf]:
    """E log|x + X| for X ~ Laplace(0, 1), and two derivatives."""
    r = abs(x)
    if r > 200:
        terms = [(mpf(2 * n - 1), mp.factorial(2 * n - 1) / r ** (2 * n)) for n in range(1, 40)]
        rest = -sum(t for _, t in terms)
        slope = sum((n + 1) * t for n, t in terms) / r
        return mp.log(r) + rest, mp.sign(x) * (1 / r + slope), rest
    if not r:
        return -mp.euler, mpf(0), mp.inf
    rising, falling = mp.exp(r) * mp.e1(r), mp.exp(-r) * mp.ei(r)
    rest = (rising - falling) / 2
    return rest + mp.log(r), mp.sign(x) * (rising + falling) / 2, rest


def laplace(loc: mpf, scale: mpf) -> Truth:
    x = loc / scale
    value, slope, curvature = mean_log_laplace(x)
    return _of_location(x, scale, value - 1 - mp.log(2), slope, curvature)


def cauchy(loc: mpf, scale: mpf) -> Truth:
    x = loc / scale
    square = 1 + x * x
    value = mp.log(square) / 2 - mp.log(4 * mp.pi)
    return _of_location(x, scale, value, x / square, (1 - x * x) / square**2)


def _of_location(x: mpf, s: mpf, value: mpf, slope: mpf, curvature: mpf) -> Truth:
    # Near its zero a second derivative is compared with its size next to the zero.
    size = 1 / (1 + abs(x))
    found = {
        (0, 0): (value, mpf(1)),
        (1, 0): (slope / s, mpf(0)),
        (0, 1): (-x * slope / s, mpf(0)),
        (2, 0): (curvature / s**2, size**2 / s**2),
        (1, 1): (-(slope + x * curvature) / s**2, size**3 * min(abs(x), 1) / s**2),
        (0, 2): (x * (2 * slope + x * curvature) / s**2, min(x * x, 1) / s**2),
    }
    return {orders: (truth, max(abs(truth), term)) for orders, (truth, term) in found.items()}


def uniform(low: mpf, high: mpf) -> Truth:
    width, ratio = high - low, mp.log(abs(high / low))
    value = (high * mp.log(abs(high)) - low * mp.log(abs(low))) / width - 1 - mp.log(width)
    found = {
        (0, 0): (value, mpf(1)),
        (1, 0): (high * ratio / width**2, mpf(0)),
        (0, 1): (-low * ratio / width**2, mpf(0)),
        (2, 0): (high * (2 * ratio / width - 1 / low) / width**2, abs(high / low) / width**2),
        (1, 1): ((1 + ratio - 2 * high * ratio / width) / width**2, 1 / width**2),
        (0, 2): (low * (2 * ratio / width - 1 / high) / width**2, abs(low / high) / width**2),
    }
    return {orders: (truth, max(abs(truth), term)) for orders, (truth, term) in found.items()}


def _entropies(a: mpf) -> tuple[mpf, mpf, mpf]:
    """J(a) = a + log Gamma(a) - a psi(a), and two derivatives."""
    first, second = mp.polygamma(1, a), mp.polygamma(2, a)
    return a + mp.loggamma(a) - a * mp.digamma(a), 1 - a * first, -first - a * second


def gamma(a: mpf, rate: mpf) -> Truth:
    found = [-x for x in _entropies(a)]
    return _of_shape(found, found[0], max(abs(found[0]), mpf(1)))


def student(df: mpf, scale: mpf) -> Truth:
    pairs = zip(_entropies(df / 2), _entropies((df + 1) / 2), strict=True)
    found = [(b - a) / mpf(2) ** order for order, (a, b) in enumerate(pairs)]
    return _of_shape(found, found[0] - PROPER, abs(found[0]))


def _of_shape(found: list[mpf], value: mpf, term: mpf) -> Truth:
    return {
        **{orders: (mpf(0), mpf(0)) for orders in ORDERS},
        **{(n, 0): (found[n], abs(found[n])) for n in (1, 2)},
        (0, 0): (value, term),
    }


def powers(base: Any, exponents: Any) -> np.ndarray:
    """Powers rounded once, because the bits of NumPy's powers depend on the processor."""
    with mp.workprec(100):
        power = np.vectorize(lambda x: float(mp.power(base, x)), otypes=[float])
        return power(exponents)


def _locations(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(23)
    scale = powers(10, rng.uniform(-30.0, 30.0, 700))
    exponents = np.concatenate([rng.uniform(-30.0, 30.0, 250), rng.uniform(-1.5, 2.0, 450)])
    ratio = powers(10, exponents)
    # The ratio times a scale near the ends of float32 would leave its range.
    loc = np.clip(ratio * scale, 1e-30, 1e30) * rng.choice([-1.0, 1.0], 700)
    return loc.astype(dtype), scale.astype(dtype)


def _intervals(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(29)
    size = powers(10, rng.uniform(-29.0, 29.0, 700))
    digits = 6.0 if dtype is np.float32 else 14.0
    narrow = powers(10, rng.uniform(-digits, 0.0, 250))
    near_edge = powers(10, rng.uniform(-28.0, 0.0, 150)) * rng.choice([-1.0, 1.0], 150)
    other = np.concatenate([1.0 - narrow, near_edge, narrow[:150] - 1.0, rng.uniform(-3, 3, 150)])
    other = np.sign(other) * np.clip(np.abs(other), 1e-29 / size, 1e29 / size)
    a, b = (size * other).astype(dtype), size.astype(dtype)
    low, high = np.minimum(a, b), np.maximum(a, b)
    turned = rng.random(700) < 0.5
    low, high = np.where(turned, -high, low), np.where(turned, -low, high)
    kept = low < high
    return low[kept], high[kept]


def _shapes(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(31)
    exponents = np.concatenate([rng.uniform(-9.0, 9.0, 200), rng.uniform(-1.5, 2.0, 300)])
    shape = powers(10, exponents)
    return shape.astype(dtype), powers(10, rng.uniform(-30.0, 30.0, 500)).astype(dtype)


FAMILIES = {
    "Laplace": Family(_locations, laplace),
    "Cauchy": Family(_locations, cauchy),
    "Uniform": Family(_intervals, uniform),
    "Gamma": Family(_shapes, gamma),
    "StudentT": Family(_shapes, student),
}


def errors(name: str, dtype: type, found: dict[Orders, Any], log_c: float) -> dict[Orders, float]:
    """Find the worst error of each derivative, in units of eps of its largest term.

    Results beside the ends of the type's range, in units of w or of the second parameter, are left
    out.
    """
    a, b = FAMILIES[name].points(dtype)
    limits = np.finfo(dtype)
    results = {orders: np.asarray(result) for orders, result in found.items()}
    least = float(limits.tiny) * 1e8
    worst: dict[Orders, float] = dict.fromkeys(ORDERS, 0.0)
    counted = dict.fromkeys(ORDERS, 0)
    with mpmath.workdps(DIGITS):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            truths = FAMILIES[name].truth(mpf(float(x)), mpf(float(y)))
            for orders, (truth, term) in truths.items():
                got = float(results[orders][k])
                if not term:
                    assert got == 0.0
                    counted[orders] += 1
                    continue
                if orders == (0, 0):
                    truth = truth - mpf(log_c)
                    term = max(term, abs(truth))
                else:
                    scaled = abs(truth) * mpf(float(y)) ** sum(orders)
                    if min(abs(truth), scaled) < least or abs(truth) > float(limits.max) / 4:
                        continue
                counted[orders] += 1
                error = float(abs(mpf(got) - truth) / max(abs(truth), term)) / float(limits.eps)
                if not error <= worst[orders]:
                    worst[orders] = error
    assert min(counted.values()) > 150, counted
    return worst


class Gaussian(NamedTuple):
    """A Gaussian of several weights: its arrays, which ``build`` makes into loc and covariance."""

    arrays: tuple[np.ndarray, ...]
    build: Callable[..., tuple[Any, Any]]


def _triangular(loc: np.ndarray, factor: np.ndarray) -> tuple[Any, Any]:
    factor = np.tril(factor)
    return loc, factor @ factor.T


def _low_rank(loc: np.ndarray, factor: np.ndarray, diagonal: np.ndarray) -> tuple[Any, Any]:
    return loc, factor @ factor.T + np.diag(diagonal)


def triangular(dtype: type) -> list[Gaussian]:
    """Cholesky factors with small and large correlations and scales, and scales far apart."""
    rng = np.random.default_rng(37)
    small, large = (1e-33, 1e33) if dtype is np.float32 else (1e-300, 1e300)
    found = []
    for correlation, scale in (
        (1.0, 1.0),
        (1e-5, 1.0),
        (1e25, 1e-20),
        (1.0, large),
        (1.0, small),
        (1.0, powers(10, rng.uniform(-15, 15, (4, 1)))),
    ):
        factor = correlation * np.tril(rng.normal(size=(4, 4)), -1)
        factor = scale * (factor + np.diag(rng.uniform(0.5, 2.0, 4)))
        loc = np.abs(factor).max(-1) * rng.normal(size=4) * powers(10, rng.uniform(-2, 2, 4))
        found.append(Gaussian((loc.astype(dtype), factor.astype(dtype)), _triangular))
    return found


def low_rank(dtype: type) -> list[Gaussian]:
    """Low-rank factors that are small and large compared with the diagonal."""
    rng = np.random.default_rng(41)
    found = []
    for size, scale in ((1.0, 1.0), (0.01, 1.0), (100.0, 1.0), (1.0, 1e-12), (1.0, 1e12)):
        factor = size * scale * rng.normal(size=(4, 2))
        diagonal = scale**2 * rng.uniform(0.5, 2.0, 4)
        loc = scale * rng.normal(size=4) * powers(10, rng.uniform(-2, 2, 4))
        arrays = tuple(a.astype(dtype) for a in (loc, factor, diagonal))
        found.append(Gaussian(arrays, _low_rank))
    return found


def kl_of_pair(loc: np.ndarray, covariance: np.ndarray) -> float:
    """KL of two weights by the chain rule: that of the first, and the mean of the second's."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    slope = covariance[1, 0] / covariance[0, 0]
    rest = covariance[1, 1] - slope * covariance[1, 0]
    means = loc[1] + slope * math.sqrt(covariance[0, 0]) * nodes
    second = weights @ lk.kl_normal(means, math.log(rest)) / weights.sum()
    return float(lk.kl_normal(loc[0], math.log(covariance[0, 0])) + second)


def _kl_gaussian(loc: Any, covariance: Any) -> mpf:
    """KL with log C = -PROPER: the marginals, and half of sum log S_ii - log det S."""
    variances = [covariance[i, i] for i in range(len(loc))]
    gaps = [reference.kl_gap(m**2 / v / 2, dps=50) for m, v in zip(loc, variances, strict=True)]
    mutual = sum(map(mp.log, variances)) - mp.log(mp.det(mp.matrix(covariance.tolist())))
    return sum(gaps) + mutual / 2


def gaussian_errors(given: Gaussian, value: Any, slopes: Any) -> tuple[float, float]:
    """Find the worst errors of KL and of its slopes, which are differences in many digits.

    They are in units of eps of KL and of the slope, or for the covariance of the slope of
    log S_ii/2, of which the other terms of KL take almost all away where loc is large.
    """
    eps = float(np.finfo(given.arrays[0].dtype).eps)
    with mp.workdps(200):
        exact = [np.vectorize(mpf, otypes=[object])(a.astype("float64")) for a in given.arrays]
        loc, covariance = given.build(*exact)
        truth = _kl_gaussian(loc, covariance)
        worst = 0.0
        for k, array in enumerate(exact):
            for i in np.ndindex(array.shape):
                if not array[i]:
                    continue
                ends = []
                for sign in (1, -1):
                    moved = [a.copy() for a in exact]
                    moved[k][i] += sign * abs(array[i]) * mpf(10) ** -20
                    ends.append(_kl_gaussian(*given.build(*moved)))
                slope = (ends[0] - ends[1]) / (2 * abs(array[i]) * mpf(10) ** -20)
                variance = covariance[i[0], i[0]]
                term = (0, array[i] / variance, 1 / variance / 2)[k]
                error = abs(mpf(float(slopes[k][i])) - slope) / max(abs(slope), abs(term))
                worst = max(worst, float(error))
        return float(abs(mpf(float(value)) - truth) / abs(truth)) / eps, worst / eps
