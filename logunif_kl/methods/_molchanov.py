"""Molchanov's sigmoid: the approximation that most implementations use, for every alpha.

The exact -KL is -1/2 log(1 + 1/alpha) minus a bounded remainder. As alpha falls, the remainder
rises from 0 to (gamma + log 2)/2 = 0.63518. Molchanov, Ashukha and Vetrov fitted one sigmoid in log
alpha, of height k1 = 0.63576, to the remainder.
"""

from __future__ import annotations

from typing import Any

from .._convention import ZERO_AT_INFINITY
from .._dispatch import formula
from ._method import EVERYWHERE, WIDE, Declared, Method
from ._operation import method, value

K1, K2, K3 = 0.63576, 1.87320, 1.48695


def _value(xp: Any, x: Any) -> Any:
    softplus = xp.logaddexp(xp.zeros_like(x), -x)
    return -K1 / (1.0 + xp.exp(K2 + K3 * x)) - 0.5 * softplus


def _slope(xp: Any, x: Any) -> Any:
    # compute s (1 - s) and 1/(1 + alpha) from exponentials of non-positive numbers, because exp(x)
    # overflows where 1/(1 + exp(x)) is still a positive double
    odds, ratio = xp.exp(-xp.abs(K2 + K3 * x)), xp.exp(-xp.abs(x))
    share = xp.where(x > 0.0, ratio, xp.ones_like(x)) / (1.0 + ratio)
    return K1 * K3 * odds / (1.0 + odds) ** 2 + 0.5 * share


_VALUE, _SLOPE = method(_value, _slope)


def molchanov(
    log_alpha: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None
) -> Any:
    r"""-KL(q || p) by Molchanov's sigmoid.

    .. math:: -\mathrm{KL} \approx k_1 \sigma(k_2 + k_3 \log\alpha)
              - \tfrac12 \log(1 + \alpha^{-1}) - k_1

    with (k1, k2, k3) = (0.63576, 1.87320, 1.48695), for every alpha.

    Parameters
    ----------
    log_alpha, zero_at, log_c
        The same as for `logunif_kl.neg_kl`. With the published constant, -k1, the formula vanishes
        as alpha -> inf, as the exact value does.

    Returns
    -------
    array or scalar
        The same as for `logunif_kl.neg_kl`.

    Notes
    -----
    Worst error: 9.4e-3, at log_alpha = -3.51. Worst relative error of the gradient: 3.8 %.
    ``METHODS["molchanov"].claims`` has the measured figures.

    The formula is evaluated as -k1 sigma(-k2 - k3 x) - 1/2 log(1 + exp(-x)). The published form is
    equal, but it loses all digits to cancellation for large alpha.

    References
    ----------
    D. Molchanov, A. Ashukha, D. Vetrov, "Variational Dropout Sparsifies Deep Neural Networks",
    ICML 2017, arXiv:1701.05369, Eq. 14.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.molchanov(0.0):.4f}, exactly {lk.neg_kl(0.0):.4f}")
    -0.4312, exactly -0.4267
    """
    return value(_VALUE, log_alpha, zero_at, log_c)


def molchanov_grad(log_alpha: Any) -> Any:
    """Differentiate `molchanov` in log alpha.

    With s = sigma(k2 + k3 log alpha) the derivative is k1 k3 s (1 - s) + 1/2 / (1 + alpha). The
    argument and the result are as for `logunif_kl.neg_kl_grad`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.molchanov_grad(0.0):.4f}, exactly {lk.neg_kl_grad(0.0):.4f}")
    0.3591, exactly 0.3624
    """
    return formula(_SLOPE, log_alpha=log_alpha)


MOLCHANOV = Method(
    name="molchanov",
    function=molchanov,
    gradient=molchanov_grad,
    formula="k1 sigmoid(k2 + k3 log(alpha)) - 0.5 log(1 + 1/alpha) - k1",
    equation="Eq. 14",
    citation="Molchanov, Ashukha and Vetrov 2017, arXiv:1701.05369",
    claims=(
        Declared(EVERYWHERE, 0.00938, 0.00688, 0.0376),
        Declared(WIDE, 0.00938, 0.00688, 0.0376),
    ),
    constant="its own, -k1: the value vanishes as alpha -> inf",
    outside="it has no outside: the paper gives it for every alpha",
)
