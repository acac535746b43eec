"""Which modules can have sampled weights, and which of their parameters are matrices."""

# mypy: allow-untyped-calls
from __future__ import annotations

import sys
from functools import cache
from typing import Any

import torch
from torch.nn.utils import parametrize

from ..hooks import computed_names
from .weight import VariationalModule


@cache
def _kinds() -> tuple[type[torch.nn.Module], ...]:
    return (
        *(torch.nn.MultiheadAttention, torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN),
        *(torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell, torch.nn.Bilinear),
        *(torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d),
        *(torch.nn.EmbeddingBag, torch.nn.modules.linear.NonDynamicallyQuantizableLinear),
    )


def class_of(module: torch.nn.Module) -> Any:
    """Return the class of a module, which `fully_shard` replaces by a subclass."""
    kind: Any = type(module)
    fsdp = sys.modules.get("torch.distributed.fsdp")
    sharded = fsdp is not None and issubclass(kind, fsdp.FSDPModule)
    return kind.__bases__[1] if sharded else kind


def has_parametrizations(module: Any) -> bool:
    """Whether a module has parametrizations, and none of what they are computed from is Gaussian.

    Otherwise what holds the Gaussian parameters is the variational module.
    """
    if not parametrize.is_parametrized(module):
        return False
    return not any(isinstance(each, VariationalModule) for each in module.parametrizations.values())


def has_sampled_form(module: torch.nn.Module) -> bool:
    """Whether `to_variational` converts a module to a sampled one, unless told otherwise."""
    kind = class_of(module)
    hugging_face = (kind.__module__, kind.__name__) == ("transformers.pytorch_utils", "Conv1D")
    return kind in _kinds() or hugging_face


def lazily_sampled(module: Any) -> bool:
    """Whether a lazy module will have a sampled form after its first batch."""
    return getattr(module, "cls_to_become", None) in _kinds()


def matrices(module: torch.nn.Module) -> list[str]:
    """Name the parameters of a module itself that have two dimensions or more, without biases.

    A weight that a hook computes is named instead of the parameters that it is computed from.
    """
    found = []
    computed = computed_names(module)
    for name, parameter in module._parameters.items():
        own = next((each for each in computed if name.startswith(f"{each}_")), name)
        if parameter is not None and parameter.ndim > 1 and "bias" not in name:
            found.append(own)
    return [*dict.fromkeys(found)]
