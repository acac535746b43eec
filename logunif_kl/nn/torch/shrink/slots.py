"""Modules whose units can be removed: which dimensions of their tensors belong to which units."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.instancenorm import _InstanceNorm

from ...slots import Slots
from ..convert.plain import plain_kind
from ..layers.conv import padding_of
from .units import Array, Other, Units

Tensor = torch.Tensor
Tensors = dict[str, Tensor]


def pads_zeros(convolution: Any) -> bool:
    return convolution.padding_mode == "zeros" and any(padding_of(convolution))


class Slotted:
    """A module with slots for the units that it reads (`ins`) and makes (`outs`)."""

    def __init__(self, module: Any, tensors: Tensors, slots: Slots) -> None:
        self.module, self.tensors, self.slots = module, tensors, slots
        self.given: Array | None = None
        """The constants in the input, or NaN. If calls differ in a constant, it is NaN."""

    outs: Array
    ins: Array
    else_why = "their constant changes on the way, in place or where zeros are padded"
    """Why dead units stay that nothing pins."""
    one_size = "the groups of a convolution have one size"
    """Why dead units stay to keep lists of slots `balanced`."""

    def call(self, x: Any, node: Any) -> Any:
        """Return what the module makes of an activation, or None if it reads it in another way."""
        raise NotImplementedError

    def dims(self) -> Iterator[tuple[str, int, Array]]:
        """Yield tensors with a dimension and the slots along it."""
        raise NotImplementedError

    def reads(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield slots of outputs, slots of inputs, and whether an output needs an input."""
        yield from ()

    def folded(self, gone: Array) -> Tensors:
        """Return biases that have taken in the constants of the slots that go."""
        return {}

    def balanced(self) -> list[list[Array]]:
        """Return lists of lists of slots of which the same number must go."""
        return []

    def without(self, gone: Array) -> Tensors:
        """Return the tensors without the slots that go."""
        tensors = {**self.tensors, **self.folded(gone)}
        for name, dim, ids in self.dims():
            kept = torch.from_numpy(np.flatnonzero(~gone[ids]))
            if name in tensors and len(kept) < len(ids):
                tensors[name] = tensors[name].index_select(dim, kept.to(tensors[name].device))
        return tensors

    def dead(self) -> Array:
        """Return the slots of outputs whose own weights are 0."""
        return self.outs[:0]

    def take(self, values: Array) -> Array:
        if self.given is not None:
            values = np.where(self.given == values, values, np.nan)
        self.given = values
        return values

    def joined(self, x: Any, count: int, ids: Array) -> Units | None:
        """Unite the units of an input with slots, if there are as many."""
        spread = x.spread(count)
        if spread is not None:
            self.slots.unite(spread.ids, ids)
        return spread


def as_numpy(given: Tensor) -> Array:
    return given.detach().cpu().double().numpy()


class Layer(Slotted):
    """A linear layer, a convolution, possibly transposed, or an embedding."""

    def __init__(self, module: Any, tensors: Tensors, slots: Slots) -> None:
        super().__init__(module, tensors, slots)
        kind, weight = plain_kind(module), tensors["weight"]
        self.places = weight.ndim - 2
        self.is_conv = issubclass(kind, _ConvNd)
        self.first = int(issubclass(kind, (nn.Embedding, nn.EmbeddingBag, _ConvTransposeNd)))
        """The dimension of the outputs in the weight."""
        matrix = weight.transpose(0, 1) if self.first else self._whole(weight)
        self.is_table = kind in (nn.Embedding, nn.EmbeddingBag)
        self.matrix = matrix[..., None].flatten(2)
        kept = self.matrix != 0
        self.kept = (kept.any(2) if kept.shape[2] > 1 else kept[:, :, 0]).cpu().numpy()
        self.outs = slots.new(len(matrix))
        self.ins = slots.new(0 if self.is_table else matrix.shape[1])

    def _whole(self, weight: Tensor) -> Tensor:
        """Return the weight with a column for each input."""
        return weight

    def _foldable(self, values: Array) -> Any:
        """Whether a constant in the input adds a constant to the output."""
        finite = np.isfinite(values)
        if not self.is_conv:
            return finite
        if self.first:
            return values == 0.0
        return values == 0.0 if pads_zeros(self.module) else finite

    def _bias(self) -> Array:
        bias = self.tensors.get("bias")
        return np.zeros(len(self.outs)) if bias is None else as_numpy(bias)

    def _added(self, rows: Array, at: Array) -> Array:
        """Return what the constants at some inputs add to some outputs."""
        given: Any = self.given
        added, values = np.zeros(len(self.outs)), np.where(at, given, 0.0)
        rows = rows & (self.kept & (values != 0.0)).any(1)
        if rows.any():
            chosen = torch.from_numpy(np.flatnonzero(rows)).to(self.matrix.device)
            part = self.matrix[chosen]
            part = part[:, :, 0] if part.shape[2] == 1 else part.sum(2, dtype=torch.float64)
            added[rows] = as_numpy(part) @ values
        return added

    def call(self, x: Any, node: Any) -> Any:
        if self.is_table:
            if isinstance(x, Units):
                return None
            table, values = self.matrix[:, :, 0], np.full(len(self.outs), np.nan)
            if table.numel():
                same = (table == table[:, :1]).all(1).cpu().numpy()
                values = np.where(same, as_numpy(table[:, 0]), np.nan)
            if isinstance(self.module, nn.EmbeddingBag):  # A bag may be empty.
                values[values != 0.0] = np.nan
            return Units(self.outs, values, -1, None, x.rows, node)
        axis = -1 - self.places if self.is_conv else -1
        values = np.full(len(self.ins), np.nan)
        ndim = None
        if isinstance(x, Units):
            if x.axis != axis or (x.flat and self.is_conv):
                return None
            spread = self.joined(x, len(self.ins), self.ins)
            if spread is None:
                return None
            values, ndim = self.take(spread.values), x.ndim
        else:
            self.slots.pin(self.ins, "")
            values = self.take(values)
        constant = self._foldable(values)
        known = ~(self.kept & ~constant).any(1)
        total = self._bias() + self._added(known, constant)
        ndim = self.places + 2 if self.is_conv else ndim
        return Units(self.outs, np.where(known, total, np.nan), axis, ndim, x.rows, node)

    def dims(self) -> Iterator[tuple[str, int, Array]]:
        yield "weight", self.first, self.outs
        if not self.is_table:
            yield "weight", 1 - self.first, self.ins
            yield "bias", 0, self.outs

    def reads(self) -> Iterator[tuple[Array, Array, Array]]:
        if self.given is not None:
            yield self.outs, self.ins, self.kept & ~self._foldable(self.given)

    def folded(self, gone: Array) -> Tensors:
        if self.given is None or self.is_table:
            return {}
        added = self._added(~gone[self.outs], gone[self.ins] & self._foldable(self.given))
        if not added.any():
            return {}
        weight = self.tensors["weight"]
        return {"bias": torch.from_numpy(self._bias() + added).to(weight)}

    def dead(self) -> Array:
        return self.outs[~self.kept.any(1)] if not self.is_table else self.outs[:0]


class GroupedConv(Layer):
    """A convolution in groups, of which each keeps as many inputs and as many outputs."""

    def _whole(self, weight: Tensor) -> Tensor:
        groups = self.module.groups
        found = weight.new_zeros(groups, len(weight) // groups, groups, *weight.shape[1:])
        for i, part in enumerate(weight.chunk(groups)):
            found[i, :, i] = part
        return found.reshape(len(weight), groups * weight.shape[1], *weight.shape[2:])

    def dims(self) -> Iterator[tuple[str, int, Array]]:
        yield "weight", 0, self.outs
        yield "bias", 0, self.outs
        yield "", 0, self.ins

    def balanced(self) -> list[list[Array]]:
        return [np.split(ids, self.module.groups) for ids in (self.ins, self.outs)]

    def without(self, gone: Array) -> Tensors:
        tensors = super().without(gone)
        kept = np.split(~gone[self.ins], self.module.groups)
        if not all(each.all() for each in kept):
            parts = tensors["weight"].chunk(self.module.groups)
            pairs = zip(parts, map(torch.from_numpy, kept), strict=True)
            tensors["weight"] = torch.cat([part[:, own.to(part.device)] for part, own in pairs])
        return tensors


class Channels(Slotted):
    """A module that maps each channel alone: a depthwise convolution, a norm, or a PReLU."""

    def __init__(self, module: Any, tensors: Tensors, slots: Slots) -> None:
        super().__init__(module, tensors, slots)
        self.count = max((len(each) for each in tensors.values() if each.ndim), default=0)
        self.outs = self.ins = slots.new(self.count)

    def call(self, x: Any, node: Any) -> Any:
        if not isinstance(x, Units):
            self.slots.pin(self.ins, "")
            return Other(x.rows)
        ndim = x.ndim
        if isinstance(self.module, _ConvNd):
            fits, x = x.axis == 1 - self.tensors["weight"].ndim, x._replace(single=False)
        else:
            fits = x.second
            if x.axis == -1 and ndim is None and type(self.module) in (nn.BatchNorm1d, nn.PReLU):
                fits, ndim = True, 2  # With three dimensions, the units would be in the second.
        spread = self.joined(x, self.count, self.ins) if fits else None
        if spread is None:
            return None
        values = self.take(spread.values)
        return spread._replace(values=self._mapped(values), ndim=ndim, memory=node)

    def _mapped(self, values: Array) -> Array:
        given = {name: as_numpy(each) for name, each in self.tensors.items()}
        module, weight = self.module, given.get("weight", np.ones(self.count))
        if isinstance(module, nn.PReLU):
            return np.where(values < 0.0, weight * values, values)
        bias = given.get("bias", np.zeros(self.count))
        if not isinstance(module, _NormBase):
            weight = weight.reshape(self.count, -1)
            values = np.where((values == 0.0) | (not pads_zeros(module)), values, np.nan)
            return np.where((weight == 0.0).all(1), bias, bias + weight.sum(1) * values)
        mean, variance = (given.get(f"running_{name}", np.nan) for name in ("mean", "var"))
        if isinstance(module, _InstanceNorm) and not module.track_running_stats:
            mean = variance = np.nan  # It reads the input instead, also if it has them.
        with np.errstate(all="ignore"):
            found = (values - mean) / np.sqrt(variance + module.eps) * weight + bias
        return np.where(weight == 0.0, bias, found)

    def dims(self) -> Iterator[tuple[str, int, Array]]:
        for name, each in self.tensors.items():
            if each.ndim:
                yield name, 0, self.outs
