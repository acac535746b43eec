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
        shards = local(*tensors)
        if shards[0] is tensors[0]:
            return forward(*arguments)
        found = forward(*shards, *arguments[len(tensors) :])
        like = max(
            range(len(tensors)), key=lambda i: (tensors[i].ndim, not _everywhere(tensors[i]))
        )
        if isinstance(found, tuple):
            return tuple([_whole(part, shards[like], tensors[like]) for part in found])
        return _whole(found, shards[like], tensors[like])

    return sharded


def local(*tensors: Any) -> tuple[Any, ...]:
    """What this process holds of DTensors that can be cut in one way, or those tensors themselves.

    They are of one shape, but for single numbers of no dimensions, and no element is a pending sum.
    What every process has the whole of is cut as what is beside it.
    """
    if type(tensors[0]) in _PLAIN:
        return tensors
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or any(type(x) is not module.DTensor for x in tensors):
        return tensors
    others = [x for x in tensors if x.ndim] or list(tensors[:1])
    like = next((x for x in others if not _everywhere(x)), others[0])
    if any(placement.is_partial() for placement in like.placements):
        return tensors
    for x in others:
        if x.shape != like.shape or not (x.placements == like.placements or _everywhere(x)):
            return tensors
    if any(x.device_mesh != like.device_mesh for x in tensors):
        return tensors
    return tuple(
        [
            (x.redistribute(placements=like.placements).to_local() if x.ndim else x.full_tensor())
            for x in tensors
        ]
    )


def _everywhere(x: Any) -> bool:
    return all(placement.is_replicate() for placement in x.placements)


def _whole(result: Tensor, shard: Tensor, like: Any) -> Any:
    """Make a DTensor of what one process found."""
    from torch.distributed.tensor import DTensor, Partial, Replicate

    mesh, placements = like.device_mesh, like.placements
    if result.shape != shard.shape:
        placements = [Replicate() if p.is_replicate() else Partial("sum") for p in placements]
        return DTensor.from_local(result, mesh, placements, shape=result.shape, stride=())
    kept = result.stride() == shard.stride()
    stride = like.stride() if kept else torch.empty(like.shape, device="meta").stride()
    return DTensor.from_local(result, mesh, placements, shape=like.shape, stride=stride)
