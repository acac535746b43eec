"""Derivatives of -KL of any order for a namespace ``xp``, from a table of the second derivative.

On each range of u = exp(-log_alpha)/2 the table holds a polynomial P in u - c or 1/u - c. The
derivative of P in log_alpha is a polynomial in the same variable, because d/d log_alpha is -u d/du,
or w d/dw for w = 1/u. The coefficients of derivatives are exact until the last rounding. No nearly
equal terms are subtracted, so the derivatives are accurate even in the tails. Where two ranges
meet, the third derivative loses one or two units in the last place, and higher derivatives can lose
up to three digits.

-KL of N(mu, sigma^2) depends only on log_alpha = log_sigma2 - 2 log|mu|. Write D for d/d log_alpha.
Then mu d/dmu is -2 D, and the derivatives of -KL in mu and log_sigma2 are::

    d^(j+k)/(dmu^j dlog_sigma2^k) = mu^-j (-2D) (-2D - 1) ... (-2D - j + 1) D^k

The product of operators multiplies u^n by the number 2n (2n - 1) ... (2n - j + 1) (-n)^k. That
number is 0 if mu^(2n-j) is infinite at mu = 0. Hence in the range next to u = 0 the result is a
polynomial in u times (1/sigma^2)^p mu^(j mod 2), with p = j/2 rounded up. Elsewhere the product is
expanded in powers of D: `functions.neg_kl_normal` gives the term in D, and the table the others.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import exp

from . import functions, limits, tables
from .tables import Array, Namespace

Polynomial = tuple[Fraction, ...]  # coefficients of 1, v, v^2, ...
Row = tuple[float, ...]  # the coefficients of one power of v, one for each range


def neg_kl_derivative(xp: Namespace, x: Array, order: int) -> Array:
    """Return the derivative of -KL of the given order in log_alpha = x; order 0 is -KL."""
    if order < 3:
        return (limits.neg_kl, functions.neg_kl_grad, functions.neg_kl_hess)[order](xp, x)
    dtype = tables.dtype_name(xp, x)
    table = tables.table("neg_kl_hess", dtype)
    reached = [x <= b for b in table.bounds]
    at = tables.lookup(xp, x, reached)
    recip = reached[table.first_recip - 1]
    e = xp.exp(xp.where(recip, x, -x))
    a = xp.where(recip, 2.0 * e, 0.5 * e)
    v = a - at(table.centre)
    assert table.root is not None
    x0, *_ = tables.inflection()
    v = xp.where(reached[table.root - 1] & ~reached[table.root], x - x0, v)
    p = _horner(at, _in_log_alpha(dtype, order - 2), v)
    return xp.where(~reached[0] | recip, a * p, p)


def neg_kl_normal_derivative(
    xp: Namespace, mu: Array, log_sigma2: Array, mu_order: int, log_sigma2_order: int
) -> Array:
    """Return a derivative of -KL of N(mu, sigma^2) of total order 2 or more; NaN if u is NaN."""
    dtype = tables.dtype_name(xp, mu)
    table = tables.table("neg_kl_hess", dtype)
    r, r_lo, s = functions.reduce(xp, dtype, log_sigma2)
    e = xp.exp(r)
    e = e + e * r_lo
    shifted = (mu * s) * s
    u = 0.5 * (shifted * (shifted * e))
    zero, one = xp.full_like(mu, 0.0), xp.full_like(mu, 1.0)
    nothing = (mu == 0.0) & (log_sigma2 > -float("inf"))
    everything = (xp.abs(mu) == float("inf")) & (log_sigma2 < float("inf"))
    u = xp.where(nothing, zero, xp.where(everything, xp.full_like(mu, float("inf")), u))

    reached = [u >= 0.5 * exp(-bound) for bound in table.bounds]
    at = tables.lookup(xp, u, reached)
    recip = reached[table.first_recip - 1]
    w = 1.0 / xp.where(recip, u, one)
    v = xp.where(recip, w, u) - at(table.centre)
    assert table.root is not None
    root = reached[table.root - 1] & ~reached[table.root]
    x0, *_ = tables.inflection()
    v = xp.where(root, -xp.log(2.0 * xp.where(root, u, one)) - x0, v)
    result = _horner(at, _in_normal(dtype, mu_order, log_sigma2_order), v)

    # Near mu = 0 replace two factors 1/mu by 1/sigma^2, and a single factor 1/mu by mu/sigma^2.
    # Multiply in steps, because 1/sigma^2 alone may overflow.
    near = result
    if mu_order % 2:
        near = xp.where(nothing, zero, (((near * shifted) * (0.5 * e)) * s) * s)
    for _ in range(mu_order // 2):
        near = (((near * s) * s) * (0.5 * e) * s) * s
    if mu_order % 2 == 0:
        near = xp.where(nothing & (result == 0.0), zero, near)
    result = xp.where(recip, w * result, result)
    once = _operator(mu_order, log_sigma2_order).get(1)
    if once is not None:
        result = result + float(once) * functions.neg_kl_normal(xp, mu, log_sigma2)[2]
    for _ in range(mu_order):
        result = result / xp.where(reached[0], mu, one)
    result = xp.where(reached[0], result, near)
    return xp.where(u == u, result, u)


def _horner(at: tables.Lookup, rows: tuple[Row, ...], v: Array) -> Array:
    p = at(rows[-1])
    for row in reversed(rows[:-1]):
        p = p * v + at(row)
    return p


def _polynomials(table: tables.Table) -> list[Polynomial]:
    """Return the exact coefficients of P(v) for each range."""
    heads = [Fraction(a) + Fraction(b) for a, b in zip(table.base_hi, table.base_lo, strict=True)]
    tails = zip(*table.coefficients, strict=True)
    return [(head, *map(Fraction, tail)) for head, tail in zip(heads, tails, strict=True)]


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


def _turned(p: Polynomial, centre: Fraction) -> Polynomial:
    """Return the polynomial a d/da p(a - centre) = (v + centre) p'(v), where v = a - centre."""
    return _times_variable(_slope(p), centre)


@cache
def _in_log_alpha(dtype: str, times: int) -> tuple[Row, ...]:
    """Differentiate the table of the second derivative ``times`` times in log_alpha."""
    table = tables.table("neg_kl_hess", dtype)
    mapped = []
    for i, p in enumerate(_polynomials(table)):
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
    """Return the rows for a derivative. Except in the range near u = 0 they lack the term in D."""
    table = tables.table("neg_kl_hess", dtype)
    near, *rest = _polynomials(table)
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


def _elsewhere(p: Polynomial, i: int, table: tables.Table, operator: dict[int, int]) -> Polynomial:
    total: Polynomial = (Fraction(0),)
    for power in range(2, max(operator) + 1):
        total = _plus(total, _scaled(p, operator.get(power, 0)))
        p = _slope_in_log_alpha(p, i, table)
    return total


def _slope_in_log_alpha(p: Polynomial, i: int, table: tables.Table) -> Polynomial:
    """Differentiate in log_alpha a function that has the polynomial p in range i of the table."""
    if i == table.root:
        return _slope(p)
    turned = _turned(p, Fraction(table.centre[i]))
    if i == 0 or i >= table.first_recip:  # the function is u p or p/u
        turned = _plus(p, turned)
    return _scaled(turned, 1 if i >= table.first_recip else -1)
