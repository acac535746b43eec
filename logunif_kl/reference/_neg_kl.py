"""-KL and its derivatives, as functions of log alpha or of (mu, log sigma^2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import libmp

from .._convention import ZERO_AT_INFINITY
from .._errors import shown
from ._agree import LOCK, agree
from ._functions import DEFINITIONS, Of, raw_constant, times_u, u_of, u_of_normal
from ._input import Number, Raw, digits, read

HALF = libmp.from_float(0.5)


def neg_kl(
    log_alpha: object, dps: int = 50, *, zero_at: object = ZERO_AT_INFINITY, log_c: object = None
) -> Any:
    r"""Return -KL(q || p) as a function of log alpha to ``dps`` digits.

    .. math:: -KL = F\bigl(1/(2a)\bigr) - F(u), \qquad u = e^{-\log\alpha}/2

    with a = ``zero_at``. If ``log_c`` is given, -KL = 1/2 log(pi e) + log_c - 1/2 psi(1/2) - F(u)
    instead (Hron et al. 2017, Eq. 1).

    Parameters
    ----------
    log_alpha : float, int, str, mpf, Fraction, Decimal or NumPy scalar
        log(sigma^2/mu^2), of any size. Floats are exact.
    dps : int, default 50
        Decimal digits.
    zero_at : number, default inf
        The alpha at which -KL is zero. The default makes -KL <= 0.
    log_c : number, optional
        The logarithm of C in the prior C/|w|. Pass either ``log_c`` or ``zero_at``.

    Returns
    -------
    mpmath.mpf
        -KL to ``dps`` significant digits, even near its zeros. It is -inf at log_alpha = -inf, the
        constant at +inf (0 by default), and NaN for NaN.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one real number, ``zero_at`` is not above 0, ``log_c`` is not finite,
        ``zero_at`` and ``log_c`` are both given, or ``dps`` is not a positive int.
    OverflowError
        If abs(log_alpha) is 2**4096 or more, which no double is.
    ArithmeticError
        If the two definitions do not agree.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl(0.0), 20))
    -0.42668560429604480579
    >>> print(mpmath.nstr(reference.neg_kl(0.0, log_c=0.0), 20))
    1.627434351639367021
    """
    n = digits(dps)
    with LOCK:
        x = read(log_alpha, "log_alpha")
        rough = x(53)
        constant = _constant(zero_at, log_c)
        what = "-KL at log_alpha = {}", log_alpha
        if rough == libmp.fnan:
            raw = libmp.fnan
        elif rough == libmp.fzero and _alpha_is_zero_at(libmp.fone, zero_at, log_c):
            raw = libmp.fzero
        elif rough == libmp.fninf:
            raw = libmp.fninf
        elif rough == libmp.finf:
            raw = _agree(constant, n, *what) if constant else libmp.fzero
        else:
            raw = _agree(lambda of, wp: _minus_gap(constant, of, u_of(x, wp), wp), n, *what)
    return mpmath.mp.make_mpf(raw)


def neg_kl_grad(log_alpha: object, dps: int = 50) -> Any:
    r"""Return d(-KL)/d log alpha = u F'(u) to ``dps`` digits, u = exp(-log_alpha)/2.

    As log_alpha falls from inf, the derivative rises from 0 to 0.6424, at log_alpha = -1.507, and
    then falls to 1/2. Parameters, digits and errors are as for :func:`neg_kl`, and NaN gives NaN.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_grad(0.0), 20))
    0.36238922950353816591
    """
    return _of_log_alpha(times_u, log_alpha, dps, "d(-KL)/dx", at_minus_inf=HALF)


def neg_kl_hess(log_alpha: object, dps: int = 50) -> Any:
    r"""Return d^2(-KL)/d(log alpha)^2 to ``dps`` digits.

    .. math:: -\frac u2 (1 + F' - 2uF') = -u\,M(2; 3/2; -u), \qquad u = e^{-\log\alpha}/2

    This second derivative has one zero, at log_alpha = -1.5069, where F' = 1/(2u - 1). It is
    negative above and positive below the zero, 0 at both infinities, and NaN for NaN. All digits
    are significant, even near the zero. Parameters and errors are as for :func:`neg_kl`.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_hess(0.0), 20))
    -0.25
    """
    return _of_log_alpha(
        lambda of, u, wp: of("hess", u, wp),
        log_alpha,
        dps,
        "d^2(-KL)/dx^2",
        at_minus_inf=libmp.fzero,
    )


def neg_kl_normal(
    mu: object,
    log_sigma2: object,
    dps: int = 50,
    *,
    zero_at: object = ZERO_AT_INFINITY,
    log_c: object = None,
) -> Any:
    r"""Return -KL(N(mu, sigma^2) || p) to ``dps`` digits.

    This is :func:`neg_kl` at u = mu^2 exp(-log_sigma2)/2, with the same conventions and errors. At
    mu = 0 or log_sigma2 = inf it is the constant (0 by default). At mu = +-inf or log_sigma2 = -inf
    it is -inf. If one argument asks for the constant and the other for -inf, the result is NaN.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.neg_kl_normal(-2, "1.386294361119890618834464"), 20))
    -0.42668560429604480579
    """
    n = digits(dps)
    with LOCK:
        m, s = read(mu, "mu"), read(log_sigma2, "log_sigma2")
        constant = _constant(zero_at, log_c)
        limit = _limit_of_u(m(53), s(53))
        what = "-KL at mu = {}, log_sigma2 = {}", mu, log_sigma2
        mu2 = libmp.mpf_mul(m(53), m(53))
        if s(53) == libmp.fzero and _alpha_is_zero_at(mu2, zero_at, log_c):
            raw = libmp.fzero
        elif limit is None:
            raw = _agree(
                lambda of, wp: _minus_gap(constant, of, u_of_normal(m(wp + 8), s, wp), wp), n, *what
            )
        elif limit == libmp.fzero:
            raw = _agree(constant, n, *what) if constant else libmp.fzero
        else:
            raw = libmp.mpf_neg(limit)
    return mpmath.mp.make_mpf(raw)


def neg_kl_normal_grad(mu: object, log_sigma2: object, dps: int = 50) -> tuple[Any, Any]:
    r"""Return the two derivatives of :func:`neg_kl_normal` to ``dps`` digits each.

    .. math:: \frac{\partial(-KL)}{\partial\mu} = -F'(u)\,\mu\,e^{-\log\sigma^2}
              = -2uF'(u)/\mu, \qquad
              \frac{\partial(-KL)}{\partial\log\sigma^2} = u F'(u)

    Both are 0 at mu = 0 and at log_sigma2 = inf. They are -1/mu and 1/2 at log_sigma2 = -inf, and 0
    and 1/2 at mu = +-inf. NaN and errors are as for :func:`neg_kl_normal`.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> by_mu, by_log_sigma2 = reference.neg_kl_normal_grad(1, 0)
    >>> print(mpmath.nstr(by_mu, 20), mpmath.nstr(by_log_sigma2, 20))
    -0.72477845900707633182 0.36238922950353816591
    """
    n = digits(dps)
    with LOCK:
        m, s = read(mu, "mu"), read(log_sigma2, "log_sigma2")
        rough = m(53)
        limit = _limit_of_u(rough, s(53))
        if limit is None:
            what = "d(-KL) at mu = {}, log_sigma2 = {}", mu, log_sigma2

            def by_log_sigma2(of: Of, wp: int) -> Raw:
                return times_u(of, u_of_normal(m(wp + 8), s, wp), wp)

            def by_mu(of: Of, wp: int) -> Raw:
                twice = libmp.mpf_shift(by_log_sigma2(of, wp), 1)
                return libmp.mpf_neg(libmp.mpf_div(twice, m(wp + 8), wp + 8, "n"))

            pair = _agree(by_mu, n, *what), _agree(by_log_sigma2, n, *what)
        elif limit == libmp.fnan:
            pair = libmp.fnan, libmp.fnan
        elif limit == libmp.fzero:
            pair = libmp.fzero, libmp.fzero
        elif not rough[1]:
            pair = libmp.fzero, HALF
        else:
            prec = libmp.dps_to_prec(n)
            over = libmp.mpf_div(libmp.fone, m(prec + 16), prec, "n")
            pair = libmp.mpf_neg(over), HALF
    return mpmath.mp.make_mpf(pair[0]), mpmath.mp.make_mpf(pair[1])


Constant = Callable[[Of, int], Raw]


def _agree(value: Constant, dps: int, what: str, *at: object) -> Raw:
    one, other = DEFINITIONS
    return agree(lambda wp: value(one, wp), lambda wp: value(other, wp), dps, what, *at)


def _minus_gap(constant: Constant | None, of: Of, u: Raw, wp: int) -> Raw:
    gap = of("gap", u, wp)
    return libmp.mpf_sub(constant(of, wp), gap, wp + 8, "n") if constant else libmp.mpf_neg(gap)


def _of_log_alpha(
    value: Callable[[Of, Raw, int], Raw],
    log_alpha: object,
    dps: int,
    what: str,
    *,
    at_minus_inf: Raw,
) -> Any:
    n = digits(dps)
    with LOCK:
        x = read(log_alpha, "log_alpha")
        rough = x(53)
        if rough == libmp.fnan:
            raw = libmp.fnan
        elif rough == libmp.fninf:
            raw = at_minus_inf
        elif rough == libmp.finf:
            raw = libmp.fzero
        else:
            raw = _agree(
                lambda of, wp: value(of, u_of(x, wp), wp), n, what + " at log_alpha = {}", log_alpha
            )
    return mpmath.mp.make_mpf(raw)


def _limit_of_u(mu: Raw, log_sigma2: Raw) -> Raw | None:
    """Return u = mu^2 exp(-log_sigma2)/2 if it is 0, inf or NaN, otherwise None."""
    if libmp.fnan in (mu, log_sigma2):
        return libmp.fnan
    infinite = mu in (libmp.finf, libmp.fninf)
    if mu == libmp.fzero:
        return libmp.fnan if log_sigma2 == libmp.fninf else libmp.fzero
    if log_sigma2 == libmp.finf:
        return libmp.fnan if infinite else libmp.fzero
    return libmp.finf if infinite or log_sigma2 == libmp.fninf else None


def _alpha_is_zero_at(over_alpha: Raw, zero_at: object, log_c: object) -> bool:
    """Whether alpha equals zero_at. If it does, -KL is 0, which `agree` cannot compute.

    Callers ask only if log_alpha or log_sigma2 is 0. For any other rational log_sigma2,
    exp(log_sigma2)/mu^2 is irrational, so alpha cannot equal zero_at.
    """
    if log_c is not None:
        return False
    a = read(zero_at, "zero_at")(53)
    return bool(libmp.mpf_mul(over_alpha, a) == libmp.fone)


def convention(zero_at: object, log_c: object) -> tuple[Number | None, Number | None]:
    """Return (zero_at, log_c), with None for the one not given, or (None, None) for zero_at=inf."""
    a = read(zero_at, "zero_at")
    rough = a(53)
    if log_c is not None:
        if zero_at is not ZERO_AT_INFINITY:
            raise ValueError(
                f"zero_at and log_c both fix the constant, got zero_at={shown(zero_at)} and "
                f"log_c={shown(log_c)}: give one of them."
            )
        c = read(log_c, "log_c")
        if c(53) in (libmp.finf, libmp.fninf, libmp.fnan):
            raise ValueError(
                f"log_c must be finite, got {shown(log_c)}: it is the log of the C in the prior "
                "C/|w|."
            )
        return None, c
    if rough == libmp.finf:
        return None, None
    if rough == libmp.fnan or libmp.mpf_sign(rough) <= 0:
        raise ValueError(
            f"zero_at must be an alpha above 0 (inf is allowed), got {shown(zero_at)}: it is the "
            "alpha at which -KL is zero, not its logarithm."
        )
    return a, None


def _constant(zero_at: object, log_c: object) -> Constant | None:
    """Return a function of (definition, bits) that computes the constant, or None if it is 0."""
    a, c = convention(zero_at, log_c)
    if c is not None:
        return lambda of, wp: raw_constant(c, wp)
    if a is None:
        return None

    def at_zero(of: Of, wp: int) -> Raw:
        u = libmp.mpf_div(libmp.fone, libmp.mpf_shift(a(wp + 8), 1), wp + 8, "n")
        return of("gap", u, wp)

    return at_zero
