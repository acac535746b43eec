"""Checks of arguments that several modules share."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import index
from typing import Any

import torch
from torch.nn import Parameter
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from ..._errors import OF_COMPLEX, shown, type_name
from ...torch._arguments import to_tensor
from ...torch._internals import plain

Tensor = torch.Tensor


def check_module(model: Any) -> torch.nn.Module:
    """Return a model if it is a module, otherwise raise TypeError."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"model must be a torch.nn.Module, but {type_name(model)} was given: pass the module"
        )
    return model


def check_dtype(dtype: Any) -> None:
    """Raise TypeError if a dtype for parameters is not a real floating-point type."""
    if isinstance(dtype, torch.dtype) and not dtype.is_floating_point:
        remedy = OF_COMPLEX if dtype.is_complex else "pass torch.float32"
        raise TypeError(f"dtype must be a real floating type, but {dtype} was given: {remedy}")


def check_generator(generator: Any) -> torch.Generator | None:
    """Return `generator` if it is a torch.Generator or None, otherwise raise TypeError."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None, but {type_name(generator)} "
            f"{shown(generator)} was given: pass torch.Generator().manual_seed(...)"
        )
    return generator


def whole_number(name: str, value: Any, instead: str = "an int") -> int:
    """Return an argument if it is a whole number, otherwise raise an error."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} must be a whole number, but {shown(value)} was given: pass {instead}")


def check_real(name: str, given: Any, instead: str) -> None:
    """Raise if an argument is not a real tensor, with the advice `instead` in the message."""
    if not isinstance(given, Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, but {type_name(given)} was given: {to_tensor(given)}"
        )
    if not given.is_floating_point():
        raise TypeError(
            f"{name} must hold real numbers, but a tensor of {given.dtype} was given: {instead}"
        )


def check_features(input: Any, inputs: int) -> None:
    """Raise if the last dimension of an input does not have the length `inputs`."""
    if not input.ndim or input.shape[-1] != inputs:
        raise ValueError(
            f"input of shape {tuple(input.shape)} was given to a layer of {inputs} inputs: "
            f"pass an input whose last dimension has length {inputs}"
        )


def check_channels(input: Any, channels: int, kernel_size: Sequence[int]) -> None:
    """Raise if the channels and dimensions of an input do not fit a convolution."""
    places = len(kernel_size)
    if input.ndim - places not in (1, 2) or input.shape[-places - 1] != channels:
        raise ValueError(
            f"input of shape {tuple(input.shape)} was given to a layer of {channels} channels: "
            f"pass an input of {places + 2} dimensions, the second of length {channels}"
        )


def shown_name(name: str) -> str:
    """Describe a module for an error message, by its path in the model."""
    return f"module {name!r}" if name else "the model"


def check_shape(name: str, module: torch.nn.Module) -> None:
    """Raise if a module is lazy and its weight has no shape yet."""
    weight: Any = getattr(module, "weight", None)
    if isinstance(module, LazyModuleMixin) and is_lazy(weight):
        raise no_shape(shown_name(name), module)


def check_gathered(name: str, module: torch.nn.Module, weight: Any) -> None:
    """Raise for a weight that FullyShardedDataParallel or accelerate keeps elsewhere."""
    kind = type(weight)
    if kind is Parameter and not weight.is_meta and not hasattr(weight, "_fsdp_flattened"):
        return
    if torch.compiler.is_compiling() or is_lazy(weight):
        return
    if weight.is_meta and hasattr(module, "_hf_hook"):
        raise RuntimeError(
            f"accelerate keeps the weight of {shown_name(name)} elsewhere between calls, so it "
            "cannot be read here: call accelerate.hooks.remove_hook_from_module(model, "
            "recurse=True) first"
        )
    flat = getattr(weight, "_fsdp_flattened", False)
    if weight.ndim > 1 and kind is not Tensor:
        # With NO_SHARD or in summon_full_params it has its shape, but its gradient would be lost.
        flat = flat and torch.is_grad_enabled()
    computed = kind is Tensor and plain(weight) and weight.numel() > 0
    if flat or (computed and not weight.untyped_storage().size()):
        raise sharded(shown_name(name))


def sharded(owner: str) -> RuntimeError:
    """Return the error for parameters that FullyShardedDataParallel holds in one flat tensor."""
    return RuntimeError(
        f"the weight of {owner} is sharded by FullyShardedDataParallel, so it cannot be "
        "read here: use fully_shard, or wrap the whole ELBO and no layer of it, with "
        "use_orig_params=True, or read the model within its summon_full_params and torch.no_grad"
    )


def whole(model: torch.nn.Module, remedy: str = "convert the model before it is sharded") -> Any:
    """Return the module in a DistributedDataParallel. Raise if a model is sharded by FSDP."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    if fsdp is not None:
        for name, module in model.named_modules():
            if isinstance(module, (fsdp.FSDPModule, fsdp.FullyShardedDataParallel)):
                raise TypeError(
                    f"{shown_name(name)} is sharded by FSDP, which keeps classes, hooks and "
                    f"parameters of its own: {remedy}, or load its full state_dict (see "
                    "torch.distributed.checkpoint.state_dict) into a model that is not sharded"
                )
    wrapped = isinstance(model, torch.nn.parallel.DistributedDataParallel)
    return model.module if wrapped else model


def check_sharded(model: torch.nn.Module, weights: Sequence[Any]) -> None:
    """Raise if FSDP2 keeps gathered copies of weights, in which changes would be lost."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    if fsdp is None:
        return
    gathered = {id(each) for each in weights if type(each) is Parameter}
    for name, module in model.named_modules():
        if isinstance(module, fsdp.FSDPModule) and gathered & {*map(id, module.parameters())}:
            raise RuntimeError(
                f"FSDP keeps a gathered copy of the weights of {shown_name(name)} since its last "
                "call, in which a change would be lost: call reshard() of each FSDPModule first"
            )


def check_unwrapped(model: torch.nn.Module) -> None:
    """Raise if a model has a DistributedDataParallel, for a function that changes parameters."""
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            raise TypeError(
                f"{shown_name(name)} is a DistributedDataParallel, which averages the gradients of "
                "the parameters that it was made with, and would not average those of new ones: "
                "convert its .module and wrap the result"
            )


def refuse_fusion(layer: torch.nn.Module, caller: Any) -> None:
    """Raise if torch's fusion with batch normalisation assigns new means, which users may do."""
    if caller.f_globals.get("__name__") == "torch.nn.utils.fusion":
        raise TypeError(
            f"a {type(layer).__name__} was fused with batch normalisation, which would scale its "
            "means and not its variances: call logunif_kl.torch.nn.to_deterministic first"
        )


def no_shape(what: str, module: Any) -> ValueError:
    """Return the error for a lazy module that has not seen a first batch."""
    return ValueError(
        f"{what} is a {type(module).__name__} that has no shape yet: run a batch through the model "
        "first"
    )


REMOVE_PARAMETRIZATIONS = (
    "has parametrizations: remove them first, by torch.nn.utils.parametrize.remove_parametrizations"
)


def check_parameters(name: str, module: Any, parameters: Sequence[str] = ()) -> None:
    """Raise if a hook or a parametrization computes one of the given parameters of a module."""
    if parametrize.is_parametrized(module):
        raise TypeError(f"{shown_name(name)} {REMOVE_PARAMETRIZATIONS}")
    for parameter in parameters:
        if parameter not in module._parameters:
            raise TypeError(
                f"the {parameter} of {shown_name(name)} is computed by a hook: remove the hook "
                "first, by torch.nn.utils.remove_weight_norm, remove_spectral_norm or prune.remove"
            )
