"""The layers of networks to deploy, which take the place of layers with more weights."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch

from ..hooks import copy_additions
from ..shrink.kinds import groups_of
from ..weights.weight import VariationalModule
from .sparse import SparseConv, SparseEmbedding, SparseLinear

Tensor = torch.Tensor


def has_max_norm(module: Any) -> bool:
    """Whether each look-up changes rows of a table. On other layers the name is a user's own."""
    return isinstance(module, torch.nn.Embedding) and module.max_norm is not None


def sparse_layer(
    kind: Any, module: Any, weight: Tensor, bias: Tensor | None, backend: str
) -> torch.nn.Module:
    if kind is torch.nn.Linear:
        return SparseLinear(weight, bias, backend)
    if kind is torch.nn.Embedding:
        return SparseEmbedding(weight, backend)
    return SparseConv(weight, bias, backend, module)


def dense_layer(kind: Any, module: Any, weight: Tensor, bias: Tensor | None) -> torch.nn.Module:
    """Make a torch layer with the given weights, without drawing initial weights."""
    options: dict[str, Any] = {"device": "meta", "dtype": weight.dtype}
    made: Any
    if kind is torch.nn.Embedding:
        rows, columns = weight.shape
        made = kind(rows, columns, module.padding_idx, **options)
    elif kind is torch.nn.Linear:
        made = kind(weight.shape[1], weight.shape[0], bias is not None, **options)
    else:
        groups = groups_of(module, weight)
        made = kind(
            *(weight.shape[1] * groups, weight.shape[0], module.kernel_size),
            *(module.stride, module.padding, module.dilation, groups, bias is not None),
            module.padding_mode,
            **options,
        )
        # It may differ from a padding that was assigned.
        made._reversed_padding_repeated_twice = [*module._reversed_padding_repeated_twice]
    made.weight = torch.nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        made.bias = torch.nn.Parameter(bias.detach().clone(), requires_grad=False)
    return made


def copy_rest(module: Any, to: torch.nn.Module, memo: dict[int, Any]) -> None:
    """Give a new layer what a user added to the layer that it replaces."""
    of_weights = module._lk_weights() if isinstance(module, VariationalModule) else []
    noise = [name for weight in of_weights for name in weight.parameters]
    own = {*noise, *getattr(module, "_lk_own", ())}
    copy_additions(module, to, own, memo)
