"""Steps of every function: convert the arguments, compute, add the constant, reduce."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import _errors
from .._arguments import unwrapped
from .._numpy.operations import Operation

Array = Any


class Arguments(NamedTuple):
    """Arrays of one shape, in float32 or float64, and the dtype of the result."""

    arrays: tuple[Array, ...]
    dtype: Any


def arguments(**given: Any) -> Arguments:
    """Convert to arrays of one shape, promoted as by `jax.numpy` (weak types included).

    Raise TypeError for an argument that `jax.numpy` does not take or that does not hold real
    numbers, and ValueError if the arguments do not broadcast or are committed to different devices.
    """
    values = [_as_array(name, value) for name, value in given.items()]
    if len(values) > 1:
        _check_devices(dict(zip(given, values, strict=True)))
    if len({value.shape for value in values}) > 1:
        values = _broadcast(dict(zip(given, values, strict=True)))
    dtype, weak = _promoted(values)
    # Half types are computed in float32, and rounded at the end.
    working = dtype if dtype in (jnp.float32, jnp.float64) else jnp.dtype(jnp.float32)
    return Arguments(tuple(_converted(value, working, weak) for value in values), dtype)


def evaluate(
    function: Callable[..., Array], constant: float = 0.0, reduction: str = "none", **given: Any
) -> Array:
    """Call the function with the converted arguments. Errors name an argument by its keyword."""
    _errors.check_reduction(reduction)
    arrays, dtype = arguments(**given)
    return finished(function(*arrays), constant, reduction, dtype)


def finished(result: Array, constant: float, reduction: str, dtype: Any) -> Array:
    """Add the constant, reduce, and round to the type of the result, in this order."""
    if constant != 0.0:
        result = result + constant
    if reduction != "none":
        result = (jnp.sum if reduction == "sum" else jnp.mean)(result)
    return result if result.dtype == dtype else result.astype(dtype)


def converted(arithmetic: Callable[..., Any], **given: Any) -> Array:
    """Compute a conversion of `logunif_kl.log_alpha`, which calls the functions of `jax.numpy`."""
    return evaluate(partial(arithmetic, jnp), **given)


def formula(operation: Operation, constant: float, **given: Any) -> Array:
    """Compute a formula whose derivative is another formula."""
    return evaluate(partial(_formula, operation), constant, **given)


def _formula(operation: Operation, x: Array) -> Array:
    differentiable = operation.slopes is not None
    return _with_rule(operation, x) if differentiable else operation.arithmetic(jnp, x)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _with_rule(operation: Operation, x: Array) -> Array:
    if not operation.host:
        return operation.arithmetic(jnp, x)
    like = jax.eval_shape(jnp.abs, x)
    return jax.pure_callback(partial(_on_host, operation), like, x, vmap_method="expand_dims")


def _on_host(operation: Operation, x: Array) -> np.ndarray:
    return np.asarray(operation.ufunc(np.asarray(x)))


@_with_rule.defjvp
def _rule(operation: Operation, primals: Any, tangents: Any) -> tuple[Array, Array]:
    assert operation.slopes is not None
    (slope,) = operation.slopes()
    return _with_rule(operation, *primals), tangents[0] * _formula(slope, *primals)


def _as_array(name: str, value: Any) -> Array:
    value = unwrapped(name, value)
    if isinstance(value, (int, float)) and not isinstance(value, (bool, np.generic)):
        value = _errors.as_float(name, value)
    known = (jax.Array, np.ndarray, np.generic, bool, float, complex)
    if not isinstance(value, known):
        remedy = "convert it with jax.numpy.asarray"
        if isinstance(value, _errors.NO_ARRAY):
            remedy = "pass an array or a float"
        raise TypeError(
            f"{name} must be a JAX or NumPy array or a number, but "
            f"{_errors.type_name(value)} was given: {remedy}"
        )
    dtype = value.dtype if hasattr(value, "dtype") else np.result_type(type(value))
    if not (jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)) or (
        dtype.itemsize > 8
    ):
        raise _not_real(name, value, dtype)
    return jnp.asarray(value)


def _check_devices(arguments: dict[str, Array]) -> None:
    """Raise ValueError if arrays are committed to different devices, and say what to do."""
    committed = {
        name: value.devices()
        for name, value in arguments.items()
        if not isinstance(value, jax.core.Tracer) and value.committed
    }
    if len(committed) > 1 and len(set(map(frozenset, committed.values()))) > 1:
        given = " and ".join(
            f"{name} is on {', '.join(sorted(map(str, devices)))}"
            for name, devices in committed.items()
        )
        raise ValueError(
            f"{given}: move one with jax.device_put, so that both are on the same devices"
        )


def _not_real(name: str, value: Any, dtype: Any) -> TypeError:
    if not hasattr(value, "dtype"):
        given = f"{type(value).__name__} {value!r}"
    else:
        kind = "jax.Array" if isinstance(value, jax.Array) else _errors.type_name(value)
        given = f"{kind} of dtype {dtype}"
    remedy = "convert it to float32 if that is what is meant"
    if "complex" in str(dtype):
        remedy = _errors.OF_COMPLEX
    return TypeError(
        f"{name} must hold real numbers of at most 64 bits, but {given} was given: {remedy}"
    )


def _promoted(values: list[Array]) -> tuple[Any, bool]:
    """Return the dtype that `jax.numpy` promotes to, and whether it is weak."""
    first = values[0]
    if jnp.issubdtype(first.dtype, jnp.floating) and all(
        v.dtype == first.dtype and not v.weak_type for v in values
    ):
        return first.dtype, False
    like = jax.eval_shape(lambda *v: reduce(jnp.hypot, v) if len(v) > 1 else jnp.exp(*v), *values)
    return like.dtype, like.weak_type


def _converted(value: Array, dtype: Any, weak: bool) -> Array:
    if weak:
        # Only arithmetic with a Python number turns a weak integer into a weak float.
        return value if jnp.issubdtype(value.dtype, jnp.floating) else value * 1.0
    return value.astype(dtype)


def _broadcast(arguments: dict[str, Array]) -> list[Array]:
    try:
        return list(jnp.broadcast_arrays(*arguments.values()))
    except ValueError:
        shapes = {name: array.shape for name, array in arguments.items()}
        raise ValueError(_errors.no_broadcast(shapes)) from None
