"""The conversions of `logunif_kl.log_alpha` for tensors, in ordinary torch operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _arguments
from ._namespace import exportable, working

Tensor = torch.Tensor


class _Namespace:
    """The functions of an array namespace that the conversions call."""

    abs = staticmethod(torch.abs)
    exp = staticmethod(torch.exp)
    isinf = staticmethod(torch.isinf)
    log = staticmethod(torch.log)
    log1p = staticmethod(torch.log1p)
    ones_like = staticmethod(torch.ones_like)
    where = staticmethod(torch.where)
    zeros_like = staticmethod(torch.zeros_like)


_xp = _Namespace()


def converted(arithmetic: Callable[..., Tensor], **given: Any) -> Tensor:
    """Compute a conversion in float32 or float64. Errors name an argument by its keyword."""
    names, values = tuple(given), tuple(given.values())
    tensors: tuple[Tensor, ...]
    if len(names) == 1:
        tensors = (_arguments.one(values[0], names[0]),)
    else:
        tensors = _arguments.two(values[0], values[1], names)
    result = _computed(arithmetic, *(working(tensor) for tensor in tensors))
    return result if result.dtype == tensors[0].dtype else result.to(tensors[0].dtype)


@exportable
def _computed(arithmetic: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    return arithmetic(_xp, *tensors)
