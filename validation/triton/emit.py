"""From traced outputs to the text of device functions in Triton."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from validation.triton.trace import OPERATORS, Node, Tracer, single

CALLS = {
    "where": "tl.where",
    "abs": "tl.abs",
    "exp": "exp",
    "log": "log",
    "round": "nearest",
    "divide": "divide",
    "minimum": "minimum",
    "maximum": "maximum",
}


def needed(outputs: Sequence[Node]) -> list[Node]:
    """What the outputs are made of, in the order in which it was computed."""
    wanted: set[int] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if id(node) not in wanted:
            wanted.add(id(node))
            stack += [o for o in node.operands if isinstance(o, Node)]
    return [n for n in outputs[0].tracer.nodes.values() if id(n) in wanted]


def literal(value: float) -> str:
    """A Python literal, the shortest that is this float32, that Triton reads as one."""
    if value != value or abs(value) == float("inf"):
        return f'float("{value}")'
    candidates = [float(f"{value:.{digits}g}") for digits in range(1, 10)]
    text = next((repr(c) for c in candidates if _is(c, value)), repr(value))
    return text.replace("e+", "e")


def _is(candidate: float, value: float) -> bool:
    try:
        return single(candidate) == value
    except ValueError:
        return False


def expression(node: Node, names: dict[int, str]) -> str:
    operands = [names[id(o)] for o in node.operands]
    if node.operation in OPERATORS:
        return f"{operands[0]} {OPERATORS[node.operation]} {operands[1]}"
    if node.operation == "neg":
        return f"-{operands[0]}"
    if node.operation == "not":
        return f"~{operands[0]}"
    return f"{CALLS[node.operation]}({', '.join(operands)})"


def device_function(
    name: str,
    arguments: Sequence[str],
    function: Callable[..., Any],
    pick: Sequence[int],
    summary: str,
) -> str:
    """The text of ``name(*arguments)``: the outputs ``pick`` of ``function(xp, *arguments)``."""
    tracer = Tracer()
    result = function(tracer, *(tracer.argument(a) for a in arguments))
    results = result if isinstance(result, tuple) else (result,)
    outputs = [results[i] for i in pick]
    names: dict[int, str] = {}
    lines = []
    for node in needed(outputs):
        if node.operation == "argument":
            names[id(node)] = node.operands[0]
        elif node.operation == "constant":
            names[id(node)] = literal(node.operands[0])
        else:
            names[id(node)] = f"{'m' if node.dtype == 'bool' else 't'}{len(lines)}"
            lines.append(f"    {names[id(node)]} = {expression(node, names)}")
    returned = ", ".join(names[id(o)] for o in outputs)
    if lines[-1].startswith(f"    {returned} = "):
        returned = lines.pop().partition(" = ")[2]
    head = [
        "@triton.jit",
        f"def {name}({', '.join(arguments)}):",
        f'    """{summary}"""',
    ]
    return "\n".join([*head, *lines, f"    return {returned}", ""])


def operations(function: Callable[..., Any], arguments: Sequence[str], pick: Sequence[int]) -> Any:
    """How often each operation occurs in what `device_function` would write."""
    tracer = Tracer()
    result = function(tracer, *(tracer.argument(a) for a in arguments))
    results = result if isinstance(result, tuple) else (result,)
    counts = Counter(n.operation for n in needed([results[i] for i in pick]))
    del counts["argument"], counts["constant"]
    return counts
