"""The steps of every public function: check, compute, apply the convention, reduce."""

from __future__ import annotations

from typing import Any

import torch

from ... import _errors
from ..._convention import ZERO_AT_INFINITY
from ..._isotropic import convention
from ..._isotropic.nodes import dimensions
from .. import _arguments
from .._internals import called_by_compiler
from .._namespace import plus, working
from . import _rules

Tensor = torch.Tensor


def derivative(log_alpha: Any, k: Any, order: int) -> Tensor:
    """The derivative of -KL in log_alpha, of groups of k weights, or of complex ones for None."""
    x = _arguments.one(log_alpha)
    return _rules.of_log_alpha(x, None if k is None else dimensions(k), order)


def of_log_alpha(log_alpha: Any, k: Any, zero_at: Any, log_c: Any, reduction: str) -> Tensor:
    """-KL from log_alpha, with the constant and the reduction."""
    x = _arguments.one(log_alpha)
    _errors.check_reduction(reduction)
    count = None if k is None else dimensions(k)
    constant = _constant(count, zero_at, log_c)
    result = _rules.of_log_alpha(_wide(x, constant, reduction), count, 0)
    return _finished(result, constant, reduction, x.dtype)


def of_normal(mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str) -> Tensor:
    """-KL from the mean, complex or its modulus, and the variance."""
    _errors.check_reduction(reduction)
    constant = _constant(None, zero_at, log_c)
    im: Tensor | None = None
    mu = _arguments.opened("mu", mu)
    if (isinstance(mu, torch.Tensor) and mu.is_complex()) or isinstance(mu, complex):
        re, variance = _arguments.two(mu.real, log_sigma2)
        im, _ = _arguments.two(mu.imag, log_sigma2)
    else:
        re, variance = _arguments.two(mu, log_sigma2)
    kind = re.dtype
    if im is None:
        im = torch.zeros_like(re)
    re, im, variance = (_wide(each, constant, reduction) for each in (re, im, variance))
    return _finished(_rules.of_normal(re, im, variance), constant, reduction, kind)


def _constant(k: float | None, zero_at: Any, log_c: Any) -> float:
    if log_c is None and zero_at is ZERO_AT_INFINITY:
        return 0.0
    return _chosen(k, zero_at, log_c)


# This evaluates a ufunc of NumPy, which torch.compile cannot trace.
@called_by_compiler
def _chosen(k: float | None, zero_at: Any, log_c: Any) -> float:
    if k is None:
        return convention.complex_constant(zero_at, log_c)
    return convention.vector_constant(k, zero_at, log_c)


def _wide(x: Tensor, constant: float, reduction: str) -> Tensor:
    """Keep more digits of the half types until the constant is added, and the elements are."""
    return working(x) if constant != 0.0 or reduction != "none" else x


def _finished(result: Tensor, constant: float, reduction: str, dtype: torch.dtype) -> Tensor:
    if constant != 0.0:
        result = plus(result, constant)
    if reduction != "none":
        result = result.sum() if reduction == "sum" else result.mean()
    return result if result.dtype == dtype else result.to(dtype)
