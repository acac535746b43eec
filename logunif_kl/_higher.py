"""Derivatives of any order over a namespace ``xp``, from the tables of the first two.

Where a range of u = exp(-log_alpha)/2 holds a polynomial P in u - c or 1/u - c, so does the
derivative in log_alpha, because d/d log_alpha is -u d/du, which is w d/dw for w = 1/u: the operator
acts on the coefficients. No difference of nearly equal terms is left to the arithmetic, so the
tails keep their relative accuracy, which the differential equation of Dawson's function would lose.
What is lost is a digit or two of the fit with each order.

In (mu, log_sigma2) everything is a function of log_alpha = log_sigma2 - 2 log|mu| alone, so that
with D = d/d log_alpha, by mu d/dmu = -2 D::

    d^(j+k)/(dmu^j dlog_sigma2^k) = mu^-j (-2D) (-2D - 1) ... (-2D - j + 1) D^k

On a power u^n the operator gives the number 2n (2n - 1) ... (2n - j + 1) (-n)^k, which is 0 where
mu^(2n-j) would have no value at mu = 0: what is left there is (1/sigma^2)^p mu^(j mod 2) times a
polynomial in u, with p = j/2 rounded up.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial

from . import _kernel
from ._kernel import Array, Namespace

Polynomial = tuple[Fraction, ...]  # coefficients of 1, v, v^2, ...
Row = tuple[float, ...]  # of one power of v: one entry for each range


def neg_kl_derivative(xp: Namespace, x: Array, order: int) -> Array:
    """The derivative of -KL in log_alpha = x, of any order; of order 0, -KL itself."""
    if order < 3:
        return (_kernel.neg_kl, _kernel.neg_kl_grad, _kernel.neg_kl_hess)[order](xp, x)
    dtype = _kernel._dtype_name(xp, x)
    table = _kernel._table("neg_kl_hess", dtype)
    reached = [x <= b for b in table.bounds]
    at = _kernel._lookup(xp, x, reached)
    recip = reached[table.first_recip - 1]
    e = xp.exp(xp.where(recip, x, -x))
    a = xp.where(recip, 2.0 * e, 0.5 * e)
    v = a - at(table.centre)
    assert table.root is not None
    x0, _ = _kernel._inflection()
    v = xp.where(reached[table.root - 1] & ~reached[table.root], x - x0, v)
    p = _horner(at, _in_log_alpha(dtype, order - 2), v)
    return xp.where(~reached[0] | recip, a * p, p)


def neg_kl_normal_derivative(
    xp: Namespace, mu: Array, log_sigma2: Array, mu_order: int, log_sigma2_order: int
) -> Array:
    """A derivative of -KL of N(mu, sigma^2) of two or more orders in all; NaN where -KL is."""
    dtype = _kernel._dtype_name(xp, mu)
    table = _kernel._table("kl_gap_grad", dtype)
    r, r_lo, s = _kernel._reduce(xp, dtype, log_sigma2)
    e = xp.exp(r)
    e = e + e * r_lo
    shifted = (mu * s) * s
    u = 0.5 * (shifted * (shifted * e))
    zero, one = xp.full_like(mu, 0.0), xp.full_like(mu, 1.0)
    nothing = (mu == 0.0) & (log_sigma2 > -float("inf"))
    everything = (xp.abs(mu) == float("inf")) & (log_sigma2 < float("inf"))
    u = xp.where(nothing, zero, xp.where(everything, xp.full_like(mu, float("inf")), u))

    reached = [u >= b for b in table.bounds]
    at = _kernel._lookup(xp, u, reached)
    recip = reached[table.first_recip - 1]
    v = xp.where(recip, 1.0 / xp.where(recip, u, one), u) - at(table.centre)
    result = _horner(at, _in_normal(dtype, mu_order, log_sigma2_order), v)

    # Near mu = 0 a factor 1/sigma^2 for every two powers of 1/mu, and mu where one is left over.
    near = result
    for _ in range((mu_order + 1) // 2):
        near = (((near * s) * s) * (0.5 * e) * s) * s
    if mu_order % 2:
        near = xp.where(nothing, zero, near * mu)
    else:
        near = xp.where(nothing & (result == 0.0), zero, near)
    for _ in range(mu_order):
        result = result / xp.where(reached[0], mu, one)
    result = xp.where(reached[0], result, near)
    return xp.where(u == u, result, u)


def _horner(at: _kernel.Lookup, rows: tuple[Row, ...], v: Array) -> Array:
    p = at(rows[-1])
    for row in reversed(rows[:-1]):
        p = p * v + at(row)
    return p


def _polynomials(table: _kernel._Table) -> list[Polynomial]:
    """P in v, range by range."""
    heads = [Fraction(a) + Fraction(b) for a, b in zip(table.base_hi, table.base_lo, strict=True)]
    tails = zip(*table.coefficients, strict=True)
    return [(head, *map(Fraction, tail)) for head, tail in zip(heads, tails, strict=True)]


def _rows(polynomials: list[Polynomial]) -> tuple[Row, ...]:
    """By power of v, as a lookup wants them."""
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
    """(v + centre) p(v)."""
    return _plus((Fraction(0), *p), _scaled(p, centre))


def _slope(p: Polynomial) -> Polynomial:
    return tuple(k * a for k, a in enumerate(p))[1:] or (Fraction(0),)


def _turned(p: Polynomial, centre: Fraction) -> Polynomial:
    """(v + centre) p'(v): a d/da of a polynomial in v = a - centre."""
    return _times_variable(_slope(p), centre)


@cache
def _in_log_alpha(dtype: str, times: int) -> tuple[Row, ...]:
    """The table of the second derivative, differentiated ``times`` times."""
    table = _kernel._table("neg_kl_hess", dtype)
    mapped = []
    for i, p in enumerate(_polynomials(table)):
        centre = Fraction(table.centre[i])
        sign = 1 if i >= table.first_recip else -1
        for _ in range(times):
            if i == table.root:
                p = _slope(p)
            elif i == 0 or i >= table.first_recip:  # a factor a stands before P
                p = _scaled(_plus(p, _turned(p, centre)), sign)
            else:
                p = _scaled(_turned(p, centre), sign)
        mapped.append(p)
    return _rows(mapped)


@cache
def _in_normal(dtype: str, mu_order: int, log_sigma2_order: int) -> tuple[Row, ...]:
    """The table of u F' = D(-KL), under what is left of the operator in the module's docstring."""
    table = _kernel._table("kl_gap_grad", dtype)
    near, *rest = _polynomials(table)
    return _rows(
        [
            _near_zero(near, mu_order, log_sigma2_order),
            *(
                _elsewhere(p, i, table, mu_order, log_sigma2_order)
                for i, p in enumerate(rest, start=1)
            ),
        ]
    )


def _near_zero(p: Polynomial, mu_order: int, log_sigma2_order: int) -> Polynomial:
    """-KL = -sum_n a_n u^n/n for F' = sum_n a_n u^(n-1), under the operator, less u^p.

    u = mu^2/(2 sigma^2), so that u^n/mu^j = u^(n-p) (1/(2 sigma^2))^p mu^(2p-j).
    """
    lost = (mu_order + 1) // 2
    found = []
    for n, a in enumerate(p, start=1):
        factor = Fraction(-1, n) * Fraction(-n) ** log_sigma2_order
        for i in range(mu_order):
            factor *= 2 * n - i
        if n >= lost:
            found.append(a * factor)
    return ((Fraction(0),) if lost == 0 else ()) + tuple(found or [Fraction(0)])


def _elsewhere(
    p: Polynomial, i: int, table: _kernel._Table, mu_order: int, log_sigma2_order: int
) -> Polynomial:
    centre = Fraction(table.centre[i])
    sign = 1 if i >= table.first_recip else -1
    if i < table.first_recip:  # there the table has F'; beyond it, u F'
        p = _times_variable(p, centre)

    def d(q: Polynomial) -> Polynomial:
        return _scaled(_turned(q, centre), sign)

    def minus_two_d_minus(n: int, q: Polynomial) -> Polynomial:
        return _plus(_scaled(d(q), -2), _scaled(q, -n))

    # One D is in the table: that of d/dlog_sigma2, or that of the first -2D.
    steps: list[Callable[[Polynomial], Polynomial]] = [d] * log_sigma2_order
    steps += [partial(minus_two_d_minus, n) for n in range(mu_order)]
    if log_sigma2_order:
        steps = steps[1:]
    else:
        p, steps = _scaled(p, -2), steps[1:]
    for step in steps:
        p = step(p)
    return p
