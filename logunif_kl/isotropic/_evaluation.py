"""Compute -KL of arrays, and pass tensors on to the code for PyTorch or JAX."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .. import _arguments, _errors
from .._arguments import (
    NAMESPACE,
    NUMBER,
    PROTOCOL,
    framework_of,
    kind_of,
    parse,
    read,
    unwrapped,
)
from .._arithmetic.isotropic import complex_weights
from .._convention import ZERO_AT_INFINITY, shifted
from .._dispatch import Operation, compute, evaluate, module_of
from .._isotropic import complex_normal, constant, derivative, ufunc
from .._numpy.reduction import reduced

_NORMAL = Operation(complex_normal, complex_weights.neg_kl_normal)


def of_log_alpha(
    log_alpha: Any,
    k: float | None,
    order: int = 0,
    zero_at: Any = ZERO_AT_INFINITY,
    log_c: Any = None,
    reduction: str = "none",
) -> Any:
    """Return -KL of groups of k weights (complex weights if k is None), or a derivative of -KL."""
    parsed = parse({"log_alpha": log_alpha})
    if isinstance(parsed, _arguments.Tensors):
        module = _module(parsed.framework, **parsed.given)
        return module.of_log_alpha(log_alpha, k, order, zero_at, log_c, reduction)
    return compute(_derivative(k, order), parsed, constant(k, zero_at, log_c), reduction)


def of_normal(mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str) -> Any:
    """Return -KL of complex weights from their means, or moduli of means, and log variances."""
    framework = framework_of({"mu": mu, "log_sigma2": log_sigma2})
    if framework is not None:
        module = _module(framework, mu=mu, log_sigma2=log_sigma2)
        return module.of_normal(mu, log_sigma2, zero_at, log_c, reduction)
    added = constant(None, zero_at, log_c)
    mu, log_sigma2 = unwrapped("mu", mu), unwrapped("log_sigma2", log_sigma2)
    mean = _complex_mean(mu)
    if mean is None:
        return evaluate(_NORMAL, added, reduction, mu=mu, log_sigma2=log_sigma2)
    _errors.check_reduction(reduction)
    if kind_of(type(log_sigma2)) in (PROTOCOL, NAMESPACE):
        raise _errors.mixture({"mu": mu, "log_sigma2": log_sigma2})
    if kind_of(type(log_sigma2)) == NUMBER:
        variance: Any = _errors.as_float("log_sigma2", log_sigma2)
    else:
        variance = read("log_sigma2", log_sigma2)
        if not _errors.holds_real(variance.dtype):
            raise _errors.not_real("log_sigma2", log_sigma2, variance.dtype)
    _errors.check_shapes({"mu": mean, "log_sigma2": variance})
    # A Python number takes the type of the other argument.
    like = mu if type(mu) is complex else mean
    dtype = np.result_type(like, variance).type(0).real.dtype
    result = _in_blocks(mean, np.asarray(variance), dtype)
    result = shifted(result[()] if result.ndim == 0 else result, added)
    return reduced(result, reduction) if reduction != "none" else result


@lru_cache(maxsize=256)
def _derivative(k: float | None, order: int) -> Operation:
    return Operation(ufunc(k, order), lambda xp, x: derivative(xp, x, k, order))


def _module(framework: str, **given: Any) -> Any:
    # Compilers can trace import statements, but not import_module.
    if framework == "torch":
        from ..torch import _isotropic as of_torch

        return of_torch
    if framework == "jax":
        from ..jax import _isotropic as of_jax

        return of_jax
    if framework not in ("tensorflow",) and "mu" not in given:
        return module_of(framework)
    name, tensor = next((n, x) for n, x in given.items() if _errors.framework(type(x)) is not None)
    raise _errors.unsupported(name, tensor)


def _complex_mean(mu: Any) -> np.ndarray | None:
    """Return complex means as a NumPy array, or None if they are real or cannot be read.

    Raise TypeError for complex means of a library other than NumPy, or of more than 128 bits.
    """
    if kind_of(type(mu)) in (PROTOCOL, NAMESPACE):
        if "complex" in str(getattr(mu, "dtype", "")):
            raise TypeError(
                f"mu is complex and of type {_errors.type_name(mu)}, which is "
                "supported only for real means: pass the modulus, abs(mu)"
            )
        return None
    if not isinstance(mu, (complex, list, tuple, np.ndarray, np.generic)):
        return None
    mean: np.ndarray = read("mu", mu)
    return mean if mean.dtype in (np.complex64, np.complex128) else None


def _in_blocks(mu: np.ndarray, log_sigma2: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Compute -KL of complex means in blocks of float64, and round the result once."""
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
