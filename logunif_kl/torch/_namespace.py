"""The array namespace of torch functions that `logunif_kl._arithmetic` calls.

A constant is a 0-d tensor. In eager mode, a constant as large as the array would cost an allocation
and a pass over memory, for each of about a hundred coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import frexp
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ._internals import fused_multiply_add, transformed

Tensor = torch.Tensor


class Namespace:
    """The namespace ``xp`` of the arithmetic."""

    __name__ = "torch"
    float32 = torch.float32
    float64 = torch.float64
    where = staticmethod(torch.where)
    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    log1p = staticmethod(torch.log1p)
    abs = staticmethod(torch.abs)
    round = staticmethod(torch.round)

    minimum = staticmethod(torch.minimum)
    int32 = torch.int32

    @staticmethod
    def bits(x: Tensor) -> Tensor:
        return x.view(torch.int32)

    @staticmethod
    def unbits(n: Tensor) -> Tensor:
        return n.view(torch.float32)

    @staticmethod
    def to_integer(x: Tensor) -> Tensor:
        return x.to(torch.int32)

    @staticmethod
    def from_integer(n: Tensor) -> Tensor:
        return n.to(torch.float32)

    @staticmethod
    def fma(a: Any, b: Any, c: Any) -> Any:
        """Compute a b + c, rounded once if the compiler's fused operation can be used.

        On a GPU, but not on a CPU, torch.compile fuses a b + c by itself. The fused operation has
        no rule for transforms, and exported programs cannot contain it.
        """
        if (
            not torch.compiler.is_compiling()
            or torch.compiler.is_exporting()
            or transformed()
            or (fused := fused_multiply_add()) is None
            or (like := next(x for x in (a, b, c) if isinstance(x, Tensor))).device.type != "cpu"
        ):
            return a * b + c
        return fused(*(x if isinstance(x, Tensor) else xp.full_like(like, x) for x in (a, b, c)))

    @staticmethod
    def full_like(like: Tensor, value: float) -> Tensor:
        """Make a constant of the type and device of `like`, for broadcasting."""
        return torch.full((), value, dtype=like.dtype, device=like.device)

    @staticmethod
    def clip(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
        """Limit `x` to an interval; either bound may be None."""
        return torch.clamp(x, low, high)


xp = Namespace()


def exportable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its exported graphs keep all 53 bits of Python numbers."""

    @wraps(function)
    def exported(*arguments: Any) -> Any:
        if not torch.compiler.is_exporting():
            return function(*arguments)
        with _Constants():
            return function(*arguments)

    return exported


def plus(x: Tensor, constant: float) -> Tensor:
    """Add a number. Exported graphs keep all its bits, even if Dynamo traces this function."""
    if torch.compiler.is_exporting():
        return x + torch.tensor(constant, dtype=x.dtype, device=x.device)
    return x + constant


class _Constants(TorchFunctionMode):
    """While active, turn Python numbers that float32 cannot hold into tensors.

    PyTorch's ONNX exporter rounds a Python number to float32, even next to float64 tensors. It
    also writes log1p and expm1 as log(1 + x) and exp(x) - 1, which lose digits.
    """

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        named = named or {}
        if function in (torch.log1p, torch.expm1):
            return (_log1p if function is torch.log1p else _expm1)(*arguments)
        if function is torch.full and named.get("dtype") is torch.float64 and _lossy(arguments[1]):
            return torch.tensor(arguments[1], **named)
        like = [x for x in arguments if isinstance(x, Tensor) and x.dtype is torch.float64]
        if like:
            arguments = [like[0].new_tensor(x) if _lossy(x) else x for x in arguments]
        return function(*arguments, **named)


def _lossy(x: Any) -> bool:
    if not isinstance(x, float) or x * 0.0 != 0.0:
        return False
    mantissa, exponent = frexp(x)
    return not ((mantissa * 2.0**24).is_integer() and -126 < exponent <= 128)


def _log1p(x: Tensor) -> Tensor:
    """Compute log(1 + x), with a factor that corrects for the rounding error of 1 + x."""
    y = 1.0 + x
    tiny = y == 1.0
    factor = x.detach() / torch.where(tiny, torch.ones_like(y), y - 1.0).detach()
    return torch.where(tiny | torch.isinf(y), x, torch.log(y) * factor)


def _expm1(x: Tensor) -> Tensor:
    """Compute exp(x) - 1 for x <= 0, corrected for the rounding error of exp(x)."""
    y = torch.exp(x)
    return torch.where(y == 1.0, x, torch.where(y == 0.0, -1.0, (y - 1.0) * (x / torch.log(y))))


def working(x: Tensor) -> Tensor:
    """Convert half types to float32 for the computation."""
    return x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
