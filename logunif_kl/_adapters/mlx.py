"""MLX: arrays of float16, bfloat16 and float32, computed in float32.

MLX computes the exponential of a float64 with the accuracy of float32, so float64 is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from .._arithmetic import binary32
from .._numpy.operations import Operation
from . import Adapter

Array = Any
_BLOCK = 16
_LOG2_HIGH, _LOG2_LOW = 0.693145751953125, 1.428606765330187e-06


class _Namespace:
    """The functions of `mlx.core`, with an exponential whose error does not grow with |x|."""

    def __getattr__(self, name: str) -> Any:
        return getattr(mx, name)

    @staticmethod
    def exp(x: Array) -> Array:
        return _exp(x)


@mx.custom_function
def _exp(x: Array) -> Array:
    x = mx.stop_gradient(x)
    n = mx.clip(mx.round(x * (1.0 / (_LOG2_HIGH + _LOG2_LOW))), -200.0, 200.0)
    r = mx.where(mx.isinf(x), x, (x - n * _LOG2_HIGH) - n * _LOG2_LOW)
    half = mx.round(0.5 * n)  # 2^n may not be a float32 where exp(x) is one
    return mx.exp(r) * _power(half) * _power(n - half)


_exp.vjp(lambda x, cotangent, output: cotangent * _exp(x))
_exp.jvp(lambda x, tangent: tangent * _exp(x))


def _power(n: Array) -> Array:
    bits = (n.astype(mx.int32) + 127) << binary32.MANTISSA_BITS
    return bits.view(mx.float32)


class _Mlx(Adapter):
    name = "mlx"
    xp = _Namespace()
    working = dict.fromkeys((mx.float16, mx.bfloat16, mx.float32), mx.float32)
    cast_by = "{}.astype(mlx.core.float32)"

    def rule(self, operation: Operation) -> Callable[..., Array]:
        @mx.custom_function
        def function(*arrays: Array) -> Array:
            # `mx.jvp` would differentiate this arithmetic too, but not all of it has a rule.
            return self.call(operation, *map(mx.stop_gradient, arrays))

        @function.vjp
        def vjp(primals: Any, cotangent: Array, output: Array) -> Any:
            at = primals if isinstance(primals, (list, tuple)) else (primals,)
            found = tuple(cotangent * self.slope(operation, i)(*at) for i in range(len(at)))
            return found if len(found) > 1 else found[0]

        @function.jvp
        def jvp(primals: Any, tangents: Any) -> Array:
            at = primals if isinstance(primals, (list, tuple)) else (primals,)
            along = tangents if isinstance(primals, (list, tuple)) else (tangents,)
            return sum(
                tangent * self.slope(operation, i)(*at)
                for i, tangent in enumerate(along)
                if tangent is not None
            )

        return function

    def total(self, x: Array) -> Array:
        """Add in blocks, because MLX adds float32 numbers on a CPU one after the other."""
        while x.size > 1:
            x = x.reshape(-1)
            x = mx.pad(x, (0, -x.size % _BLOCK)).reshape(-1, _BLOCK).sum(axis=1)
        return x.sum()


adapter = _Mlx()
