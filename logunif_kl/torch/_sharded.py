"""The forwards on the shards of a DTensor: each process computes the elements that it holds.

A DTensor takes the arithmetic over torch operation by operation, each with a search for its
sharding. Elements depend on nothing but themselves, so the whole forward may as well run on the
local tensor, where the kernels serve it; a sum stays one of partial sums until somebody asks.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

Tensor = torch.Tensor

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def on_shards(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Make a forward of one that is elementwise, but for sums of no dimensions."""

    @wraps(forward)
    def sharded(*arguments: Any) -> Any:
        if type(arguments[0]) in _PLAIN:
            return forward(*arguments)
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        if not _alike(tensors):
            return forward(*arguments)
        like = tensors[0]
        local = [_shard(a) for a in arguments]
        found = forward(*local)
        if isinstance(found, tuple):
            return tuple([_whole(part, local[0], like) for part in found])
        return _whole(found, local[0], like)

    return sharded


def _shard(argument: Any) -> Any:
    return argument.to_local() if hasattr(argument, "to_local") else argument


def _alike(tensors: list[Any]) -> bool:
    """Tell whether these are DTensors cut in one way, of which no element is a pending sum."""
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or any(type(x) is not module.DTensor for x in tensors):
        return False
    first = tensors[0]
    return not any(placement.is_partial() for placement in first.placements) and all(
        x.shape == first.shape
        and x.placements == first.placements
        and x.device_mesh == first.device_mesh
        for x in tensors
    )


def _whole(result: Tensor, local: Tensor, like: Any) -> Any:
    """Make a DTensor of what one process found."""
    from torch.distributed.tensor import DTensor, Partial, Replicate

    mesh, placements = like.device_mesh, like.placements
    if result.shape != local.shape:
        placements = [Replicate() if p.is_replicate() else Partial("sum") for p in placements]
        return DTensor.from_local(result, mesh, placements, shape=result.shape, stride=())
    kept = result.stride() == local.stride()
    stride = like.stride() if kept else torch.empty(like.shape, device="meta").stride()
    return DTensor.from_local(result, mesh, placements, shape=like.shape, stride=stride)
