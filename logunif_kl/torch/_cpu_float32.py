"""The float32 kernels of C, on the memory of plain CPU tensors.

Value and derivatives are separate functions, of the same names as those of
`logunif_kl.torch._triton.launch`, so that a backward needs nothing but the arguments. There is no
such kernel for float64. A `sign` of -1.0 gives KL and its derivatives in place of those of -KL.

The functions of `_kernels.library` compute float32, and its ufuncs the half types, block by block.
"""

from __future__ import annotations

from typing import Any

import torch

from ._blocks import in_blocks, laid_out, negated, run, sum_of
from ._kernels import library, ufuncs

Tensor = torch.Tensor

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def available(tensor: Tensor) -> bool:
    """Tell whether the functions below take a tensor of this type."""
    return tensor.dtype in _DTYPES and ufuncs() is not None


def value(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """-KL of N(mu, sigma^2), element by element."""
    (mu, log_sigma2), back = _laid_out(mu, log_sigma2)
    out = _empty(mu)
    if (direct := library()) is not None and mu.dtype is torch.float32:
        direct.value(*_place(mu), *_place(log_sigma2), out.data_ptr(), out.numel(), sign)
    else:
        run(negated(ufuncs().value, sign), (mu, log_sigma2), (out,))
    return out if back is None else back(out)


def value_sum(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """The sum of `value`, 0-d and in float32."""
    inputs, _ = _laid_out(mu, log_sigma2)
    if mu.dtype is not torch.float32:
        return sum_of(negated(ufuncs().value, sign), inputs, (None,))
    if (direct := library()) is not None:
        total = mu.new_empty(())
        direct.value_sum(*_place(inputs[0]), *_place(inputs[1]), total.data_ptr(), mu.numel(), sign)
        return total
    return in_blocks(negated(ufuncs().value_sum, sign), inputs)


def gradient(
    grad_output: Tensor, mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The derivatives of `value` in mu and log_sigma2, each times ``grad_output``.

    ``grad_output`` is 0-d, or of the arguments' shape.
    """
    each = any(grad_output.stride())
    if each:
        (grad_output, mu, log_sigma2), back = _laid_out(grad_output, mu, log_sigma2)
    else:
        (mu, log_sigma2), back = _laid_out(mu, log_sigma2)
    d_mu, d_log_sigma2 = _empty(mu), _empty(mu)
    if (direct := library()) is not None and mu.dtype is torch.float32:
        direct.gradient(
            *(_address(grad_output), not each),
            *(*_place(mu), *_place(log_sigma2)),
            *(d_mu.data_ptr(), d_log_sigma2.data_ptr(), d_mu.numel(), sign),
        )
    else:
        if not each:
            grad_output = grad_output.detach().as_strided(mu.shape, (0,) * mu.ndim)
        run(negated(ufuncs().gradient, sign), (grad_output, mu, log_sigma2), (d_mu, d_log_sigma2))
    return (d_mu, d_log_sigma2) if back is None else (back(d_mu), back(d_log_sigma2))


def _laid_out(*tensors: Tensor) -> tuple[Any, Any]:
    """Do the same as `laid_out`, without a call for each of a few contiguous tensors."""
    for x in tensors:
        if not x.is_contiguous() or x.dtype is not torch.float32:
            return laid_out(*tensors)
    return tensors, None


def _empty(like: Tensor) -> Tensor:
    """Allocate a contiguous tensor of this shape and type."""
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def _place(x: Tensor) -> tuple[int, bool]:
    """The address, and whether one number is there for all elements."""
    return _address(x), not x.is_contiguous()


def _address(x: Tensor) -> int:
    place = x.data_ptr()
    if not place and x.numel():
        raise RuntimeError(
            f"a tensor of shape {tuple(x.shape)} was given whose memory was freed, as that of a "
            "parameter that is sharded: pass it while it is gathered"
        )
    return place
