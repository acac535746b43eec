"""Kingma's lower bound: -KL without its term -E log|eps|, which is negative for alpha above 2.42.

The paper states that -E log|eps| >= 0, eps ~ N(1, alpha), "for all values of alpha". This holds up
to alpha* = 2.42124952103683604, where E log|eps| = 0. Above alpha* the formula is larger than -KL.
"""

from __future__ import annotations

import math
from typing import Any

from .._convention import HALF_GAMMA_LOG_2, ZERO_AT_INFINITY
from .._dispatch import formula
from ._method import WIDE, Declared, Interval, Method
from ._operation import method, value

# The root of (log(2 alpha) + psi(1/2))/2 + F(1/(2 alpha)), which is E log|eps|.
ALPHA_STAR = 2.42124952103683604
LOG_ALPHA_STAR = math.log(ALPHA_STAR)


def _value(xp: Any, x: Any) -> Any:
    # as alpha -> 0, the exact value minus 1/2 log(alpha) tends to -HALF_GAMMA_LOG_2
    return 0.5 * x - HALF_GAMMA_LOG_2


def _slope(xp: Any, x: Any) -> Any:
    return xp.where(xp.isnan(x), x, xp.full_like(x, 0.5))


_VALUE, _SLOPE = method(_value, _slope)


def lower_bound(
    log_alpha: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None
) -> Any:
    r"""Kingma's lower bound of -KL(q || p), valid for alpha <= 2.4212 only.

    .. math:: -\mathrm{KL} \ge \text{constant} + \tfrac12 \log\alpha
              \qquad (\alpha \le \alpha^* = 2.42124952103683604)

    The constant is the exact one, log C + 1/2 log(2 pi e), so the bound becomes exact as alpha ->
    0. The paper claims the bound for every alpha, but above alpha* it is *larger* than -KL.

    Parameters
    ----------
    log_alpha, zero_at, log_c
        The same as for `logunif_kl.neg_kl`.

    Returns
    -------
    array or scalar
        The same as for `logunif_kl.neg_kl`.

    References
    ----------
    D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local Reparameterization
    Trick", NIPS 2015, arXiv:1506.02557, appendix C (after Eq. 42).

    Examples
    --------
    >>> import logunif_kl as lk
    >>> bool(lk.methods.lower_bound(0.0) < lk.neg_kl(0.0))
    True
    >>> bool(lk.methods.lower_bound(1.0) > lk.neg_kl(1.0))  # alpha = 2.718: not a bound
    True
    """
    return value(_VALUE, log_alpha, zero_at, log_c)


def lower_bound_grad(log_alpha: Any) -> Any:
    """Differentiate `lower_bound` in log alpha: 1/2 everywhere, NaN at NaN.

    The argument and the result are as for `logunif_kl.neg_kl_grad`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(lk.methods.lower_bound_grad(3.0))
    0.5
    """
    return formula(_SLOPE, log_alpha=log_alpha)


LOWER_BOUND = Method(
    name="lower_bound",
    function=lower_bound,
    gradient=lower_bound_grad,
    formula="constant + 0.5 log(alpha)",
    equation="appendix C, unnumbered",
    citation="Kingma, Salimans and Welling 2015, arXiv:1506.02557",
    claims=(
        Declared(Interval("alpha in (0, 2.4212]", -math.inf, LOG_ALPHA_STAR), 0.246, 0.123, 1.78),
        Declared(WIDE, 4.37, 2.31, 2.21e4),
    ),
    constant="that of the exact value, which it therefore meets as alpha -> 0",
    outside="above alpha* = 2.42124952103683604 it exceeds -KL and bounds nothing",
)
