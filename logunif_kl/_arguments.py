"""Check and convert the arguments of the public functions, or raise an error.

`parse` returns one of three named tuples, whose contents need no further checks:

- `Operands`, for NumPy's ufuncs: NumPy arrays and their subclasses, numbers, lists, everything else
  that NumPy reads, and objects that implement the ufunc protocol (dask, xarray, pandas, polars);
- `Arrays` of an array-API namespace (array-api-strict, CuPy);
- `Tensors` of a framework with automatic differentiation.

`parse` replaces Keras and Flax variables and other wrappers by the array or tensor inside.
Tensors are never converted to NumPy, because they would lose their derivative without a warning.
With array-API arrays or tensors, NumPy scalars are accepted as numbers, but NumPy arrays raise
TypeError. This module imports no library that the caller has not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _errors


class Operands(NamedTuple):
    """Real numbers that NumPy's ufuncs take."""

    given: dict[str, Any]
    values: list[Any]

    @property
    def of_other_libraries(self) -> bool:
        """Return whether an operand is of a library that implements NumPy's ufunc protocol."""
        return any(kind_of(type(value)) == PROTOCOL for value in self.values)

    @property
    def half(self) -> bool:
        """Return whether the dtypes of the operands imply that the ufunc returns float16."""
        dtypes = [_dtypes(value) for value in self.values if kind_of(type(value)) != NUMBER]
        # pandas wraps the dtypes of its arrays of NumPy's numbers.
        flat = [getattr(dtype, "numpy_dtype", dtype) for each in dtypes for dtype in each]
        if not all(dtypes) or not all(isinstance(dtype, np.dtype) for dtype in flat):
            return False
        # Not `in`, because dtypes of other byte orders are not equal.
        given = any(dtype.type is np.float16 for dtype in flat)
        return given and np.result_type(*flat) == np.float16


class Arrays(NamedTuple):
    """Arrays of one namespace and one shape, in float32 or float64, and the dtype of the result."""

    given: dict[str, Any]
    values: list[Any]
    xp: Any
    dtype: Any


class Tensors(NamedTuple):
    """Tensors of one framework, and numbers."""

    given: dict[str, Any]
    framework: str


# The kinds of arguments. PROTOCOL is for objects with __array_ufunc__, WRAPPER for keras.Variable.
NUMBER, SCALAR, NUMPY, PROTOCOL = "number", "scalar", "numpy", "protocol"
NAMESPACE, TENSOR, WRAPPER, QUANTITY = "namespace", "tensor", "wrapper", "quantity"
_NUMBERS = (NUMBER, SCALAR)
_REAL = frozenset(np.dtype(char) for char in "efdbhilqBHILQ")
_kinds: dict[type, str] = {float: NUMBER, int: NUMBER, np.ndarray: NUMPY}


def kind_of(type_: type) -> str:
    """Return the kind of an argument of this type."""
    kind = _kinds.get(type_)
    if kind is None:
        kind = _kinds[type_] = _find_kind(type_)
    return kind


def _find_kind(type_: Any) -> str:
    if issubclass(type_, np.generic):
        return SCALAR
    if issubclass(type_, (float, int)) and type_ is not bool:
        return NUMBER
    if _errors.derives(type_, "keras", "Variable"):
        return WRAPPER
    if _errors.framework(type_) is not None:
        return TENSOR
    if _errors.pure_number_of(type_) is not None:
        return QUANTITY
    if issubclass(type_, np.ndarray):
        return NUMPY
    if _errors.derives(type_, "flax", "AxisMetadata") or hasattr(type_, "__jax_array__"):
        return WRAPPER
    if hasattr(type_, "__array_namespace__") or _errors.derives(type_, "cupy", "ndarray"):
        return NAMESPACE
    return PROTOCOL if getattr(type_, "__array_ufunc__", None) is not None else NUMPY


def unwrapped(name: str, value: Any) -> Any:
    """Return the array in a wrapper, such as a Keras variable. Return other values unchanged.

    NumPy could read most wrappers through ``__array__``, but their derivative would be lost.
    Raise TypeError for a quantity with a unit.
    """
    type_ = type(value)
    kind = kind_of(type_)
    if kind == QUANTITY and not _errors.is_pure(value):
        raise _errors.has_unit(name, value)
    if kind != WRAPPER:
        return value
    if _errors.derives(type_, "keras", "Variable"):
        return unwrapped(name, value.value)
    if _errors.derives(type_, "flax", "AxisMetadata"):
        return unwrapped(name, value.unbox())
    return unwrapped(name, value.__jax_array__())


def parse(given: dict[str, Any]) -> Operands | Arrays | Tensors:
    """Check and convert the arguments. Error messages use the names in `given`.

    Raise TypeError if an argument does not hold real numbers of at most 64 bits or is a tensor of
    an unsupported framework, or if the arguments come from libraries that do not work together.
    Raise ValueError if a list cannot be read as one array, a number is too large for a float, or
    array-API arrays are on different devices or have shapes that do not broadcast.
    """
    kinds = [_kinds.get(type(value)) or kind_of(type(value)) for value in given.values()]
    if WRAPPER in kinds:
        given = {name: unwrapped(name, value) for name, value in given.items()}
        kinds = [kind_of(type(value)) for value in given.values()]
    if TENSOR in kinds:
        return Tensors(given, _framework(given, kinds))
    if NAMESPACE in kinds:
        try:
            return _arrays(given, kinds)
        except (AttributeError, NotImplementedError) as error:
            raise _errors.not_computed(given) from error
    values = []
    for (name, value), kind in zip(given.items(), kinds, strict=True):
        if kind == NUMPY:
            operand = value if isinstance(value, np.ndarray) else read(name, value)
        elif kind == NUMBER:
            too_large = type(value) is int and not -(2**63) <= value < 2**63
            operand = _errors.as_float(name, value) if too_large else value
        elif kind == PROTOCOL:
            _refuse_tensors(name, value, _blocks(value))
            operand = value
        elif kind == SCALAR:  # polars does not accept NumPy scalars
            operand = np.asarray(value) if PROTOCOL in kinds else value
        elif kind == QUANTITY and _errors.is_pure(value):
            operand = value
        else:
            raise _errors.has_unit(name, value)
        if kind != NUMPY or operand.dtype not in _REAL:
            _check_dtypes(name, value, operand)
        values.append(operand)
    return Operands(given, values)


def without_loss(name: str, value: Any) -> Any:
    """Return an argument as NumPy's ufuncs may take it.

    Raise TypeError for a tensor of a framework, or for an object that holds one: NumPy would read
    its numbers, and lose its derivative without a warning. Raise TypeError also for a quantity with
    a unit.
    """
    value = unwrapped(name, value)
    kind = kind_of(type(value))
    if kind == TENSOR:
        raise _errors.unsupported(name, value)
    if kind == PROTOCOL:
        _refuse_tensors(name, value, _blocks(value))
    return read(name, value) if kind == NUMPY and not isinstance(value, np.ndarray) else value


def framework_of(given: dict[str, Any]) -> str | None:
    """Return the framework of the tensors among the arguments, or None if there are no tensors.

    Raise TypeError if the framework is not supported, or if tensors and other arrays are mixed.
    """
    given = {name: unwrapped(name, value) for name, value in given.items()}
    kinds = [kind_of(type(value)) for value in given.values()]
    return _framework(given, kinds) if TENSOR in kinds else None


def _framework(given: dict[str, Any], kinds: list[str]) -> str:
    """Return the framework of the tensors. At least one argument must be a tensor."""
    found, arrays = set(), set()
    for value, kind in zip(given.values(), kinds, strict=True):
        if kind == TENSOR:
            found.add(_errors.framework(type(value)))
        elif kind not in _NUMBERS and not isinstance(value, _errors.NO_ARRAY):
            arrays.add(kind)
        # Leave numbers, None and strings for the framework's module to check.
    supported = [name for name in found if name and _errors.FRAMEWORKS[name].adapter]
    if not supported:
        name, value = list(given.items())[kinds.index(TENSOR)]
        raise _errors.unsupported(name, value)
    framework = supported[0]
    if len(found) > 1 or not arrays <= (
        {NUMPY} if _errors.FRAMEWORKS[framework].beside_numpy else set()
    ):
        raise _errors.mixture(given)
    return framework


def _dtypes(value: Any) -> list[Any]:
    """Return the dtype of an array or a column, or the dtypes of all columns of a frame."""
    if hasattr(value, "dtype"):
        return [value.dtype]
    if _errors.derives(type(value), "awkward", "Array"):
        # The type is a text such as "3 * var * bool". NumPy's ufuncs would take bool as float16.
        return [np.dtype(bool)] if "bool" in str(value.type) else []
    found = getattr(value, "dtypes", ())
    return list(found.values() if isinstance(found, Mapping) else found)


def _check_dtypes(name: str, given: Any, operand: Any) -> None:
    for dtype in _dtypes(operand):
        if not _holds_real(dtype):
            raise _errors.not_real(name, given, dtype)


def _holds_real(dtype: Any) -> bool:
    """Return whether a dtype, from NumPy or another library such as pandas, holds real numbers."""
    if isinstance(dtype, np.dtype):
        return _errors.holds_real(dtype)
    if hasattr(dtype, "is_float"):  # polars
        return dtype.is_float() or (dtype.is_integer() and "128" not in str(dtype))
    return getattr(dtype, "kind", "f") in "fiu"


def read(name: str, value: Any) -> Any:
    """Convert a list or another object to a NumPy array. Raise TypeError if it holds tensors."""
    rows = isinstance(value, (list, tuple))
    if rows:
        _refuse_tensors(name, value, value)
    elif not isinstance(value, np.ndarray) and hasattr(value, "__array__"):
        _refuse_tensors(name, value, list(getattr(value, "__dict__", {}).values()))
    try:
        return np.asanyarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} cannot be read as one array ({error}): "
            f"pass {'rows of equal length' if rows else 'an array of numbers'}"
        ) from None
    except Exception:  # the __array__ of another library may raise anything
        raise TypeError(
            f"{name} is of type {_errors.type_name(value)}, which cannot be read as an array: "
            "pass the array or the tensor that it holds"
        ) from None


def _blocks(value: Any) -> list[Any]:
    """List the arrays in an xarray object, and the ``_meta`` of a dask array (an empty block)."""
    parts = value.data_vars.values() if hasattr(value, "data_vars") else [value]
    return [getattr(part, name, None) for part in parts for name in ("data", "_meta")]


def _refuse_tensors(name: str, given: Any, values: list[Any] | tuple[Any, ...]) -> None:
    for type_ in {type(value) for value in values}:
        if kind_of(type_) in (TENSOR, WRAPPER):
            tensor = next(value for value in values if type(value) is type_)
            raise _errors.holds_tensor(name, given, tensor)
        if kind_of(type_) == QUANTITY:
            quantity = next(value for value in values if type(value) is type_)
            if not _errors.is_pure(quantity):
                raise _errors.holds_quantity(name, given, quantity)
        if issubclass(type_, (list, tuple)):
            for value in values:
                if type(value) is type_:
                    _refuse_tensors(name, given, value)


def _arrays(given: dict[str, Any], kinds: list[str]) -> Arrays:
    """Convert arrays of a namespace to one shape and one dtype, after checking them."""
    named = {n: a for (n, a), kind in zip(given.items(), kinds, strict=True) if kind == NAMESPACE}
    for name, value in given.items():
        if isinstance(value, _errors.NO_ARRAY):
            raise _errors.not_real(name, value, type(value).__name__)
    # An array of CuPy does not tell its namespace, which is the module itself.
    namespaces = {
        array.__array_namespace__()
        if hasattr(array, "__array_namespace__")
        else sys.modules["cupy"]
        for array in named.values()
    }
    if len(namespaces) > 1 or not {*_NUMBERS, NAMESPACE} >= set(kinds):
        raise _errors.mixture(given)
    xp = namespaces.pop()
    for (name, value), kind in zip(given.items(), kinds, strict=True):
        if kind == SCALAR:
            _errors.check_scalar(name, value)
    _check_one_device(named)
    for name, array in named.items():
        if not xp.isdtype(array.dtype, ("real floating", "integral")):
            raise _errors.not_real(name, array, array.dtype)
    floating = [a for a in named.values() if xp.isdtype(a.dtype, "real floating")]
    dtype = xp.result_type(*floating) if floating else xp.asarray(1.0).dtype
    like = next(iter(named.values()))
    working = xp.float64 if dtype == xp.float64 or _has_float64(xp, like) else xp.float32
    values = [
        xp.astype(value, working, copy=False)
        if name in named
        else xp.full_like(like, _errors.as_float(name, value), dtype=working)
        for name, value in given.items()
    ]
    if len(values) > 1:
        _errors.check_shapes(dict(zip(given, values, strict=True)))
        values = list(xp.broadcast_arrays(*values))
    return Arrays(given, values, xp, dtype)


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
    """Return whether the device of `array` has float64; True if the namespace cannot tell.

    On a device with float64, narrower types are computed in float64 and rounded once, because
    exponentials in float32 have errors up to 2 ulp.
    """
    inspection = getattr(xp, "__array_namespace_info__", None)
    if inspection is None:
        return True
    found = inspection().dtypes(device=getattr(array, "device", None), kind="real floating")
    return "float64" in found
