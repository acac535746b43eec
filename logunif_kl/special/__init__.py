"""The gap F = KL - min KL and its derivatives, as ufuncs of u = mu^2/(2 sigma^2) = 1/(2 alpha).

D is Dawson's function, M is Kummer's function and 2F2 is the hypergeometric function::

    kl_gap(u)       F(u)   = KL - min KL = u 2F2(1, 1; 3/2, 2; -u)    (Hron et al. 2017, Eq. 1, 2)
    kl_gap_grad(u)  F'(u)  = D(sqrt u)/sqrt u = M(1; 3/2; -u)         (Hron et al. 2017, Eq. 3)
    kl_gap_hess(u)  F''(u) = (1 - (1 + 2 u) F'(u))/(2 u)

A fourth function, for gradient steps written by hand, computes -KL and both its derivatives in one
pass from the mean and the logarithm of the variance::

    neg_kl_normal_and_grad(mu, log_sigma2)    (-F(u), -F'(u) mu/sigma^2, u F'(u))

All four call ufuncs, and take ``out=``, ``where=``, ``dtype=`` and all other options of a ufunc.
The first three also have the attributes and methods of a ufunc. They take arrays of xarray, pandas,
dask and, without options, of any array-API namespace, as `logunif_kl.special.array_api` does. The
fourth takes xarray objects that hold NumPy arrays. It takes dask arrays if no option is given.
Tensors of frameworks and quantities with a unit raise an error, because a ufunc would lose their
derivative or their unit. For tensors call `logunif_kl.neg_kl` and its relatives.

u grows with mu^2/sigma^2, so F increases from 0 (pure noise) without bound (no noise). If you have
log alpha, `logunif_kl.neg_kl` is more accurate, because it never forms u.

Examples
--------
>>> import numpy as np
>>> from logunif_kl import special
>>> u = np.array([[0.0, 0.5], [1.0, np.inf]])
>>> special.kl_gap(u, where=u < 1, out=np.full((2, 2), -1.0))
array([[ 0.       ,  0.4266856],
       [-1.       , -1.       ]])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import array_api
from ._guarded import guarded
from ._three_results import neg_kl_normal_and_grad

if TYPE_CHECKING:
    from .._numpy.ufuncs import kl_gap, kl_gap_grad, kl_gap_hess
else:
    kl_gap, kl_gap_grad, kl_gap_hess = map(guarded, ("kl_gap", "kl_gap_grad", "kl_gap_hess"))

__all__ = ["array_api", "kl_gap", "kl_gap_grad", "kl_gap_hess", "neg_kl_normal_and_grad"]

# doctest does not find the docstrings of ufuncs by itself.
__test__: dict[str, str | None] = {
    f.__name__: f.__doc__ for f in (kl_gap, kl_gap_grad, kl_gap_hess, neg_kl_normal_and_grad)
}
