"""The part of a traced function to write, in any language."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from validation.codegen.trace import Node, Tracer, rounded_to_float32


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
