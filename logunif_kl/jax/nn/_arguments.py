"""Checks of options and arrays that several modules share, and the types of products."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from ..._refusals import real_number, shown, type_name

Array = Any


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return the option, if it is one of the choices.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if isinstance(value, str) and value in choices:
        return value
    listed = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
    raise ValueError(f"{name} must be {listed}, but {shown(value)} was given: pass one of these")


def real_array(name: str, value: Any) -> Array:
    """Convert to an array of a floating type.

    Raises
    ------
    TypeError
        If it holds anything else.
    """
    array = _array(name, value)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(
            f"{name} must hold real floating-point numbers, but {array.dtype} was given: "
            "pass float32"
        )
    return array


def real_numbers(name: str, value: Any) -> Array:
    """Convert to an array of floats, integers or truth values.

    Raises
    ------
    TypeError
        If it holds anything else.
    """
    array = _converted(value)
    if array is None:
        raise TypeError(
            f"{name} must hold real numbers, but {type_name(value)} {shown(value)} was given: "
            "pass an array of them"
        )
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool)):
        raise TypeError(f"{name} must hold real numbers, but {array.dtype} was given: pass float32")
    return array


def _converted(value: Any) -> Array | None:
    """Return an array, or None where there can be none."""
    if isinstance(value, (str, bytes)):
        return None  # JAX takes some words for the names of types.
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        return None


def _array(name: str, value: Any) -> Array:
    if not hasattr(value, "__jax_array__") and not hasattr(value, "dtype"):
        raise TypeError(
            f"{name} must be an array, but {type_name(value)} {shown(value)} was given: "
            "pass a jax.Array"
        )
    return jnp.asarray(value)


def working(x: Array, mean: Array, dtype: Any) -> Any:
    """Return the type of the products: `dtype`, or that of both arrays together.

    Raises
    ------
    TypeError
        If it is no floating type.
    """
    try:
        found = jnp.result_type(x, mean) if dtype is None else jnp.dtype(dtype)
    except TypeError:
        raise TypeError(
            f"dtype must be a floating type, but {shown(dtype)} was given: pass 'float32'"
        ) from None
    if not jnp.issubdtype(found, jnp.floating):
        raise TypeError(f"dtype must be a floating type, but {found} was given: pass float32")
    return found


def in_type_of_variance(dtype: Any) -> Any:
    """Return the type of the products of variances.

    In float16 the square of 256 overflows, and exp(-10) is subnormal; bfloat16 has the range of
    float32.
    """
    return jnp.dtype(jnp.bfloat16) if dtype == jnp.float16 else dtype


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to another without a change to the other."""
    aligned = (1,) * (len(to) - len(shape)) + shape
    return len(aligned) == len(to) and all(a in (1, b) for a, b in zip(aligned, to, strict=True))


def axis_of(name: str, axis: int, theta: Array) -> int:
    """Return an axis of an array, counted from the first.

    Raises
    ------
    ValueError
        If it is not there.
    """
    if not isinstance(axis, int) or not -theta.ndim <= axis < theta.ndim:
        raise ValueError(
            f"{name} must be an axis of theta of shape {theta.shape}, but {shown(axis)} was given: "
            "pass another"
        )
    return axis % theta.ndim


def finite(name: str, value: Any) -> float:
    """Return an option that is one finite number.

    Raises
    ------
    TypeError, ValueError
        If it is not.
    """
    number = real_number(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, but {number} was given: pass a number like -3.0")
    return number


def count(name: str, value: Any) -> int:
    """Return an option that is a positive integer.

    Raises
    ------
    ValueError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{name} must be a positive integer, but {shown(value)} was given: pass 1 for the "
            "usual case"
        )
    return value
