"""Rules of differentiation for the divergences of other posteriors (`_arithmetic.posteriors`)."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from .._arithmetic import posteriors
from ._internals import called_by_compiler, with_primals, with_signature
from ._namespace import exportable, xp

Tensor = torch.Tensor


def of_posterior(name: str, a: Tensor, b: Tensor, i: int = 0, j: int = 0) -> Tensor:
    """Compute a function of two tensors of one shape; or, of laplace, its derivative."""
    if torch.compiler.is_compiling():
        _allow()
    return _applied(name, a, b, i, j)


def analytic(name: str, *arguments: Tensor) -> Tensor:
    """Compute a function whose arithmetic torch differentiates."""
    if torch.compiler.is_compiling():
        _allow()
    return _computed(name, *arguments)


@exportable
def _computed(name: str, *arguments: Tensor) -> Tensor:
    return posteriors.ANALYTIC[name](xp, *arguments)


@exportable
def _applied(name: str, a: Tensor, b: Tensor, i: int, j: int) -> Tensor:
    return _OfPosterior.apply(name, a, b, i, j)


@called_by_compiler
def _allow() -> bool:
    """Have these put into graphs as they are: Dynamo would trace through the rules and tables."""
    for function in (_applied, _computed):
        torch.compiler.allow_in_graph(function)
    return True


class _OfPosterior(Function):
    """A function whose derivatives are other such functions."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(name: str, a: Tensor, b: Tensor, i: int, j: int) -> Tensor:
        orders = (i, j) if name == "laplace" else ()
        return posteriors.FUNCTIONS[name](xp, a, b, *orders)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.name, a, b, ctx.i, ctx.j = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, None, None]:
        a, b = ctx.saved_tensors
        by_a, by_b = posteriors.slopes(of_posterior, ctx.name, a, b, ctx.i, ctx.j)
        return None, grad * by_a, grad * by_b, None, None

    @staticmethod
    @with_primals
    def jvp(ctx: Any, a: Tensor, b: Tensor, _: None, da: Tensor, db: Tensor, *__: None) -> Tensor:
        by_a, by_b = posteriors.slopes(of_posterior, ctx.name, a, b, ctx.i, ctx.j)
        return da * by_a + db * by_b
