"""Check arrays, and choose the dtypes in which layers multiply."""

# mypy: allow-untyped-calls
from __future__ import annotations

from operator import index
from typing import Any

import jax.numpy as jnp

from ..._errors import shown, type_name

Array = Any


def real_array(name: str, value: Any) -> Array:
    """Return the value as an array if its type is floating, otherwise raise TypeError."""
    if not hasattr(value, "__jax_array__") and not hasattr(value, "dtype"):
        raise TypeError(
            f"{name} must be an array, but {type_name(value)} {shown(value)} was given: "
            "pass a jax.Array"
        )
    array = jnp.asarray(value)
    if not _of_layers(array.dtype):
        raise TypeError(
            f"{name} must hold real floating-point numbers, but {array.dtype} was given: "
            "pass float32"
        )
    return array


def _of_layers(dtype: Any) -> bool:
    """Whether layers compute in a type: floats of 8 bits hold no variances."""
    return bool(jnp.issubdtype(dtype, jnp.floating)) and dtype.itemsize > 1


def real_numbers(name: str, value: Any) -> Array:
    """Convert to an array of floats, integers or booleans, otherwise raise TypeError."""
    array = _converted(value)
    if array is None:
        raise TypeError(
            f"{name} must hold real numbers, but {type_name(value)} {shown(value)} was given: "
            "pass an array of them"
        )
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool)):
        raise TypeError(f"{name} must hold real numbers, but {array.dtype} was given: pass float32")
    return array


def in_int32(array: Array) -> Array:
    """Convert integers of fewer bits, among which -100 or the number of classes may not be."""
    return array.astype(jnp.int32) if array.dtype.itemsize < 4 else array


def _converted(value: Any) -> Array | None:
    """Return an array, or None if JAX cannot convert the value."""
    if isinstance(value, (str, bytes)):
        return None  # JAX would read "float32" as a dtype
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        return None


def is_floating(value: Any) -> bool:
    """Whether a value is an array of floats."""
    try:
        return bool(jnp.issubdtype(value.dtype, jnp.floating))
    except (AttributeError, TypeError):  # no array, or one with a dtype of another framework
        return False


def working(x: Array, mean: Array, dtype: Any) -> Any:
    """Return `dtype`, or by default the promoted type of the arrays. Refuse integer types."""
    try:
        found = jnp.result_type(x, mean) if dtype is None else jnp.dtype(dtype)
    except TypeError:
        raise TypeError(
            f"dtype must be a floating type, but {shown(dtype)} was given: pass 'float32'"
        ) from None
    if not _of_layers(found):
        raise TypeError(f"dtype must be a floating type, but {found} was given: pass float32")
    return found


def in_type_of_variance(dtype: Any) -> Any:
    """Return the type for products of variances: bfloat16 instead of float16.

    In float16 the square of 256 would overflow, and exp(-10) would be subnormal.
    """
    return jnp.dtype(jnp.bfloat16) if dtype == jnp.float16 else dtype


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    aligned = (1,) * (len(to) - len(shape)) + shape
    return len(aligned) == len(to) and all(a in (1, b) for a, b in zip(aligned, to, strict=True))


def axis_of(name: str, axis: int, mean: Array) -> int:
    """Convert an axis to a non-negative one. Raise ValueError if mean has no such axis."""
    if not isinstance(axis, int) or not -mean.ndim <= axis < mean.ndim:
        raise ValueError(
            f"{name} must be an axis of means of shape {mean.shape}, but {shown(axis)} was given: "
            "pass another"
        )
    return axis % mean.ndim


def positive_integers(
    name: str, value: Any, length: int, of: str, or_one: bool = False
) -> tuple[int, ...]:
    """Return a positive integer for each of several axes, or raise TypeError or ValueError.

    `or_one` allows one integer for all.
    """
    instead = f"pass {length} integers" + (", or one" if or_one else "")
    try:
        each = value if hasattr(value, "__len__") or not or_one else (value,) * length
        given = tuple(index(number) for number in each)
    except TypeError:
        raise TypeError(
            f"{name} must hold integers, but {shown(value)} was given: {instead}"
        ) from None
    if len(given) != length:
        raise ValueError(f"{name}={shown(value)} was given for {length} {of}: {instead}")
    if given and min(given) < 1:
        raise ValueError(
            f"{name} must be positive, but {shown(value)} was given: pass 1 for the usual case"
        )
    return given
