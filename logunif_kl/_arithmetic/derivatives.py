"""Derivatives of -KL of any order for a namespace ``xp``, from tables of the second derivative.

On each range of u = exp(-log_alpha)/2 a table holds a polynomial P in u - c or 1/u - c. The second
derivative is u P or P/u. Its derivatives in log_alpha have the same form, because d/d log_alpha is
-u d/du, or w d/dw for w = 1/u. Their coefficients are exact until the last rounding. No nearly
equal terms are subtracted, so the derivatives are accurate even in the tails.

-KL of N(mu, sigma^2) depends only on log_alpha = log_sigma2 - 2 log|mu|. Write D for d/d log_alpha.
Then mu d/dmu is -2 D, and the derivatives of -KL in mu and log_sigma2 are::

    d^(j+k)/(dmu^j dlog_sigma2^k) = mu^-j (-2D) (-2D - 1) ... (-2D - j + 1) D^k

The product of operators multiplies u^n by the number 2n (2n - 1) ... (2n - j + 1) (-n)^k. That
number is 0 if mu^(2n-j) is infinite at mu = 0. Hence in the range next to u = 0 the result is a
polynomial in u times (1/sigma^2)^p mu^(j mod 2), with p = j/2 rounded up. Elsewhere the product is
expanded in powers of D, and the table is integrated for the term in D.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import log
from typing import NamedTuple

from . import functions, limits, tables
from .tables import Array, Namespace

Polynomial = tuple[Fraction, ...]  # coefficients of 1, v, v^2, ...
Row = tuple[float, ...]  # the coefficients of one power of v, one for each range
_FAR_FROM = 5.5  # here the tables change from u to 1/u


class _Table(NamedTuple):
    """The ranges of u in ascending order. In those from `first_far` on, v is 1/u - centre."""

    ends: tuple[float, ...]  # the upper ends of all ranges except the last
    centre: tuple[float, ...]
    polynomials: tuple[Polynomial, ...]
    first_far: int


@cache
def _table(dtype: str) -> _Table:
    from .derivative_tables import TABLES

    near, near_centres, near_rows = TABLES["near", dtype]
    far, far_centres, far_rows = TABLES["far", dtype]
    rows = (*near_rows, *reversed(far_rows))
    return _Table(
        ends=(*near, _FAR_FROM, *(1.0 / t for t in reversed(far))),
        centre=(*near_centres, *reversed(far_centres)),
        polynomials=tuple(tuple(map(Fraction, row)) for row in rows),
        first_far=len(near) + 1,
    )


def neg_kl_derivative(xp: Namespace, x: Array, order: int) -> Array:
    """Return the derivative of -KL of the given order in log_alpha = x; order 0 is -KL."""
    if order < 3:
        return (limits.neg_kl, functions.neg_kl_grad, functions.neg_kl_hess)[order](xp, x)
    dtype = tables.dtype_name(xp, x)
    table = _table(dtype)
    reached = [x <= -log(2.0 * end) for end in table.ends]
    at = tables.lookup(xp, x, reached)
    far = reached[table.first_far - 1]
    e = xp.exp(xp.where(far, x, -x))
    a = xp.where(far, 2.0 * e, 0.5 * e)
    return a * _horner(at, _in_log_alpha(dtype, order - 2), a - at(table.centre))


def neg_kl_normal_derivative(
    xp: Namespace, mu: Array, log_sigma2: Array, mu_order: int, log_sigma2_order: int
) -> Array:
    """Return a derivative of -KL of N(mu, sigma^2) of total order 2 or more; NaN if u is NaN."""
    dtype = tables.dtype_name(xp, mu)
    table = _table(dtype)
    r, r_lo, s = functions.reduce(xp, dtype, log_sigma2)
    e = xp.exp(r)
    e = e + e * r_lo
    shifted = (mu * s) * s
    u = 0.5 * (shifted * (shifted * e))
    zero, one = xp.full_like(mu, 0.0), xp.full_like(mu, 1.0)
    nothing = (mu == 0.0) & (log_sigma2 > -float("inf"))
    everything = (xp.abs(mu) == float("inf")) & (log_sigma2 < float("inf"))
    u = xp.where(nothing, zero, xp.where(everything, xp.full_like(mu, float("inf")), u))

    reached = [u >= end for end in table.ends]
    at = tables.lookup(xp, u, reached)
    far = reached[table.first_far - 1]
    a = xp.where(far, 1.0 / xp.where(far, u, one), u)
    result = _horner(at, _in_normal(dtype, mu_order, log_sigma2_order), a - at(table.centre))

    # Near mu = 0 replace two factors 1/mu by 1/sigma^2, and a single factor 1/mu by mu/sigma^2.
    # Multiply in steps, because 1/sigma^2 alone may overflow.
    near = result
    if mu_order % 2:
        near = (((near * shifted) * (0.5 * e)) * s) * s
    for _ in range(mu_order // 2):
        near = (((near * s) * s) * (0.5 * e) * s) * s
    vanishes = nothing if mu_order % 2 else nothing & (result == 0.0)
    near = xp.where(vanishes, zero, near)
    if 1 not in _operator(mu_order, log_sigma2_order):
        result = xp.where(far, a * result, result)
    for _ in range(mu_order):
        result = result / xp.where(reached[0], mu, one)
    result = xp.where(reached[0], result, near)
    return xp.where(u == u, result, u)


def _horner(at: tables.Lookup, rows: tuple[Row, ...], v: Array) -> Array:
    p = at(rows[-1])
    for row in reversed(rows[:-1]):
        p = p * v + at(row)
    return p


def _rows(polynomials: list[Polynomial]) -> tuple[Row, ...]:
    """Arrange the coefficients in rows for a lookup, one row for each power of v."""
    length = max(map(len, polynomials))
    filled = [(*p, *([Fraction(0)] * (length - len(p)))) for p in polynomials]
    return tuple(tuple(map(float, row)) for row in zip(*filled, strict=True))


def _plus(p: Polynomial, q: Polynomial) -> Polynomial:
    length = max(len(p), len(q))
    p, q = (r + (Fraction(0),) * (length - len(r)) for r in (p, q))
    return tuple(a + b for a, b in zip(p, q, strict=True))


def _scaled(p: Polynomial, factor: int | Fraction) -> Polynomial:
    return tuple(factor * a for a in p)


def _times_variable(p: Polynomial, centre: Fraction) -> Polynomial:
    return _plus((Fraction(0), *p), _scaled(p, centre))


def _slope(p: Polynomial) -> Polynomial:
    return tuple(k * a for k, a in enumerate(p))[1:] or (Fraction(0),)


@cache
def _in_log_alpha(dtype: str, times: int) -> tuple[Row, ...]:
    """Differentiate the table of the second derivative ``times`` times in log_alpha."""
    table = _table(dtype)
    mapped = []
    for i, p in enumerate(table.polynomials):
        for _ in range(times):
            p = _slope_in_log_alpha(p, i, table)
        mapped.append(p)
    return _rows(mapped)


@cache
def _operator(mu_order: int, log_sigma2_order: int) -> dict[int, int]:
    """Expand (-2D) (-2D - 1) ... (-2D - j + 1) D^k. Return nonzero coefficients by power of D."""
    # j and k are the orders in mu and log_sigma2, and D is d/d log_alpha.
    found = {log_sigma2_order: 1}
    for i in range(mu_order):
        longer: dict[int, int] = {}
        for n, factor in found.items():
            longer[n + 1] = longer.get(n + 1, 0) - 2 * factor
            longer[n] = longer.get(n, 0) - i * factor
        found = longer
    return {n: factor for n, factor in found.items() if factor}


@cache
def _in_normal(dtype: str, mu_order: int, log_sigma2_order: int) -> tuple[Row, ...]:
    """Return the rows for a derivative."""
    table = _table(dtype)
    near, *rest = table.polynomials
    operator = _operator(mu_order, log_sigma2_order)
    return _rows(
        [
            _near_zero(near, mu_order, operator),
            *(_elsewhere(p, i, table, operator) for i, p in enumerate(rest, start=1)),
        ]
    )


def _near_zero(p: Polynomial, mu_order: int, operator: dict[int, int]) -> Polynomial:
    """Apply the operator to -KL near u = 0, where D^2(-KL) = sum_n a_n u^n. Divide by u^lost.

    With q = `lost` and u = mu^2/(2 sigma^2), u^n/mu^j is u^(n-q) (1/(2 sigma^2))^q mu^(2q-j).
    """
    lost = (mu_order + 1) // 2
    found = [
        a * sum(factor * Fraction(-n) ** (power - 2) for power, factor in operator.items())
        for n, a in enumerate(p, start=1)
        if n >= lost
    ]
    return ((Fraction(0),) if lost == 0 else ()) + tuple(found or [Fraction(0)])


def _elsewhere(p: Polynomial, i: int, table: _Table, operator: dict[int, int]) -> Polynomial:
    """Apply the operator to -KL in range i.

    The polynomial is that of the result, but of the result times u if the range is one of 1/u and
    the result tends to 0 there, because the operator has no term in D.
    """
    total: Polynomial = (Fraction(0),)
    for power in range(2, max(operator) + 1):
        total = _plus(total, _scaled(p, operator.get(power, 0)))
        p = _slope_in_log_alpha(p, i, table)
    if i >= table.first_far and 1 not in operator:
        return total
    once = _scaled(_first(table)[i], operator.get(1, 0))
    return _plus(_times_variable(total, Fraction(table.centre[i])), once)


@cache
def _first(table: _Table) -> tuple[Polynomial, ...]:
    """Integrate the tables, for D(-KL): from 0 at u = 0, and from 1/2 at 1/u = 0."""
    near, far = slice(table.first_far), slice(None, table.first_far - 1, -1)
    ends = [Fraction(end) for end in table.ends]
    upwards = _integrals(table, near, ends, Fraction(0), -1)
    downwards = _integrals(table, far, [1 / end for end in reversed(ends)], Fraction(1, 2), 1)
    return (*upwards, *reversed(downwards))


def _integrals(
    table: _Table, ranges: slice, ends: list[Fraction], value: Fraction, sign: int
) -> list[Polynomial]:
    """Integrate from the beginning of the first range, where the integral has this value."""
    found, start = [], Fraction(0)
    each = zip(table.polynomials[ranges], table.centre[ranges], ends, strict=False)
    for p, middle, end in each:
        centre = Fraction(middle)
        q = (Fraction(0), *(sign * a / n for n, a in enumerate(p, start=1)))
        q = _plus(q, (value - _at(q, start - centre),))
        start, value = end, _at(q, end - centre)
        found.append(q)
    return found


def _at(p: Polynomial, v: Fraction) -> Fraction:
    return sum((a * v**n for n, a in enumerate(p)), Fraction(0))


def _slope_in_log_alpha(p: Polynomial, i: int, table: _Table) -> Polynomial:
    """Return q for which the derivative of u p is u q, or that of p/u is q/u, in range i."""
    found = _plus(p, _times_variable(_slope(p), Fraction(table.centre[i])))
    return found if i >= table.first_far else _scaled(found, -1)
