"""A form of a kernel for the arguments of an interval: without what they do not need.

A choice between two numbers that is the same for all of them becomes the number chosen, and what is
the same number for all of them becomes a constant. If the rare form of a kernel becomes the graph
of its usual form in this way, it returns the same bits.

Each operation rounds a monotone function, or is one of integers. So what it computes lies between
what it computes at the corners of its operands' intervals.
"""

from collections.abc import Mapping
from copy import copy
from itertools import product
from typing import Any

import numpy as np

from .graph import OPERATIONS, Graph, Node, apply

ANSWERS = {"": 3, ".rare": 3, ".rare0": 0, ".rare1": 1, ".rare2": 2}
"""By the form: bit k is whether the answer to the k-th question `any` of the lanes is yes."""
SIGN = 1 << 63
INDICES = ("index_zero", "index_count", "index_of_bits")
MASKS = ("less", "less_equal", "equal", "below", "both", "either", "index_is")
ARITHMETIC = ("add", "sub", "mul", "div", "neg", "fma")


class Special:
    """The nodes of `graph` for inputs between two numbers of one sign, made when asked for.

    The nodes of `cuts` become inputs with the names there, of which nothing is known.
    """

    def __init__(
        self, graph: Graph, cuts: Mapping[int, str], **inputs: tuple[float, float]
    ) -> None:
        self.graph, self.inputs, self.cuts = graph, inputs, cuts
        self.nodes: dict[int, int] = {}
        self.boxes: dict[int, Any] = {}  # intervals of floats or of integers, or None
        self.constants: dict[int, Any] = {}  # arrays of one element

    def node(self, output: int) -> int:
        for i in self.graph.needed(output, self.cuts):
            if i not in self.nodes:
                self._visit(i)
        return self.nodes[output]

    def truth(self, mask: int) -> bool | None:
        """Whether a mask is true, if it is so for all or for none."""
        self.node(mask)
        return bool(self.constants[mask][0]) if mask in self.constants else None

    def _visit(self, i: int) -> None:
        operation, operands = self.graph.nodes[i]
        of = operands[:1] if operation == "lookup" else operands
        if i in self.cuts:
            self.nodes[i] = self.graph.number(Node("input", (self.cuts[i],)))
            self.boxes[i] = None
            return
        if operation == "input":
            lo, hi = self.inputs[operands[0]]
            if repr(lo) == repr(hi):
                self._set(i, np.array([lo]))
            else:
                self._keep(i, (lo, hi))
            return
        if operation in ("const", "bits_const"):
            kind = np.float64 if operation == "const" else np.uint64
            self._set(i, np.array([operands[0]], kind))
            return
        same = self._operand(operation, operands)
        if same is not None:
            self.nodes[i], self.boxes[i] = self.nodes[same], self.boxes[same]
            if same in self.constants:
                self.constants[i] = self.constants[same]
            return
        if all(k in self.constants for k in of):
            with np.errstate(all="ignore"):
                value = apply(operation, operands, self.constants.__getitem__)
            self._set(i, np.atleast_1d(value))
            return
        boxes = [self.boxes[k] for k in of]
        known_number = self._number(operation, operands, boxes)
        if known_number is not None:
            self._set(i, np.array([known_number]))
            return
        if operation in MASKS:
            known = self._mask(operation, operands, boxes)
            if known is not None:
                self._set(i, np.array([known]))
                return
            self._keep(i, None)
            return
        box = _box(operation, boxes)
        if operation == "and" and box is not None and box[0] == box[1]:
            self._set(i, np.array([box[0]], np.uint64))
        else:
            self._keep(i, box)

    def _keep(self, i: int, box: Any) -> None:
        operation, operands = self.graph.nodes[i]
        if operation == "lookup":
            operands = (self.nodes[operands[0]], *operands[1:])
        elif operation != "input":
            operands = tuple(self.nodes[k] for k in operands)
        self.nodes[i], self.boxes[i] = self.graph.number(Node(operation, operands)), box

    def _set(self, i: int, value: Any) -> None:
        """Make node i a constant. Masks and indices stay as they are, but their value is known."""
        operation = self.graph.nodes[i].operation
        self.constants[i] = value
        x = value[0].item()
        self.boxes[i] = (x, x) if x == x else None
        if operation in ("const", "bits_const"):
            self.nodes[i] = i
        elif operation in MASKS or operation in INDICES:
            self._keep(i, self.boxes[i])
        else:
            kind = "const" if value.dtype == np.float64 else "bits_const"
            self.nodes[i] = self.graph.number(Node(kind, (x,)))

    def _operand(self, operation: str, operands: tuple[Any, ...]) -> int | None:
        """The operand that is the result for all numbers, if there is one."""
        if operation == "choose" and operands[0] in self.constants:
            return int(operands[1] if self.constants[operands[0]][0] else operands[2])
        if operation == "choose" and self.nodes[operands[1]] == self.nodes[operands[2]]:
            return int(operands[1])
        if operation in ("max", "min"):
            a, b = (self.boxes[k] for k in operands)
            if a is None or b is None:
                return None
            if operation == "min":
                a, b = ((-x[1], -x[0]) for x in (a, b))
            if a[0] > b[1] or a[1] <= b[0]:
                return int(operands[0] if a[0] > b[1] else operands[1])
        if operation in ("both", "either"):
            for k, other in (operands, operands[::-1]):
                if k in self.constants:
                    decides = bool(self.constants[k][0]) == (operation == "either")
                    return int(k if decides else other)
        return None

    def _number(self, operation: str, operands: tuple[Any, ...], boxes: list[Any]) -> float | None:
        """What an operation is for all numbers because one is NaN, or because it is x - x."""
        if operation not in ARITHMETIC:
            return None
        if any(k in self.constants and np.isnan(self.constants[k][0]) for k in operands):
            return float("nan")
        same = operation == "sub" and self.nodes[operands[0]] == self.nodes[operands[1]]
        finite = boxes[0] is not None and np.isfinite(boxes[0]).all()
        return 0.0 if same and finite else None

    def _mask(self, operation: str, operands: tuple[Any, ...], boxes: list[Any]) -> bool | None:
        if operation in ("both", "either") or any(box is None for box in boxes):
            return None
        a, b = boxes
        if operation == "below":  # signed integers
            a, b = (_signed(x) for x in boxes)
            if a is None or b is None:
                return None
        if operation in ("less", "below"):
            yes, no = a[1] < b[0], a[0] >= b[1]
        elif operation == "less_equal":
            yes, no = a[1] <= b[0], a[0] > b[1]
        else:
            same = self.nodes[operands[0]] == self.nodes[operands[1]]
            yes, no = same, a[1] < b[0] or b[1] < a[0]
        return yes if yes or no else None


def _signed(box: tuple[int, int]) -> tuple[int, int] | None:
    if box[1] < SIGN:
        return box
    return (box[0] - 2 * SIGN, box[1] - 2 * SIGN) if box[0] >= SIGN else None


def _bits(x: float) -> int:
    return int(np.float64(x).view(np.uint64))


def _box(operation: str, boxes: list[Any]) -> Any:
    """An interval that holds each result, or None."""
    if operation == "and":
        for a, c in (boxes, boxes[::-1]):
            if c is None or c[0] != c[1]:
                continue
            if a is not None and a[0] // SIGN == a[1] // SIGN and c[0] in (SIGN, SIGN - 1):
                negative = a[0] // SIGN
                whole = negative * SIGN
                return (whole, whole) if c[0] == SIGN else (a[0] - whole, a[1] - whole)
            return (0, c[0])
        return None
    if operation == "choose":
        boxes = boxes[1:]
    if any(box is None for box in boxes):
        return None
    if operation == "choose":
        return min(boxes[0][0], boxes[1][0]), max(boxes[0][1], boxes[1][1])
    if operation in ARITHMETIC:
        if operation == "div" and boxes[1][0] <= 0 <= boxes[1][1]:
            return None
        corners = [[np.array([x]) for x in box] for box in boxes]
        with np.errstate(all="ignore"):
            ends = [float(OPERATIONS[operation](*at)[0]) for at in product(*corners)]
        return (min(ends), max(ends)) if np.isfinite(ends).all() else None
    if operation == "bits" and (boxes[0][0] > 0 or boxes[0][1] < 0):
        return tuple(sorted(map(_bits, boxes[0])))
    if operation == "unbits" and boxes[0][1] < _bits(np.inf):
        return tuple(float(np.uint64(x).view(np.float64)) for x in boxes[0])
    if operation == "or":
        for a, c in (boxes, boxes[::-1]):
            if c[0] == c[1] and a[1] < (c[0] & -c[0]):  # the bits of both are apart
                return c[0] + a[0], c[0] + a[1]
    return None


def specialise(
    graph: Graph, name: str, form: str, argument: str, lo: float, hi: float
) -> Graph | None:
    """The graph in which the labels of `name` are those of one of its forms for [lo, hi].

    None if the form is not for any of these arguments: it answers no to an `any` which is true.
    """
    special = Special(graph, {}, **{argument: (lo, hi)})
    of, answers = name + form, ANSWERS[form]
    labels = dict(graph.labels)
    for label, i in graph.labels.items():
        step = label.removeprefix(f"{of}:")
        if step == label and label != of:
            continue
        if step.startswith("any"):
            if special.truth(i) and not answers >> int(step[3:]) & 1:
                return None
            continue
        labels[name if label == of else f"{name}:{step}"] = special.node(i)
    result = copy(graph)
    result.labels = labels
    return result
