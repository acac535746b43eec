"""Remove hidden units of the recurrent modules of torch."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from ...slots import Slots
from .slots import Slotted, Tensors, as_numpy
from .units import Array, Units

GATES = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}
_CANDIDATE = {nn.LSTM: 2, nn.GRU: 2, nn.RNN: 0}
"""The gate whose tanh is what enters the state."""


class Recurrent(Slotted):
    """An `LSTM`, a `GRU` or an `RNN` of torch without projections."""

    one_size = "all layers and directions of a recurrent module have one size"
    else_why = "biases change their states from step to step"

    def __init__(self, module: Any, tensors: Tensors, slots: Slots) -> None:
        super().__init__(module, tensors, slots)
        self.gates, size = GATES[type(module)], module.hidden_size
        ways = [("", "_reverse")[: 1 + module.bidirectional]] * module.num_layers
        self.names = [[f"l{k}{way}" for way in each] for k, each in enumerate(ways)]
        self.hidden = [[slots.new(size) for _ in each] for each in self.names]
        self.layers = [np.concatenate(each) for each in self.hidden]
        self.inputs = [slots.new(module.input_size), *self.layers[:-1]]
        self.outs, self.ins = self.layers[-1], self.inputs[0]
        self.constants: list[Array] = []
        """The constants in the input of each layer, or NaN."""
        self.states: list[Array] = []
        """The constants in the output of each direction of each layer, or NaN."""
        self.starts = [np.ones(size, bool) for _ in self.balanced()[0]]
        """Whether the initial state of each unit is 0."""

    def _blocks(self, name: str) -> Array:
        """Return a tensor in the shape (gates, hidden units, ...), of zeros if there is none."""
        size = self.module.hidden_size
        if name not in self.tensors:
            return np.zeros((self.gates, size))
        each = as_numpy(self.tensors[name])
        return each.reshape(self.gates, size, *each.shape[1:])

    def call(self, x: Any, node: Any, initial: Any = None) -> Any:
        values = np.full(len(self.ins), np.nan)
        if initial is not None and not self._start(initial if self.gates == 4 else (initial,)):
            return None
        if isinstance(x, Units):
            spread = self.joined(x, len(self.ins), self.ins) if x.axis == -1 else None
            if spread is None:
                return None
            values = spread.values
        else:
            self.slots.pin(self.ins, "")
        values, self.constants, self.states = self.take(values), [], []
        starts = iter(self.starts)
        for names in self.names:
            self.constants.append(values)
            ways = [self._constants(name, values, next(starts)) for name in names]
            self.states += ways
            values = np.concatenate(ways)
        states = tuple(
            Units(own, each, -1, 2, object(), node)
            for own, each in zip(self.balanced()[0], self.states, strict=True)
        )
        out = Units(self.outs, values, -1, getattr(x, "ndim", None) or 3, object(), node)
        return out, (states, states) if self.gates == 4 else states

    def _start(self, initial: Any) -> bool:
        """Unite units with those of initial states, or return False if these are not followed."""
        hidden = self.balanced()[0]
        for states in initial if type(initial) is tuple else (None,):
            if type(states) is not tuple or len(states) != len(hidden):
                return False
            for i, (each, own) in enumerate(zip(states, hidden, strict=True)):
                if not isinstance(each, Units) or len(each.ids) != len(own):
                    return False
                self.slots.unite(each.ids, own)
                self.starts[i] &= each.values == 0.0
        return True

    def _constants(self, name: str, inputs: Array, start: Array) -> Array:
        """Return the constants in the output of one direction of a layer, or NaN.

        Other units must read no constant but 0, which is also in their initial states.
        """
        own = _CANDIDATE[type(self.module)]
        from_inputs = self._blocks(f"weight_ih_{name}")[own]
        from_hidden = self._blocks(f"weight_hh_{name}")[own] != 0.0
        inner = self._blocks(f"bias_hh_{name}")[own]
        total = self._blocks(f"bias_ih_{name}")[own] + from_inputs @ np.nan_to_num(inputs)
        known = ~(from_inputs[:, ~np.isfinite(inputs)] != 0.0).any(1)
        if self.gates == 3:
            known &= inner == 0.0  # A gate multiplies it.
        else:
            total = total + inner
        if self.gates > 1:
            known &= (total == 0.0) & start
        elif self.module.mode == "RNN_TANH":
            total = np.tanh(total)
        else:
            total = np.maximum(total, 0.0)
        while True:
            zero = known & (total == 0.0) & start
            fewer = known & ~from_hidden[:, ~zero].any(1)
            if (fewer == known).all():
                return np.where(known, total, np.nan)
            known = fewer

    def dims(self) -> Iterator[tuple[str, int, Array]]:
        for names, hidden, inputs in zip(self.names, self.hidden, self.inputs, strict=True):
            for name, own in zip(names, hidden, strict=True):
                yield f"weight_ih_{name}", 1, inputs
                yield f"weight_hh_{name}", 1, own
                for each in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    yield f"{each}_{name}", 0, np.tile(own, self.gates)

    def _each(self) -> Iterator[tuple[str, Array, Array, Array]]:
        for names, hidden, inputs, values in zip(
            self.names, self.hidden, self.inputs, self.constants, strict=bool(self.constants)
        ):
            for name, own in zip(names, hidden, strict=True):
                yield name, own, inputs, values

    def reads(self) -> Iterator[tuple[Array, Array, Array]]:
        states = zip(self.states, self.starts if self.states else (), strict=True)
        for (name, own, inputs, values), (state, start) in zip(self._each(), states, strict=True):
            kept = (self._blocks(f"weight_ih_{name}") != 0.0).any(0)
            foldable = np.isfinite(values) & ((values == 0.0) | self.module.bias)
            yield own, inputs, kept & ~foldable
            kept = (self._blocks(f"weight_hh_{name}") != 0.0).any(0)
            yield own, own, kept & ~((state == 0.0) & start)

    def folded(self, gone: Array) -> Tensors:
        found: Tensors = {}
        for name, _, inputs, values in self._each():
            at = gone[inputs] & np.isfinite(values) & (values != 0.0)
            if at.any() and self.module.bias:
                before = self.tensors[f"bias_ih_{name}"]
                added = as_numpy(self.tensors[f"weight_ih_{name}"])[:, at] @ values[at]
                found[f"bias_ih_{name}"] = torch.from_numpy(as_numpy(before) + added).to(before)
        return found

    def balanced(self) -> list[list[Array]]:
        return [[*itertools.chain(*self.hidden)]]

    def dead(self) -> Array:
        found = [self.outs[:0]]
        for name, own in zip(itertools.chain(*self.names), self.balanced()[0], strict=True):
            each = (self._blocks(f"weight_{kind}_{name}") != 0.0 for kind in ("ih", "hh"))
            ih, hh = (kept.any((0, 2)) for kept in each)
            found.append(own[~(ih | hh)])
        return np.concatenate(found)
