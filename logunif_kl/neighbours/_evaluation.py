"""The steps of every public function: whose the arguments are, the constant, the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _errors
from .._arguments import NAMESPACE, NUMBER, PROTOCOL, framework_of, kind_of, read, unwrapped
from .._arithmetic.neighbours import complex_weights, vector
from .._convention import shifted
from .._dispatch import Operation, evaluate
from .._neighbours import convention, ufuncs
from .._neighbours.nodes import dimensions, rule
from .._numpy.reduction import reduced

_OPERATIONS = {
    "neg_kl_complex": Operation(ufuncs.neg_kl_complex, complex_weights.neg_kl),
    "neg_kl_complex_grad": Operation(ufuncs.neg_kl_complex_grad, complex_weights.grad),
    "neg_kl_complex_hess": Operation(ufuncs.neg_kl_complex_hess, complex_weights.hess),
    "neg_kl_complex_normal": Operation(ufuncs.neg_kl_complex_normal, complex_weights.neg_kl_normal),
}


def _module(**arguments: Any) -> Any:
    """Find the module for the arguments' framework; None if they are no tensors."""
    framework = framework_of(arguments)
    # Compilers can trace import statements, but not import_module.
    if framework == "torch":
        from ..torch import neighbours as of_torch

        return of_torch
    if framework == "jax":
        from ..jax import neighbours as of_jax

        return of_jax
    for argument, value in arguments.items():
        if _errors.framework(type(value)) is not None:
            raise _errors.no_adapter(argument, value)
    return None


def derivative(name: str, log_alpha: Any) -> Any:
    """Compute a derivative of -KL of complex weights."""
    module = _module(log_alpha=log_alpha)
    if module is not None:
        return getattr(module, name)(log_alpha)
    return evaluate(_OPERATIONS[name], log_alpha=log_alpha)


def of_log_alpha(zero_at: Any, log_c: Any, reduction: str, log_alpha: Any) -> Any:
    """Compute -KL of complex weights."""
    module = _module(log_alpha=log_alpha)
    if module is not None:
        return module.neg_kl_complex(log_alpha, zero_at=zero_at, log_c=log_c, reduction=reduction)
    constant = convention.complex_constant(zero_at, log_c)
    return evaluate(_OPERATIONS["neg_kl_complex"], constant, reduction, log_alpha=log_alpha)


def of_normal(zero_at: Any, log_c: Any, reduction: str, mu: Any, log_sigma2: Any) -> Any:
    """Compute -KL of complex weights from the mean, complex or its modulus, and the variance."""
    module = _module(mu=mu, log_sigma2=log_sigma2)
    if module is not None:
        function = module.neg_kl_complex_normal
        return function(mu, log_sigma2, zero_at=zero_at, log_c=log_c, reduction=reduction)
    constant = convention.complex_constant(zero_at, log_c)
    mu, log_sigma2 = unwrapped("mu", mu), unwrapped("log_sigma2", log_sigma2)
    mean = _complex_mean(mu)
    if mean is None:
        operation = _OPERATIONS["neg_kl_complex_normal"]
        return evaluate(operation, constant, reduction, mu=mu, log_sigma2=log_sigma2)
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
    # A number of Python takes the type of the other argument.
    like = mu if type(mu) is complex else mean
    dtype = np.result_type(like, variance).type(0).real.dtype
    result = ufuncs.of_complex_mean(mean, np.asarray(variance), dtype)
    result = shifted(result[()] if result.ndim == 0 else result, constant)
    return reduced(result, reduction) if reduction != "none" else result


def _complex_mean(mu: Any) -> np.ndarray | None:
    """Read complex means as an array of NumPy's; None if they are real, or not to be read so.

    Raises
    ------
    TypeError
        If they are complex, and of another library than NumPy, or of more than 128 bits.
    """
    if kind_of(type(mu)) in (PROTOCOL, NAMESPACE):
        if "complex" in str(getattr(mu, "dtype", "")):
            raise TypeError(
                f"mu is complex and of type {_errors.type_name(mu)}, of which only real means "
                "are taken here: pass its modulus, abs(mu)"
            )
        return None
    if not isinstance(mu, (complex, list, tuple, np.ndarray, np.generic)):
        return None
    mean: np.ndarray = read("mu", mu)
    if mean.dtype not in (np.complex64, np.complex128):
        return None
    return mean


def of_vector(
    name: str, k: Any, zero_at: Any, log_c: Any, reduction: str, order: int, log_alpha: Any
) -> Any:
    """Compute -KL of a group of k weights, or its derivative."""
    module = _module(log_alpha=log_alpha)
    if module is not None:
        if order:
            return getattr(module, name)(log_alpha, k)
        function = getattr(module, name)
        return function(log_alpha, k, zero_at=zero_at, log_c=log_c, reduction=reduction)
    count = dimensions(k)
    constant = 0.0 if order else convention.vector_constant(count, zero_at, log_c)
    found = rule(count)
    operation = Operation(
        ufuncs.of_vector(count, order), lambda xp, x: vector.derivative(xp, x, found, order)
    )
    return evaluate(operation, constant, reduction, log_alpha=log_alpha)
