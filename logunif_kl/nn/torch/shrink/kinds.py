"""Which modules can lose units, and what they are with fewer."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrize

from ...slots import Slots
from ..convert.plain import plain_kind
from ..hooks import refresh, remove_masks
from .recurrent import GATES, Recurrent
from .slots import Channels, GroupedConv, Layer, Slotted, Tensors

Tensor = torch.Tensor

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
NOT_FOLLOWED = (nn.LSTMCell, nn.GRUCell, nn.RNNCell, nn.Bilinear)


def is_depthwise(convolution: Any) -> bool:
    """Whether a convolution maps each channel alone to one channel."""
    return convolution.groups == convolution.in_channels == convolution.out_channels > 1


def groups_of(convolution: Any, weight: Tensor) -> int:
    """Return the number of groups of a convolution with a weight of perhaps fewer channels."""
    return len(weight) if is_depthwise(convolution) else convolution.groups


def others(model: nn.Module) -> dict[Any, Tensors]:
    """Return the other modules of a model whose units can be removed, with their tensors."""
    found: dict[Any, Tensors] = {}
    for module in model.modules():
        recurrent = type(module) in GATES
        norm = isinstance(module, (_BatchNorm, _InstanceNorm)) and _is_of_torch(module)
        bag = type(module) is nn.EmbeddingBag and module.max_norm is None
        if not (recurrent or norm or bag or type(module) in (*_TRANSPOSED, nn.PReLU)):
            continue
        if parametrize.is_parametrized(module) or isinstance(module, LazyModuleMixin):
            continue
        refresh(module)
        names: Any = ["weight", "bias", "running_mean", "running_var"]
        names = module._flat_weights_names if recurrent else names
        tensors = {name: getattr(module, name, None) for name in names}
        found[module] = {k: v for k, v in tensors.items() if isinstance(v, Tensor)}
    return found


def _is_of_torch(module: Any) -> bool:
    return type(module).__module__.startswith("torch.nn.")


def slotted(module: Any, tensors: Tensors, slots: Slots) -> Slotted | None:
    """Return slots for the units of a module, or None if its units must stay."""
    kind = plain_kind(module)
    if kind in GATES:
        return None if module.proj_size else Recurrent(module, tensors, slots)
    if kind in (*_CONVOLUTIONS, *_TRANSPOSED) and module.groups > 1:
        if kind in _TRANSPOSED:
            return None
        return (Channels if is_depthwise(module) else GroupedConv)(module, tensors, slots)
    if isinstance(module, (_NormBase, nn.PReLU)):
        made = Channels(module, tensors, slots)
        return made if made.count > (kind is nn.PReLU) else None
    return Layer(module, tensors, slots)


def fixed(module: Any) -> str:
    """Say why `slotted` returns None."""
    if type(module) in GATES:
        return "projections of an LSTM are not followed"
    return "a transposed convolution in groups is not followed"


def dead_heads(attention: Any) -> bool:
    """Whether a head of attention is constant, or not read."""
    heads, size = attention.num_heads, attention.head_dim
    value = attention.v_proj_weight
    if value is None:
        value = attention.in_proj_weight[2 * heads * size :]
    made = (value != 0).reshape(heads, -1).any(1)
    read = (attention.out_proj.weight != 0).reshape(-1, heads, size).any(2).any(0)
    return not bool((made & read).all())


def resize(module: Any, tensors: Tensors) -> None:
    """Give a module of torch other tensors, and the sizes that belong to them."""
    remove_masks(module)
    for name, tensor in tensors.items():
        own = module._parameters.get(name)
        made = tensor.detach().clone()
        setattr(module, name, made if own is None else nn.Parameter(made, own.requires_grad))
    if type(module) in GATES:
        module.hidden_size = module.weight_hh_l0.shape[1]
        module.input_size = module.weight_ih_l0.shape[1]
        module._init_flat_weights()
    elif isinstance(module, nn.EmbeddingBag):
        module.embedding_dim = module.weight.shape[1]
    elif isinstance(module, nn.PReLU):
        module.num_parameters = len(module.weight)
    elif isinstance(module, _NormBase):
        module.num_features = len(next(iter(tensors.values())))
    else:
        module.in_channels = len(module.weight)
        module.out_channels = module.weight.shape[1] * module.groups
