"""PaddlePaddle: tensors of float16, bfloat16, float32 and float64, computed in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle.autograd import PyLayer

from .._numpy.operations import Operation
from . import Adapter

Array = Any


class _Namespace:
    """The functions of `paddle`, with an exponential that is 0 where that on a CPU is 5e-309."""

    def __getattr__(self, name: str) -> Any:
        return getattr(paddle, name)

    @staticmethod
    def exp(x: Array) -> Array:
        return paddle.where(x < -746.0, paddle.zeros_like(x), paddle.exp(x))


class _Paddle(Adapter):
    name = "paddle"
    xp = _Namespace()
    working = dict.fromkeys(
        (paddle.float16, paddle.bfloat16, paddle.float32, paddle.float64), paddle.float64
    )
    cast_by = '{}.astype("float32")'

    def rule(self, operation: Operation) -> Callable[..., Array]:
        # The arguments form one tensor, because `paddle.grad` demands a backward that returns None
        # for tensors whose derivative is not asked for, but does not say which these are.
        class Layer(PyLayer):
            @staticmethod
            def forward(context: Any, arrays: Array) -> Array:
                context.save_for_backward(arrays)
                if paddle.in_dynamic_mode() and arrays.place.is_cpu_place():
                    return paddle.to_tensor(operation.ufunc(*arrays.numpy()))
                return self.call(operation, *_each(arrays))

            @staticmethod
            def backward(context: Any, upstream: Array) -> Array:
                at = _each(*context.saved_tensor())
                slopes = [self.slope(operation, i)(*at) for i in range(len(at))]
                return paddle.stack([upstream * slope for slope in slopes])

        return lambda *arrays: Layer.apply(paddle.stack(arrays))

    def number(self, value: float, dtype: Any) -> Array:
        return paddle.full([], value, dtype)

    def broadcast(self, *arrays: Array) -> Any:
        shape = np.broadcast_shapes(*map(self.shape, arrays))
        # `expand` can be differentiated twice, and `broadcast_tensors` cannot.
        return [x if tuple(x.shape) == shape else x.expand(shape) for x in arrays]


def _each(arrays: Array) -> list[Array]:
    return [arrays[i] for i in range(arrays.shape[0])]


adapter = _Paddle()
