"""The form for spans with means so small that u or a derivative would be subnormal.

The kernel writes such a mean as mu = x 2^p with 2^-30 <= |x| < 2^-29, computes the results for x as
in the usual form, and multiplies them by powers of two, which rounds only a subnormal result.
`lowered` restates this in NumPy, and `check_float32` compares it with the compiled kernels.
"""

from typing import Any

import numpy as np

from .bounds import Bound
from .exhaustive import run
from .float32 import U
from .graph import Graph

LARGEST_U = 2.0**-30
"""Of all x, because |log sigma^2| < 20."""


def lowered(graph: Graph, name: str, mu: Any, log_sigma2: Any) -> Any:
    """What the kernel computes for 0 < |mu| < 2^-29, to the last bit."""
    m, power = np.frexp(mu.astype(np.float64))
    result = run(graph, graph.label(name), np.ldexp(m, -29).astype(np.float32), log_sigma2)
    times = 1 if name.endswith(".dmu") else 2
    return np.ldexp(result.astype(np.float64), times * (power + 29)).astype(np.float32)


def prove_tiny(bound: Bound) -> float:
    """The bound for all such means and each log sigma^2 of the box, of that for x.

    For F/u and F', log f changes by less than 2 u/3 between 0 and u. So for x the result before it
    is multiplied is as near to the truth but for this. The truth for mu is the larger one, and so
    is its ulp. If the product is subnormal, the ulp is at least twice that for x times the power of
    two: the error before the last rounding counts half, and that rounding errs by half an ulp.
    """
    near = bound.ulp[(bound.lo <= LARGEST_U) & (bound.hi >= U[0])].max()
    if near < 1:
        raise AssertionError("a subnormal result may err by more than a normal one")
    return float(near + LARGEST_U * 2.0**24)
