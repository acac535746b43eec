"""The divergence of a Gaussian posterior from the horseshoe prior, over an array namespace ``xp``.

The prior is w ~ N(0, scale^2 lambda^2) with lambda half-Cauchy. With x = w^2/(2 scale^2),

    p(w) = S(x)/(scale sqrt(2 pi^3)),    S(x) = exp(x) E1(x)

so -KL = 1/2 log(2 pi e sigma^2) + log p, where E log S(x) is integrated over v = abs(w)/sigma and
r = abs(mu)/sigma with the weights phi(v - r) + phi(v + r). With B(x) = 1/S - x, which rises from 0
to 1, d log S/d log abs(w) = -2 B, and

    dE/dmu          = -2/sigma integral of B/v [phi(v - r) - phi(v + r)] dv, times the sign of mu
    dE/dlog sigma^2 = -E B - mu/2 dE/dmu

because E B is -1/2 times the change of E as mu and sigma both grow. The trapezoidal rule in t, with
v = log(1 + e^t), converges exponentially: the integrand is analytic for abs(Im t) < pi/2, and where
r is large it is a Gaussian in t.

For x <= 1, S is exp(x) (Ein(x) - gamma - log x), by the series of Ein; else x S and B are
polynomials in (x - 4)/(x + 4). ``xp`` is the module `torch` or `jax.numpy`.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

Array = Any

_EULER = float(np.euler_gamma)
_CENTRE = 4.0


class _Rule(NamedTuple):
    """A trapezoidal rule: its step, its ends, and degrees of the series and the polynomials."""

    step: float
    below: float  # t of the first node
    reach: float  # of the Gaussian, in deviations
    series: int
    degree: int
    largest: float  # log of the largest r, beyond which E does not depend on sigma


_RULES = {
    "float64": _Rule(0.25, -38.0, 9.0, 18, 29, 20.0),
    "float32": _Rule(0.5, -18.0, 6.0, 10, 13, 9.0),
}


def neg_kl(xp: Any, mu: Array, log_sigma2: Array, scale: float) -> Array:
    """Return -KL(N(mu, sigma^2) || horseshoe) for a horseshoe prior of a scale."""
    nodes = _nodes(xp, mu, log_sigma2, scale)
    log_s, _ = _log_s(xp, nodes)
    constant = 0.5 * math.log(2.0 * math.pi * math.e) - 0.5 * math.log(2.0 * math.pi**3)
    mean = (nodes.weight * (1.0 + nodes.other) * log_s).sum(0)
    return 0.5 * log_sigma2 + (constant - math.log(scale)) + mean


def neg_kl_slopes(xp: Any, mu: Array, log_sigma2: Array, scale: float) -> tuple[Array, Array]:
    """Return the derivatives of `neg_kl` in mu and in log sigma^2."""
    nodes = _nodes(xp, mu, log_sigma2, scale)
    _, b = _log_s(xp, nodes)
    # phi(v - r) - phi(v + r) over 2 v r phi(v - r), which is 1 at v r = 0.
    y = nodes.between
    safe = xp.where(y > 1e-30, y, 1.0 + 0.0 * y)
    even = xp.where(y > 1e-30, -xp.expm1(-safe) / safe, 1.0 - 0.5 * y)
    weighted = nodes.weight * b
    d_mu = -4.0 * nodes.ratio * nodes.inverse * (weighted * even).sum(0)
    change = 2.0 * nodes.ratio * nodes.ratio * even - (1.0 + nodes.other)
    return d_mu, 0.5 + (weighted * change).sum(0)


class _Nodes(NamedTuple):
    log_x: Array
    weight: Array  # dv phi(v - r)
    other: Array  # phi(v + r)/phi(v - r)
    between: Array  # 2 v r
    ratio: Array  # mu/sigma
    inverse: Array  # 1/sigma
    rule: _Rule


def _nodes(xp: Any, mu: Array, log_sigma2: Array, scale: float) -> _Nodes:
    """Return the nodes along a new first axis."""
    rule = _RULES["float64" if str(mu.dtype).endswith("float64") else "float32"]
    half = 0.5 * log_sigma2
    size = xp.abs(mu)
    # For a smaller sigma, nothing depends on it; 1e-30 stands for a mean of 0.
    least = xp.log(xp.where(size > 1e-30, size, 1e-30 + 0.0 * size)) - rule.largest
    half = xp.where(half > least, half, least)
    ratio = mu * xp.exp(-half)
    r = xp.abs(ratio)
    steps = np.arange(0.0, 2.0 * rule.reach - rule.below + rule.step, rule.step) + rule.below
    shape = (len(steps), *(1,) * len(mu.shape))
    k = _constant(xp, steps.tolist(), mu).reshape(shape)
    zero = 0.0 * r
    offset = xp.where(r > rule.reach, r - rule.reach, zero)
    away = xp.where(r > rule.reach, zero - rule.reach, -r)  # offset - r, without rounding errors
    t = offset + k
    beyond = xp.log1p(xp.exp(-xp.abs(t)))
    v = xp.where(t > 0.0, t, 0.0 * t) + beyond
    # v - r, where v is close to r.
    from_r = xp.where(t > 0.0, away + k + beyond, v - r)
    slope = xp.exp(xp.where(t > 0.0, 0.0 * t, t) - beyond)  # dv/dt
    weight = (rule.step / math.sqrt(2.0 * math.pi)) * slope * xp.exp(-0.5 * from_r * from_r)
    between = 2.0 * v * r
    log_x = 2.0 * (half + xp.log(v)) - (2.0 * math.log(scale) + math.log(2.0))
    return _Nodes(log_x, weight, xp.exp(-between), between, ratio, xp.exp(-half), rule)


def _constant(xp: Any, values: list[float], like: Array) -> Array:
    if hasattr(like, "new_tensor"):
        return like.new_tensor(values)
    return xp.asarray(values, dtype=like.dtype)


def _log_s(xp: Any, nodes: _Nodes) -> tuple[Array, Array]:
    """Return log S(x) and B(x) at the nodes."""
    log_x = nodes.log_x
    ein, of_s, of_b = _coefficients(nodes.rule.series, nodes.rule.degree)
    small = log_x < 0.0
    low = xp.where(small, log_x, 0.0 * log_x)
    x = xp.exp(low)
    inner = _polynomial(ein, x) * x - _EULER - low  # E1(x)
    log_low, b_low = xp.log(inner) + x, xp.exp(-x) / inner - x
    high = xp.where(small, 0.0 * log_x, log_x)
    u = xp.exp(-high)
    q = (1.0 - _CENTRE * u) / (1.0 + _CENTRE * u)
    log_high, b_high = xp.log(_polynomial(of_s, q)) - high, _polynomial(of_b, q)
    return xp.where(small, log_low, log_high), xp.where(small, b_low, b_high)


def log_s(log_x: float) -> float:
    """Return log S(x) of one number in double precision."""
    rule = _RULES["float64"]
    ein, of_s, _ = _coefficients(rule.series, rule.degree)
    if log_x < 0.0:
        x = math.exp(log_x)
        return x + math.log(_polynomial(ein, x) * x - _EULER - log_x)
    u = math.exp(-log_x)
    return math.log(_polynomial(of_s, (1.0 - _CENTRE * u) / (1.0 + _CENTRE * u))) - log_x


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    found = coefficients[-1] + 0.0 * x
    for c in coefficients[-2::-1]:
        found = found * x + c
    return found


@cache
def _coefficients(series: int, degree: int) -> tuple[tuple[float, ...], ...]:
    """Return the coefficients of Ein(x)/x, x S(x) and B(x), in ascending order."""
    ein = [(-1.0) ** k / ((k + 1) * math.factorial(k + 1)) for k in range(series)]
    # q from 1 - 2 _CENTRE/(1 + _CENTRE), where x = 1, to 1, where x is infinite.
    least = (1.0 - _CENTRE) / (1.0 + _CENTRE)
    points = np.cos((np.arange(4 * degree) + 0.5) * (math.pi / (4 * degree)))
    q = 0.5 * (1.0 + least) + 0.5 * (1.0 - least) * points
    u = (1.0 - q) / (_CENTRE * (1.0 + q))
    s, b = np.array([_exact(each) for each in u]).T
    fits = [np.polynomial.Chebyshev.fit(q, y, degree, domain=[least, 1.0]) for y in (s, b)]
    found = [fit.convert(kind=np.polynomial.Polynomial, domain=[-1, 1]).coef for fit in fits]
    return (tuple(ein), *(tuple(each.tolist()) for each in found))


def _exact(u: float) -> tuple[float, float]:
    """Return x S(x) and B(x) for x = 1/u >= 1, by the continued fraction of E1."""
    if u < 1e-18:
        return 1.0, 1.0
    x = 1.0 / u
    # S = 1/(x + B), B = 1/(1 + 1/(x + 2/(1 + 2/(x + ...)))).
    terms = int(400 * min(1.0, 20.0 / x)) + 40
    tail = 0.0
    for k in range(terms, 0, -1):
        tail = k / (1.0 + (k / (x + tail)))
    b = tail
    return x / (x + b), b
