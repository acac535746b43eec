"""The float32 C kernels, which read the memory of plain CPU tensors.

The value and the derivatives have separate kernels, so a backward needs only the arguments. The
functions of `_kernels.library` compute float32 tensors. The ufuncs of `_kernels.ufuncs` compute the
half types, block by block.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from ._cpu import Cpu
from ._cpu_parallel import empty, in_blocks, laid_out, run, sum_of
from ._kernels import library, ufuncs
from ._memory import look_at

Tensor = torch.Tensor

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def available(tensor: Tensor) -> bool:
    """Whether the kernels were built, and take tensors of this dtype."""
    return tensor.dtype in _DTYPES and ufuncs() is not None


@cache
def _number() -> Tensor:
    """Return a 0-d tensor to pass to `empty_like`, which is faster than `empty` with a shape."""
    return torch.zeros((), dtype=torch.float32, device="cpu")


class CpuFloat32(Cpu):
    """The float32 C kernels for mu and log_sigma2, and the exact kernels of `Cpu` for log_alpha."""

    recomputes = True

    def value(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        direct, (mu, log_sigma2), back = _laid_out(mu, log_sigma2)
        out = empty(mu)
        if direct is not None:
            direct.value(mu, log_sigma2, out)
        else:
            run(ufuncs().value, (mu, log_sigma2), (out,))
        return out if back is None else back(out)

    def value_sum(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        direct, inputs, _ = _laid_out(mu, log_sigma2)
        if direct is not None:
            total = torch.empty_like(_number())
            direct.value_sum(*inputs, total)
            return total
        if mu.dtype is not torch.float32:
            return sum_of(ufuncs().value, inputs, (None,))
        return in_blocks(ufuncs().value_sum, inputs)

    def gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
        return self.gradient(mu.new_ones(()), mu, log_sigma2)

    def gradient(
        self, grad_output: Tensor, mu: Tensor, log_sigma2: Tensor
    ) -> tuple[Tensor, Tensor]:
        each = any(grad_output.stride())
        if each:
            direct, (grad_output, mu, log_sigma2), back = _laid_out(grad_output, mu, log_sigma2)
        else:
            direct, (mu, log_sigma2), back = _laid_out(mu, log_sigma2)
        outs = empty(mu), empty(mu)
        if direct is not None:
            direct.gradient(grad_output, mu, log_sigma2, *outs)
        else:
            factor = grad_output if each else _expanded(grad_output, mu)
            run(ufuncs().gradient, (factor, mu, log_sigma2), outs)
        return outs if back is None else (back(outs[0]), back(outs[1]))


def _expanded(factor: Tensor, like: Tensor) -> Tensor:
    """Expand one number, 0-d or already expanded to as many elements, to the shape of `like`."""
    look_at(factor)
    if factor.ndim and factor.numel() != like.numel():
        raise ValueError(
            f"a kernel was given a factor of shape {tuple(factor.shape)} and mu of shape "
            f"{tuple(like.shape)}: pass a 0-d factor or one of that shape"
        )
    return factor.detach().as_strided(like.shape, (0,) * like.ndim)


def _laid_out(*tensors: Tensor) -> tuple[Any, Any, Any]:
    """Return the library (or None), the tensors for it, and a function that permutes results back.

    For contiguous float32 tensors the function is None, and the library checks the tensors.
    """
    direct = library()
    for x in tensors:
        if direct is None or not x.is_contiguous() or x.dtype is not torch.float32 or x.is_neg():
            return direct if tensors[-1].dtype is torch.float32 else None, *laid_out(*tensors)
    return direct, tensors, None
