"""How to compute for arguments of each type, except for tensors of the frameworks.

There are three ways. None of them imports a library that the caller has not imported:

- for NumPy arrays, their subclasses, NumPy scalars, Python numbers, lists, and everything else that
  NumPy reads: the ufunc;
- for objects that implement NumPy's ufunc protocol (dask, xarray, pandas, polars): the same ufunc,
  which calls the object's own implementation;
- for arrays of an array-API namespace (array-api-strict, CuPy): arithmetic over that namespace.

A variable of Keras or Flax, or another object with a protocol for it, is replaced by what it holds.
Tensors are refused, because a conversion to NumPy would lose their derivative without a warning.
`_adapters` finds the modules for PyTorch, JAX and TensorFlow. A NumPy scalar beside an array of
another library counts as a number. A NumPy array does not, whatever its shape: the caller must
convert it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _errors
from ._convention import shifted
from ._numpy.reduction import reduced, reduced_over


class Operation(NamedTuple):
    """One elementwise function in its two forms."""

    ufunc: Callable[..., Any]
    """Called with NumPy's arrays, and with objects that override ufuncs."""

    arithmetic: Callable[..., Any]
    """Called as ``arithmetic(xp, *arrays)`` with float32 or float64 arrays of one shape."""


# The kinds of arguments; a SCALAR is one of NumPy, and a WRAPPER holds an array or a tensor.
NUMBER, SCALAR, NUMPY, PROTOCOL, NAMESPACE, TENSOR, WRAPPER = range(7)
NUMBERS = (NUMBER, SCALAR)
_kinds: dict[type, int] = {float: NUMBER, int: NUMBER}


def way_of(kind: type) -> int:
    """Tell of which kind the arguments of a type are."""
    way = _kinds.get(kind)
    if way is None:
        way = _kinds[kind] = _find_way(kind)
    return way


def _find_way(kind: type) -> int:
    if issubclass(kind, np.generic):
        return SCALAR
    if issubclass(kind, np.ndarray):
        return NUMPY
    if issubclass(kind, (float, int)) and kind is not bool:
        return NUMBER
    if _is(kind, "keras", "Variable") or _is(kind, "keras", "KerasTensor"):
        return WRAPPER
    if _errors.framework(kind) is not None:
        return TENSOR
    if _is(kind, "flax", "AxisMetadata") or hasattr(kind, "__jax_array__"):
        return WRAPPER
    if hasattr(kind, "__array_namespace__"):
        return NAMESPACE
    if getattr(kind, "__array_ufunc__", None) is not None:
        return PROTOCOL
    return NUMPY


def _is(kind: type, library: str, name: str) -> bool:
    """Whether a type derives from the class of this name of a library, which is not imported."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == library
        for base in kind.__mro__
    )


def unwrapped(name: str, value: Any) -> Any:
    """Return what a variable of another library holds; anything else as it is.

    Most of these have ``__array__`` too, by which NumPy would read them without their derivative.

    Raises
    ------
    TypeError
        If it is a symbolic tensor of Keras, which holds no numbers, or has a unit.
    """
    kind = type(value)
    if way_of(kind) != WRAPPER:
        return value
    if _is(kind, "keras", "KerasTensor"):
        raise TypeError(
            f"{name} is a KerasTensor, which is symbolic and holds no numbers: call the function "
            "in the call() of a keras.layers.Layer, or in a keras.layers.Lambda"
        )
    if _is(kind, "keras", "Variable"):
        return unwrapped(name, value.value)
    if _is(kind, "flax", "AxisMetadata"):
        return unwrapped(name, value.unbox())
    _errors.refuse_quantity(name, value)
    return unwrapped(name, value.__jax_array__())


def opened(arguments: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """Unwrap the arguments, and tell of which kind each is."""
    ways = [way_of(type(value)) for value in arguments.values()]
    if WRAPPER in ways:
        arguments = {name: unwrapped(name, value) for name, value in arguments.items()}
        ways = [way_of(type(value)) for value in arguments.values()]
    return arguments, ways


def evaluate(
    operation: Operation, constant: float = 0.0, reduction: str = "none", **arguments: Any
) -> Any:
    """Compute `operation` of the arguments, whose names serve the error messages.

    The constant is added, and the elements reduced, before the result is rounded to float16, or to
    the type of an array-API namespace. The result is fresh: the caller may change it in place.

    Raises
    ------
    ValueError
        If `reduction` is not one of the three, or the shapes do not broadcast.
    TypeError
        If an argument does not hold real numbers of at most 64 bits, if it is a tensor, or if the
        arguments come from array libraries that do not work together.
    """
    _errors.check_reduction(reduction)
    arguments, ways = opened(arguments)
    if TENSOR in ways:
        name, value = list(arguments.items())[ways.index(TENSOR)]
        raise _errors.no_adapter(name, value)
    if NAMESPACE in ways:
        try:
            return _over_namespace(operation, constant, reduction, arguments, ways)
        except (AttributeError, NotImplementedError) as error:
            raise _errors.not_computed(arguments) from error
    values = []
    for (name, value), way in zip(arguments.items(), ways, strict=True):
        if way in (NUMPY, PROTOCOL):
            _errors.refuse_quantity(name, value)
        if way == NUMPY:
            value = _as_numpy(name, value)
        elif way == PROTOCOL:
            _check_no_tensor(name, value, _blocks(value))
        elif type(value) is int and not -(2**63) <= value < 2**63:
            value = _errors.as_float(name, value)
        elif way == SCALAR and PROTOCOL in ways:
            value = np.asarray(value)  # polars takes no scalar of NumPy
        for dtype in _dtypes(value):
            if not _holds_real(dtype):
                raise _errors.not_real(name, arguments[name], dtype)
        values.append(value)
    half = (constant != 0.0 or reduction != "none") and _half(values)
    if half:
        with np.errstate(invalid="ignore"):  # of a signalling NaN, on AArch64
            values = [value.astype(np.float32) if _has_dtype(value) else value for value in values]
    try:
        result = shifted(operation.ufunc(*values), constant)
    except ValueError:
        _errors.check_shapes(dict(zip(arguments, values, strict=True)))
        raise
    except (AttributeError, NotImplementedError, TypeError):
        if PROTOCOL in ways:
            raise _errors.not_computed(arguments) from None
        raise
    if reduction != "none":
        result = reduced(result, reduction)
    if half:
        with np.errstate(over="ignore", under="ignore"):
            return result.astype(np.float16)
    return result


def _dtypes(value: Any) -> list[Any]:
    """Return the dtype of an array or a column, or those of all columns of a frame."""
    if hasattr(value, "dtype"):
        return [value.dtype]
    found = getattr(value, "dtypes", ())
    return list(found.values() if isinstance(found, Mapping) else found)


def _holds_real(dtype: Any) -> bool:
    """Whether a dtype holds real numbers: one of NumPy, or of another library such as pandas."""
    if isinstance(dtype, np.dtype):
        return _errors.holds_real(dtype)
    if hasattr(dtype, "is_float"):  # of polars
        return dtype.is_float() or (dtype.is_integer() and "128" not in str(dtype))
    return getattr(dtype, "kind", "f") in "fiu"


def _has_dtype(value: Any) -> bool:
    """Whether it is an array, or columns, of dtypes of NumPy."""
    dtypes = _dtypes(value)
    return bool(dtypes) and all(isinstance(dtype, np.dtype) for dtype in dtypes)


def _half(values: list[Any]) -> bool:
    """Whether the result will have float16, as far as the types of the arguments tell."""
    dtypes = [dtype for value in values if _has_dtype(value) for dtype in _dtypes(value)]
    known = all(_has_dtype(value) or way_of(type(value)) == NUMBER for value in values)
    if np.dtype(np.float16) not in dtypes or not known:
        return False
    return np.result_type(*dtypes) == np.float16


def _as_numpy(name: str, value: Any) -> Any:
    rows = isinstance(value, (list, tuple))
    if rows:
        _check_no_tensor(name, value, value)
    elif not isinstance(value, np.ndarray) and hasattr(value, "__array__"):
        _check_no_tensor(name, value, list(getattr(value, "__dict__", {}).values()))
    try:
        return np.asanyarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} cannot be read as one array ({error}): "
            f"pass {'rows of one length' if rows else 'an array of numbers'}"
        ) from None
    except Exception:  # whatever the __array__ of another library raises
        raise TypeError(
            f"{name} is of type {_errors.type_name(value)}, which cannot be read as an array: "
            "pass the array or the tensor that it holds"
        ) from None


def _blocks(value: Any) -> list[Any]:
    """List the arrays of an xarray object, or one like the blocks of a dask array."""
    parts = value.data_vars.values() if hasattr(value, "data_vars") else [value]
    return [getattr(part, name, None) for part in parts for name in ("data", "_meta")]


def _check_no_tensor(name: str, given: Any, values: list[Any] | tuple[Any, ...]) -> None:
    """Raise if a list or an object holds a tensor, whose derivative NumPy would lose."""
    for kind in {type(value) for value in values}:
        if way_of(kind) in (TENSOR, WRAPPER):
            tensor = next(value for value in values if type(value) is kind)
            raise _errors.holds_tensor(name, given, tensor)
        if issubclass(kind, (list, tuple)):
            for value in values:
                if type(value) is kind:
                    _check_no_tensor(name, given, value)


def _over_namespace(
    operation: Operation,
    constant: float,
    reduction: str,
    arguments: dict[str, Any],
    ways: list[int],
) -> Any:
    arrays = {n: a for (n, a), way in zip(arguments.items(), ways, strict=True) if way == NAMESPACE}
    for name, value in arguments.items():
        if isinstance(value, _errors.NO_ARRAY):
            raise _errors.not_real(name, value, type(value).__name__)
    namespaces = {array.__array_namespace__() for array in arrays.values()}
    if len(namespaces) > 1 or not {*NUMBERS, NAMESPACE} >= set(ways):
        raise _errors.mixture(arguments)
    xp = namespaces.pop()
    for (name, value), way in zip(arguments.items(), ways, strict=True):
        if way == SCALAR:
            _errors.check_scalar(name, value)
    _check_one_device(arrays)
    for name, array in arrays.items():
        if not xp.isdtype(array.dtype, ("real floating", "integral")):
            raise _errors.not_real(name, array, array.dtype)
    floating = [a for a in arrays.values() if xp.isdtype(a.dtype, "real floating")]
    dtype = xp.result_type(*floating) if floating else xp.asarray(1.0).dtype
    like = next(iter(arrays.values()))
    working = xp.float64 if dtype == xp.float64 or _has_float64(xp, like) else xp.float32
    values = [
        xp.full_like(like, _errors.as_float(name, value), dtype=working)
        if way in NUMBERS
        else xp.astype(value, working, copy=False)
        for (name, value), way in zip(arguments.items(), ways, strict=True)
    ]
    if len(values) > 1:
        _errors.check_shapes(dict(zip(arguments, values, strict=True)))
        values = xp.broadcast_arrays(*values)
    # Some namespaces compute with NumPy.
    with np.errstate(all="ignore"):
        result = shifted(operation.arithmetic(xp, *values), constant)
        if reduction != "none":
            result = reduced_over(xp, result, reduction)
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
    """Whether the device of `array` has float64. A namespace that does not tell is taken to.

    Where there is float64, the narrower types are computed in it and rounded once. In float32 the
    error of an exponential, up to two units in the last place, would be an error of the result.
    """
    inspection = getattr(xp, "__array_namespace_info__", None)
    if inspection is None:
        return True
    found = inspection().dtypes(device=getattr(array, "device", None), kind="real floating")
    return "float64" in found
