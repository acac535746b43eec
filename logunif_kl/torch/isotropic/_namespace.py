"""The namespace of the arithmetic, and the type that it computes in."""

from __future__ import annotations

import torch

from .._namespace import Namespace

Tensor = torch.Tensor


class _Namespace(Namespace):
    expm1 = staticmethod(torch.expm1)


xp = _Namespace()


def widened(x: Tensor) -> Tensor:
    """Convert to float64, in which all types are computed, or to float32 where there is no other.

    A result is then rounded once.
    """
    return x.to(torch.float32 if x.device.type == "mps" else torch.float64)
