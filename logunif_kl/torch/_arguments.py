"""The arguments of the public functions: checks, and conversion to one floating type."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .. import _refusals

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


def one(log_alpha: Any) -> Tensor:
    """Check the argument, and convert it to a floating type.

    Raises
    ------
    TypeError
        If it is no dense tensor of real numbers.
    """
    if not isinstance(log_alpha, torch.Tensor):
        raise _no_tensor("log_alpha", log_alpha)
    _check("log_alpha", log_alpha)
    return _cast(log_alpha, _kind(log_alpha.dtype, log_alpha.device.type))


def two(mu: Any, log_sigma2: Any) -> tuple[Tensor, Tensor]:
    """Check the arguments, promote them to one floating type and broadcast them.

    Raises
    ------
    TypeError
        If neither is a tensor, or one is no dense tensor of real numbers and no real number.
    RuntimeError
        If they are on different devices, or their shapes do not broadcast.
    """
    mu_given, log_sigma2_given = isinstance(mu, torch.Tensor), isinstance(log_sigma2, torch.Tensor)
    if mu_given:
        _check("mu", mu)
    if log_sigma2_given:
        _check("log_sigma2", log_sigma2)
    if mu_given and log_sigma2_given:
        if type(mu) is not type(log_sigma2):
            _check_distributed(mu=mu, log_sigma2=log_sigma2)
        if mu.device != log_sigma2.device:
            mu, log_sigma2 = _moved(mu, log_sigma2), _moved(log_sigma2, mu)
            if mu.device != log_sigma2.device:
                raise RuntimeError(
                    f"mu is on {mu.device} and log_sigma2 on {log_sigma2.device}: move one with "
                    ".to(), so that both are on the same device"
                )
        if mu.dtype is torch.float32 is log_sigma2.dtype:
            return _broadcast(mu, log_sigma2)
        kind = _kind(_promoted(mu, log_sigma2), mu.device.type)
        mu, log_sigma2 = _cast(mu, kind), _cast(log_sigma2, kind)
        return _broadcast(mu, log_sigma2)
    if mu_given and _number(log_sigma2):
        mu = _cast(mu, _kind(mu.dtype, mu.device.type))
        return mu, _constant("log_sigma2", log_sigma2, mu)
    if log_sigma2_given and _number(mu):
        log_sigma2 = _cast(log_sigma2, _kind(log_sigma2.dtype, log_sigma2.device.type))
        return _constant("mu", mu, log_sigma2), log_sigma2
    if mu_given or log_sigma2_given:
        name, other = ("log_sigma2", log_sigma2) if mu_given else ("mu", mu)
        if isinstance(other, _refusals.NO_ARRAY):
            remedy = "pass a tensor or a float"
            if isinstance(other, bool):
                remedy = f"pass {float(other)} if that is meant"
            elif isinstance(other, complex):
                remedy = _refusals.OF_COMPLEX
            raise TypeError(
                f"{name} must be a torch.Tensor or a real number, but {other!r} was given: {remedy}"
            )
        raise _refusals.mixture({"mu": mu, "log_sigma2": log_sigma2})
    raise _no_tensor("mu", mu)


def _promoted(mu: Tensor, log_sigma2: Tensor) -> torch.dtype:
    """The result of `torch.result_type`, which torch.compile cannot put into a graph."""
    if mu.dtype == log_sigma2.dtype:
        return mu.dtype
    if (mu.ndim == 0) != (log_sigma2.ndim == 0):
        number, array = (mu, log_sigma2) if mu.ndim == 0 else (log_sigma2, mu)
        if array.is_floating_point() or not number.is_floating_point():
            return array.dtype
    return torch.promote_types(mu.dtype, log_sigma2.dtype)


def _broadcast(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
    if mu.shape == log_sigma2.shape:
        return mu, log_sigma2
    try:
        torch.broadcast_shapes(mu.shape, log_sigma2.shape)
    except RuntimeError:
        raise RuntimeError(
            f"mu of shape {tuple(mu.shape)} and log_sigma2 of shape {tuple(log_sigma2.shape)} do "
            "not broadcast: give them shapes of which each pair of lengths agrees or holds a 1"
        ) from None
    mu, log_sigma2 = torch.broadcast_tensors(mu, log_sigma2)
    return mu, log_sigma2


def _kind(dtype: torch.dtype, device: str) -> torch.dtype:
    """The floating type of the result."""
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
        _refusals.check_scalar(name, value)
    return like.new_full((), _refusals.as_float(name, value)).expand(like.shape)


def _moved(x: Tensor, other: Tensor) -> Tensor:
    """Move a CPU tensor of no dimensions to the device of the other, as torch's functions do."""
    return x.to(other.device) if x.is_cpu and x.ndim == 0 else x


def _check_distributed(**tensors: Tensor) -> None:
    """Raise if a DTensor was given together with a plain tensor."""
    if len({hasattr(x, "placements") for x in tensors.values()}) > 1:
        given = " and ".join(f"{name} of type {type(x).__name__}" for name, x in tensors.items())
        raise TypeError(
            f"{given} were given together: make both DTensors, by "
            "torch.distributed.tensor.distribute_tensor"
        )


def _check(name: str, x: Tensor) -> None:
    dtype = x.dtype
    if dtype not in _FLOATING and dtype not in _INTEGERS:
        if dtype.is_complex:
            remedy = _refusals.OF_COMPLEX
        elif dtype is torch.bool:
            remedy = "convert it with .float() if that is what is meant"
        else:
            remedy = "convert it with .float()"
        raise TypeError(
            f"{name} must hold real numbers of 16 to 64 bits, but a tensor of {dtype} was given: "
            f"{remedy}"
        )
    if x.is_nested:
        raise TypeError(
            f"{name} must be one dense tensor, but a nested one was given: pass each of its "
            ".unbind() by itself"
        )
    if x.layout is not torch.strided:
        raise TypeError(
            f"{name} must be a dense tensor, but one of layout {x.layout} was given: its missing "
            "elements would have a divergence of their own; convert it with .to_dense()"
        )


def _no_tensor(name: str, value: Any) -> TypeError:
    remedy = "convert it with torch.as_tensor, or call the function of the same name in logunif_kl"
    if _refusals.framework(type(value)) == "torch" or isinstance(value, _refusals.NO_ARRAY):
        remedy = "pass a tensor"
    return TypeError(
        f"{name} must be a torch.Tensor, but {_refusals.type_name(value)} was given: {remedy}"
    )
