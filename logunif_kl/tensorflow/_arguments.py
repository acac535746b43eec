"""Parse the arguments of a public function, call it, add the constant and reduce the result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from .. import _errors
from .._arguments import unwrapped
from .._numpy.operations import Operation

Tensor = Any
_FLOATING = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
_SPARSE = (tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices)


class Arguments(NamedTuple):
    """Tensors of one shape, in float32 or float64, and the type of the result."""

    tensors: tuple[Tensor, ...]
    dtype: Any


def arguments(**given: Any) -> Arguments:
    """Convert the arguments as TensorFlow's functions do, and broadcast them.

    Raise TypeError if an argument does not hold real floating-point numbers, if two tensors differ
    in dtype, or if an argument is a tensor of another framework, because its gradient would be
    lost. Raise ValueError if the shapes do not broadcast.
    """
    given = {name: unwrapped(name, value) for name, value in given.items()}
    if len(given) > 1 and any(map(_foreign, given.values())):
        raise _errors.mixture(given)
    tensors = {name: _dense(name, value) for name, value in given.items() if tf.is_tensor(value)}
    dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
    if len(set(dtypes.values())) > 1:
        different = " and ".join(f"{name} of {dtype.name}" for name, dtype in dtypes.items())
        raise TypeError(f"{different} were given together: convert one with tf.cast")
    dtype = next(iter(dtypes.values()), None)
    values = {
        name: tensors[name] if name in tensors else _converted(name, value, dtype)
        for name, value in given.items()
    }
    dtype = dtype or next(iter(values.values())).dtype
    # Half types are computed in float32, and the result is rounded.
    working = dtype if dtype in (tf.float32, tf.float64) else tf.float32
    values = {name: tf.cast(value, working) for name, value in values.items()}
    return Arguments(_broadcast(values), dtype)


def evaluate(
    function: Callable[..., Tensor], constant: float = 0.0, reduction: str = "none", **given: Any
) -> Tensor:
    """Call the function with the converted arguments. Errors name an argument by its keyword."""
    _errors.check_reduction(reduction)
    tensors, dtype = arguments(**given)
    return _finished(function(*tensors), constant, reduction, dtype)


# The functions of an array namespace that the conversions of `logunif_kl.log_alpha` call.
_namespace = SimpleNamespace(
    abs=tf.abs,
    exp=tf.exp,
    full_like=lambda like, value: tf.fill(tf.shape(like), tf.constant(value, like.dtype)),
    isinf=tf.math.is_inf,
    isnan=tf.math.is_nan,
    log=tf.math.log,
    log1p=tf.math.log1p,
    logaddexp=lambda x, y: tf.experimental.numpy.logaddexp(x, y),
    minimum=tf.minimum,
    ones_like=tf.ones_like,
    where=tf.where,
    zeros_like=tf.zeros_like,
)


def converted(arithmetic: Callable[..., Any], **given: Any) -> Tensor:
    """Compute a conversion of `logunif_kl.log_alpha`, which calls the functions of `_namespace`."""
    return evaluate(partial(arithmetic, _namespace), **given)


def formula(operation: Operation, constant: float, **given: Any) -> Tensor:
    """Compute a formula whose derivative is another formula."""
    return evaluate(partial(_formula, operation), constant, **given)


def _formula(operation: Operation, x: Tensor) -> Tensor:
    if operation.slopes is None:
        return operation.arithmetic(_namespace, x)

    def rule(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        def backward(upstream: Tensor) -> Tensor:
            (slope,) = operation.slopes()  # type: ignore[misc]
            return upstream * _formula(slope, tf.identity(x))

        if not operation.host:
            return operation.arithmetic(_namespace, tf.stop_gradient(x)), backward
        found = tf.numpy_function(operation.ufunc, [x], x.dtype, stateful=False)
        found.set_shape(x.shape)
        return found, backward

    return tf.custom_gradient(rule)(x)


def _finished(result: Tensor, constant: float, reduction: str, dtype: Any) -> Tensor:
    """Add the constant, reduce, and round to the type of the result, in this order."""
    if constant != 0.0:
        result = result + constant
    if reduction != "none":
        # In float64, because XLA adds up on a CPU one element after the other.
        wide = tf.cast(result, tf.float64)
        result = (tf.reduce_sum if reduction == "sum" else tf.reduce_mean)(wide)
    return tf.cast(result, dtype)


def _dense(name: str, value: Any) -> Tensor:
    if isinstance(value, _SPARSE):
        raise TypeError(
            f"{name} must be a dense tensor, but a {type(value).__name__} was given: its "
            "missing elements would have a divergence too; convert it to a dense tensor"
        )
    # tf.identity reads a variable, so that a gradient tape watches the variable. It also brings a
    # tensor of an outer graph into this graph, as tf.custom_gradient requires.
    tensor = tf.identity(value)
    _check(name, "a tensor", tensor.dtype)
    return tensor


def _converted(name: str, value: Any, dtype: Any) -> Tensor:
    """Convert a number or array to a tensor of `dtype`, or of its own dtype if `dtype` is None."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be an array without a mask, but a MaskedArray was given: TensorFlow "
            f"would count its masked elements; pass {name}.compressed()"
        )
    if type(value) is int:
        value = _errors.as_float(name, value)
    own = None if _foreign(value) else _dtype_in_tensorflow(value)
    if own is None:
        remedy = "convert it with tf.convert_to_tensor"
        if isinstance(value, _errors.NO_ARRAY):
            remedy = "pass a tensor or a float"
        raise TypeError(
            f"{name} must be a tensor, a NumPy array or a number, but "
            f"{_errors.type_name(value)} was given: {remedy}"
        )
    if dtype is None or not own.is_integer:
        _check(name, _errors.type_name(value), own)
    return tf.convert_to_tensor(value, dtype)


def _foreign(value: Any) -> bool:
    """Whether a value is a tensor of another framework, or a list that holds one."""
    if not isinstance(value, (list, tuple)):
        return _foreign_type(type(value))
    kinds = {type(each) for each in value}
    nested = any(issubclass(kind, (list, tuple)) for kind in kinds)
    return any(map(_foreign_type, kinds)) or (nested and any(map(_foreign, value)))


def _foreign_type(kind: type) -> bool:
    return _errors.framework(kind) not in (None, "tensorflow")


def _dtype_in_tensorflow(value: Any) -> Any:
    """Return the dtype that TensorFlow gives to a value, or None if it does not hold numbers."""
    try:
        dtype = tf.as_dtype(np.asarray(value).dtype)
    except (TypeError, ValueError):
        return None
    return None if dtype == tf.string else dtype


def _check(name: str, given: str, dtype: Any) -> None:
    if dtype in _FLOATING:
        return
    remedy = f"convert it with tf.cast({name}, tf.float32) if that is what is meant"
    if dtype == tf.string:
        remedy = "convert it with tf.strings.to_number"
    elif dtype.is_complex:
        remedy = _errors.OF_COMPLEX
    raise TypeError(
        f"{name} must hold floating-point numbers of 16 to 64 bits, as for tf.exp, but {given} of "
        f"{dtype.name} was given: {remedy}"
    )


def _broadcast(values: dict[str, Tensor]) -> tuple[Tensor, ...]:
    if len(values) == 1:
        return tuple(values.values())
    first, second = values.values()
    try:
        shape = tf.broadcast_static_shape(first.shape, second.shape)
    except ValueError:
        shapes = {name: value.shape for name, value in values.items()}
        raise ValueError(_errors.no_broadcast(shapes)) from None
    if not shape.is_fully_defined():
        shape = tf.broadcast_dynamic_shape(tf.shape(first), tf.shape(second))
    elif first.shape == second.shape:
        return first, second
    return tf.broadcast_to(first, shape), tf.broadcast_to(second, shape)
