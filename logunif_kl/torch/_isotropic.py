"""-KL of complex weights and of groups of weights; each derivative is a function of its own."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable, Sequence
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
Rows = Sequence[Sequence[Tensor]]


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
    return _Function.apply(
        lambda x: (_isotropic.derivative(_xp, _widened(x), k, order).to(x.dtype),),
        lambda x: [[_log_alpha(x, k, order + 1)]],
        x,
    )[0]


@exportable
def _normal(*at: Tensor) -> Tensor:
    """-KL at the two parts of the mean and the logarithm of the variance."""
    return _Function.apply(lambda *at: _with_gradient(*at)[:1], lambda *at: [_gradient(*at)], *at)[
        0
    ]


@called_by_compiler
def _allow() -> bool:
    """Have these put into graphs as they are: Dynamo would trace through the rules and tables."""
    for function in (_log_alpha, _normal):
        torch.compiler.allow_in_graph(function)
    return True


def _gradient(*at: Tensor) -> tuple[Tensor, ...]:
    return _Function.apply(lambda *at: _with_gradient(*at)[1:], _hessian, *at)


def _with_gradient(*at: Tensor) -> tuple[Tensor, ...]:
    found = complex_weights.normal(_xp, *map(_widened, at))
    return tuple(x.to(at[0].dtype) for x in found)


def _hessian(*at: Tensor) -> list[list[Tensor]]:
    rows = complex_hessian.normal_hessian(_xp, _ein, *map(_widened, at))
    return [[x.to(at[0].dtype) for x in row] for row in rows]


def _ein(u: Tensor, order: int) -> Tensor:
    """Compute a derivative of Ein(u) in u."""
    return _Function.apply(
        lambda u: (complex_hessian.ein_derivative(_xp, u, order),),
        lambda u: [[_ein(u, order + 1)]],
        u,
    )[0]


def _widened(x: Tensor) -> Tensor:
    """Convert to float64, in which all types are computed; to float32 on a device without it."""
    return x.to(torch.float32 if x.device.type == "mps" else torch.float64)


class _Function(Function):
    """Functions of the tensors, computed in one pass.

    ``slopes`` returns a row for each function, with its derivatives in the tensors, which can be
    differentiated further.
    """

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(
        compute: Callable[..., tuple[Tensor, ...]], slopes: Callable[..., Rows], *at: Tensor
    ) -> tuple[Tensor, ...]:
        return compute(*at)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.slopes, *at = inputs
        ctx.save_for_backward(*at)
        ctx.save_for_forward(*at)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        columns = zip(*ctx.slopes(*ctx.saved_tensors), strict=True)
        return None, None, *(_dot(grads, column) for column in columns)

    @staticmethod
    @with_primals
    def jvp(ctx: Any, *saved_and_tangents: Any) -> tuple[Tensor, ...]:
        count = len(ctx.saved_tensors)
        at, tangents = saved_and_tangents[:count], saved_and_tangents[-count:]
        return tuple(_dot(tangents, row) for row in ctx.slopes(*at))


def _dot(directions: Sequence[Tensor], derivatives: Sequence[Tensor]) -> Tensor:
    first, *others = (x * y for x, y in zip(directions, derivatives, strict=True))
    return sum(others, first)
