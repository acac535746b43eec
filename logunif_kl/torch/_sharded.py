"""Compute functions of DTensors: each process computes the elements that it holds.

PyTorch would run the composite backend on a DTensor one operation at a time, and look up a sharding
each time. Here a function runs once on the local tensors, which kernels can read. A sum over local
elements becomes a DTensor with a pending sum over the processes.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from ._internals import PLAIN_TYPES

Tensor = torch.Tensor


def on_shards(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a function of local tensors on DTensors for which `sharded_alike` holds.

    The function takes tensors, then other arguments. It returns one tensor or a tuple of tensors.
    Each result has the shape of the tensors, or is a 0-d sum.
    """

    @wraps(function)
    def sharded(*arguments: Any) -> Any:
        tensors: list[Any] = [a for a in arguments if isinstance(a, torch.Tensor)]
        like = _example(tensors)
        shards = [
            x.redistribute(placements=like.placements).to_local() if x.ndim else x.full_tensor()
            for x in tensors
        ]
        found = function(*shards, *arguments[len(tensors) :])
        at = max(range(len(tensors)), key=lambda i: (tensors[i].ndim, not _replicated(tensors[i])))
        if isinstance(found, tuple):
            return tuple([_distributed(part, shards[at], tensors[at]) for part in found])
        return _distributed(found, shards[at], tensors[at])

    return sharded


def sharded_alike(*tensors: Any) -> bool:
    """Whether these are DTensors that can be sharded in the same way.

    Tensors with dimensions must have one shape, and no tensor may be a pending sum. A replicated
    tensor can be resharded like a sharded tensor.
    """
    if type(tensors[0]) in PLAIN_TYPES:
        return False
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or any(type(x) is not module.DTensor for x in tensors):
        return False
    like = _example(tensors)
    if any(placement.is_partial() for placement in like.placements):
        return False
    for x in tensors:
        if x.device_mesh != like.device_mesh:
            return False
        if x.ndim and not (
            x.shape == like.shape and (x.placements == like.placements or _replicated(x))
        ):
            return False
    return True


def _example(tensors: Any) -> Any:
    """Choose the tensor whose sharding the other tensors get."""
    others = [x for x in tensors if x.ndim] or list(tensors[:1])
    return next((x for x in others if not _replicated(x)), others[0])


def _replicated(x: Any) -> bool:
    return all(placement.is_replicate() for placement in x.placements)


def _distributed(result: Tensor, shard: Tensor, like: Any) -> Any:
    """Make a DTensor from the result of this process."""
    from torch.distributed.tensor import DTensor, Partial, Replicate

    mesh, placements = like.device_mesh, like.placements
    if result.shape != shard.shape:
        placements = [Replicate() if p.is_replicate() else Partial("sum") for p in placements]
        return DTensor.from_local(result, mesh, placements, shape=result.shape, stride=())
    kept = result.stride() == shard.stride()
    stride = like.stride() if kept else torch.empty(like.shape, device="meta").stride()
    return DTensor.from_local(result, mesh, placements, shape=like.shape, stride=stride)
