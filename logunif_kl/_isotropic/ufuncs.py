"""The functions of NumPy's arrays, called like ufuncs, and found by name by pickle."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .._arithmetic.isotropic import complex_weights, vector
from .._numpy.blocked import BlockedUFunc, in_float64
from .nodes import rule

_VECTOR = "of_vector_"


def _ufunc(name: str, arithmetic: Callable[..., Any], nin: int = 1) -> BlockedUFunc:
    return BlockedUFunc(name, in_float64(arithmetic), module=__name__, nin=nin)


neg_kl_complex = _ufunc("neg_kl_complex", complex_weights.neg_kl)
neg_kl_complex_grad = _ufunc("neg_kl_complex_grad", complex_weights.grad)
neg_kl_complex_hess = _ufunc("neg_kl_complex_hess", complex_weights.hess)
neg_kl_complex_normal = _ufunc("neg_kl_complex_normal", complex_weights.neg_kl_normal, 2)


def of_vector(k: float, order: int) -> BlockedUFunc:
    """Return the ufunc of -F_k, or of a derivative of it."""
    # A name with a point would be looked up as an attribute of an attribute.
    return _of_vector(f"{_VECTOR}{order}_{k.hex()}".replace(".", ","))


@lru_cache(maxsize=256)
def _of_vector(name: str) -> BlockedUFunc:
    order, k = name.removeprefix(_VECTOR).replace(",", ".").split("_")
    found, n = rule(float.fromhex(k)), int(order)
    return _ufunc(name, lambda xp, x: vector.derivative(xp, x, found, n))


def __getattr__(name: str) -> Any:
    if name.startswith(_VECTOR):
        return _of_vector(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def of_complex_mean(mu: np.ndarray, log_sigma2: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Compute -KL of complex means in blocks of float64, rounded once to the type."""
    mu, log_sigma2 = np.broadcast_arrays(mu, log_sigma2)
    result = np.empty(mu.shape, dtype)
    flat, means, logs = result.reshape(-1), mu.reshape(-1), log_sigma2.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, 4096):
            block = slice(start, start + 4096)
            found = complex_weights.normal(
                np,
                means.real[block].astype(np.float64),
                means.imag[block].astype(np.float64),
                logs[block].astype(np.float64),
            )
            flat[block] = found[0]
    return result
