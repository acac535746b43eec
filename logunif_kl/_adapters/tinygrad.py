"""tinygrad: tensors of float16, bfloat16 and float32, computed in float64.

tinygrad adds constants together in another order, so its float64 has errors of 60 ulp and more, and
is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tinygrad import Tensor, dtypes
from tinygrad.function import function as with_rule

from .._numpy.operations import Operation
from . import Adapter

Array = Any


class _Namespace:
    """The functions of the array API that the arithmetic needs, as methods of tensors."""

    __name__ = "tinygrad"
    finfo = np.finfo

    def __getattr__(self, name: str) -> Any:
        return getattr(dtypes, name, None) or getattr(Tensor, name)

    @staticmethod
    def where(condition: Array, x: Any, y: Any) -> Array:
        return condition.where(x, y)

    @staticmethod
    def expm1(x: Array) -> Array:
        y = x.exp()
        middle = (y - 1.0).ne(0.0) * y.isinf().logical_not() * y.ne(0.0)
        found = (y - 1.0) * (x / middle.where(y, 2.0).log())
        return middle.where(found, y.eq(1.0).where(x, y - 1.0))

    @staticmethod
    def log1p(x: Array) -> Array:
        y = 1.0 + x
        small = (y - 1.0).eq(0.0)
        return small.where(x, y.log() * (x / small.where(1.0, y - 1.0)))


class _Tinygrad(Adapter):
    name = "tinygrad"
    xp = _Namespace()
    working = dict.fromkeys((dtypes.float16, dtypes.bfloat16, dtypes.float32), dtypes.float64)
    cast_by = "{}.float()"

    def rule(self, operation: Operation) -> Callable[..., Array]:
        def forward(arrays: Array) -> Array:
            return self.call(operation, *_each(arrays))

        def pullback(upstream: Any, call: Any) -> Any:
            at = _each(Tensor(call.src[1]))
            slopes = [self.slope(operation, i)(*at) for i in range(len(at))]
            found = Tensor.stack(*[Tensor(upstream) * slope for slope in slopes]).uop
            return (found, *[None] * (len(call.src) - 2))

        made = with_rule(forward, grad_fxn=pullback, allow_implicit=True)
        return lambda *arrays: made(Tensor.stack(*arrays))

    def dtype(self, x: Array) -> Any:
        return dtypes.default_float if x.dtype == dtypes.weakfloat else x.dtype

    def cast(self, x: Array, dtype: Any) -> Array:
        return x.cast(dtype)

    def number(self, value: float, dtype: Any) -> Array:
        return Tensor(value, dtype=dtype)

    def broadcast(self, *arrays: Array) -> Any:
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        return [x.expand(shape) for x in arrays]

    def size(self, x: Array) -> Any:
        return x.numel()

    def total(self, x: Array) -> Array:
        return x.sum()


def _each(arrays: Array) -> list[Array]:
    return [arrays[i] for i in range(arrays.shape[0])]


adapter = _Tinygrad()
