"""Call a public function: parse the arguments, choose the backend, add the constant.

The arguments decide which of three backends computes:

- a ufunc, for objects that NumPy can read, and for objects with ``__array_ufunc__``, whose library
  then takes over (dask, xarray, pandas, polars);
- the arithmetic of `logunif_kl._arithmetic`, for arrays of an array-API namespace;
- `logunif_kl.torch`, `logunif_kl.jax`, `logunif_kl.tensorflow` or a module of `_adapters`, which
  support automatic differentiation. Each module is imported when the first tensor of its framework
  is passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arguments, _errors
from ._arguments import parse
from ._convention import additive_constant, shifted
from ._numpy.operations import Operation as Operation
from ._numpy.operations import operation as operation
from ._numpy.reduction import reduced, reduced_over

# The compilers of torch and TensorFlow can trace import statements, but not import_module.


def _torch() -> Any:
    from . import torch

    return torch


def _jax() -> Any:
    from . import jax

    return jax


def _tensorflow() -> Any:
    from . import tensorflow

    return tensorflow


_MODULES = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}


def module_of(framework: str) -> Any:
    """Import the module of this package for a framework, or its `_adapters.Adapter`."""
    if framework in _MODULES:
        return _MODULES[framework]()
    from importlib import import_module

    return import_module(f".{_errors.FRAMEWORKS[framework].adapter}", __package__).adapter


_OPERATIONS = {
    name: operation(name) for name in ("neg_kl", "neg_kl_grad", "neg_kl_hess", "kl", "kl_normal")
}
_OPERATIONS["neg_kl_normal"] = operation("neg_kl_normal_value")
_SIGN = {"neg_kl": 1.0, "neg_kl_normal": 1.0, "kl": -1.0, "kl_normal": -1.0}


def value(name: str, zero_at: float, log_c: float | None, reduction: str, **arguments: Any) -> Any:
    parsed = parse(arguments)
    if isinstance(parsed, _arguments.Tensors):
        function = getattr(module_of(parsed.framework), name)
        return function(**parsed.given, zero_at=zero_at, log_c=log_c, reduction=reduction)
    constant = _SIGN[name] * additive_constant(zero_at, log_c)
    return compute(_OPERATIONS[name], parsed, constant, reduction)


def derivative(name: str, log_alpha: Any) -> Any:
    parsed = parse({"log_alpha": log_alpha})
    if isinstance(parsed, _arguments.Tensors):
        return getattr(module_of(parsed.framework), name)(**parsed.given)
    return compute(_OPERATIONS[name], parsed)


def converted(operation: Operation, **arguments: Any) -> Any:
    parsed = parse(arguments)
    if isinstance(parsed, _arguments.Tensors):
        return module_of(parsed.framework)._converted(operation.arithmetic, **parsed.given)
    return compute(operation, parsed)


def evaluate(
    operation: Operation, constant: float = 0.0, reduction: str = "none", **arguments: Any
) -> Any:
    """Apply an operation to arrays and numbers. Error messages use the names of the keywords.

    Raise the errors of `_arguments.parse`, and TypeError if an argument is a tensor.
    """
    return compute(operation, without_tensors(arguments), constant, reduction)


def formula(operation: Operation, constant: float = 0.0, **arguments: Any) -> Any:
    """Apply an operation to arrays, numbers or tensors, and add a constant."""
    parsed = parse(arguments)
    if isinstance(parsed, _arguments.Tensors):
        return module_of(parsed.framework)._formula(operation, constant, **parsed.given)
    return compute(operation, parsed, constant)


def without_tensors(arguments: dict[str, Any]) -> Any:
    """Parse arguments, and raise TypeError if one is a tensor."""
    parsed = parse(arguments)
    if isinstance(parsed, _arguments.Tensors):
        for name, given in parsed.given.items():
            if _errors.framework(type(given)) is not None:
                raise _errors.unsupported(name, given)
    return parsed


def compute(
    operation: Operation, parsed: Any, constant: float = 0.0, reduction: str = "none"
) -> Any:
    """Apply the operation, add the constant and reduce, then round to the type of the result.

    The result is a new array, which the caller may change in place.
    """
    _errors.check_reduction(reduction)
    if isinstance(parsed, _arguments.Arrays):
        return _over_namespace(operation, parsed, constant, reduction)
    values = parsed.values
    half = (constant != 0.0 or reduction != "none") and parsed.half
    if half:
        with np.errstate(invalid="ignore"):  # on AArch64, a signalling NaN causes a warning
            values = [x.astype(np.float32) if hasattr(x, "astype") else x for x in values]
    try:
        result = operation.ufunc(*values)
        if constant != 0.0:
            result = shifted(result, constant)
    except ValueError:
        _errors.check_shapes(dict(zip(parsed.given, values, strict=True)))
        raise
    except (AttributeError, NotImplementedError, TypeError):
        if parsed.of_other_libraries:
            raise _errors.not_computed(parsed.given) from None
        raise
    if reduction != "none":
        result = reduced(result, reduction)
    if half:
        with np.errstate(over="ignore", under="ignore"):
            return result.astype(np.float16)
    return result


def _over_namespace(
    operation: Operation, arrays: _arguments.Arrays, constant: float, reduction: str
) -> Any:
    xp = arrays.xp
    try:
        with np.errstate(all="ignore"):  # Some namespaces compute with NumPy, which warns.
            result = shifted(operation.arithmetic(xp, *arrays.values), constant)
            if reduction != "none":
                result = reduced_over(xp, result, reduction)
            return xp.astype(result, arrays.dtype, copy=False)
    except (AttributeError, NotImplementedError) as error:
        raise _errors.not_computed(arrays.given) from error
