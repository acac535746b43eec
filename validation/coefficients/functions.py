"""The function that each form of range approximates, in the fitted variable and many digits.

Ranges are given in u for every table; for the functions of log_alpha, u = exp(-log_alpha)/2 and
the generator writes their bounds in log_alpha. A range computes
``f = z * (base + v * S(v)) + extra`` in one of these forms, where w = 1/u:

=======  ===============  ============================================  =========================
form     variable ``v``   factor ``z``                                  ``extra``
=======  ===============  ============================================  =========================
origin   u                u for F, -KL, its gradient and Hessian;       0
                          1 for F' and F''
centre   u - c            1                                             0
root     log_alpha - x0   1, and base = 0                               0
recip    w - c            w for F' and the Hessian of -KL, w^2 for      log(u)/2 for F,
                          F'', else 1                                   log_alpha/2 for -KL
shifted  1/(u + b) - c    1                                             log(u + b)/2 for F
=======  ===============  ============================================  =========================

``P(v) = (f - extra)/z`` is fitted, with the least error relative to P. In the form "shifted", whose
b is the ``shift`` of the table, the error is relative to f. Where ``v = 0`` lies at the end of the
range (origin, and recip with c = 0) ``base = P(0)`` is kept, so that the limit is exact.
"""

from collections.abc import Callable
from functools import cache, wraps

import mpmath
from mpmath import mp, mpf

ASYMPTOTIC_FROM = 150  # e^-150: from here the optimally truncated series has 64 digits


def remembered(f: Callable[..., mpf]) -> Callable[..., mpf]:
    """Cache by arguments and by precision."""

    @cache
    def at(precision: int, *args: mpf) -> mpf:
        return f(*args)

    return wraps(f)(lambda *args: at(mp.prec, *args))


def _tail_sum(u: mpf, weight: Callable[[int], mpf | int]) -> mpf:
    """Return the sum of ``weight(k) (2k-1)!! / (2u)^k`` over k >= 0, to the working precision."""
    total, term, k = mpf(0), mpf(1), 0
    while abs(term * weight(k)) > mp.eps * abs(total) or k < 3:
        total += term * weight(k)
        k += 1
        term *= (2 * k - 1) / (2 * u)
        if (2 * k - 1) > 2 * u:
            raise ArithmeticError(f"the asymptotic series does not reach {mp.dps} digits at {u}")
    return total


def _taylor_sum(u: mpf, odd: int, weight: Callable[[int], mpf | int], first: int | str = 1) -> mpf:
    """Return the sum of ``weight(k) first (-2u)^k / ((odd + 2)...(odd + 2k))`` over k >= 0.

    The terms cancel, so the sum and ``first`` are computed with extra digits.
    """
    with mp.workprec(mp.prec + int(3 * u) + 20):
        total, term, k = mpf(0), mpf(first), 0
        while abs(term) > mp.eps:
            total += term * weight(k)
            k += 1
            term *= -2 * u / (2 * k + odd)
    return +total


@remembered
def gap_remainder(u: mpf) -> mpf:
    """Return T(u) = log(4 e^gamma u)/2 - F(u), which falls to 0 like 1/(4u)."""
    if u >= ASYMPTOTIC_FROM:
        return _tail_sum(u, lambda k: mpf(1) / (2 * k) if k else 0)
    return mp.log(4 * u) / 2 + mp.euler / 2 - gap(u)


@remembered
def gap(u: mpf) -> mpf:
    """Return F(u) = u 2F2(1, 1; 3/2, 2; -u)."""
    if u >= ASYMPTOTIC_FROM:
        return mp.log(4 * u) / 2 + mp.euler / 2 - gap_remainder(u)
    return gap_over_u(u) * u


@remembered
def gap_over_u(u: mpf) -> mpf:
    """Return F(u)/u = sum_k (-2u)^k / ((2k+1)!! (k+1))."""
    return _taylor_sum(u, 1, lambda k: 1 / mpf(k + 1))


@remembered
def grad(u: mpf) -> mpf:
    """Return F'(u) = M(1; 3/2; -u)."""
    if u >= ASYMPTOTIC_FROM:
        return _tail_sum(u, lambda k: 1) / (2 * u)
    return _taylor_sum(u, 1, lambda k: 1)


@remembered
def hess(u: mpf) -> mpf:
    """Return F''(u) = -2/3 M(2; 5/2; -u)."""
    if u >= ASYMPTOTIC_FROM:
        return -_tail_sum(u, lambda k: k + 1) / (2 * u**2)
    return _taylor_sum(u, 3, lambda k: k + 1, "-2/3")


@remembered
def log_alpha_hess_over_u(u: mpf) -> mpf:
    """Return -(1 + F' - 2 u F')/2, the second derivative of -KL in log alpha, over u."""
    if u >= ASYMPTOTIC_FROM:
        # -(F' + u F'') = -sum_k (1 - (k + 1)) (2k-1)!!/(2u)^(k+1)
        return _tail_sum(u, lambda k: k) / (2 * u)
    slope = grad(u)
    return -(1 + slope - 2 * u * slope) / 2


@remembered
def inflection() -> mpf:
    """Return the root x0 of the second derivative of -KL in log alpha."""
    with mp.workdps(60):
        u0 = mp.findroot(lambda u: 1 + grad(u) * (1 - 2 * u), mpf("2.2566"))
        return -mp.log(2 * u0)


def _half(x: mpf) -> mpf:
    return mp.exp(-x) / 2


def _recip(tail: Callable[[mpf], mpf], limit: mpf) -> Callable[[mpf], mpf]:
    return lambda w: tail(1 / w) if w else limit


def fitted(function: str, form: str) -> Callable[[mpf], mpf]:
    """Return P as a function of the uncentred variable of ``form`` (see the module)."""
    half = mpf(1) / 2
    constant = mp.log(2) + mp.euler / 2
    offset = (mp.log(2) + mp.euler) / 2
    table: dict[tuple[str, str], Callable[[mpf], mpf]] = {
        ("kl_gap", "origin"): gap_over_u,
        ("kl_gap", "centre"): gap,
        ("kl_gap", "recip"): _recip(lambda u: constant - gap_remainder(u), constant),
        ("kl_gap_grad", "origin"): grad,
        ("kl_gap_grad", "centre"): grad,
        ("kl_gap_grad", "recip"): _recip(lambda u: grad(u) * u, half),
        ("kl_gap_hess", "origin"): hess,
        ("kl_gap_hess", "centre"): hess,
        ("kl_gap_hess", "recip"): _recip(lambda u: hess(u) * u**2, -half),
        ("neg_kl", "origin"): lambda u: -gap_over_u(u),
        ("neg_kl", "centre"): lambda u: -gap(u),
        ("neg_kl", "recip"): _recip(lambda u: gap_remainder(u) - offset, -offset),
        ("neg_kl_grad", "origin"): grad,
        ("neg_kl_grad", "centre"): lambda u: u * grad(u),
        ("neg_kl_grad", "recip"): _recip(lambda u: u * grad(u), half),
        ("neg_kl_hess", "origin"): log_alpha_hess_over_u,
        ("neg_kl_hess", "centre"): lambda u: u * log_alpha_hess_over_u(u),
        ("neg_kl_hess", "root"): lambda x: _half(x) * log_alpha_hess_over_u(_half(x)),
        ("neg_kl_hess", "recip"): _recip(lambda u: u**2 * log_alpha_hess_over_u(u), half / 2),
        ("exp", "centre"): mp.exp,
        ("log1p", "centre"): mp.log1p,
        ("half_log1p", "origin"): lambda v: mp.log1p(v) / (2 * v),
    }
    return table[function, form]


def shifted(function: str, shift: mpf) -> tuple[Callable[[mpf], mpf], Callable[[mpf], mpf]]:
    """Return P and f of the form "shifted" as functions of its uncentred variable."""

    def f(v: mpf) -> mpf:
        if not v:
            return mp.inf if function == "kl_gap" else mpf(1) / 2
        u = 1 / v - shift
        return gap(u) if function == "kl_gap" else u * grad(u)

    def p(v: mpf) -> mpf:
        if function != "kl_gap":
            return f(v)
        return f(v) + mp.log(v) / 2 if v else mp.log(2) + mp.euler / 2

    return p, f


def variable(form: str, u: mpf, shift: mpf | None = None) -> mpf:
    if form in ("recip", "shifted"):
        return mpf(0) if mpmath.isinf(u) else 1 / (u + (shift or 0))
    if form == "root":
        return -mp.log(2 * u)
    return mpf(u)
