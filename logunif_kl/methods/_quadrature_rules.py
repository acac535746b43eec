r"""Compute E log|z + r| and E[z log|z + r|], z ~ N(0, 1), r = alpha^(-1/2), by quadrature.

Gauss-Hermite quadrature ignores the singularity at z = -r. For the other two rules the integral is
*folded* there: with t = |z + r| it becomes an integral over t > 0, with the singularity log t at an
end of the range,

    F(u) = int_0^inf log(t) [phi(t - r) + phi(t + r) - 2 phi(t)] dt,
    u F'(u) = r/2 int_0^inf log(t) [(t - r) phi(t - r) - (t + r) phi(t + r)] dt,

where phi is the normal density. Two rules allow for a singularity at an end (T is the largest t):

- Tanh-sinh is the trapezoidal rule in tau, with t = T/(1 + exp(-pi sinh(tau))). Its nodes crowd
  doubly exponentially at the ends (Takahasi and Mori 1974).
- The other rule is Gauss-Legendre in v, with t = T v^5. The integrand then has slightly more than
  four continuous derivatives in v, so the error falls like n^-10.

For r < 1 the two brackets are written with expm1, sinh and cosh, so that F(u) keeps its relative
accuracy as u -> 0. For r >= 9, phi is negligible at z = -r, so log|1 + z/r| is integrated over z in
[-9, 9] instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import eval_legendre, roots_hermitenorm, roots_legendre

from ._control_variates import LEAST_LOG_ALPHA, MEAN_LOG

REACH = 9.0  # the largest z, because phi(9) = 1e-18 is negligible
_REACH_OF_SMALL = 9.9  # the largest t if r < 1, because phi(t - r) is centred at r
_TAU = 3.4  # at tau = -3.4, t/T = exp(-pi sinh(3.4)) = 4e-21, so t log(t) is negligible
_POWER = 5  # the power in t = T v^5
_ROWS = 128  # the number of values of log alpha in a block
_ROOT = math.sqrt(2.0 * math.pi)


class Nodes(NamedTuple):
    """Nodes and weights, on [0, 1] or, for Gauss-Hermite, on the real line with the density phi."""

    at: np.ndarray
    weight: np.ndarray


@lru_cache(maxsize=32)
def nodes(rule: str, n: int) -> Nodes:
    """Return the n nodes and weights of a rule, as read-only arrays."""
    if rule == "gauss_hermite":
        at, weight = roots_hermitenorm(n)
        weight = weight / _ROOT
    elif rule == "gauss_legendre":
        v, weight = _legendre(n)
        v, weight = 0.5 * (v + 1.0), 0.5 * weight
        at, weight = v**_POWER, weight * _POWER * v ** (_POWER - 1)
    else:
        tau = np.linspace(-_TAU, _TAU, n)
        exponent = math.pi * np.sinh(tau)
        at, rest = 1.0 / (1.0 + np.exp(-exponent)), 1.0 / (1.0 + np.exp(exponent))
        weight = (2.0 * _TAU / (n - 1)) * math.pi * np.cosh(tau) * at * rest
    at.flags.writeable = weight.flags.writeable = False
    return Nodes(at, weight)


def _legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights on [-1, 1].

    The last digits of SciPy's weights depend on the LAPACK library. One more Newton step,
    symmetrisation, and weights from the derivative at the nodes bring the errors below 6e-16.
    """

    def derivative(v: np.ndarray) -> np.ndarray:
        below = eval_legendre(n - 1, v) - v * eval_legendre(n, v)
        return np.asarray(n * below / ((1.0 - v) * (1.0 + v)))

    v = roots_legendre(n)[0]
    v = v - eval_legendre(n, v) / derivative(v)
    v = 0.5 * (v - v[::-1])
    weight = 2.0 / ((1.0 - v) * (1.0 + v) * derivative(v) ** 2)
    return v, 0.5 * (weight + weight[::-1])


def integrate(rule: str, n: int, x: np.ndarray, gradient: bool) -> np.ndarray:
    """Return -F(u) at log alpha = x of shape (k,). If `gradient`, return its derivative u F'(u)."""
    at, weight = nodes(rule, n)
    result = np.where(np.isnan(x), x, 0.0)
    result[x == -math.inf] = 0.5 if gradient else -math.inf
    held = np.clip(x, LEAST_LOG_ALPHA, -LEAST_LOG_ALPHA)
    r = np.exp(-0.5 * held)
    inside = np.isfinite(x)
    if rule == "gauss_hermite":
        parts: dict[Callable[..., np.ndarray], np.ndarray] = {_hermite: inside}
    else:
        parts = {
            _small: inside & (r < 1.0),
            _folded: inside & (r >= 1.0) & (r < REACH),
            _far: inside & (r >= REACH),
        }
    for part, where in parts.items():
        rows = np.flatnonzero(where)
        for start in range(0, rows.size, _ROWS):
            some = rows[start : start + _ROWS]
            result[some] = part(r[some, np.newaxis], x[some], at, weight, gradient)
    return result


def _small(
    r: np.ndarray, x: np.ndarray, q: np.ndarray, weight: np.ndarray, gradient: bool
) -> np.ndarray:
    t = _REACH_OF_SMALL * q
    u = 0.5 * r * r
    common = -2.0 * _REACH_OF_SMALL * weight * np.log(t) * _density(t)
    rt = r * t
    if gradient:
        bracket = t * np.sinh(rt) - r * np.cosh(rt)
        return np.asarray(-0.5 * (r * np.exp(-u))[:, 0] * _sum(bracket * common))
    bracket = np.expm1(-u) * np.cosh(rt) + 2.0 * np.sinh(0.5 * rt) ** 2
    return _sum(bracket * common)


def _folded(
    r: np.ndarray, x: np.ndarray, q: np.ndarray, weight: np.ndarray, gradient: bool
) -> np.ndarray:
    span = r + REACH
    t = span * q
    less, more = t - r, t + r
    if gradient:
        bracket = less * _density(less) - more * _density(more)
    else:
        bracket = _density(less) + _density(more)
    # the gradient's bracket integrates to 0, so log(t/r) gives the same integral with less rounding
    logarithm = np.log(t / r) if gradient else np.log(t)
    integral = _sum(logarithm * bracket * weight) * span[:, 0]
    return np.asarray(0.5 * r[:, 0] * integral if gradient else MEAN_LOG - integral)


def _far(
    r: np.ndarray, x: np.ndarray, q: np.ndarray, weight: np.ndarray, gradient: bool
) -> np.ndarray:
    z = REACH * (2.0 * q - 1.0)
    common = 2.0 * REACH * weight * _density(z)
    s = 1.0 / r
    logarithm = np.log1p(s * z)
    if gradient:
        return 0.5 * _sum(logarithm / s * (z * common))
    return np.asarray(0.5 * x + (MEAN_LOG - _sum(logarithm * common)))


def _hermite(
    r: np.ndarray, x: np.ndarray, z: np.ndarray, weight: np.ndarray, gradient: bool
) -> np.ndarray:
    """Return -F(u) by averaging log|z + r| over the nodes. If `gradient`, average z log|z + r|."""
    scale = np.maximum(r, 1.0)
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.abs((r + z) / scale))
    if gradient:
        return np.asarray(0.5 * r[:, 0] * _sum(logarithm * (z * weight)))
    return np.asarray(MEAN_LOG + 0.5 * np.minimum(x, 0.0) - _sum(logarithm * weight))


def _sum(terms: np.ndarray) -> np.ndarray:
    """Sum each row. In a matrix product, a row's rounding would depend on the other rows."""
    return np.asarray(terms.sum(axis=1))


def _density(z: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * z * z) / _ROOT)
