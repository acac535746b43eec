"""Log sigma^2 and log alpha as tensors: their shapes, types, bound and variances."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import Function

from .._internals import apply, called_by_compiler

Tensor = torch.Tensor


def broadcastable(name: str, given: Tensor, weight: Tensor, own: Sequence[int], to: str) -> Tensor:
    """Return log sigma^2 or log alpha, reshaped to as many dimensions as the weight has.

    `own` is the shape of the layer's original parameter. The parameter must broadcast to the shape
    of the weight if `to` is "weight", otherwise ("scales" or "groups") to `own`.
    """
    if not given.is_floating_point() or given.device != weight.device:
        raise TypeError(
            f"{name} is of {given.dtype} on {given.device}, and the weight of {weight.dtype} on "
            f"{weight.device}: assign a floating-point torch.nn.Parameter on the same device"
        )
    shape, wanted = tuple(given.shape), tuple(weight.shape if to == "weight" else own)
    if shape in (wanted, tuple(own)):
        return given
    wider = (1,) * (len(wanted) - len(shape)) + shape
    if len(wider) != len(wanted) or any(
        a not in (1, b) for a, b in zip(wider, wanted, strict=True)
    ):
        raise ValueError(
            f"{name} of shape {shape} does not broadcast to {wanted}, the shape of the "
            f"{to}: assign a torch.nn.Parameter of shape {tuple(own)} to {name}"
        )
    return given.reshape(wider)


def single(x: Tensor) -> Tensor:
    """Convert half types to float32, because long sums in half types overflow or lose terms."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def alike(*given: Tensor) -> list[Tensor]:
    """Convert one or two tensors to one dtype: float64 if either has it, otherwise float32."""
    found = [single(x) for x in given]
    return found if found[0].dtype == found[-1].dtype else [x.double() for x in found]


class Bounded(Function):
    """Compute min(x, bound), with gradients that suit projected gradient descent.

    At the bound and above, a gradient passes only if a descent step would decrease x. A parameter
    can then fall below the bound, but not rise further.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, bound: float) -> Tensor:
        return x.clamp(max=bound)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, bound = inputs
        inside = x < bound
        ctx.save_for_backward(inside)
        ctx.save_for_forward(inside)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (inside,) = ctx.saved_tensors
        return grad.masked_fill(~(inside | (grad > 0)), 0.0), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        (inside,) = ctx.saved_tensors
        return tangent.masked_fill(~(inside | (tangent < 0)), 0.0)


def bounded(log_alpha: Tensor, bound: float | None) -> Tensor:
    """Return min(log alpha, bound). If the bound is None, return log alpha unchanged."""
    if bound is None:
        return log_alpha
    if torch.compiler.is_compiling():
        _allow()
    return _projected(log_alpha, bound)


# torch.compile puts this function into its graph without tracing it. Tracing would fail at `jvp`
# or, inside a transform, ignore `backward`.
def _projected(log_alpha: Tensor, bound: float) -> Tensor:
    return apply(Bounded, log_alpha, bound)


@called_by_compiler
def _allow() -> bool:
    torch.compiler.allow_in_graph(_projected)
    return True
