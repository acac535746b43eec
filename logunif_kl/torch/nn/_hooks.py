"""Weights that a hook computes before each call: recompute, copy or make them permanent."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import prune
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.weight_norm import WeightNorm

_COMPUTE = (BasePruningMethod, WeightNorm)
"""Hooks that can be called at any time. The hook of a spectral norm would change its state."""


def refresh(module: Any) -> None:
    """Recompute the weights of a module from its parameters.

    After an optimizer step or `load_state_dict`, they are out of date until the next call.
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, _COMPUTE):
            # Recomputed weights need their graph, even if the caller only counts them.
            with torch.enable_grad():
                hook(module, None)


def masked(module: Any, name: str) -> bool:
    """Whether a parameter has a mask of `torch.nn.utils.prune`."""
    return f"{name}_mask" in module._buffers and f"{name}_orig" in module._parameters


def copies(model: torch.nn.Module) -> dict[int, Any]:
    """Copy weights computed by hooks, which `copy.deepcopy` refuses, and return a memo for it."""
    found: dict[int, Any] = {}
    for module in model.modules():
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, _COMPUTE):
                name = hook._tensor_name if isinstance(hook, BasePruningMethod) else hook.name
                weight = getattr(module, name)
                found[id(weight)] = weight.detach().clone()
    return found


def remove_masks(module: Any) -> None:
    """Make the masks of a module permanent, as `torch.nn.utils.prune.remove` does."""
    hooks = [*module._forward_pre_hooks.values()]
    for hook in hooks:
        if isinstance(hook, BasePruningMethod):
            prune.remove(module, hook._tensor_name)
