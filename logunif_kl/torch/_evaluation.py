"""The steps of every public function: parse the arguments, compute, add the constant, reduce."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import torch

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._errors import check_reduction
from . import _arguments, _rules
from ._internals import called_by_compiler
from ._namespace import plus, working
from ._operators import registered

Tensor = torch.Tensor


def derivative(log_alpha: Any, order: int) -> Tensor:
    """The derivative of -KL in log_alpha of order 1 or 2."""
    x = _arguments.one(log_alpha)
    if torch.compiler.is_compiling():
        _allow()
    return _rules.of_log_alpha(x, order)


def of_log_alpha(
    log_alpha: Any, zero_at: Any, log_c: Any, reduction: str, negated: bool = False
) -> Tensor:
    """-KL from log_alpha, or KL if `negated`, with the constant and the reduction."""
    x = _arguments.one(log_alpha)
    constant, kind = _constant(zero_at, log_c, negated), x.dtype
    check_reduction(reduction)
    summed = reduction != "none"
    if torch.compiler.is_compiling():
        _allow()
    if constant != 0.0 and not summed:
        x = working(x)
    result = _rules.of_log_alpha(x, 0, summed, negated)
    return _finished(result, constant, reduction, x, kind)


def of_normal(
    mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str, negated: bool = False
) -> Tensor:
    """-KL from the mean and the variance, or KL if `negated`, and the rest as above."""
    mu, log_sigma2 = _arguments.two(mu, log_sigma2)
    constant, kind = _constant(zero_at, log_c, negated), mu.dtype
    check_reduction(reduction)
    summed = reduction != "none"
    if torch.compiler.is_compiling():
        _allow()
    if constant != 0.0 and not summed:
        mu, log_sigma2 = working(mu), working(log_sigma2)
    result = _rules.of_normal(mu, log_sigma2, summed, negated)
    return _finished(result, constant, reduction, mu, kind)


@called_by_compiler
def _allow() -> bool:
    """Have torch.compile put the functions with rules into its graph.

    `torch.compiler.allow_in_graph` imports the compiler, which takes as long as importing torch. It
    is therefore called only while the compiler traces a caller. Code from the compiler's cache
    may call the operators without tracing the rules, so the operators are registered here.
    """
    registered()
    for function in (_rules.of_log_alpha, _rules.of_normal):
        torch.compiler.allow_in_graph(function)
    return True


def _constant(zero_at: Any, log_c: Any, negated: bool) -> float:
    """The constant of -KL, or of KL."""
    if log_c is None and zero_at is ZERO_AT_INFINITY:
        return 0.0
    found = _vanishing_at(zero_at) if log_c is None else additive_constant(zero_at, log_c)
    return -found if negated else found


# This evaluates a ufunc of NumPy, which torch.compile cannot trace.
@called_by_compiler
def _vanishing_at(zero_at: Any) -> float:
    return additive_constant(zero_at)


def _finished(
    result: Tensor, constant: float, reduction: str, argument: Tensor, dtype: torch.dtype
) -> Tensor:
    """Take the mean, add the constant, and then round to the type of the arguments."""
    if reduction == "mean":
        result = result / argument.numel()
    if constant != 0.0:
        result = plus(result, constant * argument.numel() if reduction == "sum" else constant)
    return result if result.dtype == dtype else result.to(dtype)
