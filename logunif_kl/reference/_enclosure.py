r"""Balls that are proved to contain F, -KL and their derivatives, by Arb (python-flint).

Arb evaluates Kummer's M(a; b; -u) for every u, and 2F2 by its series. The series loses 1.44 u bits,
so for large u this formula encloses F:

.. math:: F = \tfrac12\log 4u + \tfrac\gamma2 - \sum_{k=1}^{K-1} \frac{(2k-1)!!}{2k(2u)^k} + E,
          \qquad |E| \le \frac{(2K-1)!!}{K(2u)^K} + 2e^{-u/2}
          \quad\text{where } 4K + 2 \le u,

``_tail`` proves the bound on E. The precision is raised until the radius is as small as requested.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import libmp

from .._errors import shown
from ._agree import LOCK
from ._input import Number, read

SPARE = 32
MAX_BITS = 100_000
CAP = 1 << 16
"""The highest precision is 16 ``bits`` + CAP. If the ball is still too wide, raise an error."""

ZERO, ONE, HALF, INF, MINUS_INF = (
    libmp.from_float(v) for v in (0.0, 1.0, 0.5, float("inf"), float("-inf"))
)


def enclosure(log_alpha: object, bits: int = 128) -> Any:
    """Return a ball that contains -KL = -F(exp(-log_alpha)/2), which is zero at alpha = inf.

    Parameters
    ----------
    log_alpha : float, int, str, mpf, Fraction, Decimal or NumPy scalar
        Floats are exact. For a string, the ball includes the rounding of its decimal.
    bits : int, default 128
        The radius is below 2**-bits times the midpoint.

    Returns
    -------
    flint.arb
        A ball that contains the value. It is exact at the infinities, and NaN for NaN.

    Raises
    ------
    ImportError
        If python-flint is not installed (``pip install "logunif_kl[exact]"``).
    TypeError, ValueError
        If ``log_alpha`` is not one real number, or ``bits`` is not an int from 1 to 100000.
    ArithmeticError
        If the ball is still too wide at a precision of 65536 + 16 ``bits``. This happens only if
        the integer part of log_alpha has more bits than that.

    Examples
    --------
    >>> from logunif_kl import reference
    >>> print(reference.enclosure(0.0).str(20))  # doctest: +SKIP
    [-0.42668560429604480579 +/- 8.22e-22]
    """
    return _of_log_alpha(lambda u, a: -_gap(u, a), log_alpha, bits, MINUS_INF)


def enclosure_grad(log_alpha: object, bits: int = 128) -> Any:
    """Return a ball that contains d(-KL)/d log alpha = u F'(u). For the rest, see `enclosure`."""
    return _of_log_alpha(lambda u, a: u * _kummer(1, 3, u, a), log_alpha, bits, HALF)


def enclosure_hess(log_alpha: object, bits: int = 128) -> Any:
    """Return a ball that contains d^2(-KL)/d(log alpha)^2 = -u M(2; 3/2; -u).

    For the rest, see `enclosure`.
    """
    return _of_log_alpha(lambda u, a: -u * _kummer(2, 3, u, a), log_alpha, bits, ZERO)


def enclosure_gap(u: object, bits: int = 128) -> Any:
    """Return a ball that contains F(u), or NaN for u < 0. For the rest, see `enclosure`."""
    return _of_u(_gap, u, bits, at_zero=ZERO, at_inf=INF)


def enclosure_gap_grad(u: object, bits: int = 128) -> Any:
    """Return a ball that contains F'(u) = M(1; 3/2; -u). For the rest, see `enclosure_gap`."""
    return _of_u(lambda u, a: _kummer(1, 3, u, a), u, bits, at_zero=ONE, at_inf=ZERO)


def enclosure_gap_hess(u: object, bits: int = 128) -> Any:
    """Return a ball that contains F''(u) = -2/3 M(2; 5/2; -u). See also `enclosure_gap`."""
    return _of_u(lambda u, a: a(-2) / 3 * _kummer(2, 5, u, a), u, bits, at_zero=None, at_inf=ZERO)


Ball = Any
Arb = Any


def _gap(u: Ball, arb: Arb) -> Ball:
    from flint import ctx

    prec = ctx.prec
    if u > 3 * (prec + SPARE) // 2:
        return _gap_tail(u, arb, prec)
    if not u < 2 * (prec + SPARE):
        return arb.nan()  # the ball of u is too wide, so let `_tighten` raise the precision
    with ctx.workprec(prec + 3 * int(u.upper().ceil().unique_fmpz()) // 2 + SPARE):
        return u * (-u).hypgeom([arb(1), arb(1)], [arb(3) / 2, arb(2)])


def _gap_tail(u: Ball, arb: Arb, prec: int) -> Ball:
    two_u = 2 * u
    total = ((4 * u).log() + arb.const_euler()) / 2
    term = 1 / two_u
    k = 1
    while not abs(term) < arb(2) ** -(prec + 8) and u > 4 * (k + 1) + 2:
        total -= term / (2 * k)
        term = term * (2 * k + 1) / two_u
        k += 1
    bound = term / k + 2 * (-u / 2).exp()
    return total + arb(0, abs(bound).upper())


def _kummer(a: int, twice_b: int, u: Ball, arb: Arb) -> Ball:
    return (-u).hypgeom_1f1(arb(a), arb(twice_b) / 2)


def _of_u(
    value: Callable[[Ball, Arb], Ball], u: object, bits: int, *, at_zero: Any, at_inf: Any
) -> Ball:
    arb = _arb(bits)
    with LOCK:
        number = read(u, "u")
        rough = number(53)
        if rough == libmp.fnan or libmp.mpf_sign(rough) < 0:
            return arb.nan()
        if rough == libmp.finf:
            return _ball(at_inf, arb)
        if rough == libmp.fzero and at_zero is not None:
            return _ball(at_zero, arb)
        return _tighten(lambda prec: value(_enclose(number, prec, arb), arb), bits, "u = {}", u)


def _of_log_alpha(
    value: Callable[[Ball, Arb], Ball], log_alpha: object, bits: int, at_minus_inf: Any
) -> Ball:
    arb = _arb(bits)
    with LOCK:
        number = read(log_alpha, "log_alpha")
        rough = number(53)
        if rough == libmp.fnan:
            return arb.nan()
        if rough == libmp.finf:
            return _ball(ZERO, arb)
        if rough == libmp.fninf:
            return _ball(at_minus_inf, arb)
        return _tighten(
            lambda prec: value((-_enclose(number, prec, arb)).exp() / 2, arb),
            bits,
            "log_alpha = {}",
            log_alpha,
        )


def _tighten(value: Callable[[int], Ball], bits: int, where: str, at: object) -> Ball:
    from flint import ctx

    prec = bits + SPARE
    while prec <= 16 * bits + CAP:
        with ctx.workprec(prec):
            ball = value(prec)
            if ball.is_finite() and ball.rel_accuracy_bits() > bits + 1:
                return ball
        prec *= 2
    raise ArithmeticError(
        f"the ball at {where.format(shown(at))} is wider than 2**-{bits} of its midpoint even with "
        f"{prec // 2} bits of precision: ask for fewer bits, or move away from a zero."
    )


def _enclose(number: Number, prec: int, arb: Arb) -> Ball:
    """Return the argument as a ball. Its radius is 0 if the argument is exact in binary."""
    ball = _ball(number(prec), arb)
    if number.exact:
        return ball
    return ball + arb(0, 1) * ball * arb(2) ** -prec


def _ball(raw: Any, arb: Arb) -> Ball:
    if raw in (INF, MINUS_INF):
        return arb.pos_inf() if raw == INF else arb.neg_inf()
    return arb(mpmath.mp.make_mpf(raw))


def _arb(bits: object) -> Any:
    """Check ``bits``, and return python-flint's class of real balls."""
    if isinstance(bits, bool) or not isinstance(bits, numbers.Integral):
        raise TypeError(f"bits must be an int, got {type(bits).__name__}.")
    if not 1 <= int(bits) <= MAX_BITS:
        raise ValueError(
            f"bits must be between 1 and {MAX_BITS}, got {shown(bits)}: pass another number."
        )
    try:
        from flint import arb
    except ImportError as error:
        raise ImportError(
            'enclosures need python-flint, which is not installed: pip install "logunif_kl[exact]".'
        ) from error
    return arb
