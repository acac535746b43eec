"""Derivatives of second and higher order of -KL to the prior C/|w|^2, in mean and variance.

They are computed from u = |mu|^2/sigma^2 and the derivatives of Ein(u), without compensation.
"""

from __future__ import annotations

from typing import Any

from .. import functions
from ..tables import Array, Namespace, constant, dtype_name

_LOG_50 = 3.912
_LOG_1500 = 7.313
# `functions.reduce` returns s, a power of 2^256 in float64 and of 2^32 in float32. _APART lies
# between the first and the second of these powers.
_APART = {"float64": 2.0**300, "float32": 2.0**40}
# s exceeds the first number only at mean 0. There r/2 is limited, to keep s e^(r/2) finite.
_LARGEST = {"float64": (2.0**600, 170.0), "float32": (2.0**80, 21.0)}


def ein_derivative(xp: Namespace, u: Array, order: int) -> Array:
    """Return the derivative of Ein(u) of order m >= 1, which is (-1)^(m-1) I_m.

    I_m is the integral of t^(m-1) e^-ut over [0, 1]. It is e^-u sum_j u^j/(m (m + 1) ... (m + j)).
    For large u the function uses I_(m+1) = (m I_m - e^-u)/u.
    """
    far = u > order + 1.0
    one = constant(xp, u, 1.0)
    inner = xp.where(far, one, u)
    terms = 40 + order
    series = one / (order + terms)
    for j in range(terms - 1, -1, -1):
        series = (1.0 + inner * series) / float(order + j)
    near = series * xp.exp(-inner)
    outer = xp.where(far, u, order + 2.0)
    decay = xp.exp(-outer)
    found = (1.0 - decay) / outer
    for m in range(1, order):
        found = (float(m) * found - decay) / outer
    return (1.0 if order % 2 else -1.0) * xp.where(far, found, near)


def normal_hessian(
    xp: Namespace, ein: Any, re: Array, im: Array, log_sigma2: Array
) -> tuple[tuple[Array, ...], ...]:
    """Return the second derivatives of -KL in re, im and log_sigma2, as a symmetric matrix.

    ``ein(u, m)`` is `ein_derivative` with a differentiation rule. Frameworks may differentiate all
    other operations.
    """
    one, zero = constant(xp, re, 1.0), constant(xp, re, 0.0)
    infinity = constant(xp, re, float("inf"))
    size = xp.where(xp.abs(re) > xp.abs(im), xp.abs(re), xp.abs(im))
    log_size = xp.log(xp.where(size > 0.0, size, one))
    # Where `far` is true, u is at least 50; where it is false, u is at most 100.
    log_u = 2.0 * log_size - log_sigma2
    known = (size > 0.0) & (re == re) & (im == im)
    far, gone = known & (log_u > _LOG_50), known & (log_u > _LOG_1500)

    # Where u is large, Ein(u) = gamma + log u. No factor overflows unless the derivative does.
    length = xp.where(far, size, one)
    endless = size == infinity
    p = xp.where(endless, one, xp.where(far, re, one)) / length
    q = xp.where(endless, one, xp.where(far, im, one)) / length
    over = 1.0 / (p * p + q * q)
    straight = (2.0 * ((p - q) * (p + q)) * over * over / length) / length
    across = (4.0 * (p * q) * over * over / length) / length

    # 1/sigma is root s^2, where s is a power of 2. In this order of the factors, and in the reverse
    # order in `squared`, no partial product overflows or underflows unless the result does.
    dtype = dtype_name(xp, re)
    r, r_lo, s = functions.reduce(xp, dtype, xp.where(gone, zero, log_sigma2))
    first, last = xp.where(s < _APART[dtype], s, one), xp.where(s < _APART[dtype], one, s)
    half, (beyond, most) = 0.5 * r, _LARGEST[dtype]
    root = xp.exp(xp.where((s > beyond) & (half > most), most * one, half))
    root = root + root * (0.5 * r_lo)
    a, b = ((xp.where(gone, zero, part) * s) * s * root for part in (re, im))
    root_s = root * s
    a_root, b_root = ((x * root_s) * first for x in (a, b))
    u = a * a + b * b
    slope, curvature, decay, half_way = ein(u, 1), ein(u, 2), xp.exp(-u), xp.exp(-0.5 * u)

    def squared(x: Array, there: Array) -> Array:
        here = (slope + 2.0 * (x * x) * curvature) * root_s
        return xp.where(far, there, ((-2.0 * here * root_s) * s) * s)

    by_re, by_im = (((2.0 * x * half_way) * last) * half_way for x in (a_root, b_root))
    near = (-4.0 * (a_root * curvature * b_root) * last) * last
    both = xp.where(far, across, near)
    return (
        (squared(a, straight), both, by_re),
        (both, squared(b, -straight), by_im),
        (by_re, by_im, -u * decay),
    )
