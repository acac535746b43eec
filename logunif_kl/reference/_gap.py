"""Compute F, F' and F'' as functions of u, to any number of digits."""

from __future__ import annotations

from typing import Any

import mpmath
from mpmath import libmp

from ._agree import LOCK, agree
from ._functions import first, second
from ._input import Raw, digits, read

NAMES = {"gap": "F", "gap_grad": "F'", "gap_hess": "F''"}


def kl_gap(u: object, dps: int = 50) -> Any:
    r"""Return the gap F(u) = KL - min KL to ``dps`` digits.

    .. math:: F(u) = u\,{}_2F_2(1, 1; 3/2, 2; -u) = \int_0^u \frac{D(\sqrt t)}{\sqrt t}\,dt
              = \tfrac12\Bigl[e^{-u}\sum_k \frac{u^k}{k!}\psi(\tfrac12 + k)
                - \psi(\tfrac12)\Bigr] \ge 0

    where D is Dawson's function (Hron et al. 2017, Eqs. 1 and 3).

    Parameters
    ----------
    u : float, int, str, mpf, Fraction, Decimal or NumPy scalar
        mu^2/(2 sigma^2) = 1/(2 alpha), not negative. Floats are exact.
    dps : int, default 50
        Decimal digits.

    Returns
    -------
    mpmath.mpf
        F(u) >= 0, correct to ``dps`` significant digits. F(0) = 0 and F(inf) = inf. The result is
        NaN for NaN and for u < 0.

    Raises
    ------
    TypeError, ValueError
        If ``u`` is not one real number, or ``dps`` is not a positive int.
    ArithmeticError
        If the two definitions do not agree.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.kl_gap(0.5), 20))
    0.42668560429604480579
    """
    return _of_u("gap", u, dps, at_zero=libmp.fzero, at_inf=libmp.finf)


def kl_gap_grad(u: object, dps: int = 50) -> Any:
    r"""Return F'(u) to ``dps`` digits.

    .. math:: F'(u) = D(\sqrt u)/\sqrt u = M(1; 3/2; -u) \in (0, 1]

    (Hron et al. 2017, Eq. 3.) Parameters, digits and errors are as for :func:`kl_gap`. F'(0) = 1
    and F'(inf) = 0. The result is NaN for NaN and for u < 0.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.kl_gap_grad(1), 20))
    0.53807950691276841914
    """
    return _of_u("gap_grad", u, dps, at_zero=libmp.fone, at_inf=libmp.fzero)


def kl_gap_hess(u: object, dps: int = 50) -> Any:
    r"""Return F''(u) to ``dps`` digits.

    .. math:: F''(u) = -\tfrac23 M(2; 5/2; -u) = \frac{1 - (1 + 2u)F'(u)}{2u} \in [-2/3, 0)

    Parameters, digits and errors are as for :func:`kl_gap`. F''(0) = -2/3 and F''(inf) = 0. The
    result is NaN for NaN and for u < 0.

    Examples
    --------
    >>> import mpmath
    >>> from logunif_kl import reference
    >>> print(mpmath.nstr(reference.kl_gap_hess(0), 20))
    -0.66666666666666666667
    """
    n = digits(dps)
    two_thirds = libmp.from_rational(-2, 3, libmp.dps_to_prec(n), "n")
    return _of_u("gap_hess", u, n, at_zero=two_thirds, at_inf=libmp.fzero)


def _of_u(kind: str, u: object, dps: int, *, at_zero: Raw, at_inf: Raw) -> Any:
    n = digits(dps)
    with LOCK:
        reader = read(u, "u")
        rough = reader(53)
        if rough == libmp.fzero:
            raw = at_zero
        elif rough == libmp.finf:
            raw = at_inf
        elif rough == libmp.fnan or libmp.mpf_sign(rough) < 0:
            raw = libmp.fnan
        else:
            raw = agree(
                lambda wp: first(kind, reader(wp + 8), wp),
                lambda wp: second(kind, reader(wp + 8), wp),
                n,
                NAMES[kind] + "(u) at u = {}",
                u,
            )
    return mpmath.mp.make_mpf(raw)
