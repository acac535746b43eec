"""What is known of a value in a program: its units, and where it is constant."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from ...slots import Array, Slots
from .programs import Program, Step

Shape = tuple[int, ...]


class Value:
    """A value of a program.

    `ids` has the slots along each dimension, or None where all must stay. `constants` has along
    each dimension the number that all elements at an index have for any input, or NaN. `known` is
    an array that depends on no input.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        ids: Sequence[Array | None] | None = None,
        constants: Sequence[Array | None] | None = None,
        known: Any = None,
    ) -> None:
        self.shape = shape
        self.ids: list[Any] = [None] * len(shape) if ids is None else list(ids)
        self.constants: list[Any] = [None] * len(shape) if constants is None else list(constants)
        self.known = known

    def constant(self, dim: int) -> Array:
        """Return the constant at each index of a dimension, or NaN."""
        found = self.constants[dim]
        if found is None:
            found = np.full(self.shape[dim], np.nan)
            if self.known is not None and self.known.size:
                rows = np.moveaxis(numbers(self.known), dim, 0).reshape(self.shape[dim], -1)
                found = np.where((rows == rows[:, :1]).all(1), rows[:, 0], np.nan)
            self.constants[dim] = found
        return found

    @property
    def only(self) -> float:
        """The one number that the value is made of, or NaN."""
        if self.shape:
            found = self.constant(0)
            return float(found[0]) if len(found) and (found == found[0]).all() else np.nan
        return np.nan if self.known is None else float(numbers(self.known))


class Need(NamedTuple):
    """Which units an operation reads: `needs` is true where one may change outputs.

    Its first dimension is that of the units, the others are those of the slots in `outs`.
    """

    ids: Array
    outs: list[Array | None]
    needs: Array


class Fold(NamedTuple):
    """Constant inputs of a product, whose outputs a bias is added to."""

    ids: Array
    products: Array
    """What each input adds to each output, or NaN if it is not constant."""
    bias: int


def numbers(given: Any) -> Array:
    return np.asarray(given).astype(float)


class Reader:
    """Reads a program, and collects what its steps say about units."""

    def __init__(self, program: Program, leaves: list[Any]) -> None:
        self.program = program
        self.slots = Slots()
        self.needs: list[Need] = []
        self.folds: list[Fold] = []
        self.inputs: list[Array] = []
        """Slots of the inputs of weights."""
        self.values: list[Any] = [None] * len(program.types)
        self.uses = [0] * len(program.types)
        self.producers: dict[int, Step] = {}
        for step in program.steps:
            self.producers.update(dict.fromkeys(step.outs, step))
            for each in step.ins:
                if type(each) is int:
                    self.uses[each] += 1
        for each in program.outputs:
            if type(each) is int:
                self.uses[each] += 1
        for number, leaf in zip(program.inputs, leaves, strict=False):
            followed = self.uses[number] and is_float(leaf)
            ids = [self.slots.new(size) if followed else None for size in leaf.shape]
            self.values[number] = Value(leaf.shape, ids, known=leaf if has_numbers(leaf) else None)
        for number in program.inputs[len(leaves) :]:
            self.values[number] = Value(program.types[number].shape)
        self.leaves = program.inputs[: len(leaves)]
        self.of_leaves = self.slots.count
        for number, array in program.constants.items():
            value = self.fixed(np.shape(array), "an array that is not in the tree has their number")
            value.known = array if has_numbers(array) else None
            self.values[number] = value

    def fixed(self, shape: Shape, why: str) -> Value:
        """Return a value whose units must stay."""
        value = Value(shape, [self.slots.new(size) for size in shape])
        self.pin(value, why=why)
        return value

    def value(self, given: Any) -> Value:
        if isinstance(given, Literal):
            array = np.asarray(given.val)
            return Value(array.shape, known=array if has_numbers(array) else None)
        return self.values[given]

    def read(self, rules: dict[str, Callable[..., Any]]) -> None:
        """Read all steps by the rules for their operations."""
        for step in self.program.steps:
            ins = [self.value(each) for each in step.ins]
            shapes = [self.program.types[each].shape for each in step.outs]
            rule = rules.get(step.name)
            found = rule(self, step, ins, shapes[0]) if rule is not None else None
            if found is None:
                why = f"{step.name} is not followed"
                for each in ins:
                    self.pin(each, why=why)
                found = [self.fixed(shape, why) for shape in shapes]
            outs = found if isinstance(found, list) else [found]
            if step.ins and not step.primitive.multiple_results:
                known = [each.known for each in ins]
                if all(each is not None for each in known):
                    outs[0] = Value(shapes[0], outs[0].ids, known=self.computed(step, known))
            for number, value in zip(step.outs, outs, strict=True):
                self.values[number] = value
        for given in self.program.outputs:
            self.pin(self.value(given))

    def computed(self, step: Step, args: list[Any]) -> Any:
        """Compute a step for arrays."""
        types: list[Any] = [
            each.aval if isinstance(each, Literal) else self.program.types[each]
            for each in step.ins
        ]
        arrays = [jnp.asarray(each, kind.dtype) for each, kind in zip(args, types, strict=True)]
        found = step.primitive.bind(*arrays, **step.params)
        return found if has_numbers(found) else None

    def pin(self, value: Value, dims: Sequence[int] | None = None, why: str = "") -> None:
        for dim in range(len(value.shape)) if dims is None else dims:
            ids = value.ids[dim]
            if ids is not None:
                self.slots.pin(ids, why)

    def unite(self, first: Array | None, second: Array | None, why: str = "") -> Array | None:
        """Unite two lists of slots. If one must stay, so must the other."""
        if first is not None and second is not None:
            self.slots.unite(first, second)
            return first
        for ids in (first, second):
            if ids is not None:
                self.slots.pin(ids, why)
        return None

    def _float(self, number: int) -> bool:
        return is_float(self.program.types[number])

    def bias_of(self, number: int, dim: int) -> int | None:
        """Return the leaf that is added to a value along a dimension and read nowhere else."""
        while True:
            users = [step for step in self.program.steps if number in step.ins]
            if self.uses[number] != 1 or not users:
                return None
            if users[0].name == "transpose":
                dim = tuple(users[0].params["permutation"]).index(dim)
            elif users[0].name != "convert_element_type" or not self._float(users[0].outs[0]):
                break
            (number,) = users[0].outs
        if users[0].name not in ("add", "add_any"):
            return None
        (other,) = (each for each in users[0].ins if each != number)
        count, path = self.program.types[number].shape[dim], []
        while type(other) is int and self.uses[other] == 1 and other in self.producers:
            path.append(self.producers[other])
            other = path[-1].ins[0]
        if other not in self.leaves or self.uses[other] != 1:
            return None
        leaf, axis = self.values[other], 0
        if leaf.shape != (count,) or leaf.ids[0] is None:
            return None
        for step in reversed(path):
            shape = self.program.types[step.outs[0]].shape
            if step.name == "broadcast_in_dim" and len(step.ins) == 1:
                axis = int(step.params["broadcast_dimensions"][axis])
            elif step.name == "reshape" and sorted(shape)[-1] == math.prod(shape) == count:
                axis = shape.index(count)
            elif step.name != "convert_element_type" or not self._float(step.outs[0]):
                return None
            if shape[axis] != count:
                return None
        return int(other) if axis == dim else None


def has_numbers(array: Any) -> bool:
    """Whether an array holds real numbers, which are all that constants are looked for in."""
    kinds = (np.floating, np.integer, np.bool_)
    return any(jnp.issubdtype(array.dtype, kind) for kind in kinds)


def is_float(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, np.floating))
