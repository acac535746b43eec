"""The lemma of the kernels without FMA: `product_error` computes a b - RN(a b) to 2^-100.

It is proved by the same algebra, for a and b in [1, 2) and their words ah, bh without the lowest 27
bits. Powers of two change nothing, if nothing is subnormal.
"""

import numpy as np

from .algebra import Number, Pieces, largest
from .graph import Graph

STEPS = """
0 input a
1 input b
2 input a_high
3 input b_high
4 sub 0 2
5 sub 1 3
6 mul 0 1
7 mul 2 3
8 sub 7 6
9 mul 2 5
10 add 8 9
11 mul 4 3
12 add 10 11
13 mul 4 5
14 add 12 13
"""


def error_of_product_error() -> float:
    """Return a bound of its error, and check that it is at most 2^-100."""
    pieces = Pieces(Graph(STEPS.strip(), fused=False), 1)
    pieces.set_v((np.zeros(1), np.zeros(1)))
    end = np.array([2 - 2.0**-52])
    for node, name in enumerate("ab"):
        word = pieces.atom(name, (np.ones(1), end))
        rest = pieces.atom(f"{name}_rest", (np.zeros(1), np.array([2.0**-25 - 2.0**-52])))
        pieces.values[node] = Number(word, np.array([-52]))
        pieces.values[node + 2] = Number(pieces.add(word, rest, -1), np.array([-25]))
    # a b < 4, so that its rounding errs by at most 2^-52
    error = pieces.error("d6", np.array([2.0**-52]))
    exact = pieces.mul(pieces.values[0].poly, pieces.values[1].poly, "exact")
    pieces.values[6] = Number(pieces.add(exact, error), np.array([-52]))
    wanted = pieces.add(exact, pieces.get(6).poly, -1)
    left = pieces.add(pieces.get(14).poly, wanted, -1)
    bound = float(largest(pieces.interval(left))[0])
    if not bound <= 2.0**-100:
        raise AssertionError(f"product_error errs by {bound}, which is more than 2^-100")
    return bound
