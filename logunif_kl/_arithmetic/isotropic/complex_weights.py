"""-KL of a circular complex Gaussian to the prior C/|w|^2, for an array namespace ``xp``.

With u = |mu|^2/sigma^2 and sigma^2 = E|w - mu|^2, -KL is a constant minus

    Ein(u) = gamma + log u + E1(u) = sum_n (-1)^(n+1) u^n/(n n!)

The first two derivatives in log alpha = -log u are 1 - e^-u and -u e^-u. Ein(u) is computed as u +
u^2 Q(u) for u < 2, with a tabulated Q, and as (gamma + log u) + E1(u) for larger u. E1(u) is
small there, so its rounding does not matter. Arguments are float32 or float64 arrays of one shape.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import functions
from ..tables import Array, Namespace, constant, dtype_name, lookup
from .exponential import FORMATS, exp, exp_in_two_words, product_error
from .tables import TABLES

_LOG_2 = 0.6931471805599453


class _Format(NamedTuple):
    """Constants for one floating type."""

    gamma_lo: float  # Euler's constant minus the float in _GAMMA
    lift: float  # a power of 2 that makes the squares of tiny means normal
    tiny: float  # means are multiplied by `lift` if u is below this
    # A mean above `wide` or below 1/wide is divided or multiplied by `apart` before it is squared.
    wide: float
    apart: float
    large: float  # for larger u, e^-u is 2^-shift e^-(u - c), c = shift_hi + shift_lo = shift log 2
    shift: int
    shift_hi: float
    shift_lo: float
    # Powers of 2. The smaller of re and im is multiplied by each that leaves it the smaller one.
    raises: tuple[float, float, float]


_GAMMA = {"float64": 0.5772156649015329, "float32": 0.5772156715393066}
_FORMATS = {
    "float64": _Format(
        -4.942915152430645e-18,
        2.0**300,
        2.0**-600,
        2.0**400,
        2.0**600,
        512.0,
        144,
        99.81319400063205,
        7.261734414854844e-14,
        (2.0**900, 2.0**512, 2.0**256),
    ),
    "float32": _Format(
        -6.637773886097875e-09,
        2.0**40,
        2.0**-70,
        2.0**30,
        2.0**80,
        64.0,
        46,
        31.884765625,
        4.680757683672709e-06,
        (2.0**100, 2.0**64, 2.0**32),
    ),
}


def neg_kl(xp: Namespace, x: Array) -> Array:
    """Return -Ein(u) at log alpha = x. The result is -0.0 where u is 0 or underflows."""
    dtype = dtype_name(xp, x)
    far = x <= -_LOG_2
    u, u_lo = exp(xp, -x, dtype)
    inner = xp.where(far, constant(xp, x, 1.0), u)
    near = inner + (u_lo + (inner * inner) * _polynomial(xp, "near", inner, dtype))
    large = xp.where(far, u, constant(xp, x, 2.0))
    log_u = -xp.where(far, x, constant(xp, x, -1.0))
    return -xp.where(far, _far(xp, log_u, 0.0 * inner, large, dtype), near)


def grad(xp: Namespace, x: Array) -> Array:
    """Return 1 - e^-u, the derivative in log alpha = x."""
    dtype = dtype_name(xp, x)
    u, u_lo = exp(xp, -x, dtype)
    found, rest = _slope(xp, u, dtype)
    return found + (rest + u_lo * xp.where(u < 100.0, 1.0 - found, constant(xp, x, 0.0)))


def hess(xp: Namespace, x: Array) -> Array:
    """Return -u e^-u, the second derivative in log alpha = x.

    u is computed in two words, because e^-u multiplies the relative error of u by u.
    """
    dtype = dtype_name(xp, x)
    form = _FORMATS[dtype]
    middle = (x < 6.0) & (x > -7.0)
    u, u_lo = exp_in_two_words(xp, -xp.where(middle, x, constant(xp, x, 0.0)), dtype)
    one, zero = constant(xp, x, 1.0), constant(xp, x, 0.0)
    large = u > form.large
    left = u - xp.where(large, form.shift_hi * one, zero)
    rest = u_lo / u - u_lo + xp.where(large, form.shift_lo * one, zero)
    e, e_lo = exp(xp, -left, dtype)
    found = u * e
    lost = product_error(u, e, found, FORMATS[dtype].splitter) + u * e_lo
    found = found + (found * rest + lost)
    found = found * xp.where(large, 2.0**-form.shift * one, one)
    # For small u use u - u (1 - e^-u), because XLA would merge the exponentials in u e^-u.
    small, small_lo = exp(xp, -xp.where(x > 6.0, x, 6.0 * one), dtype)
    small = small + (small_lo - small * _slope(xp, small, dtype)[0])
    found = xp.where(middle, found, xp.where(x > 0.0, small, zero))
    return -xp.where(x == x, found, x)


def derivative(xp: Namespace, x: Array, order: int) -> Array:
    """Return the derivative of -KL in x = log alpha, of any order. Order 0 gives -KL."""
    if order < 3:
        return (neg_kl, grad, hess)[order](xp, x)
    # The second derivative is e^-u q(u) with q = -u, and d/dx (e^-u q(u)) = e^-u u (q - q').
    q = [0, -1]
    for _ in range(order - 2):
        slope = [*(k * c for k, c in enumerate(q) if k), 0]
        q = [0, *(a - b for a, b in zip(q, slope, strict=True))]
    u = xp.exp(-x)
    inside = u < 2000.0
    u = xp.where(inside, u, constant(xp, x, 0.0))
    p = float(q[-1]) + 0.0 * u
    for c in reversed(q[:-1]):
        p = p * u + float(c)
    return xp.where(x == x, p * xp.exp(-u), x)


def normal(xp: Namespace, re: Array, im: Array, log_sigma2: Array) -> tuple[Array, ...]:
    """Return -Ein(u) from mean and variance, and its derivatives in re, im and log_sigma2.

    Powers of 2 are moved between factors, so that no square or exponential overflows or underflows
    before u does.
    """
    dtype = dtype_name(xp, re)
    form, splitter = _FORMATS[dtype], FORMATS[dtype].splitter
    zero, one = constant(xp, re, 0.0), constant(xp, re, 1.0)
    infinity = constant(xp, re, float("inf"))
    r, r_lo, s = functions.reduce(xp, dtype, log_sigma2)
    e, e_lo = exp(xp, r, dtype)
    a, b = (re * s) * s, (im * s) * s
    none_a, none_b = a == 0.0, b == 0.0  # 0 times e is 0 here, even if e is infinite
    rough = a * xp.where(none_a, zero, a * e) + b * xp.where(none_b, zero, b * e)
    tiny = rough < form.tiny
    lift = xp.where(tiny, form.lift * one, one)
    unlift = xp.where(tiny, one / form.lift, one)
    a, b = a * lift, b * lift

    p, q = xp.where(none_a, zero, a * e), xp.where(none_b, zero, b * e)
    # p and q are re/sigma^2 and im/sigma^2, times `lift` and divided by s^2.
    first, second = a * p, b * q
    scaled = first + second
    size = xp.abs(re) + xp.abs(im)
    nothing = (size == 0.0) & (log_sigma2 > -float("inf"))
    everything = (xp.abs(re) == float("inf")) | (xp.abs(im) == float("inf"))
    everything = everything & (log_sigma2 < float("inf"))
    everything = everything & (re == re) & (im == im)
    scaled = xp.where(nothing, zero, xp.where(everything, infinity, scaled))
    p_lo = product_error(a, e, p, splitter) + a * e_lo
    q_lo = product_error(b, e, q, splitter) + b * e_lo
    lost = product_error(a, p, first, splitter) + product_error(b, q, second, splitter)
    greater = xp.where(first > second, first, second)
    lesser = xp.where(first > second, second, first)
    lost = lost + ((greater - scaled) + lesser) + (a * p_lo + b * q_lo)
    ordinary = (scaled > 0.0) & (scaled < 1.0 / form.tiny)
    lost = xp.where(ordinary, lost, zero) + xp.where(scaled < infinity, scaled, zero) * r_lo
    corrected = scaled + lost
    lost = xp.where(scaled < infinity, (scaled - corrected) + lost, zero)
    scaled = corrected
    u = (scaled * unlift) * unlift  # tiny u may be subnormal, so `near` uses `scaled`

    far = u >= 2.0
    inner = xp.where(far, one, scaled)
    square = xp.where(far | tiny, zero, inner * inner)
    near = inner + (xp.where(far, zero, lost) + square * _polynomial_of_u(xp, far, u, dtype))
    near = (near * unlift) * unlift

    finite = u < infinity
    known = far & finite
    log_u = xp.log(xp.where(known, u, one))
    log_lo = xp.where(known, lost, zero) / xp.where(known, u, one)
    # If u overflows, compute log u from the larger one of a and b. If that one overflows too,
    # compute log u from the larger part of mu.
    over = far & ~finite
    top, low = _ordered(xp, xp.abs(a), xp.abs(b))
    plain, plain_low = _ordered(xp, xp.abs(re), xp.abs(im))
    shifted = top < infinity
    top, low = xp.where(shifted, top, plain), xp.where(shifted, low, plain_low)
    added = xp.where(shifted, r, -log_sigma2)
    added_lo = xp.where(shifted, r_lo, zero)
    ratio = xp.where(over & (top < infinity), low, zero) / xp.where(over, top, one)
    twice = 2.0 * xp.log(xp.where(over, top, one))
    total = twice + added
    total_lo = xp.where(
        xp.abs(twice) > xp.abs(added), (twice - total) + added, (added - total) + twice
    )
    total_lo = xp.where(xp.abs(total) < infinity, total_lo + added_lo, zero)
    log_u = xp.where(over, total, log_u)
    log_lo = xp.where(over, total_lo + xp.log1p(ratio * ratio), log_lo)
    value = -xp.where(far, _far(xp, log_u, log_lo, xp.where(far, u, 2.0 * one), dtype), near)

    slope, slope_lo = _slope(xp, u, dtype)
    live = ordinary & ~tiny
    slope_lo = slope_lo + xp.where(live & (u < 100.0), lost * (1.0 - slope), zero)
    # For d_re and d_im, multiply mu/sigma^2 by (1 - e^-u)/u, or mu/|mu|^2 by 1 - e^-u if u is huge.
    divisor = xp.where(live, u, one)
    over_u = xp.where(live, slope / divisor, one)
    back = over_u * divisor
    over_lo = (slope - back) - product_error(over_u, divisor, back, splitter)
    over_lo = ((over_lo - over_u * lost) + slope_lo) / divisor
    over_lo = xp.where(live, over_lo, zero)
    beyond = far & ~live
    away = beyond & (plain < infinity)
    power = xp.where(plain > form.wide, one / form.apart, one)
    power = xp.where(plain < 1.0 / form.wide, form.apart * one, power)
    distant = xp.where(away, re, one), xp.where(away, im, one)
    x, y = distant[0] * power, distant[1] * power
    squares = x * x, y * y
    square = squares[0] + squares[1]
    square_lo = product_error(x, x, squares[0], splitter) + product_error(
        y, y, squares[1], splitter
    )
    larger, smaller = _ordered(xp, *squares)
    square_lo = square_lo + ((larger - square) + smaller)
    gradients = []
    for part, far_part, near_part in ((re, distant[0], a), (im, distant[1], b)):
        # Enlarge a part that is far smaller than the other, because otherwise a product may
        # overflow or underflow although the derivative does not.
        rest, raises = xp.abs(part), []
        for step in form.raises:
            raises.append(xp.where(rest < plain / step, step * one, one))
            rest = rest * raises[-1]
            far_part, near_part = far_part * raises[-1], near_part * raises[-1]
        far_part = far_part * power
        product = xp.where(part == 0.0, zero, near_part * e)
        product_lo = product_error(near_part, e, product, splitter) + near_part * e_lo
        found = product * over_u
        error = product_error(product, over_u, found, splitter) + product * over_lo
        error = error + (product_lo + product * r_lo) * over_u
        found = 2.0 * (found + xp.where(ordinary, error, zero))
        found = xp.where(part == 0.0, part, ((found * s) * unlift) * s)
        steep = far_part / square
        back = steep * square
        error = (far_part - back) - product_error(steep, square, back, splitter)
        steep = (2.0 * (steep + (error - steep * square_lo) / square)) * power
        steep = xp.where(away, steep, 0.0 * xp.where(xp.abs(part) < infinity, part, one))
        found = xp.where(beyond, steep, found)
        for step in raises:
            found = found / step
        gradients.append(-found)
    slope = slope + slope_lo
    undefined = (u != u) | (log_sigma2 != log_sigma2)
    undefined = undefined | ((size == 0.0) & (log_sigma2 == -float("inf")))
    nan = constant(xp, re, float("nan"))
    return tuple(xp.where(undefined, nan, found) for found in (value, *gradients, slope))


def neg_kl_normal(xp: Namespace, mu: Array, log_sigma2: Array) -> Array:
    """Return -KL from log_sigma2 and a real mean, or the modulus of a complex mean."""
    return normal(xp, mu, constant(xp, mu, 0.0), log_sigma2)[0]


def _ordered(xp: Namespace, a: Array, b: Array) -> tuple[Array, Array]:
    return xp.where(a > b, a, b), xp.where(a > b, b, a)


def _far(xp: Namespace, log_u: Array, log_lo: Array, u: Array, dtype: str) -> Array:
    """Return gamma + log u + E1(u) for u >= 2, where log u = log_u + log_lo."""
    gamma = _GAMMA[dtype]
    head = log_u + gamma
    lost = xp.where(log_u < float("inf"), (log_u - head) + gamma, constant(xp, u, 0.0))
    t = 1.0 / u
    integral = (xp.exp(-u) * t) * _polynomial(xp, "far", t, dtype)
    return head + (((lost + _FORMATS[dtype].gamma_lo) + log_lo) + integral)


def _slope(xp: Namespace, u: Array, dtype: str) -> tuple[Array, Array]:
    """Return 1 - e^-u as an unevaluated sum of two floats, (high, low)."""
    one = constant(xp, u, 1.0)
    far = u >= 1.0
    inner = xp.where(far, one, u)
    first = xp.where(far, one, inner)
    second = xp.where(far, -xp.exp(-u), (inner * inner) * _polynomial(xp, "slope", inner, dtype))
    found = first + second
    return found, (first - found) + second


def _polynomial_of_u(xp: Namespace, far: Array, u: Array, dtype: str) -> Array:
    return _polynomial(xp, "near", xp.where(far, constant(xp, u, 1.0), u), dtype)


def _polynomial(xp: Namespace, name: str, t: Array, dtype: str) -> Array:
    bounds, centres, rows = TABLES[name, dtype]
    if not bounds:
        p: Any = rows[0][-1] + 0.0 * t
        for entry in reversed(rows[0][:-1]):
            p = p * t + entry
        return p
    at = lookup(xp, t, [t > bound for bound in bounds])
    v = t - at(centres)
    length = max(map(len, rows))
    columns = list(zip(*((*row, *([0.0] * (length - len(row)))) for row in rows), strict=True))
    p = at(columns[-1])
    for column in reversed(columns[:-1]):
        p = p * v + at(column)
    return p
