"""The kernels in Triton for a GPU: which tensors they take, and how they are started.

Triton, which PyTorch installs with CUDA, is imported for the first tensor that can use it. There is
no kernel for float64: that arithmetic carries two words, and the composite computes it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_BLOCK = 512
_BLOCKS = 4  # the blocks that each program of the sum adds up
# `enable_fp_fusion` is given explicitly, since Triton 3.9 warns that its default will change.
# `enable_reflect_ftz=False` keeps the device library from flushing subnormal numbers to zero.
_OPTIONS = {"num_warps": 4, "enable_fp_fusion": True}
if torch.version.hip is None:
    _OPTIONS["enable_reflect_ftz"] = False
# Tests set this, together with TRITON_INTERPRET=1, to run the kernels in Triton's interpreter.
interpreting = False


@cache
def _kernels() -> Any:
    """Import the kernels; None if Triton is not installed."""
    try:
        from . import kernels
    except ImportError:
        return None
    return kernels


def available(tensor: torch.Tensor) -> bool:
    """Tell whether the functions below take a tensor of this type on this device."""
    at_home = tensor.is_cuda or (interpreting and tensor.device.type == "cpu")
    return at_home and tensor.dtype in _DTYPES and _kernels() is not None


def _spread(tensor: torch.Tensor) -> bool:
    """Tell whether all elements are the same number in memory."""
    return not any(s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1)


def _dense(tensor: torch.Tensor) -> bool:
    """Tell whether the elements fill their memory without gaps, in any order of the axes."""
    expected = 1
    for stride, n in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if n != 1:
            if stride != expected:
                return False
            expected *= n
    return True


def _arranged(*tensors: torch.Tensor) -> tuple[list[torch.Tensor], list[int], torch.Tensor]:
    """Give the tensors one order of elements in memory; return them, their steps and a model.

    A tensor is copied if its layout is not dense, or differs from the others'. One number for all
    elements is not copied: its step is 0, and that of other tensors is 1. The model is a tensor of
    the layout that the results get.
    """
    if all(t.is_contiguous() and not t.is_neg() for t in tensors):
        return list(tensors), [1] * len(tensors), tensors[0]
    tensors = tuple(t.resolve_neg() for t in tensors)
    full = [t for t in tensors if not _spread(t)]
    model = full[0] if full else torch.empty_like(tensors[0], memory_format=torch.contiguous_format)
    alike = all(t.stride() == model.stride() for t in full) and _dense(model)
    if not alike:
        tensors = tuple(t if _spread(t) else t.contiguous() for t in tensors)
        model = next(t for t in tensors if not _spread(t))
    return list(tensors), [0 if _spread(t) else 1 for t in tensors], model


def _like(model: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(model.shape, model.stride(), dtype=dtype, device=model.device)


def _start(kernel: Any, programs: int, tensor: torch.Tensor, *arguments: Any) -> None:
    """Run a kernel in ``programs`` programs on the tensor's device."""
    if not programs:
        return
    device_of: Any = torch.cuda.device_of
    with device_of(tensor):
        kernel[(programs,)](*arguments, **_OPTIONS)


def _programs(size: int, block: int) -> int:
    return -(-size // block)


def value(mu: torch.Tensor, log_sigma2: torch.Tensor) -> torch.Tensor:
    """-KL of N(mu, sigma^2), element by element."""
    arguments, steps, model = _arranged(mu, log_sigma2)
    out, size = _like(model, mu.dtype), mu.numel()
    _start(_kernels().value, _programs(size, _BLOCK), mu, *arguments, out, size, *steps, _BLOCK)
    return out


def value_sum(mu: torch.Tensor, log_sigma2: torch.Tensor) -> torch.Tensor:
    """The sum of `value`, 0-d and in float32; the same at every call.

    Each program adds ``_BLOCK * _BLOCKS`` elements in float32. Their sums are added in float64.
    """
    arguments, steps, _ = _arranged(mu, log_sigma2)
    size = mu.numel()
    programs = _programs(size, _BLOCK * _BLOCKS)
    partial = torch.empty(programs, dtype=torch.float32, device=mu.device)
    _start(_kernels().value_sum, programs, mu, *arguments, partial, size, *steps, _BLOCK, _BLOCKS)
    return partial.sum(dtype=torch.float64).to(torch.float32)


def gradient(
    grad_output: torch.Tensor, mu: torch.Tensor, log_sigma2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The derivatives of `value` in mu and log_sigma2, each times ``grad_output``.

    ``grad_output`` is 0-d, or of the arguments' shape.
    """
    if _spread(grad_output):
        (mu, log_sigma2), steps, model = _arranged(mu, log_sigma2)
        upstream, steps = grad_output.resolve_neg(), [0, *steps]
    else:
        (upstream, mu, log_sigma2), steps, model = _arranged(grad_output, mu, log_sigma2)
    d_mu, d_log_sigma2 = _like(model, mu.dtype), _like(model, mu.dtype)
    size = mu.numel()
    _start(
        _kernels().gradient,
        _programs(size, _BLOCK),
        mu,
        upstream,
        mu,
        log_sigma2,
        d_mu,
        d_log_sigma2,
        size,
        *steps,
        _BLOCK,
    )
    return d_mu, d_log_sigma2


def unary(order: int, x: torch.Tensor) -> torch.Tensor:
    """-KL as a function of log_alpha, or its first or second derivative."""
    (x,), (step,), model = _arranged(x)
    if not step:
        x = x.contiguous()
    out, size = _like(model, x.dtype), x.numel()
    _start(_kernels().unary, _programs(size, _BLOCK), x, x, out, size, order, _BLOCK)
    return out
