"""A namespace whose arrays are symbols, which records the operations of functions to write.

Equal expressions are one node, so a subexpression that occurs twice is computed once. An output can
be written without the nodes that only other outputs need.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and": "&",
    "or": "|",
}
BOOLEAN = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})
ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
MIXED = frozenset({"add", "sub", "and"})
COMMUTATIVE = frozenset({"add", "mul", "eq", "ne", "and", "or"})
MAGIC = 1.5 * 2.0**23 + 64.0
SMALLEST, LARGEST = 2.0**-126, (2.0 - 2.0**-23) * 2.0**127
FLOAT32, BOOL, INT32 = "float32", "bool", "int32"
INTEGER = frozenset({"bits", "left", "right"})
RECORDED = frozenset({"where", "exp", "log", "abs", "round", "minimum", "maximum"})
RECORDED |= {"inverse", "quotient", "bits", "unbits", "from_integer"}


def rounded_to_float32(value: float) -> float:
    """Return the nearest float32 of a number that Triton would read as float32, not as double."""
    if value and value == value and not math.isinf(value) and not SMALLEST <= abs(value) <= LARGEST:
        raise ValueError(f"{value!r} is not a normal float32: keep it out of the arithmetic")
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _binary(operation: str, *, swapped: bool = False) -> Callable[[Node, Any], Node]:
    def method(self: Node, other: Any) -> Node:
        if self.dtype == INT32 and isinstance(other, int):
            other = self.tracer.integer(other)
        pair = (self, self.tracer.node(other))
        return self.tracer.make(operation, *(pair[::-1] if swapped else pair))

    return method


class Node:
    """An operation on other nodes, an argument (a string) or a constant (a float)."""

    __hash__ = object.__hash__

    def __init__(self, tracer: Tracer, operation: str, operands: tuple[Any, ...]) -> None:
        self.tracer, self.operation, self.operands = tracer, operation, operands
        choice = operation == "where" and operands[1].dtype == BOOL
        self.dtype = BOOL if choice or operation in BOOLEAN else FLOAT32
        if operation in INTEGER or (operation in MIXED and operands[0].dtype == INT32):
            self.dtype = INT32

    def __bool__(self) -> bool:
        raise TypeError("the arithmetic branches on an element: use where")

    def is_constant(self, value: float) -> bool:
        return self.operation == "constant" and bool(self.operands[0] == value)

    __add__, __radd__ = _binary("add"), _binary("add", swapped=True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", swapped=True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", swapped=True)
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", swapped=True)
    __lt__, __le__, __gt__, __ge__ = map(_binary, ("lt", "le", "gt", "ge"))
    __eq__, __ne__ = _binary("eq"), _binary("ne")  # type: ignore[assignment]
    __and__, __or__ = _binary("and"), _binary("or")

    def __neg__(self) -> Node:
        return self.tracer.make("neg", self)

    def __invert__(self) -> Node:
        return self.tracer.make("not", self)


class Tracer:
    """The namespace ``xp`` for the arithmetic; `nodes` has all its operations, in order."""

    __name__ = "traced"
    float32, float64 = FLOAT32, "float64"

    def __init__(self) -> None:
        self.nodes: dict[tuple[Any, ...], Node] = {}

    def argument(self, name: str) -> Node:
        return self._unique("argument", name)

    def node(self, value: Any) -> Node:
        if isinstance(value, Node):
            return value
        return self._unique("constant", rounded_to_float32(float(value)))

    def integer(self, value: int) -> Node:
        """Return an integer constant, which must be exact in float32: see `binary32`."""
        if rounded_to_float32(float(value)) != value:
            raise ValueError(f"{value:#x} is not a float32: keep it out of the arithmetic")
        return self._unique("integer", value)

    def make(self, operation: str, *operands: Node) -> Node:
        if operation == "where" and operands[1] is operands[2]:
            return operands[1]
        if operation in ARITHMETIC and all(o.operation == "constant" for o in operands):
            # Rounding these to double and then to float32 gives the same as rounding once.
            return self.node(ARITHMETIC[operation](*(o.operands[0] for o in operands)))
        # No result of the arithmetic depends on the sign of a zero.
        if operation in ("add", "sub") and operands[1].is_constant(0.0):
            return operands[0]
        if operation in COMMUTATIVE and operands[0].operation == "constant":
            operands = operands[::-1]
        return self._unique(operation, *operands)

    def _unique(self, operation: str, *operands: Any) -> Node:
        # Compare by identity, because == between nodes is an operation. The text tells 0.0 from
        # -0.0.
        key = (operation, *(id(o) if isinstance(o, Node) else repr(o) for o in operands))
        if key not in self.nodes:
            self.nodes[key] = Node(self, operation, operands)
        return self.nodes[key]

    def __getattr__(self, name: str) -> Any:
        """Return the method that records an operation on nodes and constants."""
        if name in RECORDED:
            return lambda *operands: self.make(name, *map(self.node, operands))
        raise NotImplementedError(
            f"the arithmetic uses xp.{name}, which {__name__} does not know: add it there, in the "
            "writers, in logunif_kl/torch/_triton/elementary.py and in "
            "logunif_kl/_numpy/c/float32_simd.h"
        )

    def full_like(self, like: Node, value: float) -> Node:
        return self.node(value)

    @staticmethod
    def below(x: Node, u: Node, bound: float) -> Node:
        """Return x: a kernel may compute branches that are not chosen."""
        return x

    from_bound = below

    def nearest(self, x: Node, factor: float) -> tuple[Node, Node]:
        """Add a number that rounds the sum to an integer; its last bits are that plus 64."""
        shifted = self.fma(x, factor, MAGIC)
        return shifted - MAGIC, self.bits(shifted)

    def left(self, n: Node, by: int) -> Node:
        return self.make("left", n, self.integer(by))

    def right(self, n: Node, by: int) -> Node:
        return self.make("right", n, self.integer(by))

    def fma(self, a: Any, b: Any, c: Any) -> Node:
        """Record two operations, which the written code fuses."""
        total: Node = self.node(a) * self.node(b) + self.node(c)
        return total

    fused = fma

    def clip(self, x: Node, low: Any, high: Any) -> Node:
        x = self.maximum(x, low)
        return x if high is None else self.minimum(x, high)


class Output(NamedTuple):
    """A function to write: some of the results of a function of `_arithmetic`."""

    name: str
    arguments: Sequence[str]
    function: Callable[..., Any]
    pick: Sequence[int]
    summary: str


def traced(output: Output) -> list[Node]:
    tracer = Tracer()
    result = output.function(tracer, *(tracer.argument(a) for a in output.arguments))
    results = result if isinstance(result, tuple) else (result,)
    return [results[i] for i in output.pick]


def needed(outputs: Sequence[Node]) -> list[Node]:
    """Return the nodes that the outputs need, in order of computation."""
    wanted: set[int] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if id(node) not in wanted:
            wanted.add(id(node))
            stack += [o for o in node.operands if isinstance(o, Node)]
    return [n for n in outputs[0].tracer.nodes.values() if id(n) in wanted]


def shortest(value: float) -> str:
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        try:
            if rounded_to_float32(float(text)) == value:
                return repr(float(text)).replace("e+", "e")
        except ValueError:  # rounding overflowed float32
            continue
    return repr(value)
