"""Kingma's cubic: the first approximation of -KL, made for alpha <= 1.

Kingma, Salimans and Welling fitted a cubic in alpha to precomputed values of -E log|eps|,
eps ~ N(1, alpha), and added 1/2 log alpha from the entropy. The three coefficients are within 0.2 %
of a least-squares fit on alpha in [0.05, 1] with a free constant. (The constant was not published.)
Their Figure 2 shows nearly this range, as dropout rates from 0.05 to 0.5.

The paper states that the cubic and the exact curve are indistinguishable in Figure 2, and that the
cubic becomes exact as alpha -> 0. No constant makes both statements true. If the constant makes the
cubic exact as alpha -> 0, the cubic is 0.028 to 0.040 too high in the figure.
"""

from __future__ import annotations

import math
from typing import Any

from .._convention import ZERO_AT_INFINITY
from .._dispatch import formula
from ._method import WIDE, Declared, Interval, Method
from ._operation import method, value

C1, C2, C3 = 1.16145124, -1.50204118, 0.58629921

# The double nearest to F(1/2), the value of F(u) at alpha = 1.
_GAP_AT_ONE = 0.4266856042960448


def _cubic(alpha: Any) -> Any:
    return alpha * (C1 + alpha * (C2 + alpha * C3))


_CUBIC_AT_ONE = _cubic(1.0)


def _value(xp: Any, x: Any) -> Any:
    return 0.5 * x + (_cubic(xp.exp(x)) - _CUBIC_AT_ONE) - _GAP_AT_ONE


def _slope(xp: Any, x: Any) -> Any:
    alpha = xp.exp(x)
    return 0.5 + alpha * (C1 + alpha * (2.0 * C2 + alpha * (3.0 * C3)))


_VALUE, _SLOPE = method(_value, _slope)


def kingma(log_alpha: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None) -> Any:
    r"""-KL(q || p) by Kingma's cubic.

    .. math:: -\mathrm{KL} \approx \text{constant} + \tfrac12 \log\alpha + c_1 \alpha
              + c_2 \alpha^2 + c_3 \alpha^3

    with (c1, c2, c3) = (1.16145124, -1.50204118, 0.58629921), for alpha <= 1. Above 1 the cubic
    term dominates: at alpha = 2 the slope in log alpha is 4.9, where the exact one is 0.21.

    Parameters
    ----------
    log_alpha, zero_at, log_c
        The same as for `logunif_kl.neg_kl`.

    Returns
    -------
    array or scalar
        The same as for `logunif_kl.neg_kl`.

    Notes
    -----
    The paper does not give the formula's own constant. Here the cubic equals the exact value at
    alpha = 1, as in Figure 2. With ``zero_at=1.0`` both are 0 at alpha = 1.

    The worst error is 0.037 on alpha in (0, 1] and 0.0102 on [0.05, 1]. The best constant would
    lower these errors to 0.020 and 0.0066. The gradient's largest relative error is 15 %, at alpha
    = 1. ``METHODS["kingma"].claims`` has the measured figures.

    References
    ----------
    D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local Reparameterization
    Trick", NIPS 2015, arXiv:1506.02557, section 3.3 (after Eq. 12) and appendix C (after Eq. 42).

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.kingma(-1.0, zero_at=1.0):.4f}")
    -0.4925
    """
    return value(_VALUE, log_alpha, zero_at, log_c)


def kingma_grad(log_alpha: Any) -> Any:
    """Differentiate `kingma` in log alpha: 1/2 + c1 alpha + 2 c2 alpha^2 + 3 c3 alpha^3.

    The argument and the result are as for `logunif_kl.neg_kl_grad`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.kingma_grad(0.0):.4f}, exactly {lk.neg_kl_grad(0.0):.4f}")
    0.4163, exactly 0.3624
    """
    return formula(_SLOPE, log_alpha=log_alpha)


KINGMA = Method(
    name="kingma",
    function=kingma,
    gradient=kingma_grad,
    formula="constant + 0.5 log(alpha) + c1 alpha + c2 alpha^2 + c3 alpha^3",
    equation="section 3.3 and appendix C, unnumbered",
    citation="Kingma, Salimans and Welling 2015, arXiv:1506.02557",
    claims=(
        Declared(Interval("alpha in (0, 1]", -math.inf, 0.0), 0.0373, 0.0202, 0.149),
        Declared(Interval("alpha in [0.05, 1]", math.log(0.05), 0.0), 0.0102, 0.00665, 0.149),
        Declared(WIDE, 6.27e12, 3.14e12, 8.28e17),
    ),
    constant="meets the exact value at alpha = 1; the paper leaves it open",
    outside="above alpha = 1, which the paper excludes, the cubic term takes over and the value "
    "and gradient grow like alpha^3 instead of tending to a constant and to 0",
)
