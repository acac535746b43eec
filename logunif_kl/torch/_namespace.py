"""The functions of an array namespace that `logunif_kl._arithmetic` calls, over torch.

A constant is a tensor of no dimensions. One of the size of the array would take an allocation and a
pass over memory in eager mode, for each of about a hundred coefficients.
"""

from __future__ import annotations

from typing import Any

import torch

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
        """Read the bits of float32 as int32."""
        return x.view(torch.int32)

    @staticmethod
    def unbits(n: Tensor) -> Tensor:
        """Read int32 as the bits of float32."""
        return n.view(torch.float32)

    @staticmethod
    def to_integer(x: Tensor) -> Tensor:
        """Convert whole numbers to int32."""
        return x.to(torch.int32)

    @staticmethod
    def from_integer(n: Tensor) -> Tensor:
        """Convert int32 to float32."""
        return n.to(torch.float32)

    @staticmethod
    def fma(a: Any, b: Any, c: Any) -> Any:
        """Compute a b + c, rounded once where torch.compile can be asked for it.

        For a CPU it contracts no operations by itself, as it does for a GPU. Its fused operation
        has no rule for transforms, and is no operation of an exported program.
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
        """Make a constant of the type and on the device of `like`, for broadcasting."""
        return torch.full((), value, dtype=like.dtype, device=like.device)

    @staticmethod
    def clip(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
        """Limit `x` to an interval, either bound of which may be None."""
        return torch.clamp(x, low, high)


xp = Namespace()


def working(x: Tensor) -> Tensor:
    """Convert the half types to float32, in which they are computed."""
    return x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
