"""What a copied model holds besides the tensors of its layers, to see whether a call changes it."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import fx

from ..hooks import attributes

_PLAIN = Number, str, bytes
_SEQUENCES = list, tuple, set, frozenset, deque


def state(copied: list[Any]) -> list[Any]:
    """Return what each of these modules, containers and other objects holds."""
    return [_of(each) for each in copied]


def unchanged(one: Any, other: Any) -> bool:
    """Whether two states are equal. A container may have been made anew with equal contents."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, _PLAIN):
        return bool(one == other)
    if isinstance(one, dict):
        return unchanged([*one.items()], [*other.items()])
    if isinstance(one, _SEQUENCES):
        return len(one) == len(other) and all(map(unchanged, one, other))
    return False


def repeats(first: list[fx.Node], second: list[fx.Node]) -> bool:
    """Whether the nodes of two calls are those of one computation."""
    other = dict(zip(first, second, strict=False))
    return len(first) == len(second) and all(
        (one.op, one.target) == (two.op, two.target)
        and fx.node.map_arg((one.args, one.kwargs), lambda x: other.get(x, x))
        == (two.args, two.kwargs)
        for one, two in other.items()
    )


def _of(each: Any) -> list[Any]:
    if isinstance(each, torch.Tensor):
        memory = each.data_ptr() if each.layout is torch.strided else None
        return [each._version, memory, each.shape]
    found = attributes(each)
    if isinstance(each, dict):
        found += [*each, *each.values()]
    elif isinstance(each, _SEQUENCES):
        found += each
    elif isinstance(each, np.ndarray) and not each.dtype.hasobject:
        found.append(zlib.crc32(np.ascontiguousarray(each).reshape(-1).view(np.uint8).data))
    elif not isinstance(each, torch.nn.Module):
        with suppress(Exception):  # It has a ``__deepcopy__`` of its own, such as a ScriptModule.
            found += _flat(each.__reduce_ex__(4))
    return found


def _flat(reduced: Any) -> Iterable[Any]:
    """Yield the plain values of what `pickle` would save, such as the numbers of an iterator."""
    if isinstance(reduced, _PLAIN):
        yield reduced
    elif isinstance(reduced, (tuple, list)):
        for each in reduced:
            yield from _flat(each)
    elif isinstance(reduced, dict):
        yield from _flat([*reduced.items()])
