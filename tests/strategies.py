"""Hypothesis strategies for floats, drawn over bit patterns rather than values.

Uniform bit patterns include subnormal and huge numbers and NaN, which a uniform draw from an
interval never gives. The strategies also draw the points where an implementation changes its
formula, and their neighbours.
"""

import math

import numpy as np
from hypothesis import strategies as st

BITS = {"float16": 16, "float32": 32, "float64": 64}

# Ends of ranges of u, over- and underflow of exp in x, and the maximum of the first derivative.
_EDGES = (
    *(0.0, 0.5, 1.0, 2.0, math.inf),
    *(1e-8, 0.1, 0.25, 1.38, 2.2566, 3.0, 4.0, 5.0, 8.0, 10.0, 16.0, 20.0, 32.0, 50.0, 64.0, 100.0),
    *(1.507, 17.3287, 87.33, 88.72, 103.97, 104.0, 354.0, 372.0, 708.39, 709.78, 744.44, 745.13),
    *(745.2, 1e3, 1e4, 1e16, 1e30, 1e100, 1e154, 1e300),
)


def from_bits(dtype: str, bits: int) -> np.floating:
    """The float of this bit pattern."""
    return np.array([bits], dtype=f"uint{BITS[dtype]}").view(dtype)[0]


def to_bits(value: np.floating) -> int:
    return int(np.array([value]).view(f"uint{value.dtype.itemsize * 8}")[0])


def _rank(value: np.floating) -> int:
    """Number the floats of a type in increasing order; both zeros have rank 0."""
    bits = to_bits(value)
    top = 1 << (value.dtype.itemsize * 8 - 1)
    return bits if bits < top else top - bits


def _of_rank(dtype: str, rank: int) -> np.floating:
    return from_bits(dtype, rank if rank >= 0 else (1 << (BITS[dtype] - 1)) - rank)


def _ranks_of_edges(dtype: str) -> list[int]:
    info = np.finfo(dtype)
    with np.errstate(over="ignore"):
        values = [np.dtype(dtype).type(edge) for edge in (*_EDGES, info.max, info.tiny)]
    ranks = {_rank(v) for v in values}
    return sorted(ranks | {-rank for rank in ranks})


def nans(dtype: str) -> st.SearchStrategy[np.floating]:
    """NaNs of every payload and sign, quiet and signalling."""
    width = np.finfo(dtype).nmant
    exponent = ((1 << (BITS[dtype] - 1 - width)) - 1) << width

    def build(payload: int, negative: bool) -> np.floating:
        return from_bits(dtype, exponent | payload | (1 << (BITS[dtype] - 1)) * negative)

    return st.builds(build, st.integers(1, 2**width - 1), st.booleans())


def floats(
    dtype: str = "float64", low: float = -math.inf, high: float = math.inf, *, nan: bool = False
) -> st.SearchStrategy[np.floating]:
    """Floats in [low, high]: over bit patterns, edges and their neighbours, ordinary values, NaN.

    Where zero is inside, the zero of either sign and the subnormal numbers are too.
    """
    kind = np.dtype(dtype).type
    first, last = _rank(kind(low)), _rank(kind(high))
    inside = [rank for rank in _ranks_of_edges(dtype) if first <= rank <= last] or [first, last]
    ranks = [
        st.integers(first, last),
        st.builds(
            lambda edge, offset: min(max(edge + offset, first), last),
            st.sampled_from(inside),
            st.integers(-8, 8),
        ),
    ]
    if first <= 0 <= last:
        width = 1 << np.finfo(dtype).nmant
        ranks.append(st.integers(max(first, 1 - width), min(last, width - 1)))
    kinds = [st.one_of(ranks).map(lambda rank: _of_rank(dtype, rank))]
    # The range in which the functions vary.
    ordinary = max(low, -800.0), min(high, 800.0)
    if ordinary[0] < ordinary[1]:
        kinds.append(st.floats(*ordinary).map(kind))
    if low <= 0 <= high:
        kinds.append(st.just(kind(-0.0)))
    if nan:
        kinds.append(nans(dtype))
    return st.one_of(kinds)


def non_negative(dtype: str = "float64", *, nan: bool = False) -> st.SearchStrategy[np.floating]:
    """Values of u: floats in [0, inf], and -0."""
    return floats(dtype, 0.0, math.inf, nan=nan)


def arrays(
    dtype: str, elements: st.SearchStrategy, size: int = 40
) -> st.SearchStrategy[np.ndarray]:
    """One-dimensional arrays that keep the payload of each NaN."""

    def build(values: list) -> np.ndarray:
        bits = [to_bits(value) for value in values]
        return np.array(bits, dtype=f"uint{BITS[dtype]}").view(dtype)

    return st.lists(elements, min_size=1, max_size=size).map(build)
