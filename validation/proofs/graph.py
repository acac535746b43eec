"""The operations of the kernels as a graph: traced from the C headers, and run on numbers."""

import ctypes
import operator
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from validation.output import CommandError
from validation.paths import PACKAGE

HEADERS = PACKAGE / "_numpy" / "c"
FMA = """
#include <math.h>
void fma_array(const double *a, const double *b, const double *c, double *result, long n)
{
    for (long i = 0; i < n; i++)
        result[i] = fma(a[i], b[i], c[i]);
}
"""


class Node(NamedTuple):
    """One operation. Its operands are the numbers of earlier nodes, but for constants."""

    operation: str
    operands: tuple[Any, ...]


class Graph:
    """Every operation of the kernels, with or without fused multiply-add."""

    def __init__(self, text: str, fused: bool) -> None:
        self.fused = fused
        self.nodes: list[Node] = []
        self.labels: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        for line in text.splitlines():
            first, *rest = line.split()
            if first == "label":
                self.labels[rest[0].removesuffix(":")] = int(rest[1])
            else:
                self.nodes.append(_node(*rest))

    def label(self, name: str) -> int:
        return self.labels[name]

    def number(self, node: Node) -> int:
        """The number of a node, which is added to the graph if it is not there."""
        if not self._numbers:
            self._numbers.update((repr(x), i) for i, x in enumerate(self.nodes))
        if (known := self._numbers.get(repr(node))) is not None:
            return known
        self.nodes.append(node)
        return self._numbers.setdefault(repr(node), len(self.nodes) - 1)

    def needed(self, output: int, stop: Iterable[int] = ()) -> list[int]:
        """The nodes that `output` depends on, in order, without what only nodes of `stop` need."""
        found: set[int] = set()
        stack = [output]
        stops = set(stop)
        while stack:
            i = stack.pop()
            if i in found:
                continue
            found.add(i)
            operation, operands = self.nodes[i]
            if i in stops or operation in ("const", "bits_const", "input"):
                continue
            stack += [operands[0]] if operation == "lookup" else operands
        return sorted(found)

    def run(self, output: int, **inputs: Any) -> Any:
        """What the kernel computes from arrays of float64, to the last bit."""
        size = len(next(iter(inputs.values())))
        values: dict[int, Any] = {}
        with np.errstate(all="ignore"):
            for i in self.needed(output):
                operation, operands = self.nodes[i]
                if operation == "input":
                    values[i] = inputs[operands[0]]
                elif operation in ("const", "bits_const"):
                    kind = np.float64 if operation == "const" else np.uint64
                    values[i] = np.full(size, operands[0], kind)
                else:
                    values[i] = apply(operation, operands, values.__getitem__)
                    values[i] = np.broadcast_to(values[i], (size,))
        return values[output]


def _node(operation: str, *operands: str) -> Node:
    if operation == "const":
        return Node(operation, (float.fromhex(operands[0]),))
    if operation == "input":
        return Node(operation, operands)
    if operation == "lookup":
        return Node(operation, (int(operands[0]), tuple(map(float.fromhex, operands[1:]))))
    return Node(operation, tuple(map(int, operands)))


@cache
def _fma() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "fma.c"), Path(folder, "fma.so")
        source.write_text(FMA)
        compile_source("cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-lm")
        return ctypes.CDLL(str(library)).fma_array


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a*b + c`` of arrays of float64, rounded once."""
    arrays = np.broadcast_arrays(a, b, c)
    arguments = [np.ascontiguousarray(x, np.float64) for x in arrays]
    result = np.empty(arguments[0].shape)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arguments, result)]
    _fma()(*pointers, ctypes.c_long(result.size))
    return result


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "fma": fma,
    "max": lambda a, b: np.where(a > b, a, b),
    "min": lambda a, b: np.where(a < b, a, b),
    "bits": lambda a: np.ascontiguousarray(a).view(np.uint64),
    "unbits": lambda a: np.ascontiguousarray(a).view(np.float64),
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "bits_add": operator.add,
    "bits_sub": operator.sub,
    "not": operator.invert,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "below": lambda a, b: a.view(np.int64) < b.view(np.int64),
    "both": operator.and_,
    "either": operator.or_,
    "choose": np.where,
    "index_zero": lambda: np.zeros(1, np.int64),
    "index_count": operator.add,
    "index_of_bits": lambda a: (a & np.uint64(7)).astype(np.int64),
    "index_is": lambda a, b: a == b.astype(np.int64),
}


def apply(operation: str, operands: tuple[Any, ...], value: Callable[[int], Any]) -> Any:
    """Return one operation of arrays; `value` maps the number of a node to its array."""
    if operation == "lookup":
        return np.array(operands[1])[value(operands[0])]
    return OPERATIONS[operation](*map(value, operands))


def compile_source(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise CommandError(
            f"{command[0]} is not installed: install a C and a C++ compiler"
        ) from error
    if done.returncode:
        raise CommandError(f"{command[0]} failed on the headers of the kernels:\n{done.stderr}")


def trace(fused: bool, headers: Path = HEADERS, name: str = "symbols.cpp") -> Graph:
    """Compile `name` with the headers of the kernels, and read what it prints."""
    source = Path(__file__).with_name(name)
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "symbols"))
        flags = ["-DFUSED"] if fused else []
        compile_source(
            "g++", "-std=c++17", "-w", *flags, f"-I{headers}", str(source), "-o", program
        )
        text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return Graph(text, fused)


sys.setrecursionlimit(10_000)
