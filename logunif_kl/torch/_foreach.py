"""The sum of -KL over the tensors of a whole model, in one autograd node.

The overhead of each call of `neg_kl`, and of each backward, is as long as a kernel takes for a
thousand weights. Concatenating the tensors would copy them and their gradients. Instead, one
autograd Function runs a kernel on each tensor, and saves only the tensors.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import Function

from . import _backends, _rules
from ._api import neg_kl, neg_kl_normal
from ._internals import direct_apply, plain, pushed

Tensor = torch.Tensor

# The tensors, (log_alpha,) or (mu, log_sigma2), and a count that multiplies the sum of their -KL.
Term = tuple[tuple[Tensor, ...], int]


def total(terms: Sequence[Term]) -> Tensor:
    """Return the sum of -KL over all elements of all terms, each term times its count.

    Raise ValueError if the mu and log_sigma2 of a term differ in shape. All tensors must be on one
    device, and either all float32 or all float64. The result is a 0-d tensor of the same dtype, and
    a DTensor if the tensors are DTensors.
    """
    for arguments, _ in terms:
        if len(arguments) == 2 and (mu := arguments[0].shape) != arguments[1].shape:
            raise ValueError(
                f"mu of shape {tuple(mu)} and log_sigma2 of shape {tuple(arguments[1].shape)} were "
                "given: pass tensors of one shape"
            )
    tensors = [x for arguments, _ in terms for x in arguments]
    if torch.compiler.is_compiling() or pushed(*tensors) or not plain(*tensors):
        first, *others = [_one(arguments, count) for arguments, count in terms]
        return sum(others, first)
    shapes = tuple((len(arguments), count) for arguments, count in terms)
    return _apply(shapes, *tensors)


def _one(arguments: tuple[Tensor, ...], count: int) -> Tensor:
    function = neg_kl_normal if len(arguments) == 2 else neg_kl
    value = function(*arguments, reduction="sum")
    return value if count == 1 else count * value


def _split(shapes: Any, tensors: Sequence[Any]) -> list[tuple[tuple[Any, ...], int]]:
    """Return a tuple of items and a count for each term. `tensors` has one item for each tensor."""
    remaining = iter(tensors)
    return [(tuple(next(remaining) for _ in range(number)), count) for number, count in shapes]


class _Total(Function):
    @staticmethod
    def forward(ctx: Any, shapes: Any, *tensors: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.shapes = shapes
        # Plain tensors of one type on one device have the same backend, whatever their shapes.
        backend = _backends.choose(*tensors)
        sums = []
        for arguments, count in _split(shapes, tensors):
            value = (backend.value_sum if len(arguments) == 2 else backend.sum_of_log_alpha)(
                *arguments
            )
            sums.append(value if count == 1 else count * value)
        if len(sums) == 1:
            return sums[0]
        wide = torch.float64 if sums[0].device.type in ("cpu", "cuda") else None
        return torch.stack(sums).sum(dtype=wide).to(sums[0].dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        if grad is None:
            return None, *(None for _ in saved)
        found: list[Tensor | None] = [None]
        needed = _split(ctx.shapes, ctx.needs_input_grad[1:])
        for (arguments, count), (wanted, _) in zip(_split(ctx.shapes, saved), needed, strict=True):
            if any(wanted):
                found += _rules.gradient(grad if count == 1 else count * grad, *arguments)
            else:
                found += [None for _ in arguments]
        return tuple(found)


_apply = direct_apply(_Total)
