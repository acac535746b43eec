"""HIPS autograd: boxes of NumPy arrays, computed by the ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import defjvp, defvjp, primitive
from autograd.tracer import getval

from .._numpy.operations import Operation
from . import Adapter

Array = Any


class _Autograd(Adapter):
    name = "autograd"
    xp = anp
    working = {np.dtype(c): np.dtype("f" if c == "e" else c) for c in "efd"}  # noqa: RUF012
    cast_by = "{}.astype(numpy.float64)"

    def rule(self, operation: Operation) -> Callable[..., Array]:
        function = primitive(operation.ufunc)

        def vjp(i: int) -> Any:
            return lambda output, *at: lambda g: g * self.slope(operation, i)(*at)

        def jvp(i: int) -> Any:
            return lambda g, output, *at: g * self.slope(operation, i)(*at)

        defvjp(function, *map(vjp, range(operation.ufunc.nin)))
        defjvp(function, *map(jvp, range(operation.ufunc.nin)))
        return function

    def is_array(self, value: Any) -> bool:
        return super().is_array(value) or isinstance(value, np.ndarray)

    def dtype(self, x: Array) -> Any:
        return np.result_type(getval(x))

    def promoted(self, *dtypes: Any) -> Any:
        return np.result_type(*dtypes)

    def number(self, value: float, dtype: Any) -> Array:
        return np.asarray(value, dtype)

    def broadcast(self, *arrays: Array) -> Any:
        shape = np.broadcast_shapes(*map(self.shape, arrays))
        return [_broadcast_to(x, shape) for x in arrays]

    def cast(self, x: Array, dtype: Any) -> Array:
        return _cast(x, dtype)

    def total(self, x: Array) -> Array:
        return _cast(anp.sum(_cast(x, np.float64)), self.dtype(x))

    def shape(self, x: Array) -> Any:
        return np.shape(getval(x))

    def size(self, x: Array) -> Any:
        return np.size(getval(x)) or np.nan  # NumPy would warn of 0/0


def _broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast with a derivative, which autograd's own function lacks for new dimensions."""
    old = np.shape(getval(x))
    if old == shape:
        return x
    return anp.broadcast_to(anp.reshape(x, (1,) * (len(shape) - len(old)) + old), shape)


@primitive
def _cast(x: Array, dtype: Any) -> Array:
    """Convert to a dtype with derivatives in both modes. `astype` has none in forward mode."""
    return np.asarray(x, dtype)


defvjp(_cast, lambda output, x, dtype: lambda g: _cast(g, np.result_type(getval(x))))
defjvp(_cast, lambda g, output, x, dtype: _cast(g, dtype))
adapter = _Autograd()
