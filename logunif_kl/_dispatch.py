"""The type of the arguments -> the way to compute.

There are four ways, and none imports a library that the caller has not imported:

- NumPy arrays, their subclasses, scalars, Python's numbers, lists, and whatever else NumPy reads:
  the ufunc;
- objects that take part in NumPy's ufunc protocol (dask, xarray, pandas): the same ufunc, which
  they carry out;
- arrays of an array-API namespace (array-api-strict, CuPy): plain array arithmetic over that
  namespace;
- tensors of a framework with a differentiation of its own (PyTorch, JAX, TensorFlow): the module
  of this package that has the rules for it, found by the name of the tensor's library.

A scalar of NumPy beside an array or tensor of another library counts as a number; an array of NumPy
does not, whatever its shape: it is converted by whoever means it.

Tensors of a framework that has no such module are refused rather than converted: the derivative
would be lost without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ._convention import shifted


class Operation(NamedTuple):
    """One elementwise function in its two forms."""

    ufunc: Callable[..., Any]
    """Called with NumPy's arrays, and with objects that override ufuncs."""

    arithmetic: Callable[..., Any]
    """Called as ``arithmetic(xp, *arrays)`` with float32 or float64 arrays of one shape."""


# The first name of the module that a type comes from -> the module here that adapts it, or none.
_FRAMEWORKS = {
    "torch": "logunif_kl.torch",
    "jax": "logunif_kl.jax",
    "jaxlib": "logunif_kl.jax",
    "tensorflow": "logunif_kl.tensorflow",
    "mlx": None,
    "paddle": None,
}
_SCALAR, _GENERIC, _NUMPY, _PROTOCOL, _NAMESPACE, _ADAPTED, _REFUSED = range(7)
_NUMBERS = (_SCALAR, _GENERIC)
_NO_ARRAY = (type(None), bool, complex, str, bytes)
_ways: dict[type, int] = {float: _SCALAR, int: _SCALAR}


def _way(kind: type) -> int:
    way = _ways.get(kind)
    if way is None:
        way = _ways[kind] = _find_way(kind)
    return way


def _find_way(kind: type) -> int:
    if issubclass(kind, np.generic):
        return _GENERIC
    if issubclass(kind, np.ndarray):
        return _NUMPY
    if issubclass(kind, (float, int)) and kind is not bool:
        return _SCALAR
    framework = _framework(kind)
    if framework is not None:
        return _REFUSED if _FRAMEWORKS[framework] is None else _ADAPTED
    if hasattr(kind, "__array_namespace__"):
        return _NAMESPACE
    if getattr(kind, "__array_ufunc__", None) is not None:
        return _PROTOCOL
    return _NUMPY


def _framework(kind: type) -> str | None:
    roots = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return next((root for root in roots if root in _FRAMEWORKS), None)


def _library(value: Any) -> str | None:
    """What its users call the framework of a tensor."""
    home = _framework(type(value))
    return "jax" if home == "jaxlib" else home


# By statements: the compilers of torch and TensorFlow read them, but not import_module.


def _torch() -> Any:
    from . import torch

    return torch


def _jax() -> Any:
    from . import jax

    return jax


def _tensorflow() -> Any:
    from . import tensorflow

    return tensorflow


_ADAPTERS = {
    "logunif_kl.torch": _torch,
    "logunif_kl.jax": _jax,
    "logunif_kl.tensorflow": _tensorflow,
}


def adapter(**arguments: Any) -> Any:
    """Find the module with the rules for the arguments' framework; None if they are no tensors.

    Raises
    ------
    TypeError
        If tensors were given together with arrays, or with tensors of another framework.
    """
    ways = [_way(type(value)) for value in arguments.values()]
    if _ADAPTED not in ways:
        return None
    # What is neither an array nor a number is for the framework's own module to refuse.
    homes = {
        _FRAMEWORKS[_framework(type(value)) or ""] if way == _ADAPTED else None
        for value, way in zip(arguments.values(), ways, strict=True)
        if way not in _NUMBERS and not isinstance(value, _NO_ARRAY)
    }
    if len(homes) > 1:
        raise _mixture(arguments)
    return _ADAPTERS[homes.pop() or ""]()


def evaluate(operation: Operation, constant: float = 0.0, **arguments: Any) -> Any:
    """Compute `operation` of the arguments, whose names serve the error messages.

    The constant is added before the result is rounded to float16, or to the type of an array-API
    namespace. The result is fresh: the caller may change it in place.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers of at most 64 bits, if it belongs to a framework
        that has no adapter here, or if the arguments come from array libraries that do not work
        together.
    """
    ways = [_way(type(value)) for value in arguments.values()]
    for (name, value), way in zip(arguments.items(), ways, strict=True):
        if way in (_ADAPTED, _REFUSED):
            raise TypeError(
                f"{name} is of type {_type_name(value)}, and logunif_kl has no adapter of this "
                f"function for {_library(value)}: convert it to a NumPy array, for the "
                "value without its derivative"
            )
    if _NAMESPACE in ways:
        return _over_namespace(operation, constant, arguments, ways)
    values = []
    for (name, value), way in zip(arguments.items(), ways, strict=True):
        if way == _NUMPY:
            value = _as_numpy(name, value)
        elif type(value) is int and not -(2**63) <= value < 2**63:
            value = _as_float(name, value)
        for dtype in _dtypes(value):
            if not _real(dtype) if isinstance(dtype, np.dtype) else _no_number(dtype):
                raise _not_real(name, arguments[name], dtype)
        values.append(value)
    if constant != 0.0 and _half(values):
        values = [value.astype(np.float32) if _has_dtype(value) else value for value in values]
        result = shifted(operation.ufunc(*values), constant)
        with np.errstate(over="ignore", under="ignore"):
            return result.astype(np.float16)
    return shifted(operation.ufunc(*values), constant)


def _dtypes(value: Any) -> list[Any]:
    """Of an array or a column, or of each column of a frame."""
    if hasattr(value, "dtype"):
        return [value.dtype]
    found = getattr(value, "dtypes", ())
    return list(found.values() if isinstance(found, Mapping) else found)


def _has_dtype(value: Any) -> bool:
    return isinstance(getattr(value, "dtype", None), np.dtype)


def _half(values: list[Any]) -> bool:
    """Whether the result will have float16, as far as the types of the arguments tell."""
    dtypes = [value.dtype for value in values if _has_dtype(value)]
    numbers = sum(_way(type(value)) == _SCALAR for value in values)
    if np.dtype(np.float16) not in dtypes or len(dtypes) + numbers < len(values):
        return False
    return np.result_type(*dtypes) == np.float16


def _as_numpy(name: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        _check_no_tensor(name, value)
    try:
        return np.asanyarray(value)
    except ValueError as error:
        rows = isinstance(value, (list, tuple))
        raise ValueError(
            f"{name} cannot be read as one array ({error}): "
            f"pass {'rows of one length' if rows else 'an array of numbers'}"
        ) from None


def _check_no_tensor(name: str, values: list[Any] | tuple[Any, ...]) -> None:
    """Raise if one is inside: NumPy would read it, and its derivative would be lost."""
    for kind in {type(value) for value in values}:
        if _way(kind) in (_ADAPTED, _REFUSED):
            tensor = next(value for value in values if type(value) is kind)
            raise TypeError(
                f"{name} is a {type(values).__name__} that holds a {_type_name(tensor)}, whose "
                "derivative would be lost without a word: stack its elements into one tensor first"
            )
        if issubclass(kind, (list, tuple)):
            for value in values:
                if type(value) is kind:
                    _check_no_tensor(name, value)


def _as_float(name: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{name} is an integer of {value.bit_length()} bits, too large for a float: "  # type: ignore[attr-defined]
            "pass a smaller number, or math.inf"
        ) from None


def check_scalar(name: str, value: np.generic) -> None:
    """Raise if a scalar of NumPy is no real number.

    Raises
    ------
    TypeError
        If it is complex, boolean, a date or of more than 64 bits.
    """
    if not _real(value.dtype):
        raise _not_real(name, value, value.dtype)


def _real(dtype: np.dtype) -> bool:
    return dtype.kind != "b" and np.can_cast(dtype, np.float64)


def _no_number(dtype: Any) -> bool:
    """Whether a type that is not NumPy's, as of pandas, says that it holds no real numbers."""
    return getattr(dtype, "kind", "f") not in "fiu"


def _over_namespace(
    operation: Operation, constant: float, arguments: dict[str, Any], ways: list[int]
) -> Any:
    arrays = {
        n: a for (n, a), way in zip(arguments.items(), ways, strict=True) if way == _NAMESPACE
    }
    for name, value in arguments.items():
        if isinstance(value, _NO_ARRAY):
            raise _not_real(name, value, type(value).__name__)
    namespaces = {array.__array_namespace__() for array in arrays.values()}
    if len(namespaces) > 1 or not {*_NUMBERS, _NAMESPACE} >= set(ways):
        raise _mixture(arguments)
    xp = namespaces.pop()
    for (name, value), way in zip(arguments.items(), ways, strict=True):
        if way == _GENERIC:
            check_scalar(name, value)
    _check_one_device(arrays)
    for name, array in arrays.items():
        if not xp.isdtype(array.dtype, ("real floating", "integral")):
            raise _not_real(name, array, array.dtype)
    floating = [a for a in arrays.values() if xp.isdtype(a.dtype, "real floating")]
    dtype = xp.result_type(*floating) if floating else xp.asarray(1.0).dtype
    like = next(iter(arrays.values()))
    working = xp.float64 if dtype == xp.float64 or _has_float64(xp, like) else xp.float32
    values = [
        xp.full_like(like, _as_float(name, value), dtype=working)
        if way in _NUMBERS
        else xp.astype(value, working, copy=False)
        for (name, value), way in zip(arguments.items(), ways, strict=True)
    ]
    if len(values) > 1:
        values = xp.broadcast_arrays(*values)
    # For namespaces that are NumPy underneath.
    with np.errstate(all="ignore"):
        result = shifted(operation.arithmetic(xp, *values), constant)
        return xp.astype(result, dtype, copy=False)


def _check_one_device(arrays: dict[str, Any]) -> None:
    (name, array), *others = arrays.items()
    for other_name, other in others:
        device, other_device = getattr(array, "device", None), getattr(other, "device", None)
        if device != other_device:
            raise ValueError(
                f"{name} is on {device} and {other_name} on {other_device}: "
                "move one with .to_device()"
            )


def _has_float64(xp: Any, array: Any) -> bool:
    """Whether float64 can be had beside `array`; namespaces that do not tell are said to have it.

    The narrower types are computed in it where it is, and rounded once: one exponential that is
    off by two units of float32 would show in every result.
    """
    inspection = getattr(xp, "__array_namespace_info__", None)
    if inspection is None:
        return True
    found = inspection().dtypes(device=getattr(array, "device", None), kind="real floating")
    return "float64" in found


def _mixture(arguments: dict[str, Any]) -> TypeError:
    """Make the error for arguments that do not work together."""
    given = " and ".join(f"{n} of type {_type_name(v)}" for n, v in arguments.items())
    return TypeError(
        f"{given} were given together: convert one, so that all come from the same library"
    )


def _type_name(value: Any) -> str:
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


def _not_real(name: str, value: Any, dtype: Any) -> TypeError:
    """Make the error for an argument of the wrong type."""
    typed = hasattr(value, "dtype") or hasattr(value, "dtypes")
    if typed:
        given = f"{_type_name(value)} of dtype {dtype}"
    else:
        text = repr(value)
        given = f"{_type_name(value)} {text if len(text) < 40 else text[:36] + '...'}"
    if "complex" in str(dtype):
        remedy = "pass its real part"
    elif typed or isinstance(value, (list, tuple)):
        remedy = "convert it to float64 if that is what is meant"
    else:
        remedy = "pass a float or an array of floats"
    return TypeError(
        f"{name} must hold real numbers of at most 64 bits, but {given} was given: {remedy}"
    )
