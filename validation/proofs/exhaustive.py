"""Steps of a float32 kernel, compiled from its graph and run on every number of an interval.

The compiled steps keep the order of the operations: nothing is contracted or reassociated. What
they compute is compared with a polynomial in float64, whose error is bounded by its maker.
"""

import ctypes
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .graph import Graph, compile_source

# fmt: off
TEXT = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}",
    "fma": "__builtin_fmaf({}, {}, {})",
    "min": "{1} < {0} ? {1} : {0}", "max": "{0} < {1} ? {1} : {0}",
    "bits": "bits({})", "unbits": "unbits({})", "from_bits": "(float)(int32_t){}",
    "and": "{} & {}", "bits_add": "{} + {}", "shift_left": "{} << {}", "shift_right": "{} >> {}",
    "bits_sub": "{} - {}", "or": "{} | {}", "xor": "{} ^ {}", "choose": "{} ? {} : {}",
    "larger": "(int32_t){0} < (int32_t){1} ? {1} : {0}",
    "below": "(int32_t){} < (int32_t){}", "same_bits": "{} == {}",
    "less": "{} < {}", "less_equal": "{} <= {}", "equal": "{} == {}", "not_equal": "{} != {}",
    "both": "{} & {}", "either": "{} | {}", "negated": "!{}",
}
OF_BITS = ("bits", "and", "or", "xor", "bits_add", "bits_sub", "shift_left", "shift_right",
           "larger", "bits_const")
MASKS = ("below", "same_bits", "less", "less_equal", "equal", "not_equal", "both", "either",
         "negated")
# fmt: on
FLAGS = "-O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC"
ORDER = 8
CONSTANTS = {"inf": "__builtin_inff()", "-inf": "-__builtin_inff()", "nan": '__builtin_nanf("")'}
LANES = 64
HEAD = """
#include <stdint.h>
static inline uint32_t bits(float x) { union { float x; uint32_t u; } a = {x}; return a.u; }
static inline double two_to(uint32_t n)
{
    union { uint64_t u; double x; } a = {(uint64_t)((int32_t)n + 1023) << 52};
    return a.x;
}
static inline float unbits(uint32_t u) { union { uint32_t u; float x; } a = {u}; return a.x; }
"""
SWEEP = """
/* On each piece, the least and the largest of GOT - P(x - centre), divided by P if RELATIVE. */
void sweep(long pieces, const uint32_t *first, const uint32_t *count, const double *centre,
           const double *c, double *least, double *most)
{
    for (long k = 0; k < pieces; k++) {
        double low[LANES], high[LANES], wrong[LANES];
        for (int j = 0; j < LANES; j++) {
            low[j] = __builtin_inf();
            high[j] = -__builtin_inf();
            wrong[j] = 0.0;
        }
        const double *p = c + k * (ORDER + 1);
        for (uint32_t i = 0; i < count[k]; i += LANES)
            for (int j = 0; j < LANES; j++) {
                uint32_t at = i + j < count[k] ? i + j : count[k] - 1;
                float x = unbits(first[k] + at);
                STEPS
                double got = GOT, h = (double)x - centre[k], truth = p[ORDER];
                for (int n = ORDER - 1; n >= 0; n--)
                    truth = truth * h + p[n];
                double d = got - truth;
                d = RELATIVE ? d / truth : d;
                low[j] = d < low[j] ? d : low[j];
                high[j] = d > high[j] ? d : high[j];
                wrong[j] += d - d; /* NaN from then on, if d is infinite or NaN */
            }
        least[k] = low[0];
        most[k] = high[0];
        for (int j = 0; j < LANES; j++) {
            least[k] = low[j] < least[k] ? low[j] : least[k];
            most[k] = high[j] > most[k] ? high[j] : most[k];
        }
        for (int j = 0; j < LANES; j++)
            if (wrong[j] != 0.0)
                least[k] = -(most[k] = __builtin_inf());
    }
}
"""
MAP = """
void map(long n, const float *x, const float *y, float *result)
{
    for (long i = 0; i < n; i++) {
        float mu = x[i], log_sigma2 = y[i];
        STEPS
        result[i] = GOT;
    }
}
"""


def steps(graph: Graph, outputs: Iterable[int], given: Mapping[int, str]) -> str:
    """The steps in C that compute node k as tk, of nodes that `given` names or makes constant.

    Raise if a node depends on an argument of the kernel that is not given.
    """
    lines = []
    for i in sorted({i for output in outputs for i in graph.needed(output, given)}):
        operation, operands = graph.nodes[i]
        if i in given:
            text = given[i]
        elif operation == "const":
            text = CONSTANTS.get(repr(operands[0])) or f"{operands[0].hex()}f"
        elif operation == "bits_const":
            text = f"{operands[0]}u"
        elif operation == "input":
            raise AssertionError(f"a step depends on {operands[0]}")
        else:
            text = TEXT[operation].format(*(f"t{k}" for k in operands))
        kind = "uint32_t" if operation in OF_BITS else "int" if operation in MASKS else "float"
        lines.append(f"{kind} t{i} = {text};")
    return "\n".join(lines)


def _library(text: str, **names: str) -> Any:
    for name, by in names.items():
        text = text.replace(name, by)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "steps.c"), Path(folder, "steps.so")
        source.write_text(HEAD + text)
        compile_source("cc", *FLAGS.split(), str(source), "-o", str(library), "-lm")
        return ctypes.CDLL(str(library))


def _pointer(array: Any) -> Any:
    return ctypes.c_void_p(array.ctypes.data)


class Pieces:
    """Intervals of float32 numbers of one sign, each with a polynomial of `ORDER` in x - centre."""

    def __init__(self, first: Any, last: Any, centre: Any, coefficients: Any) -> None:
        self.first, self.last = (np.ascontiguousarray(x, np.float32) for x in (first, last))
        self.centre, self.coefficients = (
            np.ascontiguousarray(x, np.float64) for x in (centre, coefficients)
        )


def sweep(
    graph: Graph,
    outputs: Iterable[int],
    given: Mapping[int, str],
    got: str,
    pieces: Pieces,
    relative: bool,
) -> tuple[Any, Any]:
    """Run nodes on every number x of each piece; return the least and largest difference.

    `got` is an expression in C of the results, tk of node k.
    """
    text = steps(graph, outputs, given)
    library = _library(
        SWEEP, STEPS=text, GOT=got, RELATIVE=str(int(relative)), ORDER=str(ORDER), LANES=str(LANES)
    )
    words = pieces.first.view(np.uint32), pieces.last.view(np.uint32)
    start = np.minimum(*words)
    count = np.maximum(*words) - start + np.uint32(1)
    if ((words[0] ^ words[1]) >> 31).any():
        raise AssertionError("a piece has numbers of both signs")
    least, most = np.empty(len(start)), np.empty(len(start))
    arrays = (start, count, pieces.centre, pieces.coefficients, least, most)
    library.sweep(ctypes.c_long(len(start)), *map(_pointer, arrays))
    return least, most


@cache
def _mapping(graph: Graph, output: int) -> Any:
    inputs = {
        i: node.operands[0] for i, node in enumerate(graph.nodes) if node.operation == "input"
    }
    return _library(MAP, STEPS=steps(graph, [output], inputs), GOT=f"t{output}").map


def run(graph: Graph, output: int, mu: Any, log_sigma2: Any) -> Any:
    """What the kernel computes from arrays of float32, to the last bit; 0 or 1 for a mask."""
    result = np.empty_like(mu)
    arrays = [np.ascontiguousarray(x, np.float32) for x in (mu, log_sigma2)]
    pointers = map(_pointer, (*arrays, result))
    _mapping(graph, output)(ctypes.c_long(len(result)), *pointers)
    return result
