"""-KL of complex weights and of groups of weights; each derivative is a function of its own."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from .. import _isotropic
from .._arithmetic.isotropic import complex_hessian, complex_weights
from .._convention import ZERO_AT_INFINITY
from .._errors import check_reduction
from . import _arguments
from ._internals import called_by_compiler, with_primals, with_signature
from ._namespace import Namespace, exportable, plus, working

Tensor = torch.Tensor


class _Namespace(Namespace):
    expm1 = staticmethod(torch.expm1)


_xp = _Namespace()


def of_log_alpha(
    log_alpha: Any,
    k: float | None,
    order: int = 0,
    zero_at: Any = ZERO_AT_INFINITY,
    log_c: Any = None,
    reduction: str = "none",
) -> Tensor:
    """-KL of groups of k weights, or of complex ones for None; or a derivative in log_alpha."""
    x = _arguments.one(log_alpha)
    check_reduction(reduction)
    constant = _constant(k, zero_at, log_c)
    if torch.compiler.is_compiling():
        _allow()
    result = _log_alpha(_wide(x, constant, reduction), k, order)
    return _finished(result, constant, reduction, x.dtype)


def of_normal(mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str) -> Tensor:
    """-KL of complex weights from their means, or the moduli of these, and their variances."""
    check_reduction(reduction)
    constant = _constant(None, zero_at, log_c)
    mu = _arguments.opened("mu", mu)
    if (isinstance(mu, torch.Tensor) and mu.is_complex()) or isinstance(mu, complex):
        re, variance = _arguments.two(mu.real, log_sigma2)
        im, _ = _arguments.two(mu.imag, log_sigma2)
    else:
        re, variance = _arguments.two(mu, log_sigma2)
        im = torch.zeros_like(re)
    if torch.compiler.is_compiling():
        _allow()
    result = _normal(*(_wide(each, constant, reduction) for each in (re, im, variance)))
    return _finished(result, constant, reduction, re.dtype)


def _constant(k: float | None, zero_at: Any, log_c: Any) -> float:
    if log_c is None and zero_at is ZERO_AT_INFINITY:
        return 0.0
    return _constant_of_ufunc(k, zero_at, log_c)


@called_by_compiler
def _constant_of_ufunc(k: float | None, zero_at: Any, log_c: Any) -> float:
    """Evaluate a NumPy ufunc, which torch.compile cannot trace."""
    return _isotropic.constant(k, zero_at, log_c)


def _wide(x: Tensor, constant: float, reduction: str) -> Tensor:
    """Convert half types to float32 if a constant is to be added or the elements reduced."""
    return working(x) if constant != 0.0 or reduction != "none" else x


def _finished(result: Tensor, constant: float, reduction: str, dtype: torch.dtype) -> Tensor:
    """Add the constant, reduce, and round to the type of the result, in this order."""
    if constant != 0.0:
        result = plus(result, constant)
    if reduction != "none":
        result = result.sum() if reduction == "sum" else result.mean()
    return result if result.dtype == dtype else result.to(dtype)


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


def _widened(x: Tensor) -> Tensor:
    """Convert to float64, in which all types are computed; to float32 on a device without it."""
    return x.to(torch.float32 if x.device.type == "mps" else torch.float64)


class _LogAlpha(Function):
    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(x: Tensor, k: float | None, order: int) -> Tensor:
        return _isotropic.derivative(_xp, _widened(x), k, order).to(x.dtype)

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
        found = complex_weights.normal(_xp, _widened(re), _widened(im), _widened(log_sigma2))
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
        found = complex_weights.normal(_xp, _widened(re), _widened(im), _widened(log_sigma2))
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
        return complex_hessian.ein_derivative(_xp, u, order)

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
    arguments = _widened(re), _widened(im), _widened(log_sigma2)
    found = complex_hessian.normal_hessian(_xp, _Ein.apply, *arguments)
    return [[each.to(re.dtype) for each in row] for row in found]


def _along(derivatives: Any, directions: Any) -> Tensor:
    first, second, third = (d * v for d, v in zip(derivatives, directions, strict=True))
    return first + second + third
