"""The exact kernels of C, on the memory of plain CPU tensors.

They compute what `logunif_kl` computes of NumPy arrays; the half types in float32. A `sign` of -1.0
gives KL and its derivatives in place of those of -KL.
"""

from __future__ import annotations

from typing import Any

import torch

from .._numpy import ufuncs
from ._cpu_parallel import empty, laid_out, negated, run, sum_of
from ._internals import plain

Tensor = torch.Tensor

_BY_ORDER = (ufuncs.neg_kl, ufuncs.neg_kl_grad, ufuncs.neg_kl_hess)


def _value_of_log_alpha(sign: float) -> Any:
    return ufuncs.neg_kl if sign > 0.0 else ufuncs.kl


def _value_of_normal(sign: float) -> Any:
    return ufuncs.neg_kl_normal_value if sign > 0.0 else ufuncs.kl_normal


def takes(*tensors: Tensor) -> bool:
    """Tell whether kernels of C serve these tensors, all of one shape and type."""
    for x in tensors:
        if not x.is_cpu or x.layout is not torch.strided or x.is_neg():
            return False
    return plain(*tensors)


def of_log_alpha(x: Tensor, order: int, sign: float = 1.0) -> Tensor:
    """-KL at log_alpha = x (order 0), or its first or second derivative."""
    inputs, back = laid_out(x)
    out = empty(inputs[0])
    ufunc = negated(_BY_ORDER[order], sign) if order else _value_of_log_alpha(sign)
    run(ufunc, inputs, (out,))
    return back(out)


def sum_of_log_alpha(x: Tensor, sign: float = 1.0) -> Tensor:
    """The sum of -KL at log_alpha = x, without an array of the size of x."""
    return sum_of(_value_of_log_alpha(sign), laid_out(x)[0], (None,))


def value(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """-KL from the mean and the variance."""
    inputs, back = laid_out(mu, log_sigma2)
    out = empty(inputs[0])
    run(_value_of_normal(sign), inputs, (out,))
    return back(out)


def value_sum(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """The sum of -KL, without an array of the size of the arguments."""
    return sum_of(_value_of_normal(sign), laid_out(mu, log_sigma2)[0], (None,))


def with_gradients(
    mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """-KL from the mean and the variance, and its two derivatives."""
    inputs, back = laid_out(mu, log_sigma2)
    outs = empty(inputs[0]), empty(inputs[0]), empty(inputs[0])
    run(negated(ufuncs.neg_kl_normal_and_grad, sign), inputs, outs)
    return back(outs[0]), back(outs[1]), back(outs[2])


def sum_with_gradients(
    mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of -KL, and the derivatives of each element."""
    inputs, back = laid_out(mu, log_sigma2)
    outs = empty(inputs[0]), empty(inputs[0])
    total = sum_of(negated(ufuncs.neg_kl_normal_and_grad, sign), inputs, (None, *outs))
    return total, back(outs[0]), back(outs[1])
