"""The steps of every public function: check, compute, apply the convention, reduce."""

from __future__ import annotations

from typing import Any

import torch

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._errors import check_reduction
from . import _arguments, _compiling, _rules
from ._internals import called_by_compiler
from ._namespace import plus, working

Tensor = torch.Tensor


def derivative(log_alpha: Any, order: int) -> Tensor:
    """The derivative of -KL in log_alpha of order 1 or 2."""
    x = _arguments.one(log_alpha)
    if torch.compiler.is_compiling():
        _compiling.allow()
    return _rules.of_log_alpha(x, order, 1.0)


def of_log_alpha(log_alpha: Any, zero_at: Any, log_c: Any, reduction: str, sign: float) -> Tensor:
    """-KL from log_alpha, or KL for a `sign` of -1.0, with the constant and the reduction."""
    x = _arguments.one(log_alpha)
    constant = sign * _constant(zero_at, log_c)
    added = _adds(reduction)
    if torch.compiler.is_compiling():
        _compiling.allow()
    kind = x.dtype
    if constant != 0.0 and not added:
        x = working(x)
    result = _rules.sum_of_log_alpha(x, sign) if added else _rules.of_log_alpha(x, 0, sign)
    return _finished(result, constant, reduction, x.numel(), kind)


def of_normal(
    mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str, sign: float
) -> Tensor:
    """-KL from the mean and the variance, or KL for a `sign` of -1.0, and the rest as above."""
    mu, log_sigma2 = _arguments.two(mu, log_sigma2)
    constant = sign * _constant(zero_at, log_c)
    added = _adds(reduction)
    if torch.compiler.is_compiling():
        _compiling.allow()
    kind = mu.dtype
    if constant != 0.0 and not added:
        mu, log_sigma2 = working(mu), working(log_sigma2)
    result = _rules.of_normal(mu, log_sigma2, added, sign)
    return _finished(result, constant, reduction, mu.numel(), kind)


def _constant(zero_at: Any, log_c: Any) -> float:
    if log_c is None and zero_at is not ZERO_AT_INFINITY:
        return _vanishing_at(zero_at)
    return additive_constant(zero_at, log_c)


# This evaluates a ufunc of NumPy, which torch.compile cannot trace.
@called_by_compiler
def _vanishing_at(zero_at: Any) -> float:
    return additive_constant(zero_at)


def _adds(reduction: str) -> bool:
    check_reduction(reduction)
    return reduction != "none"


def _finished(
    result: Tensor, constant: float, reduction: str, size: int, dtype: torch.dtype
) -> Tensor:
    """Take the mean, add the constant, and then round to the type of the arguments."""
    if reduction == "mean":
        result = result / size
    if constant != 0.0:
        result = plus(result, constant * size if reduction == "sum" else constant)
    return result if result.dtype == dtype else result.to(dtype)
