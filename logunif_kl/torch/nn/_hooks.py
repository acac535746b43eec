"""Recompute, copy or make permanent the weights that hooks compute before each call."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import prune
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.weight_norm import WeightNorm

_COMPUTE = (BasePruningMethod, WeightNorm)
"""Hooks that are safe to call. `spectral_norm` is excluded: each call changes its state."""


def refresh(module: Any) -> None:
    """Recompute the weights that pruning or weight normalisation derives from the parameters.

    After an optimizer step or `load_state_dict`, these weights are out of date until the next call.
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, _COMPUTE):
            # Later calls need the autograd graph of the weights, even if this call is in `no_grad`.
            with torch.enable_grad():
                hook(module, None)


def masked(module: Any, name: str) -> bool:
    """Whether a parameter has a mask of `torch.nn.utils.prune`."""
    return f"{name}_mask" in module._buffers and f"{name}_orig" in module._parameters


def copies(model: torch.nn.Module) -> dict[int, Any]:
    """Return copies of the weights that hooks compute, as the memo that `copy.deepcopy` needs."""
    found: dict[int, Any] = {}
    for module in model.modules():
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, _COMPUTE):
                name = hook._tensor_name if isinstance(hook, BasePruningMethod) else hook.name
                # A sampled module computes this weight anew each time it is read.
                weight = module.__dict__.get(name)
                if weight is not None:
                    found[id(weight)] = weight.detach().clone()
    return found


def remove_masks(module: Any) -> None:
    """Make the masks of a module permanent, as `torch.nn.utils.prune.remove` does."""
    hooks = [*module._forward_pre_hooks.values()]
    for hook in hooks:
        if isinstance(hook, BasePruningMethod):
            prune.remove(module, hook._tensor_name)
