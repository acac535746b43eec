"""The few names of an array namespace that `logunif_kl._arithmetic` asks for, over torch.

A constant is a tensor of no dimensions: as large as its array it would cost an allocation and a
pass in eager mode, for each of some hundred coefficients.
"""

from __future__ import annotations

from typing import Any

import torch

Tensor = torch.Tensor


class Namespace:
    """What the arithmetic calls ``xp``."""

    __name__ = "torch"
    float32 = torch.float32
    float64 = torch.float64
    where = staticmethod(torch.where)
    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    abs = staticmethod(torch.abs)
    round = staticmethod(torch.round)

    @staticmethod
    def full_like(like: Tensor, value: float) -> Tensor:
        """Make a constant of the type and on the device of `like`, to be broadcast."""
        return torch.full((), value, dtype=like.dtype, device=like.device)

    @staticmethod
    def clip(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
        """Bring `x` between two numbers, either of which may be None."""
        return torch.clamp(x, low, high)


xp = Namespace()


def working(x: Tensor) -> Tensor:
    """The half types are computed in float32."""
    return x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
