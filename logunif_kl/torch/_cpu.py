"""The exact kernels of C, on the memory of plain CPU tensors.

They compute what `logunif_kl` computes of NumPy arrays; the half types in float32.
"""

from __future__ import annotations

import torch

from .._numpy import ufuncs
from ._blocks import empty, laid_out, run, sum_of
from ._internals import plain

Tensor = torch.Tensor

_BY_ORDER = (ufuncs.neg_kl, ufuncs.neg_kl_grad, ufuncs.neg_kl_hess)


def takes(*tensors: Tensor) -> bool:
    """Tell whether kernels of C serve these tensors, all of one shape and type."""
    for x in tensors:
        if not x.is_cpu or x.layout is not torch.strided or x.is_neg():
            return False
    return plain(*tensors)


def of_log_alpha(x: Tensor, order: int) -> Tensor:
    """-KL at log_alpha = x (order 0), or its first or second derivative."""
    inputs, back = laid_out(x)
    out = empty(inputs[0])
    run(_BY_ORDER[order], inputs, (out,))
    return back(out)


def sum_of_log_alpha(x: Tensor) -> Tensor:
    """The sum of -KL at log_alpha = x, without an array of the size of x."""
    return sum_of(ufuncs.neg_kl, laid_out(x)[0], (None,))


def value(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """-KL from the mean and the variance."""
    inputs, back = laid_out(mu, log_sigma2)
    out = empty(inputs[0])
    run(ufuncs.neg_kl_normal, inputs, (out, None, None))
    return back(out)


def value_sum(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """The sum of -KL, without an array of the size of the arguments."""
    return sum_of(ufuncs.neg_kl_normal, laid_out(mu, log_sigma2)[0], (None, None, None))


def with_gradients(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-KL from the mean and the variance, and its two derivatives."""
    inputs, back = laid_out(mu, log_sigma2)
    outs = empty(inputs[0]), empty(inputs[0]), empty(inputs[0])
    run(ufuncs.neg_kl_normal, inputs, outs)
    return back(outs[0]), back(outs[1]), back(outs[2])


def sum_with_gradients(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of -KL, and the derivatives of each element."""
    inputs, back = laid_out(mu, log_sigma2)
    outs = empty(inputs[0]), empty(inputs[0])
    total = sum_of(ufuncs.neg_kl_normal, inputs, (None, *outs))
    return total, back(outs[0]), back(outs[1])
