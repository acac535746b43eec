"""Write traced functions as device functions in Triton."""

from collections.abc import Sequence

from validation.codegen.trace import OPERATORS, Node, Output, needed, shortest, traced

HEADER = '''\
"""The arithmetic of ``_arithmetic`` in float32, as device functions in Triton.

Written by ``COMMAND``, which runs ``_arithmetic`` on symbols: do not edit.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

PLACE
'''
# These functions exist in `elementary`; "round" is called `nearest` there.
ELEMENTARY = [
    *("bits", "divide", "exp", "from_integer", "inverse", "left", "log", "maximum", "minimum"),
    *("nearest", "quotient", "right", "unbits"),
]
CALLS = {"where": "tl.where", "abs": "tl.abs", "round": "nearest"}
PREFIX = {"neg": "-", "not": "~"}
LINE = 100
LETTERS = {"float32": "t", "bool": "m", "int32": "n"}


def source(outputs: Sequence[Output], command: str) -> str:
    body = "\n\n".join(["", *map(device_function, outputs)])
    names = [name for name in ELEMENTARY if f" {name}(" in body]
    place = f"from .elementary import {', '.join(names)}"
    if len(place) > LINE:
        place = "from .elementary import (\n" + "".join(f"    {n},\n" for n in names) + ")"
    return HEADER.replace("COMMAND", command).replace("PLACE", place) + body


def literal(value: float) -> str:
    if value != value or abs(value) == float("inf"):
        return f'float("{value}")'
    return shortest(value)


def expression(node: Node, names: dict[int, str]) -> str:
    operands = [names[id(o)] for o in node.operands]
    if node.operation in OPERATORS:
        return f"{operands[0]} {OPERATORS[node.operation]} {operands[1]}"
    if node.operation in PREFIX:
        return f"{PREFIX[node.operation]}{operands[0]}"
    return f"{CALLS.get(node.operation, node.operation)}({', '.join(operands)})"


def device_function(output: Output) -> str:
    outputs = traced(output)
    names: dict[int, str] = {}
    lines: list[str] = []
    for node in needed(outputs):
        if node.operation == "argument":
            names[id(node)] = node.operands[0]
        elif node.operation == "constant":
            names[id(node)] = literal(node.operands[0])
        elif node.operation == "integer":
            names[id(node)] = str(node.operands[0])
        else:
            names[id(node)] = f"{LETTERS[node.dtype]}{len(lines)}"
            lines.append(f"    {names[id(node)]} = {expression(node, names)}")
    returned = ", ".join(names[id(o)] for o in outputs)
    if lines[-1].startswith(f"    {returned} = "):
        returned = lines.pop().partition(" = ")[2]
    head = [
        "@triton.jit",
        f"def {output.name}({', '.join(output.arguments)}):",
        f'    """{output.summary}"""',
    ]
    return "\n".join([*head, *lines, f"    return {returned}", ""])
