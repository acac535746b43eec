"""Weights that a hook computes before each call of a layer: made new, copied and made permanent."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import prune
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.weight_norm import WeightNorm

_COMPUTE = (BasePruningMethod, WeightNorm)
"""Hooks that can be called at any time; that of a spectral norm changes its state."""


def refresh(module: Any) -> None:
    """Compute the weights of a module from what they are made of.

    Between a step of an optimizer, or `load_state_dict`, and the next call of the module they are
    those of the call before.
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, _COMPUTE):
            # The weights keep their graph, also where they are only counted.
            with torch.enable_grad():
                hook(module, None)


def masked(module: Any, name: str) -> bool:
    """Whether a parameter has a mask of `torch.nn.utils.prune`."""
    return f"{name}_mask" in module._buffers and f"{name}_orig" in module._parameters


def copies(model: torch.nn.Module) -> dict[int, Any]:
    """Copy the weights that hooks have computed, for `copy.deepcopy`, which refuses to."""
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
