"""Parse the arguments of the public functions into dense tensors of one floating type and shape."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.masked import MaskedTensor
from torch.nn.parameter import is_lazy

from .. import _errors
from .._arguments import unwrapped
from ._internals import PLAIN_TYPES, fake_outside_mode
from ._sharded import alike

Tensor = torch.Tensor

_HALF = (torch.bfloat16, torch.float16)
_FLOATING = (torch.float32, torch.float64, *_HALF)
_INTEGERS = (
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
)


def one(value: Any, name: str = "log_alpha") -> Tensor:
    """Convert a tensor to a floating dtype. Raise TypeError if it is not a dense real tensor."""
    value = opened(name, value)
    if not isinstance(value, torch.Tensor):
        raise _no_tensor(name, value)
    _check(name, value)
    return _cast(value, _kind(value.dtype, value.device.type))


def opened(name: str, value: Any) -> Any:
    """Unwrap a value of another library, but not a tensor: Dynamo cannot trace `unwrapped`."""
    return value if isinstance(value, torch.Tensor) else unwrapped(name, value)


def two(
    first: Any, second: Any, names: tuple[str, ...] = ("mu", "log_sigma2")
) -> tuple[Tensor, Tensor]:
    """Promote the arguments to one floating type and broadcast them.

    Raise TypeError unless both are dense real tensors, or one is such a tensor and the other a
    number. Raise RuntimeError if the tensors are on different devices or do not broadcast.
    """
    first, second = opened(names[0], first), opened(names[1], second)
    first_given, second_given = isinstance(first, torch.Tensor), isinstance(second, torch.Tensor)
    if first_given:
        _check(names[0], first)
    if second_given:
        _check(names[1], second)
    if first_given and second_given:
        if type(first) is not type(second):
            _check_distributed(dict(zip(names, (first, second), strict=True)))
        if first.device != second.device:
            first, second = _moved(first, second), _moved(second, first)
            if first.device != second.device:
                raise RuntimeError(
                    f"{names[0]} is on {first.device} and {names[1]} on {second.device}: move one "
                    "with .to(), so that both are on the same device"
                )
        if not first.dtype is torch.float32 is second.dtype:
            kind = _kind(_promoted(first, second), first.device.type)
            first, second = _cast(first, kind), _cast(second, kind)
        if first.shape != second.shape:
            first, second = _broadcast(first, second, names)
        if type(first) not in PLAIN_TYPES and hasattr(first, "placements"):
            first, second = alike(dict(zip(names, (first, second), strict=True)))
        return first, second
    if first_given and _number(second):
        first = _cast(first, _kind(first.dtype, first.device.type))
        return first, _constant(names[1], second, first)
    if second_given and _number(first):
        second = _cast(second, _kind(second.dtype, second.device.type))
        return _constant(names[0], first, second), second
    if first_given or second_given:
        name, other = (names[1], second) if first_given else (names[0], first)
        if is_proxy(other):
            raise _no_tensor(name, other)
        if isinstance(other, _errors.NO_ARRAY):
            remedy = "pass a tensor or a float"
            if isinstance(other, bool):
                remedy = f"pass {float(other)} if that is meant"
            elif isinstance(other, complex):
                remedy = _errors.OF_COMPLEX
            raise TypeError(
                f"{name} must be a torch.Tensor or a real number, but {_errors.shown(other)} was "
                f"given: {remedy}"
            )
        raise _errors.mixture(dict(zip(names, (first, second), strict=True)))
    if _number(first) and not _number(second):
        raise _no_tensor(names[1], second)
    raise _no_tensor(names[0], first)


def _promoted(first: Tensor, second: Tensor) -> torch.dtype:
    """Return the same dtype as `torch.result_type`, which torch.compile cannot put into a graph."""
    if first.dtype == second.dtype:
        return first.dtype
    if (first.ndim == 0) != (second.ndim == 0):
        number, array = (first, second) if first.ndim == 0 else (second, first)
        if array.is_floating_point() or not number.is_floating_point():
            return array.dtype
    return torch.promote_types(first.dtype, second.dtype)


def _broadcast(first: Tensor, second: Tensor, names: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    try:
        torch.broadcast_shapes(first.shape, second.shape)
    except RuntimeError:
        shapes = dict(zip(names, (first.shape, second.shape), strict=True))
        raise RuntimeError(_errors.no_broadcast(shapes)) from None
    first, second = torch.broadcast_tensors(first, second)
    return first, second


def _kind(dtype: torch.dtype, device: str) -> torch.dtype:
    """Return the dtype of the result for arguments of `dtype` on a device of the type `device`."""
    if dtype not in _FLOATING:
        return torch.get_default_dtype()
    if dtype in _HALF and torch.is_autocast_enabled(device):
        return torch.float32
    return dtype


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x if x.dtype == dtype else x.to(dtype)


def _number(value: Any) -> bool:
    return isinstance(value, (float, int, np.generic)) and not isinstance(value, bool)


def _constant(name: str, value: float, like: Tensor) -> Tensor:
    if isinstance(value, np.generic):
        _errors.check_scalar(name, value)
    return like.new_full((), _errors.as_float(name, value)).expand(like.shape)


def _moved(x: Tensor, other: Tensor) -> Tensor:
    """Move a 0-d CPU tensor to the device of the other tensor, as torch's functions do."""
    return x.to(other.device) if x.is_cpu and x.ndim == 0 else x


def _check_distributed(tensors: dict[str, Tensor]) -> None:
    """Raise if a DTensor and a plain tensor are given together."""
    if len({hasattr(x, "placements") for x in tensors.values()}) > 1:
        given = " and ".join(f"{name} of type {type(x).__name__}" for name, x in tensors.items())
        raise TypeError(
            f"{given} were given together: make both DTensors, by "
            "torch.distributed.tensor.distribute_tensor"
        )


def _check(name: str, x: Tensor) -> None:
    if type(x) not in PLAIN_TYPES and not torch.compiler.is_compiling():
        _check_class(name, x)
    dtype = x.dtype
    if dtype not in _FLOATING and dtype not in _INTEGERS:
        if dtype.is_complex:
            remedy = _errors.OF_COMPLEX
        elif dtype is torch.bool:
            remedy = "convert it with .float() if that is what is meant"
        else:
            remedy = f"convert it with .{'dequantize' if x.is_quantized else 'float'}()"
        raise TypeError(
            f"{name} must hold real numbers of 16 to 64 bits, but a tensor of {dtype} was given: "
            f"{remedy}"
        )
    if x.is_nested:
        raise TypeError(
            f"{name} must be one dense tensor, but a nested one was given: pass each tensor of "
            "its .unbind() separately"
        )
    if x.layout is not torch.strided:
        raise TypeError(
            f"{name} must be a dense tensor, but one of layout {x.layout} was given: its missing "
            "elements would have a divergence of their own; convert it with .to_dense()"
        )


def _check_class(name: str, x: Tensor) -> None:
    """Raise TypeError for masked, lazy and fake tensors, some of whose elements cannot be read."""
    if isinstance(x, MaskedTensor):
        raise TypeError(
            f"{name} must be a dense tensor, but a MaskedTensor was given: its masked elements "
            "would have a divergence of their own; "
            f"pass the elements of {name}.get_data() that count"
        )
    if is_lazy(x):
        raise TypeError(
            f"{name} is an {type(x).__name__}, which has no elements yet: call its module once, on "
            "a batch of inputs"
        )
    if fake_outside_mode(x):
        raise TypeError(
            f"{name} is a FakeTensor, which has no elements: call the function under "
            f"`with {name}.fake_mode:`"
        )


def is_proxy(value: Any) -> bool:
    """Whether a value is a proxy of `torch.fx.symbolic_trace`."""
    return isinstance(value, torch.fx.Proxy)


def to_tensor(value: Any) -> str:
    """Return the end of an error message, which says how to make a tensor of the value."""
    if is_proxy(value):
        return (
            "torch.fx.symbolic_trace cannot look into this package: use torch.export, or make the "
            "call a leaf with torch.fx.wrap or Tracer.is_leaf_module"
        )
    return "convert it with torch.as_tensor"


def _no_tensor(name: str, value: Any) -> TypeError:
    remedy = f"{to_tensor(value)}, or call the function of the same name in logunif_kl"
    if is_proxy(value):
        remedy = to_tensor(value)
    elif _errors.framework(type(value)) == "torch" or isinstance(value, _errors.NO_ARRAY):
        remedy = "pass a tensor"
    return TypeError(
        f"{name} must be a torch.Tensor, but {_errors.type_name(value)} was given: {remedy}"
    )
