"""The float32 kernels of C, on the memory of plain CPU tensors.

Value and derivatives are separate functions, of the same names as those of
`logunif_kl.torch._triton.launch`, so that a backward needs nothing but the arguments. There is no
such kernel for float64. A `sign` of -1.0 gives KL and its derivatives in place of those of -KL.

The functions of `_kernels.library` compute float32, and its ufuncs the half types, block by block.
"""

from __future__ import annotations

from typing import Any

import torch

from ._cpu_parallel import in_blocks, laid_out, negated, run, sum_of
from ._kernels import library, ufuncs
from ._memory import look_at

Tensor = torch.Tensor

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def available(tensor: Tensor) -> bool:
    """Tell whether the functions below take a tensor of this type."""
    return tensor.dtype in _DTYPES and ufuncs() is not None


def value(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """-KL of N(mu, sigma^2), element by element."""
    direct, (mu, log_sigma2), back = _laid_out(mu, log_sigma2)
    out = _empty(mu)
    if direct is not None:
        direct.value(mu, log_sigma2, out, sign)
    else:
        run(negated(ufuncs().value, sign), (mu, log_sigma2), (out,))
    return out if back is None else back(out)


def value_sum(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """The sum of `value`, 0-d and in float32."""
    direct, inputs, _ = _laid_out(mu, log_sigma2)
    if direct is not None:
        total = mu.new_empty(())
        direct.value_sum(*inputs, total, sign)
        return total
    if mu.dtype is not torch.float32:
        return sum_of(negated(ufuncs().value, sign), inputs, (None,))
    return in_blocks(negated(ufuncs().value_sum, sign), inputs)


def gradient(
    grad_output: Tensor, mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The derivatives of `value` in mu and log_sigma2, each times ``grad_output``.

    ``grad_output`` is 0-d, or of the arguments' shape.
    """
    each = any(grad_output.stride())
    if each:
        direct, (grad_output, mu, log_sigma2), back = _laid_out(grad_output, mu, log_sigma2)
    else:
        direct, (mu, log_sigma2), back = _laid_out(mu, log_sigma2)
    d_mu, d_log_sigma2 = _empty(mu), _empty(mu)
    if direct is not None:
        direct.gradient(grad_output, mu, log_sigma2, d_mu, d_log_sigma2, sign)
    else:
        if not each:
            look_at(grad_output)
            if grad_output.ndim and grad_output.numel() != mu.numel():
                raise ValueError(
                    f"a kernel was given a factor of shape {tuple(grad_output.shape)} and mu of "
                    f"shape {tuple(mu.shape)}: pass a factor of no dimensions or of that shape"
                )
            grad_output = grad_output.detach().as_strided(mu.shape, (0,) * mu.ndim)
        run(negated(ufuncs().gradient, sign), (grad_output, mu, log_sigma2), (d_mu, d_log_sigma2))
    return (d_mu, d_log_sigma2) if back is None else (back(d_mu), back(d_log_sigma2))


def _laid_out(*tensors: Tensor) -> tuple[Any, Any, Any]:
    """Do the same as `laid_out`, after the `library` if that computes these tensors.

    The library looks at all tensors itself, so contiguous ones of float32 are not looked at here.
    """
    direct = library()
    for x in tensors:
        if direct is None or not x.is_contiguous() or x.dtype is not torch.float32 or x.is_neg():
            return direct if tensors[-1].dtype is torch.float32 else None, *laid_out(*tensors)
    return direct, tensors, None


def _empty(like: Tensor) -> Tensor:
    """Allocate a contiguous tensor of this shape and type."""
    # An option takes as long as looking at three tensors.
    if like.is_contiguous():
        return torch.empty_like(like)
    return torch.empty_like(like, memory_format=torch.contiguous_format)
