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
    """Run a function of local tensors on DTensors for which `distributed` holds.

    The function takes tensors, then other arguments. It returns one tensor or a tuple of tensors.
    Each result has the shape of the tensors, or is a 0-d sum.
    """

    @wraps(function)
    def sharded(*arguments: Any) -> Any:
        tensors: list[Any] = [a for a in arguments if isinstance(a, torch.Tensor)]
        placements = _placements(tensors)
        shards = [
            x.redistribute(placements=placements).to_local() if x.ndim else x.full_tensor()
            for x in tensors
        ]
        found = function(*shards, *arguments[len(tensors) :])
        at = max(range(len(tensors)), key=lambda i: _same(tensors[i], placements))
        if isinstance(found, tuple):
            return tuple([_distributed(x, shards[at], tensors[at], placements) for x in found])
        return _distributed(found, shards[at], tensors[at], placements)

    return sharded


def distributed(*tensors: Any) -> bool:
    """Whether these are DTensors, which are 0-d or have one common shape."""
    if type(tensors[0]) in PLAIN_TYPES:
        return False
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or any(type(x) is not module.DTensor for x in tensors):
        return False
    return len({x.shape for x in tensors if x.ndim}) < 2


def alike(tensors: dict[str, Any]) -> list[Any]:
    """Redistribute DTensors of one shape so that they have the same placements.

    Autograd then redistributes their gradients back.
    """
    given = list(tensors.values())
    if any(x.device_mesh != given[0].device_mesh for x in given):
        meshes = " and ".join(f"{name} on {x.device_mesh}" for name, x in tensors.items())
        raise RuntimeError(
            f"DTensors on two meshes were given, {meshes}: distribute both on one mesh, by "
            "torch.distributed.tensor.distribute_tensor"
        )
    placements = _placements(given)
    return [
        x if x.placements == placements else x.redistribute(placements=placements) for x in given
    ]


def distributed_as(x: Any, like: Any) -> Any:
    """Distribute a tensor, such as noise or a mask, like another tensor, or gather it.

    FSDP2 gathers parameters before a layer computes, and splits them afterwards.
    """
    if type(x) in PLAIN_TYPES and type(like) in PLAIN_TYPES:
        return x
    if getattr(x, "device_mesh", None) == getattr(like, "device_mesh", None):
        return x
    every = x.full_tensor() if hasattr(x, "placements") else x
    if not hasattr(like, "placements"):
        return every
    from torch.distributed.tensor import Replicate, distribute_tensor

    alike = every.shape == like.shape
    placements = [p if alike and not p.is_partial() else Replicate() for p in like.placements]
    return distribute_tensor(every, like.device_mesh, placements, src_data_rank=None)


def unsplit(x: Any) -> Any:
    """Replicate a DTensor along the processes that split a dimension of length 1.

    PyTorch neither expands such a dimension nor gives its gradient the parameter's placement.
    """
    if type(x) in PLAIN_TYPES or not hasattr(x, "placements"):
        return x
    from torch.distributed.tensor import Replicate

    placements = [
        Replicate() if not p.is_replicate() and not p.is_partial() and x.shape[p.dim] == 1 else p
        for p in x.placements
    ]
    return x.redistribute(placements=placements)


def settled(x: Any) -> Any:
    """Add up the partial results in a DTensor; return another tensor unchanged.

    A look-up in a table with sharded rows gives partial results. Add them before the next look-up.
    The gradient gets the placements of `x`: FSDP2 adds local parts without comparing placements.
    """
    if type(x) in PLAIN_TYPES or not hasattr(x, "placements"):
        return x
    from torch.distributed.tensor import Replicate

    return x.redistribute(placements=[Replicate() if p.is_partial() else p for p in x.placements])


def _same(x: Any, placements: Any) -> tuple[int, bool]:
    return x.ndim, x.placements == placements


def _placements(tensors: Any) -> tuple[Any, ...]:
    """Return the placements of the tensor that is split the most, without pending sums."""
    from torch.distributed.tensor import Replicate

    given = [x.placements for x in tensors if x.ndim] or [tensors[0].placements]
    split = [tuple([Replicate() if p.is_partial() else p for p in each]) for each in given]
    return min(split, key=lambda each: sum(p.is_replicate() for p in each))


def _distributed(result: Tensor, shard: Tensor, like: Any, placements: Any) -> Any:
    """Make a DTensor from the result of this process."""
    from torch.distributed.tensor import DTensor, Partial, Replicate

    mesh = like.device_mesh
    if result.shape != shard.shape:
        placements = [Replicate() if p.is_replicate() else Partial("sum") for p in placements]
        return DTensor.from_local(result, mesh, placements, shape=result.shape, stride=())
    kept = result.stride() == shard.stride()
    stride = like.stride() if kept else torch.empty(like.shape, device="meta").stride()
    return DTensor.from_local(result, mesh, placements, shape=like.shape, stride=stride)
