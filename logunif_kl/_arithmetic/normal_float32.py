"""-KL of N(mu, sigma^2) in float32 over a namespace ``xp``: few operations, few roundings.

It is written for compilers that fuse operations (torch.compile, XLA, Triton). There are three or
four ranges of u. Every polynomial is evaluated, and one is chosen at the end, which takes fewer
instructions than choosing each coefficient. A polynomial that is not chosen may overflow.

Near u = 0 the value and the gradient have the relative error of u, which must therefore be small.
There F(u) = u (1 + t) with a small t. Both t and the correction for the reduced argument of
exp(-log_sigma2) multiply the exponential, which is neither large nor small. The correction is
therefore no subnormal number, which some compilers flush to zero.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

Array = Any
Namespace = Any

# exp(-log_sigma2) = exp(r) 2^(4 b n) (1 + d), and mu is multiplied by 2^(2 b n). With these b and n
# neither an exponential nor 2^-24 times one is subnormal, and |r| <= |log_sigma2|, so that r is
# exact. log(2^(4 b)) is rounded up to 16 bits after the point; d corrects for this rounding.
_BITS = 48
_LOG_STEP = math.ceil(4 * _BITS * math.log(2.0) * 2.0**16) * 2.0**-16
_REST = 4 * _BITS * math.log(2.0) - _LOG_STEP
_HALF_LOG2 = 0.34657359027997265


class _Polynomial(NamedTuple):
    centre: float
    base_hi: float
    base_lo: float
    coefficients: tuple[float, ...]


class _Table(NamedTuple):
    """Ranges from u = 0 on: near it, between, and in 1/u."""

    bounds: tuple[float, ...]
    polynomials: tuple[_Polynomial, ...]


@cache
def _table(function: str) -> _Table:
    from .coefficients import TABLES

    ranges = TABLES[function, "float32_in_u"]
    return _Table(tuple(r.bound for r in ranges[:-1]), tuple(_Polynomial(*r[2:]) for r in ranges))


def _small_part(p: _Polynomial, v: Array) -> Array:
    """Return P(v) without its base."""
    s = p.coefficients[-1] * v + p.coefficients[-2]
    for k in reversed(p.coefficients[:-2]):
        s = s * v + k
    return s * v


def _evaluate(p: _Polynomial, variable: Array) -> Array:
    return p.base_hi + (_small_part(p, variable - p.centre) + p.base_lo)


def _beyond_near(xp: Namespace, table: _Table, u: Array, last: Array) -> Array:
    """Evaluate the table at u beyond its first range; ``last`` is its value in its last range."""
    found = last
    between = zip(table.polynomials[1:-1], table.bounds[1:], strict=True)
    for p, bound in reversed([*between]):
        found = xp.where(u >= bound, found, _evaluate(p, u))
    return found


def neg_kl_normal(xp: Namespace, mu: Array, log_sigma2: Array) -> tuple[Array, Array, Array]:
    """-KL and its derivatives in mu and log_sigma2, of float32 arrays of one shape."""

    def constant(value: float) -> Array:
        return xp.full_like(mu, value)

    inf = float("inf")
    size = xp.abs(mu)
    n = xp.clip(xp.round(log_sigma2 * (-1.0 / _LOG_STEP)), -2.0, 1.0)
    r = -log_sigma2 - n * _LOG_STEP
    d = n * -_REST
    e = xp.exp(r)
    step = xp.where(n < -0.5, constant(2.0**-_BITS), constant(1.0))
    step = xp.where(n < -1.5, constant(2.0 ** (-2 * _BITS)), step)
    step = xp.where(n > 0.5, constant(2.0**_BITS), step)
    shifted = (mu * step) * step
    half = 0.5 * shifted
    # At these limits a factor overflows while mu = 0, or vanishes while mu is infinite.
    nothing = (mu == 0.0) & (log_sigma2 > -inf)
    everything = (size == inf) & (log_sigma2 < inf)
    e = xp.where(nothing | everything, constant(1.0), e)
    u = half * (shifted * (e + e * d))

    gap, grad = _table("kl_gap"), _table("neg_kl_grad")
    infinite = u == inf
    w = 1.0 / u

    # log(u)/2 from u; from the shifted |mu| if u overflows; from |mu| if that overflows too
    length = xp.abs(shifted)
    overflowed = length == inf
    logarithm = xp.log(xp.where(infinite, xp.where(overflowed, size, length), u))
    half_log = xp.where(
        infinite,
        (logarithm + 0.5 * xp.where(overflowed, -log_sigma2, r)) - _HALF_LOG2,
        0.5 * logarithm,
    )
    t = _small_part(gap.polynomials[0], u)
    low = half * (shifted * (e + e * (t + (d + d * t))))
    high = _beyond_near(xp, gap, u, half_log + _evaluate(gap.polynomials[-1], w))
    value = -xp.where(u >= gap.bounds[0], high, low)

    t = _small_part(grad.polynomials[0], u)
    e = e + e * (t + (d + d * t))
    high = xp.where(infinite, constant(0.5), _evaluate(grad.polynomials[-1], w))
    high = _beyond_near(xp, grad, u, high)
    beyond_near = u >= grad.bounds[0]
    d_log_sigma2 = xp.where(beyond_near, high, half * (shifted * e))
    # The order of the factors is one in which only the last product can be subnormal.
    d_mu = -xp.where(beyond_near, (2.0 * high) / mu, (shifted * (e * step)) * step)
    return value, d_mu, d_log_sigma2
