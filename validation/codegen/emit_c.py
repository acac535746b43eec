"""Write traced functions as inline functions in C, in the names of `float32_simd.h`.

A product that is used once, in a sum, becomes a fused multiply-add if the processor has it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from validation.codegen.trace import Node, Output, needed, shortest, traced

HEADER = """\
/* The arithmetic of `normal_float32`, with the operations of `float32_simd.h`.
 *
 * Written by `COMMAND`, which runs `normal_float32` on symbols: do not edit.
 * `float32.h` includes it once for each instruction set. */
"""
CALLS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
CALLS |= {"eq": "equal", "ne": "not_equal", "and": "both", "or": "either", "not": "negated"}
CALLS |= {"where": "choose", "abs": "magnitude", "from_integer": "from_bits"}
CALLS |= {name: name for name in ("minimum", "maximum", "bits", "unbits", "inverse")}
INFIX = {"add": "+", "sub": "-", "mul": "*", "divide": "/", "quotient": "/"}
INFIX |= {"left": "<<", "right": ">>"}
KINDS = {"float32": ("V", "t"), "bool": ("M", "m"), "int32": ("U", "n")}


def source(outputs: Sequence[Output], command: str) -> str:
    parts = [HEADER.replace("COMMAND", command), *map(inline_function, outputs)]
    return "\n".join(parts)


def literal(value: float) -> str:
    if value != value:
        return "set1(NAN)"
    if abs(value) == float("inf"):
        return "set1(INFINITY)" if value > 0 else "set1(-INFINITY)"
    return f"set1({shortest(value)}f)"


def fused(nodes: Iterable[Node], kept: Iterable[Node]) -> dict[int, int]:
    """Map each sum, by identity, to the product operand that is fused with it."""
    uses = Counter(id(o) for n in nodes for o in n.operands if isinstance(o, Node))
    uses.update(map(id, kept))
    found = {}
    for node in nodes:
        if node.operation in ("add", "sub") and node.dtype == "float32":
            for i, operand in enumerate(node.operands):
                if operand.operation == "mul" and uses[id(operand)] == 1:
                    found[id(node)] = i
                    break
    return found


def multiply_add(node: Node, which: int, names: dict[int, str]) -> str:
    a, b = (names[id(o)] for o in node.operands[which].operands)
    c = names[id(node.operands[1 - which])]
    if node.operation == "sub" and which == 0:
        c = f"-{c}"
    elif node.operation == "sub":
        a = f"-{a}"
    return f"MADD({a}, {b}, {c})"


def expression(node: Node, names: dict[int, str]) -> str:
    operands = [names[id(o)] for o in node.operands]
    if node.operation in INFIX:
        return f"{operands[0]} {INFIX[node.operation]} {operands[1]}"
    if node.operation == "and" and node.dtype == "int32":
        return f"{operands[0]} & {operands[1]}"
    if node.operation == "neg":
        return f"-{operands[0]}"
    if node.operation not in CALLS:
        raise NotImplementedError(
            f"the arithmetic uses {node.operation}, for which C has no name: use `binary32`, or "
            "add it here and in logunif_kl/_numpy/c/float32_simd.h"
        )
    return f"{CALLS[node.operation]}({', '.join(operands)})"


def inline_function(output: Output) -> str:
    """Return the text of ``name(*arguments, *results)``, for pointers to WAYS registers each.

    The operations on the registers alternate, so that none waits for the one before it.
    """
    outputs = traced(output)
    nodes = needed(outputs)
    sums = fused(nodes, outputs)
    products = {id(n.operands[sums[id(n)]]) for n in nodes if id(n) in sums}
    names: dict[int, str] = {}
    lines: list[str] = []
    for node in nodes:
        if id(node) in products:
            continue
        if node.operation == "argument":
            names[id(node)] = f"{node.operands[0]}[i]"
        elif node.operation == "constant":
            names[id(node)] = literal(node.operands[0])
        elif node.operation == "integer":
            names[id(node)] = f"set1_bits({node.operands[0]:#x})"
        else:
            kind, letter = KINDS[node.dtype]
            which = sums.get(id(node))
            text = expression(node, names) if which is None else multiply_add(node, which, names)
            names[id(node)] = f"{letter}{len(lines)}[i]"
            lines.append(f"    EACH({kind}, {letter}{len(lines)}, {text});")
    lines += [f"    SET(result{i}, {names[id(o)]});" for i, o in enumerate(outputs)]
    parameters = [f"const V *{a}" for a in output.arguments]
    parameters += [f"V *result{i}" for i in range(len(outputs))]
    head = [
        f"/* {output.summary} */",
        "LK_INLINE void",
        f"LK_NAME({output.name})({', '.join(parameters)})",
        "{",
    ]
    return "\n".join([*head, *lines, "}", ""])
