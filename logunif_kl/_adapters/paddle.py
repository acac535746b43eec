"""PaddlePaddle: tensors of float16, bfloat16, float32 and float64, computed in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import paddle
from paddle.autograd import PyLayer

import logunif_kl

from .._numpy.operations import Operation
from . import Adapter

Array = Any
_OPERATORS = "add radd sub rsub mul rmul truediv rtruediv pow neg lt le gt ge and or invert"


class _Exact:
    """A tensor, or a namespace, whose operations keep the digits of numbers and compare all digits.

    In a static graph, Paddle rounds the numbers that its operators take to float32. Its == is true
    for numbers that differ by less than 1e-15.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        found = _exp if name == "exp" else getattr(self.value, name)
        if not callable(found):
            return found
        return lambda *given: _Exact(found(*map(_lowered, given)))

    def __eq__(self, other: Any) -> Any:
        return (self <= other) & (self >= other)

    def __ne__(self, other: Any) -> Any:
        return ~(self == other)


def _exp(x: Array) -> Array:
    """Compute an exponential that is 0 where Paddle's on a CPU is 5e-309."""
    return paddle.where(x < -746.0, paddle.zeros_like(x), paddle.exp(x))


def _lowered(x: Any) -> Any:
    if type(x) is float and not paddle.in_dynamic_mode():
        return paddle.full([], x, "float64")
    return x.value if isinstance(x, _Exact) else x


def _operation(name: str) -> Any:
    return lambda self, *given: self.__getattr__(name)(*given)


for _operator in _OPERATORS.split():
    setattr(_Exact, f"__{_operator}__", _operation(f"__{_operator}__"))


class _Paddle(Adapter):
    name = "paddle"
    xp = paddle
    working = dict.fromkeys(
        (paddle.float16, paddle.bfloat16, paddle.float32, paddle.float64), paddle.float64
    )
    cast_by = '{}.astype("float32")'

    def rule(self, operation: Operation) -> Callable[..., Array]:
        def pullback(at: Any, upstream: Array) -> Array:
            return paddle.stack([upstream * self.slope(operation, i)(*at) for i in range(len(at))])

        class Layer(PyLayer):
            """The operation, with its derivatives.

            The arguments form one tensor, because `paddle.grad` demands a backward that returns
            None for tensors whose derivative is not asked for, but does not say which these are.
            """

            @staticmethod
            def forward(context: Any, arrays: Array) -> Array:
                context.save_for_backward(arrays)
                if operation.host or arrays.place.is_cpu_place():
                    return paddle.to_tensor(operation.ufunc(*arrays.numpy()))
                return self.call(operation, *_each(arrays))

            @staticmethod
            def backward(context: Any, upstream: Array) -> Array:
                return pullback(_each(*context.saved_tensor()), upstream)

        def function(*arrays: Array) -> Array:
            stacked = paddle.stack(arrays)
            if paddle.in_dynamic_mode():
                return Layer.apply(stacked)
            if stacked.stop_gradient:  # Paddle cannot load a graph that has a rule.
                return self.call(operation, *arrays)
            forward = lambda stacked: self.call(operation, *_each(stacked))  # noqa: E731
            return paddle.static.nn.static_pylayer(forward, [stacked], partial(pullback, arrays))

        return function

    def call(self, operation: Operation, *arrays: Array) -> Array:
        if operation.host:
            return super().call(operation, *arrays)
        return operation.arithmetic(_Exact(self.xp), *map(_Exact, arrays)).value

    def number(self, value: float, dtype: Any) -> Array:
        return paddle.full([], value, dtype)

    def shape(self, x: Array) -> Any:
        return [None if length < 0 else length for length in x.shape]  # -1: not known yet

    def broadcast(self, *arrays: Array) -> Any:
        x, y = arrays
        if x.shape == y.shape and -1 not in x.shape:
            return arrays
        # A difference can be differentiated twice, which `broadcast_tensors` cannot.
        return [x - paddle.zeros_like(y), y - paddle.zeros_like(x)]


def _each(arrays: Array) -> list[Array]:
    return [arrays[i] for i in range(arrays.shape[0])]


paddle.jit.ignore_module([logunif_kl])  # `to_static` would rewrite the code of the package
adapter = _Paddle()
