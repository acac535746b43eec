"""The exact functions as plain arithmetic for an array namespace ``xp``.

``xp`` is NumPy or any namespace of the array API standard, and provides exponentials and
logarithms. Arguments and results are float32 or float64 arrays of one shape. As in
``_numpy/c/exact.h``, each function has up to eight ranges of u. On a range the function is a factor
times ``P(v) = base + v (k1 + v (k2 + ...))``, where v = u - c or v = 1/u - c. In float64 the last
steps are computed in two words: they return unevaluated sums hi + lo of two floats. float32 has its
own tables and needs no lo. For -KL from mean and variance in float32 see `normal_float32`.

Every branch is computed, and ``where`` chooses one, so that a compiler can fuse all operations. A
function makes about twenty temporary arrays. If these take too much memory, pass smaller blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import compensated, normal_float32, tables

Array = Any
Namespace = Any

_HALF_LOG2 = 0.34657359027997265
# `reduce` writes exp(-log_sigma2) = exp(r) 2^(4 b n), with b = _SHIFT_BITS and a small integer n.
# _SHIFT is log(2^(4 b)) as a sum of two floats. The product of n and the first float is exact.
_SHIFT_BITS = {"float32": 32, "float64": 256}
_SHIFT = {
    "float32": (88.72283935546875, -2.437957503945943e-07),
    "float64": (709.7827128933841, -8.993979834782992e-14),
}
_STEPS = (-3, -2, -1, 0, 1, 2, 3)
_TINY = 2.0**-900  # a smaller product may have a subnormal rounding error
_LARGE = 2.0**900  # splitting a larger factor for `product_error` overflows
_EXACT_RECIPROCAL_TO = 2.0**990


class _InU(NamedTuple):
    """The polynomial P at u, as hi + lo, and the numbers that form the factor of P."""

    hi: Array
    lo: Array | float
    w: Array  # 1/u
    w_lo: Array | float  # the relative rounding error of w
    origin: Array
    recip: Array
    two_words: bool


def _in_u(xp: Namespace, function: str, u: Array) -> _InU:
    dtype = tables.dtype_name(xp, u)
    table, two_words = tables.table(function, dtype), dtype == "float64"
    reached = [u >= b for b in table.bounds]
    at = tables.lookup(xp, u, reached)
    recip = reached[table.first_recip - 1]
    one = tables.constant(xp, u, 1.0)
    w = 1.0 / xp.where(recip, u, one)
    v = xp.where(recip, w, u) - at(table.centre)
    hi, lo = compensated.polynomial(table, at, v, None, two_words)
    w_lo: Array | float = 0.0
    if two_words:
        moderate = xp.where(recip & (u < _EXACT_RECIPROCAL_TO), u, one)
        product = (1.0 / moderate) * moderate
        w_lo = (1.0 - product) - compensated.product_error(1.0 / moderate, moderate, product)
    return _InU(hi, lo, w, w_lo, ~reached[0], recip, two_words)


def _finish(p: _InU, z: Array, extra: Array | float = 0.0) -> Array:
    """Return ``z (P + extra)``, rounded once in float64."""
    return compensated.times(z, p.hi, p.lo + extra) if p.two_words else z * (p.hi + extra)


def _in_domain(xp: Namespace, u: Array, result: Array) -> Array:
    return xp.where(u >= 0, result, tables.constant(xp, u, float("nan")))


def gap(xp: Namespace, u: Array) -> Array:
    """Return F(u): see `logunif_kl.special.kl_gap`."""
    p = _in_u(xp, "kl_gap", u)
    one = tables.constant(xp, u, 1.0)
    logarithm = 0.5 * xp.log(xp.where(p.recip, u, one))
    high = (logarithm + p.hi) + p.lo
    if p.two_words:
        total = logarithm + p.hi
        high = total + (((logarithm - total) + p.hi) + p.lo)
        high = xp.where(u == float("inf"), u, high)
    # Multiply P by u in the range next to u = 0, and by 1 elsewhere, because 0 * inf is NaN.
    low = _finish(p, xp.where(p.origin & (u >= 0), u, one))
    return _in_domain(xp, u, xp.where(p.recip, high, low))


def gap_grad(xp: Namespace, u: Array) -> Array:
    """Return F'(u): see `logunif_kl.special.kl_gap_grad`."""
    p = _in_u(xp, "kl_gap_grad", u)
    z = xp.where(p.recip, p.w, tables.constant(xp, u, 1.0))
    return _in_domain(xp, u, _finish(p, z, p.hi * p.w_lo))


def gap_hess(xp: Namespace, u: Array) -> Array:
    """Return F''(u): see `logunif_kl.special.kl_gap_hess`."""
    p = _in_u(xp, "kl_gap_hess", u)
    z = xp.where(p.recip, p.w, tables.constant(xp, u, 1.0))
    if not p.two_words:
        return _in_domain(xp, u, z * (z * p.hi))
    first = z * p.hi
    rest = compensated.product_error(z, p.hi, first) + z * (p.lo + 2.0 * p.hi * p.w_lo)
    return _in_domain(xp, u, compensated.times(z, first, rest))


class _InLogAlpha(NamedTuple):
    """P at u = exp(-x)/2 for x = log_alpha, as hi + lo, and numbers for the factor of P."""

    hi: Array
    lo: Array | float
    a: Array  # 1/u where `recip`, else u
    origin: Array
    recip: Array
    two_words: bool


def _in_log_alpha(xp: Namespace, function: str, x: Array) -> _InLogAlpha:
    dtype = tables.dtype_name(xp, x)
    table, two_words = tables.table(function, dtype), dtype == "float64"
    reached = [x <= b for b in table.bounds]
    at = tables.lookup(xp, x, reached)
    recip = reached[table.first_recip - 1]
    e = xp.exp(xp.where(recip, x, -x))
    a = xp.where(recip, 2.0 * e, 0.5 * e)
    v = a - at(table.centre)
    v_lo: Array | None = None
    if table.root is not None:
        inside = reached[table.root - 1] & ~reached[table.root]
        x0, x0_lo, stretch = tables.inflection()
        near = x - x0
        if two_words:
            v_lo = xp.where(inside, near * stretch - x0_lo, tables.constant(xp, x, 0.0))
        else:
            near = (x - at(table.centre)) - tables.float32_rest(x0)
        v = xp.where(inside, near, v)
    hi, lo = compensated.polynomial(table, at, v, v_lo, two_words)
    return _InLogAlpha(hi, lo, a, ~reached[0], recip, two_words)


def _scaled(p: _InLogAlpha, z: Array) -> Array:
    return compensated.times(z, p.hi, p.lo) if p.two_words else z * p.hi


def neg_kl(xp: Namespace, x: Array) -> Array:
    """Return -KL at log_alpha = x, which tends to 0 as x -> inf: see `logunif_kl.neg_kl`."""
    p = _in_log_alpha(xp, "neg_kl", x)
    low = _scaled(p, xp.where(p.origin, p.a, tables.constant(xp, x, 1.0)))
    line = 0.5 * x
    high = line + (p.hi + p.lo)
    if p.two_words:
        total = line + p.hi
        rest = ((line - total) + p.hi) + p.lo
        high = xp.where(x == -float("inf"), x, total + rest)
    return xp.where(p.recip, high, xp.where(x == x, low, x))


def neg_kl_grad(xp: Namespace, x: Array) -> Array:
    """Return the derivative of -KL in log_alpha: see `logunif_kl.neg_kl_grad`."""
    p = _in_log_alpha(xp, "neg_kl_grad", x)
    return _scaled(p, xp.where(p.origin, p.a, tables.constant(xp, x, 1.0)))


def neg_kl_hess(xp: Namespace, x: Array) -> Array:
    """Return the second derivative of -KL in log_alpha: see `logunif_kl.neg_kl_hess`."""
    p = _in_log_alpha(xp, "neg_kl_hess", x)
    return _scaled(p, xp.where(p.origin | p.recip, p.a, tables.constant(xp, x, 1.0)))


def reduce(xp: Namespace, dtype: str, log_sigma2: Array) -> tuple[Array, Array, Array]:
    """Return r, r_lo and s with exp(-log_sigma2) = exp(r + r_lo) s^4, r small, s a power of 2."""
    high, low = _SHIFT[dtype]
    n = xp.round(log_sigma2 / -(high + low))
    bits = _SHIFT_BITS[dtype]
    step = tables.constant(xp, n, float(_STEPS[0]))
    power = tables.constant(xp, n, 2.0 ** (_STEPS[0] * bits))
    for k in _STEPS[1:]:
        reached = n >= k
        step = xp.where(reached, tables.constant(xp, n, float(k)), step)
        power = xp.where(reached, tables.constant(xp, n, 2.0 ** (k * bits)), power)
    return -log_sigma2 - step * high, -step * low, power


def neg_kl_normal(xp: Namespace, mu: Array, log_sigma2: Array) -> tuple[Array, Array, Array]:
    """Return -KL of N(mu, sigma^2), and its derivatives in mu and in log_sigma2.

    Powers of 2 are moved between factors, so that no square or exponential overflows or underflows
    before u does.
    """
    dtype = tables.dtype_name(xp, mu)
    if dtype == "float32":
        return normal_float32.neg_kl_normal(xp, mu, log_sigma2)
    size = xp.abs(mu)
    zero = tables.constant(xp, mu, 0.0)
    r, r_lo, s = reduce(xp, dtype, log_sigma2)
    e = xp.exp(r)
    shifted = (mu * s) * s
    half, longer = 0.5 * shifted, shifted * e
    rough = half * longer
    # This is mu/sigma^2 divided by s. The order of the products avoids subnormal numbers.
    precision_mu = xp.where(s < 1.0, (shifted * e) * s, (shifted * s) * e)
    # Set u to its limit where mu is 0 or infinite, because mu^2/sigma^2 may be 0 * inf there.
    nothing = (mu == 0) & (log_sigma2 > -float("inf"))
    everything = (size == float("inf")) & (log_sigma2 < float("inf"))
    rough = xp.where(
        nothing, zero, xp.where(everything, tables.constant(xp, mu, float("inf")), rough)
    )
    u = xp.where(rough < float("inf"), rough + rough * r_lo, rough)
    precision_mu = xp.where(nothing, mu, precision_mu)

    p = _in_u(xp, "kl_gap", u)
    one = tables.constant(xp, mu, 1.0)
    recip = p.recip
    finite = u < float("inf")
    # Compute log(u)/2 from u. If u overflows, use |shifted|. If |shifted| overflows too, use |mu|.
    log_u = xp.log(xp.where(recip & finite, u, one))
    shifted_finite = xp.abs(shifted) < float("inf")
    log_shifted = xp.log(xp.where(recip & shifted_finite, xp.abs(shifted), one)) + 0.5 * r
    log_size = xp.log(xp.where(recip, size, one)) - 0.5 * log_sigma2
    far = xp.where(shifted_finite, log_shifted - (_HALF_LOG2 - 0.5 * r_lo), log_size - _HALF_LOG2)
    half_log = xp.where(finite, 0.5 * log_u, far)
    # `u_lo` is the relative error of `rough`: r_lo plus the rounding error of the product.
    ordinary = (u > _TINY) & ~recip
    lost = compensated.product_error(half, longer, rough) / xp.where(ordinary, rough, one)
    u_lo = r_lo + xp.where(ordinary, lost, zero)
    origin = p.origin & (u >= 0)
    low = _finish(p, xp.where(origin, rough, one), xp.where(origin, p.hi * u_lo, zero))
    value = -xp.where(recip, half_log + (p.hi + p.lo), low)

    g = _in_u(xp, "kl_gap_grad", u)
    rest = g.lo + g.hi * xp.where(g.recip, zero, r_lo)
    slope = g.hi + rest  # F'(u), or u F'(u) where u is large
    z = xp.where(g.recip, one, rough)
    d_log_sigma2 = xp.where(g.recip, slope, _finish(g, z, g.hi * u_lo))
    steep = -2.0 * slope / xp.where(g.recip, mu, one)
    shallow = slope * precision_mu
    moderate = (xp.abs(precision_mu) > 1.0 / _LARGE) & (xp.abs(precision_mu) < _LARGE)
    lost = compensated.product_error(slope, precision_mu, shallow)
    lost = lost + ((g.hi - slope) + rest) * precision_mu
    shallow = shallow + xp.where(moderate, lost, zero)
    d_mu = xp.where(g.recip, steep, -(shallow * s))
    undefined = u != u
    nan = tables.constant(xp, mu, float("nan"))
    return (
        xp.where(undefined, nan, value),
        xp.where(undefined, nan, d_mu),
        xp.where(undefined, nan, d_log_sigma2),
    )
