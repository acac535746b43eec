"""The float32 kernels of C, on the memory of plain CPU tensors.

Value and derivatives are separate functions, of the same names as those of
`logunif_kl.torch._triton.launch`, so that a backward needs nothing but the arguments. There is no
such kernel for float64.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import torch

from .._numpy import ufuncs
from ._blocks import empty, in_blocks, laid_out, run, sum_of

Tensor = torch.Tensor

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@cache
def _ufuncs() -> Any:
    """The extension; None if it was not built, or if LOGUNIF_KL_KERNEL=python was set."""
    if ufuncs.kernel_name() == "python":
        return None
    try:
        return import_module("logunif_kl._numpy._float32")
    except ImportError:
        return None


def available(tensor: Tensor) -> bool:
    """Tell whether the functions below take a tensor of this type."""
    return tensor.dtype in _DTYPES and _ufuncs() is not None


def value(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """-KL of N(mu, sigma^2), element by element."""
    inputs, back = laid_out(mu, log_sigma2)
    out = empty(inputs[0])
    run(_ufuncs().value, inputs, (out,))
    return back(out)


def value_sum(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """The sum of `value`, 0-d and in float32."""
    inputs, _ = laid_out(mu, log_sigma2)
    if mu.dtype is torch.float32:
        return in_blocks(_ufuncs().value_sum, inputs)
    return sum_of(_ufuncs().value, inputs, (None,))


def gradient(grad_output: Tensor, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
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
    outs = empty(inputs[1]), empty(inputs[1])
    run(_ufuncs().gradient, inputs, outs)
    return back(outs[0]), back(outs[1])
