"""The float32 kernels of C, on the memory of plain CPU tensors.

Value and derivatives are separate functions, of the same names as those of
`logunif_kl.torch._triton.launch`, so that a backward needs nothing but the arguments. There is no
such kernel for float64. A `sign` of -1.0 gives KL and its derivatives in place of those of -KL.

The functions of `_kernels.library` compute float32, and its ufuncs the half types, block by block.
"""

from __future__ import annotations

import torch

from ._blocks import empty, in_blocks, laid_out, negated, run, sum_of
from ._kernels import library, ufuncs

Tensor = torch.Tensor

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def available(tensor: Tensor) -> bool:
    """Tell whether the functions below take a tensor of this type."""
    return tensor.dtype in _DTYPES and ufuncs() is not None


def value(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """-KL of N(mu, sigma^2), element by element."""
    (mu, log_sigma2), back = laid_out(mu, log_sigma2)
    out = empty(mu)
    if (direct := library()) is not None and mu.dtype is torch.float32:
        direct.value(*_places(mu, log_sigma2), out.data_ptr(), out.numel(), sign)
    else:
        run(negated(ufuncs().value, sign), (mu, log_sigma2), (out,))
    return back(out)


def value_sum(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """The sum of `value`, 0-d and in float32."""
    inputs, _ = laid_out(mu, log_sigma2)
    if mu.dtype is not torch.float32:
        return sum_of(negated(ufuncs().value, sign), inputs, (None,))
    if (direct := library()) is not None:
        total = torch.empty((), dtype=torch.float32, device="cpu")
        direct.value_sum(*_places(*inputs), total.data_ptr(), mu.numel(), sign)
        return total
    return in_blocks(negated(ufuncs().value_sum, sign), inputs)


def gradient(
    grad_output: Tensor, mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The derivatives of `value` in mu and log_sigma2, each times ``grad_output``.

    ``grad_output`` is 0-d, or of the arguments' shape.
    """
    if any(grad_output.stride()):
        inputs, back = laid_out(grad_output, mu, log_sigma2)
    else:
        inputs, back = laid_out(mu, log_sigma2)
        shape = inputs[0].shape
        number = grad_output.detach().as_strided(shape, (0,) * len(shape))
        inputs = number, *inputs
    d_mu, d_log_sigma2 = empty(inputs[1]), empty(inputs[1])
    if (direct := library()) is not None and mu.dtype is torch.float32:
        direct.gradient(
            *_places(*inputs), d_mu.data_ptr(), d_log_sigma2.data_ptr(), d_mu.numel(), sign
        )
    else:
        run(negated(ufuncs().gradient, sign), inputs, (d_mu, d_log_sigma2))
    return back(d_mu), back(d_log_sigma2)


def _places(*inputs: Tensor) -> list[int]:
    """The address of each, and whether one number is there for all elements."""
    found = []
    for x in inputs:
        found += [x.data_ptr(), not x.is_contiguous()]
    return found
