"""Rules of differentiation: the derivative of each function is the function of the next order.

Each computes in float64, and rounds its result to the type of its arguments.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from ..._arithmetic.isotropic import complex_hessian, complex_weights, vector
from ..._isotropic.nodes import rule
from .._internals import called_by_compiler, with_primals, with_signature
from .._namespace import exportable
from ._namespace import widened, xp

Tensor = torch.Tensor


def of_log_alpha(x: Tensor, k: float | None, order: int) -> Tensor:
    """Compute -KL of groups of k weights, of complex ones for None, or a derivative of it."""
    if torch.compiler.is_compiling():
        _allow()
    return _log_alpha(x, k, order)


def of_normal(re: Tensor, im: Tensor, log_sigma2: Tensor) -> Tensor:
    """Compute -KL of complex weights from the two parts of the mean, and the variance."""
    if torch.compiler.is_compiling():
        _allow()
    return _normal(re, im, log_sigma2)


@exportable
def _log_alpha(x: Tensor, k: float | None, order: int) -> Tensor:
    return _LogAlpha.apply(x, k, order)


@exportable
def _normal(re: Tensor, im: Tensor, log_sigma2: Tensor) -> Tensor:
    return _Normal.apply(re, im, log_sigma2)


@called_by_compiler
def _allow() -> bool:
    """Have these put into graphs as they are: Dynamo would trace through the rules and tables."""
    for function in (_log_alpha, _normal):
        torch.compiler.allow_in_graph(function)
    return True


class _LogAlpha(Function):
    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(x: Tensor, k: float | None, order: int) -> Tensor:
        if k is None:
            found = complex_weights.derivative(xp, widened(x), order)
        else:
            found = vector.derivative(xp, widened(x), rule(k), order)
        return found.to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.k, ctx.order = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        return grad * _log_alpha(x, ctx.k, ctx.order + 1), None, None

    @staticmethod
    @with_primals
    def jvp(ctx: Any, x: Tensor, tangent: Tensor, *_: None) -> Tensor:
        return tangent * _log_alpha(x, ctx.k, ctx.order + 1)


class _Normal(Function):
    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(re: Tensor, im: Tensor, log_sigma2: Tensor) -> Tensor:
        found = complex_weights.normal(xp, widened(re), widened(im), widened(log_sigma2))
        return found[0].to(re.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        return tuple(grad * found for found in _Gradient.apply(*ctx.saved_tensors))

    @staticmethod
    @with_primals
    def jvp(ctx: Any, re: Tensor, im: Tensor, log_sigma2: Tensor, *tangents: Tensor) -> Tensor:
        return _along(_Gradient.apply(re, im, log_sigma2), tangents)


class _Gradient(Function):
    """The three first derivatives."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(re: Tensor, im: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = complex_weights.normal(xp, widened(re), widened(im), widened(log_sigma2))
        d_re, d_im, d_log_sigma2 = (each.to(re.dtype) for each in found[1:])
        return d_re, d_im, d_log_sigma2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return tuple(_along(row, grads) for row in _hessian(*ctx.saved_tensors))

    @staticmethod
    @with_primals
    def jvp(
        ctx: Any, re: Tensor, im: Tensor, log_sigma2: Tensor, *tangents: Tensor
    ) -> tuple[Tensor, ...]:
        return tuple(_along(row, tangents) for row in _hessian(re, im, log_sigma2))


class _Ein(Function):
    """A derivative of Ein(u) in u."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(u: Tensor, order: int) -> Tensor:
        return complex_hessian.ein_derivative(xp, u, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        u, ctx.order = inputs
        ctx.save_for_backward(u)
        ctx.save_for_forward(u)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (u,) = ctx.saved_tensors
        return grad * _Ein.apply(u, ctx.order + 1), None

    @staticmethod
    @with_primals
    def jvp(ctx: Any, u: Tensor, tangent: Tensor, _: None) -> Tensor:
        return tangent * _Ein.apply(u, ctx.order + 1)


def _hessian(re: Tensor, im: Tensor, log_sigma2: Tensor) -> list[list[Tensor]]:
    arguments = widened(re), widened(im), widened(log_sigma2)
    found = complex_hessian.normal_hessian(xp, _Ein.apply, *arguments)
    return [[each.to(re.dtype) for each in row] for row in found]


def _along(derivatives: Any, directions: Any) -> Tensor:
    first, second, third = (d * v for d, v in zip(derivatives, directions, strict=True))
    return first + second + third
