"""The quadrature, and the series, for one number of dimensions."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from .._arithmetic.isotropic.vector import Rule
from .._errors import real_number, shown

# Of the trapezoidal rule: where the weights fall below 1e-21. Between there are 8 or 16 points in a
# unit of y.
_FIRST, _LAST = -3.875, 4.0
_TERMS = 60
LEAST, LARGEST = 0.5, 10000.0


def dimensions(k: Any) -> float:
    """Check the number of dimensions.

    Raises
    ------
    TypeError
        If it is not a real number.
    ValueError
        If it is not between `LEAST` and `LARGEST`.
    """
    value = real_number("k", k)
    if not LEAST <= value <= LARGEST:
        raise ValueError(
            f"k must be a number of dimensions from {LEAST:g} to {LARGEST:g}, but {shown(k)} was "
            "given: pass the number of weights in a group"
        )
    return value


@lru_cache(maxsize=64)
def rule(k: float) -> Rule:
    """Compute what `logunif_kl._arithmetic.isotropic.vector` needs for k dimensions."""
    from scipy.special import digamma

    half = 0.5 * k
    # T = 1 - exp(-S/a) with S ~ Exp(1), and the trapezoidal rule in y, s = exp(y - exp(-y)), whose
    # nodes near 0 have no larger relative error than the others.
    each = 8 if k >= 2.0 else 16
    nodes, weights = [], []
    for n in range(int(_LAST * each), int(_FIRST * each) - 1, -1):
        y = n / each
        s = math.exp(y - math.exp(-y))
        nodes.append(-math.expm1(-s / half))
        weights.append(math.exp(-s) * s * (1.0 + math.exp(-y)))
    total = math.fsum(weights)
    bound = max(45.0, k)
    tail, term = [], half
    for n in range(1, _TERMS + 1):
        term *= (n - half) / bound
        tail.append(term)
    return Rule(
        half=half,
        digamma=float(digamma(half)),
        nodes=tuple(nodes),
        weights=tuple(w / total for w in weights),
        bound=bound,
        tail=tuple(tail),
    )
