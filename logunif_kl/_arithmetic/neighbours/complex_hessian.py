"""Derivatives of second and higher order of -KL to the prior C/|w|^2, in mean and variance.

They are functions of u = |mu|^2/sigma^2 and the derivatives of Ein, as `complex_weights` has them.
Arguments are float32 or float64 arrays of one shape. The accuracy is that of a formula in one word.
"""

from __future__ import annotations

from typing import Any

from ..tables import Array, Namespace, constant, dtype_name

_LOG_50 = 3.912
_LARGEST = {"float64": 709.0, "float32": 88.0}  # e to this is finite


def ein_derivative(xp: Namespace, u: Array, order: int) -> Array:
    """Return the derivative of Ein(u), of order 1 or more: +- the integral of t^(order-1) e^-ut.

    With m = order, I_m = e^-u sum_j u^j/(m (m + 1) ... (m + j)) and I_(m+1) = (m I_m - e^-u)/u.
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

    ``ein(u, m)`` is `ein_derivative` with a rule of differentiation; the rest may be differentiated
    as it stands.
    """
    one, zero = constant(xp, re, 1.0), constant(xp, re, 0.0)
    infinity = constant(xp, re, float("inf"))
    size = xp.where(xp.abs(re) > xp.abs(im), xp.abs(re), xp.abs(im))
    log_size = xp.log(xp.where(size > 0.0, size, one))
    # Where this holds u is at least 50, and where it does not u is at most 100.
    far = (2.0 * log_size - log_sigma2 > _LOG_50) & (size > 0.0)
    far = far & (re == re) & (im == im)

    # Far away Ein(u) = gamma + log u. No factor leaves the range of the type before a product does.
    length = xp.where(far, size, one)
    endless = size == infinity
    p = xp.where(endless, one, xp.where(far, re, one)) / length
    q = xp.where(endless, one, xp.where(far, im, one)) / length
    over = 1.0 / (p * p + q * q)
    straight = (2.0 * ((p - q) * (p + q)) * over * over / length) / length
    across = (4.0 * (p * q) * over * over / length) / length

    half = -0.5 * xp.where(far, zero, log_sigma2)
    largest = _LARGEST[dtype_name(xp, re)] * one
    root = xp.exp(xp.where(half > largest, largest, half))  # 1/sigma; beyond it mu is 0
    a, b = xp.where(far, zero, re) * root, xp.where(far, zero, im) * root
    u = a * a + b * b
    slope, curvature, decay = ein(u, 1), ein(u, 2), xp.exp(-u)

    def squared(x: Array, there: Array) -> Array:
        here = (slope + 2.0 * (x * x) * curvature) * root
        return xp.where(far, there, -2.0 * here * root)

    by_re = xp.where(far, zero, 2.0 * (a * decay) * root)
    by_im = xp.where(far, zero, 2.0 * (b * decay) * root)
    both = xp.where(far, across, -4.0 * ((a * b) * curvature * root) * root)
    return (
        (squared(a, straight), both, by_re),
        (both, squared(b, -straight), by_im),
        (by_re, by_im, xp.where(far, zero, -u * decay)),
    )
