"""Products and exponentials in two words, as sums hi + lo of two floats that are not added up."""

from __future__ import annotations

from typing import NamedTuple

from ..tables import Array, Namespace, constant


class Format(NamedTuple):
    """Constants for one floating type."""

    splitter: float
    log2_hi: float  # has few bits, so that its products with small integers are exact
    log2_lo: float
    coefficients: tuple[tuple[float, float], ...]  # the first coefficients of exp, in two words
    rest: tuple[float, ...]  # the other coefficients, in one word
    least: int  # the least exponent n of the factor 2^n
    steps: tuple[int, ...]  # for every n in use, the difference n - `least` is a sum of some steps


FORMATS = {
    "float64": Format(
        splitter=134217729.0,
        log2_hi=0.6931471805598903,
        log2_lo=5.497923018708371e-14,
        coefficients=(
            (1.0, 0.0),
            (1.0, 0.0),
            (0.5, 0.0),
            (0.16666666666666666, 9.25185853854297e-18),
            (0.041666666666666664, 2.3129646346357427e-18),
        ),
        rest=(
            0.008333333333333333,
            0.001388888888888889,
            0.0001984126984126984,
            2.48015873015873e-05,
            2.7557319223985893e-06,
            2.755731922398589e-07,
            2.505210838544172e-08,
            2.08767569878681e-09,
            1.6059043836821613e-10,
            1.1470745597729725e-11,
            7.647163731819816e-13,
        ),
        least=-16,
        steps=(16, 8, 4, 2, 1),
    ),
    "float32": Format(
        splitter=4097.0,
        log2_hi=0.693145751953125,
        log2_lo=1.428606765330187e-06,
        coefficients=(
            (1.0, 0.0),
            (1.0, 0.0),
            (0.5, 0.0),
            (0.1666666716337204, -4.967053879312289e-09),
        ),
        rest=(
            0.0416666679,
            0.00833333377,
            0.00138888892,
            0.000198412701,
            2.48015876e-05,
            2.75573188e-06,
        ),
        least=-126,
        steps=(64, 64, 64, 32, 16, 8, 4, 2, 1),
    ),
}


def product_error(a: Array, b: Array, product: Array, splitter: float) -> Array:
    """Return the rounding error of ``a * b``, by Dekker's product."""
    a_hi = a * splitter
    a_hi = a_hi - (a_hi - a)
    a_lo = a - a_hi
    b_hi = b * splitter
    b_hi = b_hi - (b_hi - b)
    b_lo = b - b_hi
    return ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def exp_in_two_words(xp: Namespace, y: Array, dtype: str) -> tuple[Array, Array]:
    """Return exp(y) as hi and lo, for -11 < y < 10 in float64 or -87 < y < 88 in float32."""
    form = FORMATS[dtype]
    n = xp.round(y * 1.4426950408889634)
    r = y - n * form.log2_hi
    r_lo = -(n * form.log2_lo)
    s = constant(xp, y, form.rest[-1])
    for c in reversed(form.rest[:-1]):
        s = s * r + c
    s_lo = 0.0 * s
    for c_hi, c_lo in reversed(form.coefficients):
        p = s * r
        error = product_error(s, r, p, form.splitter) + s_lo * r
        s = c_hi + p
        s_lo = ((c_hi - s) + p) + (error + c_lo)
    s_lo = s_lo + s * r_lo
    s, s_lo = s + s_lo, (s - (s + s_lo)) + s_lo
    power, left = constant(xp, y, 2.0**form.least), n - float(form.least)
    for k in form.steps:
        reached = left >= float(k)
        power = xp.where(reached, power * 2.0**k, power)
        left = xp.where(reached, left - float(k), left)
    return s * power, s_lo * power


def exp(xp: Namespace, y: Array, dtype: str) -> tuple[Array, Array]:
    """Return exp(y) as hi and lo. Only float32 needs lo: its ``xp.exp`` may be several ulp off."""
    plain = xp.exp(y)
    zero = constant(xp, y, 0.0)
    if dtype == "float64":
        return plain, zero
    inside = (y > -86.0) & (y < 88.0)
    hi, lo = exp_in_two_words(xp, xp.where(inside, y, zero), dtype)
    return xp.where(inside, hi, plain), xp.where(inside, lo, zero)
