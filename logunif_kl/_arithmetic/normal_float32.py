"""-KL of N(mu, sigma^2) in float32 for a namespace ``xp``, with few operations and roundings.

This module is written for compilers that fuse operations (torch.compile, XLA, Triton). The value
has two ranges of u, and the gradient has three. Near u = 0, F(u) = u (1 + t) with a polynomial t,
so the value and the gradient are as accurate as u. For large u both are polynomials in 1/(u + b)
for a constant b, and the value has the additional term log(u + b)/2. The results for all ranges are
computed for each element, and one is chosen at the end. The rejected results may overflow.

Write exp(-log_sigma2) = e c^4, where c is a power of 2^32 and e is neither large nor small. Then

    u = s (s e)/2,    s = mu c^2,    mu/sigma^2 = s (e c) c

and only the last product can be subnormal. If u is very large, log_sigma2 is raised so that u is
large but finite. The polynomials in 1/(u + b) are constant there. Half of the number by which
log_sigma2 was raised is added to the value.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from . import binary32
from .binary32 import fma, fused

Array = Any
Namespace = Any

_LOG2 = math.log(2.0)
# log 2 as a sum of two parts. The product of the first part and an integer of 9 bits is exact.
_LOG2_HIGH = math.floor(_LOG2 * 2.0**15) * 2.0**-15
_LOG2_LOW = _LOG2 - _LOG2_HIGH
# log_sigma2 is raised to keep u < 2^85. The bits of |mu| give an estimate of log2|mu|, at most 0.09
# too small. For a subnormal mu the estimate is too large, but u > 2^40 still holds.
_LARGEST_U = 85.0
_PER_BIT = 2.0**-23
# -log_sigma2 is raised to -290. u stays 0, because exp(-290) mu^2 < 2^-150 for every finite mu.
_SMALLEST_LOG = -290.0
# Adding x * _TINY or x * _SMALL changes no result, unless x is infinite or NaN.
_TINY, _SMALL = 2.0**-126, 2.0**-115


class _Range(NamedTuple):
    bound: float
    centre: float
    base: float
    base_low: float
    coefficients: tuple[float, ...]


class _Table(NamedTuple):
    """Polynomials in u (`near`, and `between` if not None) and in 1/(u + shift) (`far`)."""

    shift: float
    near: _Range
    between: _Range | None
    far: _Range


@cache
def _table(function: str) -> _Table:
    from .coefficients import SHIFTS, TABLES

    near, *between, far = (_Range(*r[1:]) for r in TABLES[function, "float32_in_u"])
    return _Table(SHIFTS[function], near, between[0] if between else None, far)


@cache
def _elementary() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the coefficients of polynomials that approximate exp(x) and log(1 + x)/(2 x)."""
    from .coefficients import EXP_FLOAT32, HALF_LOG1P_FLOAT32

    return EXP_FLOAT32, HALF_LOG1P_FLOAT32


class _Argument(NamedTuple):
    """The factors of u = s (s e)/2 and mu/sigma^2 = s (e c) c: see the top of this module."""

    s: Array
    half_e: Array
    c: Array
    u: Array
    excess: Array
    """By how much log_sigma2 was raised; infinite where log_sigma2 is -inf."""


def _argument(xp: Namespace, mu: Array, log_sigma2: Array) -> _Argument:
    size = xp.abs(mu)
    # x is NaN if |mu| and log_sigma2 are both +inf.
    x = xp.minimum(size - log_sigma2, -log_sigma2)
    x = xp.clip(x, _SMALLEST_LOG, None)
    log2_size = binary32.from_integer(xp, binary32.bits(xp, size))
    most = (_LARGEST_U + 2.0 * 127.0) * _LOG2 - log2_size * (2.0 * _LOG2 * _PER_BIT)
    limited = xp.minimum(x, most)
    excess = x - limited
    n, exponents = binary32.nearest(xp, limited, 1.0 / _LOG2)
    r = fma(xp, n, -_LOG2_LOW, fma(xp, n, -_LOG2_HIGH, limited))
    # The last 7 bits of `exponents` hold 64 + the exponent of e. The other bits hold log2(c)/32.
    c = binary32.unbits(
        xp,
        binary32.left(xp, binary32.right(xp, exponents, 7), 5 + binary32.MANTISSA_BITS)
        + binary32.ONE_BITS,
    )
    power = binary32.unbits(
        xp,
        binary32.left(xp, exponents & 127, binary32.MANTISSA_BITS)
        + (binary32.ONE_BITS - (65 << binary32.MANTISSA_BITS)),
    )
    one, *rest = _elementary()[0]
    half_e = fused(xp, binary32.horner(xp, tuple(rest), r), r, one) * power
    s = (mu * c) * c
    return _Argument(s, half_e, c, s * (s * half_e), excess)


def _near(xp: Namespace, near: _Range, a: _Argument) -> Array:
    """Compute e (1 + t)/2. If log_sigma2 is -inf the result is inf, so that mu = 0 gives NaN."""
    u = binary32.below(xp, a.u, a.u, near.bound)
    t = binary32.horner(xp, near.coefficients, u) * u
    half_e = fma(xp, a.excess, _TINY, a.half_e)
    return fused(xp, half_e, t, half_e)


def _far(xp: Namespace, table: _Table, v: Array, base: Array) -> Array:
    """Add the polynomial in 1/v, without its constant term, to ``base``."""
    w = binary32.inverse(xp, v)
    slope = binary32.horner(xp, table.far.coefficients, w - table.far.centre)
    return fma(xp, slope, w, base)


def _between(xp: Namespace, p: _Range, u: Array) -> Array:
    x = binary32.below(xp, u, u, p.bound) - p.centre
    return fma(xp, binary32.horner(xp, p.coefficients, x), x, p.base_low) + p.base


def neg_kl_normal(xp: Namespace, mu: Array, log_sigma2: Array) -> tuple[Array, Array, Array]:
    """Return -KL and its derivatives in mu and log_sigma2, for float32 arrays of one shape."""
    a = _argument(xp, mu, log_sigma2)

    gap = _table("kl_gap")
    low = a.s * (a.s * _near(xp, gap.near, a))
    v = a.u + gap.shift
    m, k = binary32.split(xp, v)
    # v is infinite only if mu is infinite. Sum from the smallest term to the largest.
    far = _far(xp, gap, v, fma(xp, v, _SMALL, fma(xp, a.excess, 0.5, gap.far.base)))
    far = fma(xp, binary32.horner(xp, _elementary()[1], m), m, far)
    value = -xp.where(a.u >= gap.near.bound, fma(xp, k, 0.5 * _LOG2, far), low)

    grad = _table("neg_kl_grad")
    near = _near(xp, grad.near, a)
    far = _far(xp, grad, a.u + grad.shift, grad.far.base)
    if grad.between is not None:
        far = xp.where(a.u >= grad.between.bound, far, _between(xp, grad.between, a.u))
    beyond = a.u >= grad.near.bound
    d_log_sigma2 = xp.where(beyond, far, a.s * (a.s * near))
    # In the far range, mu/sigma^2 F'(u) = 2 u F'(u)/mu.
    c = -2.0 * a.c
    steep = binary32.quotient(xp, far * c, binary32.from_bound(xp, a.s, a.u, grad.near.bound))
    shallow = binary32.below(xp, a.s, a.u, grad.near.bound) * (near * c)
    d_mu = xp.where(beyond, steep, shallow)
    return value, d_mu * a.c, d_log_sigma2


# Beyond this |log_sigma2|, 2^128 moves from 1/sigma^2 to mu^2: 2^64 in 1/sigma, up to a factor that
# corrects the rounding of log(2^128).
_WIDE, _LOG_STEP = 120.0, 88.72283935546875
_UP, _DOWN = 2.0**64 * (1.0 + 2.0**-23), 2.0**-64 * (1.0 - 2.0**-23)


def portable(xp: Namespace, mu: Array, log_sigma2: Array) -> tuple[Array, Array, Array]:
    """Return the same as `neg_kl_normal` by operations that every runtime of exported programs has.

    There is no operation on bits, and the errors are up to three times as large.
    """
    infinite, zero = xp.full_like(mu, math.inf), xp.full_like(mu, 0.0)
    narrow, broad = log_sigma2 < -_WIDE, log_sigma2 > _WIDE
    c = xp.where(narrow, _UP, xp.where(broad, _DOWN, xp.full_like(mu, 1.0)))
    moved = xp.where(narrow, -_LOG_STEP, xp.where(broad, _LOG_STEP, zero))
    precision = xp.exp(-0.5 * (log_sigma2 - moved))
    t = (mu * c) * precision
    u = 0.5 * (t * t)
    # Set u to its limit where mu is 0 or infinite, because mu/sigma may be 0 * inf there.
    nothing = (mu == 0.0) & (log_sigma2 > -math.inf)
    size = xp.abs(mu)
    u = xp.where(nothing, zero, xp.where((size == math.inf) & (log_sigma2 < math.inf), infinite, u))

    gap = _table("kl_gap")
    v = u + gap.shift
    low = u + u * (binary32.horner(xp, gap.near.coefficients, u) * u)
    half_log = xp.where(u < math.inf, xp.log(v), 2.0 * xp.log(size) - (log_sigma2 + _LOG2))
    far = _far(xp, gap, v, 0.5 * half_log + gap.far.base)
    value = -xp.where(u >= gap.near.bound, far, low)

    grad = _table("neg_kl_grad")
    slope = 1.0 + binary32.horner(xp, grad.near.coefficients, u) * u
    far = _far(xp, grad, u + grad.shift, xp.full_like(mu, grad.far.base))
    if grad.between is not None:
        far = xp.where(u >= grad.between.bound, far, _between(xp, grad.between, u))
    beyond = u >= grad.near.bound
    d_log_sigma2 = xp.where(beyond, far, u * slope)
    shallow = xp.where(nothing, mu, (t * precision) * c)
    d_mu = xp.where(beyond, -2.0 * far / xp.where(beyond, mu, 1.0), -(slope * shallow))
    return value, d_mu, d_log_sigma2
