"""The gradient of -KL, from SciPy's implementation of Dawson's function.

    d(-KL)/d log alpha = u F'(u) = sqrt(u) D(sqrt(u))                               (Hron's Eq. 3)

SciPy computes Dawson's function D by Johnson's Faddeeva package, which shares no code with
`logunif_kl.neg_kl_grad`. The method is therefore an independent check in double precision.

Two ranges need care. For large u the formula is infinity times zero, so s = sqrt(u) is clipped to
2^27, where s D(s) is already 1/2 to the last bit. For small s, SciPy's function is less accurate:
between s = 0.0101 and 0.3 its relative error reaches 1.7e-14, 78 units in the last place. Below
s = 1/2 the first terms of the power series replace SciPy's function,

    D(s)/s = sum_k (-2 s^2)^k/(2k + 1)!! = 1 - 2u/3 (1 - 2u/5 (1 - 2u/7 (...))),

The power series also gives the limit as u -> 0, without dividing zero by zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._dispatch import formula
from ._method import EVERYWHERE, Declared, Method
from ._operation import no_slopes, operation

# s D(s) = 1/2 + 1/(4 s^2) + ..., and 1/(4 s^2) is below 2^-54 from this s on.
_FAR = 2.0**27
# Below this s use the power series. The terms after the first 14 are below 1e-19.
_NEAR = 0.5
_TERMS = 14


def _slope(xp: Any, x: Any) -> Any:
    from scipy.special import dawsn

    u = 0.5 * np.exp(-x)
    s = np.sqrt(np.minimum(u, _FAR * _FAR))
    near = u * _near(np.minimum(u, _NEAR * _NEAR))
    return np.where(s < _NEAR, near, s * dawsn(s))


def _near(u: np.ndarray) -> np.ndarray:
    """Return D(s)/s for s = sqrt(u) up to 1/2, by the power series."""
    result = np.ones_like(u)
    for k in range(_TERMS, 0, -1):
        result = 1.0 - 2.0 * u / (2 * k + 1) * result
    return result


_SLOPE = operation(_slope, on_host=True, slopes=no_slopes)


def dawson_grad(log_alpha: Any) -> Any:
    r"""The derivative of -KL(q || p) in log alpha, by SciPy's Dawson function.

    .. math:: \frac{d(-\mathrm{KL})}{d \log\alpha} = \sqrt u\,D(\sqrt u),
              \qquad u = \tfrac12 e^{-\log\alpha}, \qquad D(s) = e^{-s^2} \int_0^s e^{t^2} dt

    for every alpha. Use it to check `logunif_kl.neg_kl_grad`, which is more accurate and does not
    need SciPy. The two differ by at most 10 units in the last place, the error of SciPy's function.
    Above log_alpha = 0.69 the power series of D replaces SciPy's function.

    Parameters
    ----------
    log_alpha : array_like
        log(sigma^2/mu^2); real, of any shape. Arrays of other libraries are converted to NumPy on
        the host.

    Returns
    -------
    array or scalar
        The same as for `logunif_kl.neg_kl_grad`.

    References
    ----------
    J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not Bayesian",
    2017, arXiv:1711.02989, Eq. 3.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.dawson_grad(0.0):.14f}, exactly {lk.neg_kl_grad(0.0):.14f}")
    0.36238922950354, exactly 0.36238922950354
    """
    return formula(_SLOPE, log_alpha=log_alpha)


def _no_value(log_alpha: Any) -> Any:
    raise TypeError("dawson gives the gradient of -KL only: take another method for the value")


# DAWSON is not in METHODS, because it gives no value. ``logunif-kl validate`` checks the gradient.
DAWSON = Method(
    name="dawson",
    function=_no_value,
    gradient=dawson_grad,
    formula="gradient: sqrt(u) D(sqrt(u)), u = 1/(2 alpha)",
    equation="Eq. 3",
    citation="Hron, Matthews and Ghahramani 2017, arXiv:1711.02989",
    claims=(Declared(EVERYWHERE, math.nan, gradient=10 * 2.0**-52),),
    constant="none: it is the gradient",
    outside="it has no outside",
    kind="numerical",
)
