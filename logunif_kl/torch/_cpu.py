"""The backend of the exact C kernels, which read the memory of plain CPU tensors.

The kernels give the same results as for NumPy arrays, and compute the half types in float32.
"""

from __future__ import annotations

import torch

from .._numpy import ufuncs
from ._composite import Composite
from ._cpu_parallel import empty, laid_out, run, sum_of
from ._internals import plain

Tensor = torch.Tensor

_BY_ORDER = (ufuncs.neg_kl, ufuncs.neg_kl_grad, ufuncs.neg_kl_hess)


def takes(*tensors: Tensor) -> bool:
    """Whether the C kernels can read these tensors, which all have one shape and dtype."""
    for x in tensors:
        if not x.is_cpu or x.layout is not torch.strided or x.is_neg():
            return False
    return plain(*tensors)


class Cpu(Composite):
    """The backend of the exact C kernels. `Composite` computes derivatives above the second."""

    plain = True

    def of_log_alpha(self, x: Tensor, order: int) -> Tensor:
        if order >= len(_BY_ORDER):
            return super().of_log_alpha(x, order)
        inputs, back = laid_out(x)
        out = empty(inputs[0])
        run(_BY_ORDER[order], inputs, (out,))
        return back(out)

    def sum_of_log_alpha(self, x: Tensor) -> Tensor:
        return sum_of(ufuncs.neg_kl, laid_out(x)[0], (None,))

    def value(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        inputs, back = laid_out(mu, log_sigma2)
        out = empty(inputs[0])
        run(ufuncs.neg_kl_normal_value, inputs, (out,))
        return back(out)

    def value_sum(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        return sum_of(ufuncs.neg_kl_normal_value, laid_out(mu, log_sigma2)[0], (None,))

    def with_gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs, back = laid_out(mu, log_sigma2)
        outs = empty(inputs[0]), empty(inputs[0]), empty(inputs[0])
        run(ufuncs.neg_kl_normal_and_grad, inputs, outs)
        return back(outs[0]), back(outs[1]), back(outs[2])

    def sum_with_gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs, back = laid_out(mu, log_sigma2)
        outs = empty(inputs[0]), empty(inputs[0])
        total = sum_of(ufuncs.neg_kl_normal_and_grad, inputs, (None, *outs))
        return total, back(outs[0]), back(outs[1])
