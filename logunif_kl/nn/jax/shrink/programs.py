"""The operations of a function, as a list: jaxprs without calls."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

Array = Any

_CALLS = {
    *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
}
_SIZES = {"shape", "new_sizes", "slice_sizes", "limit_indices", "feature_group_count"}
"""Parameters of operations that follow the sizes of arrays."""


class Step(NamedTuple):
    """An operation. Its inputs are numbers of values, or constants in the program."""

    primitive: Any
    params: dict[str, Any]
    ins: list[Any]
    outs: list[int]

    @property
    def name(self) -> str:
        return str(self.primitive.name)


class Program(NamedTuple):
    """The steps of a function, with the shape and the dtype of each value."""

    steps: list[Step]
    inputs: list[int]
    outputs: list[Any]
    types: list[Any]
    constants: dict[int, Array]
    """Arrays that the function has from elsewhere."""

    @classmethod
    def of(cls, function: Callable[..., Any], *args: Any) -> Program:
        """Trace a function."""
        closed = jax.make_jaxpr(function)(*args)
        program = cls([], [], [], [], {})
        program.inputs.extend(map(program._new, closed.jaxpr.invars))
        program.outputs.extend(program._walk(closed.jaxpr, closed.consts, program.inputs))
        return program

    def _new(self, variable: Any) -> int:
        self.types.append(variable.aval)
        return len(self.types) - 1

    def _walk(self, jaxpr: Jaxpr, consts: Sequence[Array], ins: Sequence[Any]) -> list[Any]:
        known = dict(zip(jaxpr.invars, ins, strict=True))
        for variable, value in zip(jaxpr.constvars, consts, strict=True):
            known[variable] = self._new(variable)
            self.constants[known[variable]] = value

        def read(variable: Any) -> Any:
            return variable if isinstance(variable, Literal) else known[variable]

        for equation in jaxpr.eqns:
            own = [read(each) for each in equation.invars]
            inner = _called(equation)
            if inner is None:
                outs = [self._new(each) for each in equation.outvars]
                self.steps.append(Step(equation.primitive, dict(equation.params), own, outs))
            else:
                outs = self._walk(*inner, own)
            known.update(zip(equation.outvars, outs, strict=True))
        return [read(each) for each in jaxpr.outvars]

    def same(self, other: Program, shapes: list[tuple[int, ...]]) -> bool:
        """Whether another program has the same steps, with values of these shapes."""
        if len(self.types) != len(other.types) or len(self.steps) != len(other.steps):
            return False
        outs = [Step(None, {}, program.outputs, []) for program in (self, other)]
        return all(
            own.primitive is its.primitive
            and own.outs == its.outs
            and len(own.ins) == len(its.ins)
            and all(self._same_input(*pair, other) for pair in zip(own.ins, its.ins, strict=True))
            and own.params.keys() == its.params.keys()
            and all(key in _SIZES or _same(x, its.params[key]) for key, x in own.params.items())
            and all(other.types[each].shape == shapes[each] for each in own.outs)
            for own, its in zip([*self.steps, outs[0]], [*other.steps, outs[1]], strict=True)
        )

    def _same_input(self, own: Any, its: Any, other: Program) -> bool:
        if isinstance(own, Literal) or isinstance(its, Literal):
            both = isinstance(own, Literal) and isinstance(its, Literal)
            return both and bool(np.array_equal(own.val, its.val, equal_nan=True))
        if own in self.constants and its in other.constants:
            first, second = self.constants[own], other.constants[its]
            return first is second or bool(np.array_equal(first, second))
        return own == its


def _called(equation: Any) -> tuple[Jaxpr, Sequence[Array]] | None:
    """Return the program that an operation calls once, or None."""
    if equation.primitive.name not in _CALLS:
        return None
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        found = equation.params.get(name)
        if isinstance(found, ClosedJaxpr):
            return found.jaxpr, found.consts
        if isinstance(found, Jaxpr):
            return found, ()
    return None


def _same(first: Any, second: Any) -> bool:
    # Two functions with one name may have closed over different sizes.
    return bool(first == second) if callable(first) else str(first) == str(second)
