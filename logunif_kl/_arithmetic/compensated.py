"""Products and polynomials in two words: unevaluated sums hi + lo, rounded once at the end."""

from __future__ import annotations

from typing import Any

from .tables import Lookup, Table

Array = Any

_SPLITTER = 134217729.0  # 2^27 + 1
_SCALE = 2.0**600


def product_error(a: Array, b: Array, product: Array) -> Array:
    """Return the rounding error of ``a * b`` in float64, by Dekker's product."""
    a_hi = a * _SPLITTER
    a_hi = a_hi - (a_hi - a)
    a_lo = a - a_hi
    b_hi = b * _SPLITTER
    b_hi = b_hi - (b_hi - b)
    b_lo = b - b_hi
    return ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def times(z: Array, hi: Array, lo: Array | float) -> Array:
    """Return ``z (hi + lo)`` for |z| < 2, rounded once.

    The product is scaled, because a subnormal rounding error would not be computed exactly.
    """
    scaled = z * _SCALE
    product = scaled * hi
    return (product + (product_error(scaled, hi, product) + scaled * lo)) * (1.0 / _SCALE)


def polynomial(
    table: Table, at: Lookup, v: Array, v_lo: Array | None, two_words: bool
) -> tuple[Array, Array | float]:
    """Return hi and lo with hi + lo = P(v + v_lo). Without ``two_words``, lo is 0."""
    *rows, last = table.coefficients
    s = at(last)
    for row in reversed(rows[1:]):
        s = s * v + at(row)
    k1, base = at(rows[0]), at(table.base_hi)
    if not two_words:
        return base + (v * (s * v + k1) + at(table.base_lo)), 0.0
    p = v * s
    s_hi = k1 + p
    s_lo = ((k1 - s_hi) + p) + product_error(v, s, p)
    q = v * s_hi
    base_lo = at(table.base_lo)
    if v_lo is not None:  # Add v_lo P'(v), where P'(v) = s_hi + p + a small term v^2 s'(v).
        base_lo = v_lo * (s_hi + p) + base_lo
    q_lo = (product_error(v, s_hi, q) + v * s_lo) + base_lo
    hi = base + q
    return hi, ((base - hi) + q) + q_lo
