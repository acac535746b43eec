"""Kummer's form: -KL as a derivative of Kummer's function M in its first argument.

    F(u) = -1/2 dM(a; 1/2; -u)/da at a = 0                                          (Hron's Eq. 2)

Here u = 1/(2 alpha). The series of M alternates, and differentiating each term gives

    F(u) = -1/2 sum_(k>=1) (-u)^k/(k (1/2)_k).

The largest terms are about e^u, and cancel. At u = 20 (log_alpha = -3.7) eight digits are lost, and
at u = 40 all digits. With ``dps=`` this series is summed with as many extra digits as it loses. In
double precision, Kummer's transformation M(a; b; -u) = e^-u M(b - a; b; u) first makes all terms
and their derivatives positive:

    F(u) = u e^-u sum_k u^k/k! g_k,    g_k = 1/(2k + 2) sum_(j=0..k) 2/(2j + 1)

These are the terms of Eq. 1, so the transformation turns Eq. 2 into Eq. 1. For u below 40, 113
terms of the sum suffice. Above 40 the derivative of Kummer's expansion for large arguments is exact
to double precision. The method needs only elementwise arithmetic, so any array namespace can
compute it.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

from .._convention import ZERO_AT_INFINITY
from .._dispatch import formula
from . import _asymptotic
from ._method import EVERYWHERE, Declared, Method
from ._operation import method, value

#: From this u on, use the expansion for large arguments.
SWITCH = 40.0
# 113 terms suffice: P(K >= 113) is below e^-40 for K ~ Poisson(40), where 40 is `SWITCH`.
_TERMS = 113
# A power of 2 makes u/32 exact. The sum would multiply a rounding error of u/32 by up to 40.
_SCALE = 32


def _scaled(terms: list[Fraction]) -> list[float]:
    """Turn coefficients of u^k/k! into coefficients of (u/32)^k, which range from 1e-16 to 1e12."""
    weight, result = Fraction(1), []
    for k, term in enumerate(terms):
        result.append(float(weight * term))
        weight *= Fraction(_SCALE, k + 1)
    return result


_HARMONIC = itertools.accumulate(Fraction(2, 2 * j + 1) for j in range(_TERMS))
_GAP = _scaled([total / (2 * k + 2) for k, total in enumerate(_HARMONIC)])
_SLOPE_TERMS = _scaled([Fraction(1, 2 * k + 1) for k in range(_TERMS)])
_EXPANSION = _asymptotic.Expansion(SWITCH)


def _transformed(xp: Any, u: Any, coefficients: list[float]) -> Any:
    """Sum u e^-u (u/32)^k coefficients[k] over k, by Horner's rule."""
    part = u / _SCALE
    result = coefficients[-1] + 0.0 * u
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + result * part
    return u * (xp.exp(-u) * result)


def _either(xp: Any, x: Any, terms: list[float], tail: Any) -> Any:
    u = 0.5 * xp.exp(-x)
    most = xp.full_like(u, SWITCH)
    return xp.where(u < SWITCH, _transformed(xp, xp.minimum(u, most), terms), tail)


def _value(xp: Any, x: Any) -> Any:
    return -_either(xp, x, _GAP, _EXPANSION.gap(xp, x))


def _slope(xp: Any, x: Any) -> Any:
    return _either(xp, x, _SLOPE_TERMS, _EXPANSION.slope(xp, x))


_VALUE, _SLOPE = method(_value, _slope)


def kummer(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    dps: int | None = None,
) -> Any:
    r"""-KL(q || p) by Kummer's function, differentiated in its first argument.

    .. math:: -\mathrm{KL} = \text{constant} + \tfrac12 \left. \frac{\partial}{\partial a}
              M(a; \tfrac12; -u) \right|_{a=0}, \qquad u = \tfrac12 e^{-\log\alpha}

    for every alpha. With M(a; b; -u) = e^-u M(b - a; b; u) the terms of the series do not cancel.

    Parameters
    ----------
    log_alpha, zero_at, log_c, dps
        The same as for `series`, which raises the same errors.

    Returns
    -------
    array or scalar
        The same as for `series`.

    Notes
    -----
    Up to u = 40 (log_alpha = -4.38) the method evaluates a polynomial of 113 positive terms, and
    above 40 the derivative of Kummer's expansion for large u. With `dps` it sums the alternating
    series, with as many extra digits as cancellation loses. Once u is so large that the expansion
    gives all the digits, it uses the expansion instead.

    Worst error 2.0e-15 relative to max(1, abs(-KL)). As alpha -> inf, with the default
    constant, this bound also holds relative to -KL itself. For arrays of another namespace, that
    namespace does the computation, in the array's own type.

    References
    ----------
    J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not Bayesian",
    2017, arXiv:1711.02989, Eq. 2; NIST Digital Library of Mathematical Functions, 13.2.39
    (the transformation) and 13.7.2 (the expansion).

    Examples
    --------
    >>> import mpmath
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.kummer(0.0):.14f}")
    -0.42668560429604
    >>> with mpmath.workdps(30):  # Eq. 2 as it stands, F(1/2)
    ...     print(mpmath.diff(lambda a: mpmath.hyp1f1(a, 0.5, -0.5), 0) / 2)
    -0.426685604296044805793729568939
    >>> print(mpmath.nstr(lk.methods.kummer(0.0, dps=30), 30))
    -0.426685604296044805793729568939
    """
    if dps is not None:
        from .arbitrary_precision import kummer, precision

        return precision.neg_kl(kummer.gap, log_alpha, zero_at, log_c, dps)
    return value(_VALUE, log_alpha, zero_at, log_c)


def kummer_grad(log_alpha: Any, *, dps: int | None = None) -> Any:
    r"""Differentiate `kummer` in log alpha.

    .. math:: \frac{d(-\mathrm{KL})}{d \log\alpha} = u M(1; \tfrac32; -u)
              = u e^{-u} M(\tfrac12; \tfrac32; u)

    To derive it, differentiate d/du M(a; b; -u) = -(a/b) M(a + 1; b + 1; -u) in a, at a = 0.

    Parameters
    ----------
    log_alpha, dps
        The same as for `series`.

    Returns
    -------
    array or scalar
        1/2 at -inf and 0 at inf; see `series`. Worst relative error: 2.0e-15, or 10**-dps.

    References
    ----------
    J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not Bayesian",
    2017, arXiv:1711.02989, Eqs. 2 and 3.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.kummer_grad(0.0):.14f}, exactly {lk.neg_kl_grad(0.0):.14f}")
    0.36238922950354, exactly 0.36238922950354
    """
    if dps is not None:
        from .arbitrary_precision import kummer, precision

        return precision.neg_kl_grad(kummer.slope, log_alpha, dps)
    return formula(_SLOPE, log_alpha=log_alpha)


KUMMER = Method(
    name="kummer",
    function=kummer,
    gradient=kummer_grad,
    formula="constant + 0.5 dM(a; 1/2; -u)/da at a = 0, u = 1/(2 alpha)",
    equation="Eq. 2",
    citation="Hron, Matthews and Ghahramani 2017, arXiv:1711.02989",
    claims=(Declared(EVERYWHERE, 2e-15, gradient=2e-15),),
    constant="that of the exact value",
    outside="it has no outside; below log_alpha = -4.38 its expansion for large u takes over",
    kind="numerical",
)
