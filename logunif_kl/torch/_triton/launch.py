"""Start the Triton kernels on a GPU, for the tensors that they take.

PyTorch installs Triton with CUDA. Triton is imported for the first tensor that can use it. There
are no float64 kernels: the composite backend computes float64.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from .._memory import look_at

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_BLOCK = 512
_BLOCKS = 4  # the number of blocks that each program of `value_sum` adds up
# `enable_fp_fusion` is given explicitly, because Triton 3.9 warns that its default will change.
# `enable_reflect_ftz=False` keeps the device library from flushing subnormal numbers to zero.
_OPTIONS = {"num_warps": 4, "enable_fp_fusion": True}
if torch.version.hip is None:
    _OPTIONS["enable_reflect_ftz"] = False
# Tests set this, together with TRITON_INTERPRET=1, to run the kernels in Triton's interpreter.
interpreting = False


@cache
def _kernels() -> Any:
    """Return the module of the kernels, or None if Triton is not installed."""
    try:
        from . import kernels
    except ImportError:
        return None
    return kernels


def available(tensor: torch.Tensor) -> bool:
    """Whether the Triton kernels take a tensor of this dtype on this device."""
    at_home = tensor.is_cuda or (interpreting and tensor.device.type == "cpu")
    return at_home and tensor.dtype in _DTYPES and _kernels() is not None


def _is_expanded(tensor: torch.Tensor) -> bool:
    """Whether all elements are the same number in memory."""
    return not any(s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1)


def _dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their memory without gaps, in any order of the axes."""
    expected = 1
    for stride, n in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if n != 1:
            if stride != expected:
                return False
            expected *= n
    return True


def _arranged(*tensors: torch.Tensor) -> tuple[list[torch.Tensor], list[int], torch.Tensor]:
    """Return the tensors in one dense memory layout, their steps, and a model of the layout.

    A tensor is copied if its layout is not dense, or differs from the layout of the others. One
    number expanded to all elements is not copied, and its step is 0. All other steps are 1. The
    model is a tensor with the layout that the results of a kernel get.
    """
    if all(t.is_contiguous() and not t.is_neg() for t in tensors):
        return list(tensors), [1] * len(tensors), tensors[0]
    look_at(*tensors)
    tensors = tuple(t.resolve_neg() for t in tensors)
    full = [t for t in tensors if not _is_expanded(t)]
    model = full[0] if full else torch.empty_like(tensors[0], memory_format=torch.contiguous_format)
    alike = all(t.stride() == model.stride() for t in full) and _dense(model)
    if not alike:
        tensors = tuple(t if _is_expanded(t) else t.contiguous() for t in tensors)
        model = next(t for t in tensors if not _is_expanded(t))
    return list(tensors), [0 if _is_expanded(t) else 1 for t in tensors], model


def _like(model: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(model.shape, model.stride(), dtype=dtype, device=model.device)


def _start(
    kernel: Any,
    block: int,
    inputs: list[torch.Tensor],
    steps: list[int],
    model: torch.Tensor,
    results: int,
    *constants: int,
) -> list[torch.Tensor]:
    """Run a kernel on the tensors of `_arranged`, with ``block`` elements for each program.

    Only this function starts kernels. The results get the layout of the model. If ``results`` is 0,
    return one float32 tensor, with an element for each program. Raise the errors of `look_at`.
    """
    for x, step in zip(inputs, steps, strict=True):
        if not available(x):
            raise TypeError(
                f"a kernel for a GPU was given a tensor of {x.dtype} on {x.device}: pass one of "
                "float32, float16 or bfloat16 on a GPU"
            )
        if step:
            look_at(model, x)
            alike = x.stride() == model.stride() and _dense(model)
            if not alike and not (x.is_contiguous() and model.is_contiguous()):
                raise ValueError(
                    f"a kernel was given tensors of strides {x.stride()} and {model.stride()}: "
                    "pass dense tensors of one layout"
                )
        else:
            look_at(x)
            if (
                not _is_expanded(x)
                or (x.ndim and x.shape != model.shape)
                or x.device != model.device
            ):
                raise ValueError(
                    f"a kernel was given a tensor of shape {tuple(x.shape)} on {x.device} as one "
                    f"number for shape {tuple(model.shape)} on {model.device}: pass a 0-d tensor, "
                    "or one expanded to that shape, on the same device"
                )
    size = model.numel()
    programs = -(-size // block)
    made = [_like(model, model.dtype) for _ in range(results)]
    made = made or [torch.empty(programs, dtype=torch.float32, device=model.device)]
    if programs:
        device_of: Any = torch.cuda.device_of
        with device_of(model):
            kernel[(programs,)](*inputs, *made, size, *constants, **_OPTIONS)
    return made


def value(mu: torch.Tensor, log_sigma2: torch.Tensor) -> torch.Tensor:
    """Compute -KL of N(mu, sigma^2) for each element."""
    inputs, steps, model = _arranged(mu, log_sigma2)
    return _start(_kernels().value, _BLOCK, inputs, steps, model, 1, *steps, _BLOCK)[0]


def value_sum(mu: torch.Tensor, log_sigma2: torch.Tensor) -> torch.Tensor:
    """Compute the sum of `value` as a 0-d float32 tensor, with the same rounding in every call.

    Each program adds up ``_BLOCK * _BLOCKS`` elements in float32. The sums of the programs are then
    added up in float64.
    """
    inputs, steps, model = _arranged(mu, log_sigma2)
    constants = *steps, _BLOCK, _BLOCKS
    kernel = _kernels().value_sum
    (partial,) = _start(kernel, _BLOCK * _BLOCKS, inputs, steps, model, 0, *constants)
    return partial.sum(dtype=torch.float64).to(torch.float32)


def gradient(
    grad_output: torch.Tensor, mu: torch.Tensor, log_sigma2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the derivatives of `value` in mu and log_sigma2, each times ``grad_output``.

    ``grad_output`` is 0-d or has the shape of the arguments.
    """
    if _is_expanded(grad_output):
        inputs, steps, model = _arranged(mu, log_sigma2)
        inputs, steps = [grad_output.resolve_neg(), *inputs], [0, *steps]
    else:
        inputs, steps, model = _arranged(grad_output, mu, log_sigma2)
    d_mu, d_log_sigma2 = _start(
        _kernels().gradient, _BLOCK, inputs, steps, model, 2, *steps, _BLOCK
    )
    return d_mu, d_log_sigma2


def unary(order: int, x: torch.Tensor) -> torch.Tensor:
    """Compute -KL from log_alpha, or its first or second derivative."""
    (x,), (step,), model = _arranged(x)
    if not step:
        x = x.contiguous()
    return _start(_kernels().unary, _BLOCK, [x], [1], model, 1, order, _BLOCK)[0]
