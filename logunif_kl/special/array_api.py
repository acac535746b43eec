"""The gap F(u) = KL - min KL and its derivatives, for the arrays of any array-API namespace.

The functions have the names of the ufuncs in `logunif_kl.special`. They take the same types of
arrays as `logunif_kl.neg_kl`, but no tensors of frameworks, and return arrays of the argument's
library.

Examples
--------
>>> import numpy as np
>>> from logunif_kl import special
>>> special.array_api.kl_gap(np.array([0.0, 0.5]))
array([0.       , 0.4266856])
"""

from __future__ import annotations

from typing import Any

from .._dispatch import evaluate, operation

__all__ = ["kl_gap", "kl_gap_grad", "kl_gap_hess"]

_KL_GAP, _KL_GAP_GRAD, _KL_GAP_HESS = map(operation, __all__)


def kl_gap(u: Any) -> Any:
    """Compute the gap of the log-uniform prior, F(u) = KL(q || p) - min KL.

    Parameters
    ----------
    u : array_like or array
        mu^2/(2 sigma^2) >= 0, of any shape: a Python number, or a NumPy, dask, xarray, pandas or
        array-API array of float16, float32, float64 or integers.

    Returns
    -------
    array or scalar
        F(u), with the shape, type and library of `u`. F(0) = 0 and F(inf) = inf. The result is NaN
        where u < 0 or u is NaN.

    Raises
    ------
    TypeError
        If `u` does not hold real numbers of at most 64 bits, or is a tensor of a framework.

    See Also
    --------
    logunif_kl.special.kl_gap : the same function as a ufunc, with its formula.

    Examples
    --------
    >>> from logunif_kl.special import array_api
    >>> float(array_api.kl_gap(0.5))
    0.4266856042960448
    """
    return evaluate(_KL_GAP, u=u)


def kl_gap_grad(u: Any) -> Any:
    """Compute the first derivative of the gap, F'(u).

    The argument and the errors are as for `kl_gap`. F'(0) = 1 and F'(inf) = 0. The result is NaN
    where u < 0 or u is NaN.

    See Also
    --------
    logunif_kl.special.kl_gap_grad : the same function as a ufunc, with its formula.

    Examples
    --------
    >>> from logunif_kl.special import array_api
    >>> array_api.kl_gap_grad([0.0, 0.5])
    array([1.        , 0.72477846])
    """
    return evaluate(_KL_GAP_GRAD, u=u)


def kl_gap_hess(u: Any) -> Any:
    """Compute the second derivative of the gap, F''(u).

    The argument and the errors are as for `kl_gap`. F''(0) = -2/3 and F''(inf) = 0. The result is
    NaN where u < 0 or u is NaN.

    See Also
    --------
    logunif_kl.special.kl_gap_hess : the same function as a ufunc, with its formula.

    Examples
    --------
    >>> from logunif_kl.special import array_api
    >>> array_api.kl_gap_hess([0.0, 0.5])
    array([-0.66666667, -0.44955692])
    """
    return evaluate(_KL_GAP_HESS, u=u)
