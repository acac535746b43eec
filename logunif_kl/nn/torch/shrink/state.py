"""What a copied model holds besides the tensors of its layers, to see whether a call changed it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from numbers import Number
from typing import Any

import torch

from ..hooks import attributes

_PLAIN = Number, str, bytes


def state(copied: list[Any]) -> list[Any]:
    """Return the plain values in modules, containers and other objects, and the `id` of others."""
    return [_of(each) for each in copied]


def _of(each: Any) -> list[Any]:
    if isinstance(each, torch.Tensor):
        memory = each.data_ptr() if each.layout is torch.strided else None
        return [each._version, memory, each.shape]
    found = attributes(each)
    if isinstance(each, dict):
        found += [*each, *each.values()]
    elif isinstance(each, (list, tuple, set, frozenset, deque)):
        found += each
    elif not isinstance(each, torch.nn.Module):
        with suppress(Exception):  # It has a ``__deepcopy__`` of its own, such as a ScriptModule.
            found += _flat(each.__reduce_ex__(4))
    return [x if isinstance(x, _PLAIN) else id(x) for x in found]


def _flat(reduced: Any) -> Iterable[Any]:
    """Yield the plain values of what `pickle` would save, such as the numbers of an iterator."""
    if isinstance(reduced, _PLAIN):
        yield reduced
    elif isinstance(reduced, (tuple, list)):
        for each in reduced:
            yield from _flat(each)
    elif isinstance(reduced, dict):
        yield from _flat([*reduced.items()])
