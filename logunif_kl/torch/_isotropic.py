"""-KL of complex weights and of groups of weights, with a formula for each derivative."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import _isotropic
from .._arithmetic.isotropic import complex_hessian, complex_weights
from .._convention import ZERO_AT_INFINITY
from .._errors import check_reduction
from . import _arguments
from ._derivatives import Derivatives, Family, Members, Row
from ._internals import called_by_compiler, in_graphs
from ._namespace import Namespace, exportable, plus, working

Tensor = torch.Tensor
# Orders of the derivatives in re(mu), im(mu) and log_sigma2.
_VALUE = (0, 0, 0)
_SLOPES = Members([(1, 0, 0), (0, 1, 0), (0, 0, 1)])


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
    """Compute -KL of groups of k weights (complex weights if k is None), or a derivative of it."""
    x = _arguments.one(log_alpha)
    check_reduction(reduction)
    constant = _constant(k, zero_at, log_c)
    result = _log_alpha(_wide(x, constant, reduction), k, order)
    return _finished(result, constant, reduction, x.dtype)


def of_normal(mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str) -> Tensor:
    """Compute -KL of complex weights from means (or their moduli) and logarithms of variances."""
    check_reduction(reduction)
    constant = _constant(None, zero_at, log_c)
    mu = _arguments.opened("mu", mu)
    if (isinstance(mu, torch.Tensor) and mu.is_complex()) or isinstance(mu, complex):
        re, variance = _arguments.two(mu.real, log_sigma2)
        im, _ = _arguments.two(mu.imag, log_sigma2)
    else:
        re, variance = _arguments.two(mu, log_sigma2)
        im = torch.zeros_like(re)
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


@in_graphs
@exportable
def _log_alpha(x: Tensor, k: float | None, order: int) -> Tensor:
    return _OfLogAlpha(k)((order,), x)


@in_graphs
@exportable
def _normal(*at: Tensor) -> Tensor:
    """Compute -KL of complex weights from re(mu), im(mu) and log_sigma2."""
    return _OfNormal()(_VALUE, *at)


class _OfLogAlpha(Family):
    """-KL of groups of k weights (complex weights if k is None), and all its derivatives."""

    def __init__(self, k: float | None) -> None:
        self._k = k

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor]:
        (x,), ((order,),) = tensors, members
        return (_isotropic.derivative(_xp, _widened(x), self._k, order).to(x.dtype),)


class _OfNormal(Family):
    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor, ...]:
        value, *slopes = complex_weights.normal(_xp, *map(_widened, tensors))
        found = [value] if members[0] == _VALUE else slopes
        return tuple(x.to(tensors[0].dtype) for x in found)

    def slopes(self, members: Members, tensors: Any, needed: Any) -> Sequence[Row]:
        if members[0] == _VALUE:
            return [Derivatives.apply(self, _SLOPES, *tensors)]
        rows = complex_hessian.normal_hessian(_xp, _ein, *map(_widened, tensors))
        found = [[x.to(tensors[0].dtype) for x in row] for row in rows]
        return [found[member.index(1)] for member in members]


class _Ein(Family):
    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor]:
        (u,), ((order,),) = tensors, members
        return (complex_hessian.ein_derivative(_xp, u, order),)


def _ein(u: Tensor, order: int) -> Tensor:
    return _Ein()((order,), u)


def _widened(x: Tensor) -> Tensor:
    """Convert any type to the computing type: float64, or float32 on a device without float64."""
    return x.to(torch.float32 if x.device.type == "mps" else torch.float64)
