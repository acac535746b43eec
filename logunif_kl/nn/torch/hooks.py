"""Recompute, copy or make permanent the weights that hooks compute before each call."""

# mypy: allow-untyped-calls
from __future__ import annotations

import copy
import copyreg
import inspect
import warnings
import weakref
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn.utils import parametrize, prune
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from ...torch._sharded import distributed_as
from ..posteriors import Scaled
from .arguments import check_parameters, sharded, shown_name


def refresh(module: Any) -> None:
    """Recompute the weights that hooks of torch derive from the parameters.

    After an optimizer step or `load_state_dict`, these weights are out of date until the next call.
    """
    hooks, parametrized = module._forward_pre_hooks, module._modules.get("parametrizations", ())
    if not hooks and not parametrized:
        return
    buffers = module._buffers
    # Hooks and parametrizations of torch would read beyond the end of a part of a parameter.
    for name in (*computed_names(module), *parametrized):
        for own in own_parameters(module, name):
            if own.ndim == 1 and getattr(own, "_fsdp_flattened", False):
                raise sharded(f"a {type(module).__name__}")
    for hook in hooks.values():
        if isinstance(hook, SpectralNorm):
            with torch.enable_grad():  # A call of the hook would change its estimate of the norm.
                found = hook.compute_weight(module, do_power_iteration=False)
            setattr(module, hook.name, found)
        elif isinstance(hook, (BasePruningMethod, WeightNorm)):
            weight = getattr(hook, "_tensor_name", "")
            name = f"{weight}_mask"
            mask = buffers.get(name)
            if mask is not None:
                buffers[name] = mask_of(module, weight)
            # Later calls need the autograd graph of the weights, even if this call is in `no_grad`.
            try:
                with torch.enable_grad():
                    hook(module, None)
            finally:
                if mask is not None:
                    buffers[name] = mask


@contextmanager
def means_assigned(module: Any, names: Iterable[str]) -> Iterator[None]:
    """Let the attributes of weights be the parameters of their means, to initialise them.

    Otherwise an attribute may be a sample, or the product of the means and a mask.
    """
    given, before = module.__dict__, {}
    check_parameters("", module, [each for each in names if not masked(module, each)])
    for name in names:
        before[name] = given.get(name)
        given[name] = own_parameter(module, name)
    try:
        yield
    finally:
        for name, value in before.items():
            del given[name]
            if value is not None:
                given[name] = value
        refresh(module)


def computed_names(module: Any) -> list[str]:
    """Name the weights that hooks compute from other parameters."""
    found = []
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, BasePruningMethod):
            found.append(hook._tensor_name)
        elif isinstance(hook, (WeightNorm, SpectralNorm)):
            found.append(hook.name)
    return found


def masked(module: Any, name: str) -> bool:
    """Whether a parameter has a mask of `torch.nn.utils.prune`."""
    return f"{name}_mask" in module._buffers and f"{name}_orig" in module._parameters


def mask_of(module: Any, name: str) -> Any:
    """Return the mask of a parameter, or None.

    FSDP2 and tensor parallelism split the parameter, but not its mask.
    """
    mask = module._buffers.get(f"{name}_mask")
    return None if mask is None else distributed_as(mask, own_parameter(module, name))


def reset_method(kind: Any) -> Any:
    """Return the method of a class that draws initial weights, or None."""
    found = getattr(kind, "reset_parameters", None)
    return getattr(kind, "_reset_parameters", None) if found is None else found  # of attention


def own_parameter(module: Any, name: str) -> Any:
    """Return a parameter of a module, which may have a mask, or None."""
    found = module._parameters.get(name)
    return module._parameters.get(f"{name}_orig") if found is None else found


def own_parameters(module: Any, name: str) -> list[Any]:
    """Return the parameters that a parameter of a module is, or is computed from."""
    own = own_parameter(module, name)
    if own is not None:
        return [own]
    if parametrize.is_parametrized(module, name):
        return [*module.parametrizations[name].parameters(recurse=False)]
    # The hooks of torch.nn.utils.weight_norm keep two parameters beside.
    beside = (module._parameters.get(f"{name}_{part}") for part in ("g", "v"))
    return [each for each in beside if each is not None]


_PLAIN = (bool, int, float, complex, str, bytes, np.generic)


def held(value: Any, objects: bool = False) -> Iterator[Any]:
    """Yield an attribute of a module, and what it holds in containers and functions.

    With `objects`, also what it holds in other objects that are no modules.
    """
    seen: set[int] = set()
    found = [value]
    while found:
        value = found.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        try:
            parts = [*_parts(value, objects)]
        except Exception:  # of an object that cannot be read, such as the proxy of one that is gone
            continue
        yield value
        found += reversed(parts)


def _parts(value: Any, objects: bool) -> Iterable[Any]:
    if isinstance(value, dict):
        return [x for x in value.values() if not isinstance(x, _PLAIN)]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return [x for x in value if not isinstance(x, _PLAIN)]
    if isinstance(value, partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, FunctionType):
        defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        return (*_closure(value), *defaults)
    if isinstance(value, SimpleNamespace):
        return vars(value).values()
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name, None) for each in fields(value)]
    if objects and not isinstance(value, (torch.nn.Module, torch.Tensor, type, ModuleType)):
        return attributes(value)
    return ()


def attributes(value: Any) -> list[Any]:
    """Return the attributes of an object, also those in slots."""
    slots = copyreg._slotnames(type(value))  # type: ignore[attr-defined]
    named = [getattr(value, name, None) for name in slots]
    return [*getattr(value, "__dict__", {}).values(), *named]


def _closure(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # The cell is still empty.
            yield cell.cell_contents


def _warn_of_closures(model: torch.nn.Module) -> None:
    own = {id(x) for x in (*model.modules(), *model.parameters())}
    for name, module in model.named_modules():
        if "_orig_mod" in module._modules:
            continue  # the wrapper of torch.compile, which makes its functions anew
        for attribute, value in vars(module).copy().items():
            if attribute == "_compiled_call_impl":
                continue  # PyTorch does not copy it.
            parts = [*held(value)]
            functions = [x for x in parts if isinstance(x, FunctionType)]
            weakly = [each for x in parts for each in referred(x)]
            why = None
            if any(id(part) in own for x in functions for part in held(x)):
                why = (
                    "is a function whose closure or default arguments hold a part of the model. "
                    "Copying a model copies neither",
                    "make the function a method, or assign it to the copy",
                )
            elif attribute != "_flat_weight_refs" and any(id(x) in own for x in weakly):
                why = (
                    "is a weak reference to a part of the model, which a copy keeps",
                    "pass that part to the call",
                )
            if why is not None:
                warnings.warn(
                    f"{attribute!r} of {shown_name(name)} {why[0]}, so the copy computes with that "
                    f"part of the original: {why[1]}",
                    stacklevel=4,
                )


def referred(value: Any) -> list[Any]:
    """Return what a weak reference or a collection of weak references refers to."""
    if isinstance(value, weakref.ref):
        return [value()]
    if isinstance(value, (weakref.WeakSet, weakref.WeakKeyDictionary)):
        return [*value]
    return [*value.values()] if isinstance(value, weakref.WeakValueDictionary) else []


def copies(model: torch.nn.Module) -> dict[int, Any]:
    """Return copies of tensors that autograd computed, as the memo that `copy.deepcopy` needs.

    They are the weights that hooks compute, and other tensors that modules keep.
    """
    _warn_of_closures(model)
    found: dict[int, Any] = {}
    for path, module in model.named_modules():
        for name, value in module.__dict__.copy().items():
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                if isinstance(value._base, torch.nn.Parameter):
                    raise TypeError(
                        f"{name} of {shown_name(path)} is a view of a parameter, and that of a "
                        "copied model would not be one: compute it in the forward"
                    )
                found[id(value)] = value.detach().clone()
    return found


_HOOKS = (
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_backward_pre_hooks"),
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    "_backward_hooks",
)


def copy_additions(module: Any, to: Any, own: set[str], memo: dict[int, Any]) -> None:
    """Give a new layer copies of what a user added to a layer: hooks, attributes, buffers...

    Not the hooks that compute its weights, and not what has a name of its `own`.
    """
    own = own.union(("weight", "bias"), inspect.get_annotations(torch.nn.Module))
    for name, value in vars(module).items():
        if name not in own and name not in vars(to) and not name.startswith("_lk_"):
            try:
                vars(to)[name] = copy.deepcopy(value, memo)
            except Exception:
                parts = [*held([value, getattr(value, "__dict__", None)])]
                if any(isinstance(x, (torch.nn.Module, torch.Tensor)) for x in parts):
                    raise
                vars(to)[name] = value  # Share what cannot be copied, such as a lock.
    for registered in ("_parameters", "_buffers", "_modules"):
        of_new = getattr(to, registered)
        for name, value in getattr(module, registered).items():
            of = name.removesuffix("_orig").removesuffix("_mask")
            if name not in of_new and not (of in own and (of == name or masked(module, of))):
                of_new[name] = copy.deepcopy(value, memo)
                if name in module._non_persistent_buffers_set:
                    to._non_persistent_buffers_set.add(name)
    to._is_full_backward_hook = module._is_full_backward_hook
    for name in _HOOKS:
        for key, hook in getattr(module, name).items():
            if not isinstance(hook, BasePruningMethod) or hook._tensor_name not in own:
                getattr(to, name)[key] = copy.deepcopy(hook, memo)


def has_scales(module: Any) -> bool:
    """Whether a layer has the posterior `Scaled`. A user may call anything `scale`."""
    return isinstance(getattr(module, "posterior", None), Scaled)


def own_tensors(module: Any) -> list[tuple[str, Any]]:
    """Return the parameters of a layer that others may hold too, with their names."""
    # The means of `Scaled` are new tensors. Others of a plain layer read it without its mask.
    names = ("bias",) if has_scales(module) else ("weight", "bias")
    plain = not hasattr(module, "_lk_weights")
    named = [(x, own_parameter(module, x)) for x in names if not (plain and masked(module, x))]
    return [(name, own) for name, own in named if own is not None]


def ties(module: Any, to: Any) -> dict[int, Any]:
    """Return a memo for `copy.deepcopy`: who holds a parameter of a layer gets that of the new one.

    A decoder may keep the weight of a layer in a list, or in a parameter of its own. And who can
    remove a hook of a layer holds the dict of its hooks.
    """
    own = own_tensors(module)
    held = {id(old): to._parameters[name] for name, old in own if name in to._parameters}
    return held | {id(getattr(module, name)): getattr(to, name) for name in _HOOKS}


def check_apart(model: torch.nn.Module, network: torch.nn.Module, changed: Container[Any]) -> None:
    """Raise if a copy of a model has a module of the model that is to be changed in the copy."""
    there = {*network.modules()}
    for name, module in model.named_modules():
        if module in changed and module in there:
            raise TypeError(
                f"{shown_name(name)} is the same in a copy, because a module has a __deepcopy__ "
                "that returns itself: have it return a copy, or pass inplace=True"
            )


def check_copied(model: torch.nn.Module, network: torch.nn.Module, made: Mapping[int, Any]) -> None:
    """Raise if a copy of a model lacks the modules made of its modules, by their `id`."""
    there = {id(each) for each in network.modules()}
    for name, module in model.named_modules():
        if id(module) in made and id(made[id(module)]) not in there:
            raise TypeError(
                f"{shown_name(name)} was not replaced in a copy, because a module around it has a "
                "__deepcopy__ that does not copy its parts by copy.deepcopy(part, memo): have it "
                "do so"
            )


def is_mask(hook: Any) -> bool:
    """Whether a hook is one of `torch.nn.utils.prune`."""
    return isinstance(hook, BasePruningMethod)


def remove_masks(module: Any) -> None:
    """Make the masks of a module permanent, as `torch.nn.utils.prune.remove` does."""
    hooks = [*module._forward_pre_hooks.values()]
    for hook in hooks:
        if isinstance(hook, BasePruningMethod):
            prune.remove(module, hook._tensor_name)
