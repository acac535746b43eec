"""-KL of complex weights and of groups of weights, to any number of digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import libmp

from .._convention import ZERO_AT_INFINITY
from .._errors import shown
from ._agree import LOCK, agree
from ._input import MAX_LOG_BITS, Number, Raw, digits, exp_neg, read
from ._neg_kl import convention

_Gap = Callable[[Any, Any, Any], Any]
_MAX_DPS = 1000  # with about 3000 digits and more, mpmath's functions can take minutes
_SMALL = 64  # up to u = 16 * _SMALL, the second definition of Ein is the positive series


def neg_kl_complex(
    log_alpha: object, *, zero_at: object = ZERO_AT_INFINITY, log_c: object = None, dps: int = 50
) -> Any:
    r"""Return -KL of a complex weight, `logunif_kl.neg_kl_complex`, to ``dps`` digits.

    .. math:: -KL = \text{constant} - \mathrm{Ein}(u), \qquad
              \mathrm{Ein}(u) = \gamma + \log u + E_1(u), \quad u = e^{-\log\alpha}

    Two definitions must agree. One uses :math:`E_1`. The other is Kummer's positive series
    :math:`e^{-u}\sum_n H_n u^n/n!` or, for large u, the integral of :math:`(1 - e^{-t})/t`. ``dps``
    is at most 1000, and the prior is C/\|w\|^2. Parameters, results and errors are otherwise as for
    `neg_kl`.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_complex(0), 20))
    -0.79659959929705313428
    """
    return _value(log_alpha, None, zero_at, log_c, dps)


def neg_kl_complex_grad(log_alpha: object, dps: int = 50) -> Any:
    r"""Return :math:`1 - e^{-u}`, the derivative of `neg_kl_complex` in log alpha.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_complex_grad(0), 20))
    0.6321205588285576784
    """
    return _plain(log_alpha, dps, lambda m, u: -m.expm1(-u), 1)


def neg_kl_complex_hess(log_alpha: object, dps: int = 50) -> Any:
    r"""Return :math:`-u e^{-u}`, the second derivative of `neg_kl_complex` in log alpha.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_complex_hess(0), 20))
    -0.3678794411714423216
    """
    return _plain(log_alpha, dps, lambda m, u: -u * m.exp(-u), 0)


def neg_kl_vector(
    log_alpha: object,
    k: object,
    *,
    zero_at: object = ZERO_AT_INFINITY,
    log_c: object = None,
    dps: int = 50,
) -> Any:
    r"""Return -KL of a group of k weights, `logunif_kl.neg_kl_vector`, to ``dps`` digits.

    .. math:: -KL = \text{constant} - F_k(u), \qquad
              F_k(u) = u\,{}_2F_2(1, 1; k/2+1, 2; -u), \quad u = e^{-\log\alpha}/2

    Two definitions must agree. One is mpmath's 2F2. The other, with a = k/2, is the positive series
    :math:`a e^{-u}\sum_n (u^n/n!) \sum_{j<n} 1/(a+j)` or, for large u, the asymptotic series. ``k``
    is a positive number, ``dps`` is at most 1000, and the prior is C/\|w\|^k. Parameters, results
    and errors are otherwise as for `neg_kl`.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_vector(0, 3), 20))
    -0.45439218990936341284
    """
    return _value(log_alpha, _dimensions(k), zero_at, log_c, dps)


def neg_kl_vector_grad(log_alpha: object, k: object, dps: int = 50) -> Any:
    r"""Return :math:`u F_k'(u) = u M(1; k/2+1; -u)`, the derivative of `neg_kl_vector`.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_vector_grad(0, 3), 20))
    0.41283231148938550227
    """
    n, count = digits(dps, _MAX_DPS), _dimensions(k)
    with LOCK:
        x = read(log_alpha, "log_alpha")
        special = _limit(x(53), libmp.mpf_shift(count(libmp.dps_to_prec(n) + 16), -1))
        raw = special if special is not None else _agreed(_slopes(), x, count, n, log_alpha)
    return mpmath.mp.make_mpf(raw)


def _dimensions(k: object) -> Number:
    count = read(k, "k")
    rough = count(53)
    if rough in (libmp.finf, libmp.fnan) or libmp.mpf_sign(rough) <= 0:
        raise ValueError(
            f"k must be a positive number of dimensions, got {shown(k)}: it is the number of "
            "weights in a group."
        )
    return count


def _limit(x: Raw, at_minus_inf: Raw) -> Raw | None:
    if x == libmp.fnan:
        return libmp.fnan
    if x == libmp.fninf:
        return at_minus_inf
    return libmp.fzero if x == libmp.finf else None


def _plain(log_alpha: object, dps: int, function: Callable[[Any, Any], Any], last: int) -> Any:
    """Evaluate an elementary function of u, at rising precisions, until two values agree."""
    n = digits(dps, _MAX_DPS)
    with LOCK:
        x = read(log_alpha, "log_alpha")
        raw = _limit(x(53), libmp.from_int(last))
        if raw is None:

            def at(wp: int) -> Raw:
                # A relative error e of u changes the result by about e u, so u needs more bits.
                u = exp_neg(x, wp, "log_alpha")
                more = max(0, int(u[2] + u[3]))
                if last and more > wp.bit_length():  # 1 - exp(-u) is 1 if u > wp
                    return libmp.from_int(last)
                if more > MAX_LOG_BITS:
                    least = -math.log(2.0) * MAX_LOG_BITS
                    raise OverflowError(
                        f"log_alpha must be at least {least:.0f} for the second derivative, got "
                        f"{shown(log_alpha)}: below that, the derivative is smaller than "
                        f"exp(-exp({-least:.0f})), so take 0."
                    )
                context = _context(wp + 2 * more + 16)
                u = exp_neg(x, wp + more + 8, "log_alpha")
                return function(context, context.make_mpf(u))._mpf_

            raw = agree(at, at, n, "derivative of -KL at log_alpha = {}", log_alpha)
    return mpmath.mp.make_mpf(raw)


def _value(log_alpha: object, k: Number | None, zero_at: object, log_c: object, dps: int) -> Any:
    n = digits(dps, _MAX_DPS)
    with LOCK:
        x = read(log_alpha, "log_alpha")
        constant = _constant(k, zero_at, log_c, n)
        raw = _limit(x(53), libmp.fninf)
        if raw is None and constant is None:
            raw = libmp.mpf_neg(_agreed(_gaps(k), x, k, n, log_alpha))
        elif raw is None:
            # Compute extra digits, because constant - gap may cancel.
            gap = _agreed(_gaps(k), x, k, 2 * n + 20, log_alpha)
            raw = libmp.mpf_sub(constant, gap, libmp.dps_to_prec(n), "n")
        elif raw == libmp.fzero and constant is not None:
            raw = libmp.mpf_pos(constant, libmp.dps_to_prec(n), "n")
    return mpmath.mp.make_mpf(raw)


def _constant(k: Number | None, zero_at: object, log_c: object, n: int) -> Raw | None:
    """Return the constant in -KL = constant - F, with extra digits, or None if it is 0."""
    alpha, log_of_c = convention(zero_at, log_c)
    if log_of_c is not None:
        wp = libmp.dps_to_prec(2 * n + 20)
        context = _context(wp + 16)
        c = context.make_mpf(log_of_c(wp + 16))
        a = context.mpf(1) if k is None else context.make_mpf(k(wp + 16)) / 2
        return (a * (1 + context.log(context.pi) - context.digamma(a)) + c)._mpf_
    if alpha is None:
        return None
    at = Number(False, lambda wp: libmp.mpf_log(alpha(wp + 16), wp + 16, "n"))
    return _agreed(_gaps(k), at, k, 2 * n + 20, zero_at)


def _agreed(pair: tuple[_Gap, _Gap], x: Number, k: Number | None, n: int, shown_: object) -> Raw:
    def definition(gap: _Gap) -> Callable[[int], Raw]:
        def at(wp: int) -> Raw:
            context = _context(wp + 32)
            u = context.make_mpf(exp_neg(x, wp + 16, "log_alpha"))
            if k is None:
                return gap(context, u, None)._mpf_
            return gap(context, u / 2, context.make_mpf(k(wp + 32)) / 2)._mpf_

        return at

    one, other = map(definition, pair)
    return agree(one, other, n, "-KL at log_alpha = {}", shown_)


def _context(bits: int) -> Any:
    context = mpmath.mp.clone()
    context.prec = bits
    return context


def _gaps(k: Number | None) -> tuple[_Gap, _Gap]:
    return (_ein, _ein_again) if k is None else (_gap, _gap_again)


def _slopes() -> tuple[_Gap, _Gap]:
    return _slope, _slope_again


def _ein(m: Any, u: Any, a: Any) -> Any:
    bits = m.prec
    if m.mag(u) < -bits:
        return u
    m.prec += max(0, -2 * int(m.mag(u)))  # gamma + log u + E1(u) cancels to about u
    found = m.euler + m.log(u) + (m.e1(u) if u < 2 * bits else 0)
    m.prec = bits
    return +found


def _ein_again(m: Any, u: Any, a: Any) -> Any:
    if u <= _SMALL * 16:
        return _positive(m, u, m.mpf(1))[0]
    # Ein(u) is Ein(1), by its series, plus the integral of (1 - exp(-t))/t from 1 to u.
    tail = m.exp(-u) * m.hypu(1, 1, u) if u < 2 * m.prec else 0
    return _positive(m, m.mpf(1), m.mpf(1))[0] - m.e1(1) + m.log(u) + tail


def _gap(m: Any, u: Any, a: Any) -> Any:
    if u > 40 * m.prec:
        return _tail(m, u, a)[0]
    return u * m.hyp2f2(1, 1, a + 1, 2, -u)


def _gap_again(m: Any, u: Any, a: Any) -> Any:
    return _positive(m, u, a)[0] if u < 80 * m.prec else _tail(m, u, a)[0]


def _slope(m: Any, u: Any, a: Any) -> Any:
    if u > 40 * m.prec:
        return _tail(m, u, a)[1]
    return u * m.hyp1f1(1, a + 1, -u)


def _slope_again(m: Any, u: Any, a: Any) -> Any:
    return _positive(m, u, a)[1] if u < 80 * m.prec else _tail(m, u, a)[1]


def _positive(m: Any, u: Any, a: Any) -> tuple[Any, Any]:
    """Return F and u F' by series of positive terms, whose weights are Poisson probabilities."""
    value = slope = harmonic = m.mpf(0)
    weight, n = m.exp(-u), 0
    while n < 1.2 * u + 8 or weight * (1 + harmonic) > m.ldexp(max(value, slope), -m.prec):
        value += weight * harmonic
        slope += weight / (a + n)
        harmonic += 1 / (a + n)
        n += 1
        weight *= u / n
    return a * value, a * u * slope


def _tail(m: Any, u: Any, a: Any) -> tuple[Any, Any]:
    """Return F and u F' by the asymptotic series in 1/u, down to terms below the precision."""
    value = slope = m.mpf(0)
    term, n = m.mpf(1), 0
    while True:
        n += 1
        term *= (n - a) / u
        value += term / n
        slope += term
        if not term or abs(term) < m.ldexp(1, -m.prec - 8):
            break
        if n > 4 * m.prec + 4 * math.ceil(a):
            raise ArithmeticError("the series in 1/u does not converge to so many digits")
    return a * (m.log(u) - m.digamma(a) - value), a * (1 + slope)
