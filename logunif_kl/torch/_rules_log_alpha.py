"""Rules of differentiation in log_alpha: the derivative of each order is the next order's function.

The functions that are not classes are put into a compiler's graph as they are
(`logunif_kl.torch._compiling`). Dynamo would trace through them, and lose the rules inside a
transform of `torch.func`. A `sign` of -1.0 gives KL and its derivatives in place of those of -KL.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from . import _backends
from ._internals import direct_apply, with_primals, with_signature
from ._namespace import working

Tensor = torch.Tensor


def of_log_alpha(x: Tensor, order: int, sign: float) -> Tensor:
    """-KL at log_alpha = x, or its derivative of any order, in the type of x."""
    way = _backends.before_rules(x)
    if way is None or not way.plain:
        return _OfLogAlpha.apply(x, order, sign, way)
    if x.requires_grad and torch.is_grad_enabled():
        return _apply(x, order, sign, way)
    return way.of_log_alpha(x, order, sign)


def sum_of_log_alpha(x: Tensor, sign: float) -> Tensor:
    """The sum of -KL at log_alpha = x; in float32 for the half types."""
    way = _backends.before_rules(x)
    if way is None or not way.plain:
        return _SumOfLogAlpha.apply(x, sign, way)
    if x.requires_grad and torch.is_grad_enabled():
        return _apply_sum(x, sign, way)
    return way.sum_of_log_alpha(x, sign)


class _OfLogAlpha(Function):
    """The derivative of -KL in log_alpha of the given order."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(x: Tensor, order: int, sign: float, way: _backends.Way | None) -> Tensor:
        return (way or _backends.of(x)).of_log_alpha(x, order, sign)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.order, ctx.sign, _ = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (x,) = ctx.saved_tensors
        return (
            (grad * of_log_alpha(working(x), ctx.order + 1, ctx.sign)).to(x.dtype),
            None,
            None,
            None,
        )

    @staticmethod
    @with_primals
    def jvp(ctx: Any, x: Tensor, tangent: Tensor, *_: None) -> Tensor:
        return (tangent * of_log_alpha(working(x), ctx.order + 1, ctx.sign)).to(x.dtype)


class _SumOfLogAlpha(Function):
    """The sum of -KL, without a tensor of its elements."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(x: Tensor, sign: float, way: _backends.Way | None) -> Tensor:
        return (way or _backends.of(x)).sum_of_log_alpha(x, sign)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.sign, _ = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        return (grad * of_log_alpha(working(x), 1, ctx.sign)).to(x.dtype), None, None

    @staticmethod
    @with_primals
    def jvp(ctx: Any, x: Tensor, tangent: Tensor, *_: None) -> Tensor:
        return (tangent * of_log_alpha(working(x), 1, ctx.sign)).sum()


_apply = direct_apply(_OfLogAlpha)
_apply_sum = direct_apply(_SumOfLogAlpha)
