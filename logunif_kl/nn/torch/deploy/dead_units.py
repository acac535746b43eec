"""Remove dead units: units that no layer reads, and units with a constant output."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from ..layers.dropout import GaussianDropoutA
from .chains import ELEMENTWISE, chains, outputs
from .traces import Part, parts

Tensor = torch.Tensor
Weights = dict[nn.Module, tuple[Tensor, Tensor | None]]

# Modules that are elementwise in evaluation mode, where dropout is the identity.
_ELEMENTWISE = (
    *ELEMENTWISE,
    *(nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout),
    *(nn.FeatureAlphaDropout, GaussianDropoutA),
)
# Modules that pool each channel alone. With padding, _AVERAGES may change a constant channel.
_POOLING = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d),
    *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
)
_AVERAGES = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)


class Link(NamedTuple):
    """Two consecutive layers with weights, and the modules between them."""

    first: Any
    between: list[nn.Module]
    second: Any


def drop_units(model: nn.Module, weights: Weights, traced: list[Part]) -> list[nn.Module]:
    """Remove dead units from the weights of consecutive layers of a traced model.

    A unit is unread if the next layer multiplies it only by zeros. A unit is constant if all its
    own weights are 0. Each layer keeps at least one unit. Return the layers whose constant units
    stay because no link leads to a next layer or because of a padding, without the layers that
    compute outputs of the model.
    """
    found = list(links(model, weights, traced))
    # Go backwards: when an unread unit is removed, the units that only it reads become unread.
    for link in reversed(found):
        _drop_unread(link, weights)
    # Go forwards, because a unit whose inputs are all constant is constant too.
    folded = [link.first for link in found if not _drop_constant(link, weights)]
    last = [*weights][-1:]
    passed = [*folded, *outputs(traced, weights), *last]
    return [layer for layer in weights if layer not in passed and _dead(layer, weights)]


def _dead(layer: nn.Module, weights: Weights) -> bool:
    if isinstance(layer, nn.Embedding):
        return False  # Its rows are not units.
    return not bool((weights[layer][0] != 0).flatten(1).any(1).all())


def _drop_unread(link: Link, weights: Weights) -> None:
    by_unit = _by_unit(link, weights)
    _keep(link, weights, (by_unit != 0).flatten(2).any(2).any(0))


def _drop_constant(link: Link, weights: Weights) -> bool:
    """Remove constant units, and return whether some stay because of a padding."""
    weight, bias = weights[link.first]
    constant = ~(weight != 0).flatten(1).any(1)
    values = weight.new_zeros(len(weight)) if bias is None else bias
    values = torch.where(constant, values, 0.0)
    for module in link.between:
        if type(module) in _ELEMENTWISE and not _is_dropout(module):
            values = module(values)
    constant &= torch.isfinite(values)
    removable = constant
    if not _keeps_constants(link):
        # Some layer pads with zeros, so only the constant 0 is the same at every position.
        removable = constant & (values == 0)
    stay = bool((constant & ~removable).any())
    _fold(link, weights, removable, values)
    return stay


def _fold(link: Link, weights: Weights, constant: Tensor, values: Tensor) -> None:
    """Remove units, and add their constant outputs to the bias of the next layer."""
    if not constant.any():
        return
    by_unit = _by_unit(link, weights)
    if bool(constant.all()):
        constant = constant.clone()
        constant[0] = False
    added = torch.where(constant, values, 0.0).double()
    total = (by_unit.flatten(2).sum(2, dtype=torch.float64) * added).sum(1)
    second, its_bias = weights[link.second]
    if bool((total != 0).any()):
        before = 0.0 if its_bias is None else its_bias.double()
        its_bias = (before + total).to(second.dtype)
    weights[link.second] = second, its_bias
    _keep(link, weights, ~constant)


def _is_dropout(module: nn.Module) -> bool:
    return isinstance(module, (nn.modules.dropout._DropoutNd, GaussianDropoutA))


def _by_unit(link: Link, weights: Weights) -> Tensor:
    """Return the second layer's weights in the shape (outputs, units of the first layer, ...)."""
    second, _ = weights[link.second]
    units = len(weights[link.first][0])
    return second.reshape(len(second), units, second[0].numel() // units)


def _keep(link: Link, weights: Weights, kept: Tensor) -> None:
    """Keep only the `kept` units of the first layer, and their weights in the second layer."""
    if not kept.any():
        kept = kept.clone()
        kept[0] = True
    if kept.all():
        return
    first, bias = weights[link.first]
    second, its_bias = weights[link.second]
    by_unit = _by_unit(link, weights)[:, kept]
    after = by_unit.reshape(len(second), -1, *second.shape[2:])
    weights[link.first] = first[kept], None if bias is None else bias[kept]
    weights[link.second] = after, its_bias


def _keeps_constants(link: Link) -> bool:
    """Whether a constant channel of the first layer adds a constant to channels of the second."""
    if any(
        type(module) in _AVERAGES
        and (
            _any(module.padding)
            or module.ceil_mode
            or getattr(module, "divisor_override", None) is not None
        )
        for module in link.between
    ):
        return False
    if not isinstance(link.second, nn.modules.conv._ConvNd):
        return True
    return link.second.padding_mode != "zeros" or not any(
        link.second._reversed_padding_repeated_twice
    )


def _any(padding: Any) -> bool:
    return any(padding) if isinstance(padding, tuple) else bool(padding)


def links(model: nn.Module, weights: Weights, traced: list[Part] | None = None) -> Iterator[Link]:
    """Yield, in order, the pairs of consecutive layers between which units may be removed."""
    traced = list(parts(model, weights)) if traced is None else traced
    for first, *between, second in chains(model, traced, weights):
        link = Link(first, between, second)
        if _fits(link, weights):
            yield link


def graphs(traced: Iterable[Part]) -> list[str]:
    """Write the traced parts of a model, to compare them after units or layers were replaced.

    They differ if the forward reads sizes, kinds or parameters of layers.
    """
    return [f"{each.name}: {graph}" for each in traced for graph in each.graphs]


def _fits(link: Link, weights: Weights) -> bool:
    first, second = weights[link.first][0], weights[link.second][0]
    if any(isinstance(layer, nn.Embedding) for layer in (link.first, link.second)):
        return False
    if any(getattr(layer, "groups", 1) > 1 for layer in (link.first, link.second)):
        return False
    from_conv, to_conv = first.ndim > 2, second.ndim > 2
    flattened = False
    for module in link.between:
        if type(module) is nn.Flatten:
            if flattened or (module.start_dim, module.end_dim) != (1, -1):
                return False
            flattened = True
        elif type(module) in (*_POOLING, *_AVERAGES):
            if flattened or not type(module).__name__.endswith(f"{first.ndim - 2}d"):
                return False
        elif type(module) not in _ELEMENTWISE:
            return False
    if not flattened and first.ndim != second.ndim:
        return False
    if from_conv != to_conv and not (from_conv and flattened):
        return False
    if flattened and (to_conv or not from_conv):
        return False
    if not flattened and len(first) != second.shape[1]:
        return False
    return second.shape[1] % len(first) == 0
