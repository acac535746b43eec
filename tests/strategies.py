"""Hypothesis strategies for the nasty floats: drawn over bit patterns, not over values.

A float drawn uniformly over its bits is as likely to be subnormal, huge or NaN as its kind is in
the type; one drawn uniformly over an interval never is. Mixed in are the places where
implementations change course, and their neighbours.
"""

import math

import numpy as np
from hypothesis import strategies as st

BITS = {"float16": 16, "float32": 32, "float64": 64}

_ANYWHERE = (0.0, 0.5, 1.0, 2.0, math.inf)
# Where ranges of u begin and end, where exp over- and underflows in x, where 0.6424 is reached.
_EDGES = (
    *_ANYWHERE,
    *(1e-8, 0.1, 0.25, 1.38, 2.2566, 3.0, 4.0, 5.0, 8.0, 10.0, 16.0, 20.0, 32.0, 50.0, 64.0, 100.0),
    *(1.507, 17.3287, 87.33, 88.72, 103.97, 104.0, 354.0, 372.0, 708.39, 709.78, 744.44, 745.13),
    *(745.2, 1e3, 1e4, 1e16, 1e30, 1e100, 1e154, 1e300),
)


def from_bits(dtype: str, bits: int) -> np.floating:
    """The float of this bit pattern."""
    return np.array([bits], dtype=f"uint{BITS[dtype]}").view(dtype)[0]


def to_bits(value: np.floating) -> int:
    return int(np.array([value]).view(f"uint{value.dtype.itemsize * 8}")[0])


def _finite_edges(dtype: str) -> list[int]:
    info = np.finfo(dtype)
    with np.errstate(over="ignore"):
        values = [np.dtype(dtype).type(edge) for edge in (*_EDGES, info.max, info.tiny)]
    return sorted({to_bits(v) for v in values if np.isfinite(v)})


def edges(dtype: str) -> st.SearchStrategy[np.floating]:
    """Floats at most eight units in the last place from an edge, of either sign."""
    top = 2 ** (BITS[dtype] - 1) - 1

    def place(edge: int, offset: int, negative: bool) -> np.floating:
        bits = min(max(edge + offset, 0), top)
        return from_bits(dtype, bits | (top + 1) * negative)

    return st.builds(
        place, st.sampled_from(_finite_edges(dtype)), st.integers(-8, 8), st.booleans()
    )


def nans(dtype: str) -> st.SearchStrategy[np.floating]:
    """NaNs of every payload and sign, quiet and signalling."""
    width = np.finfo(dtype).nmant
    exponent = ((1 << (BITS[dtype] - 1 - width)) - 1) << width

    def build(payload: int, negative: bool) -> np.floating:
        return from_bits(dtype, exponent | payload | (1 << (BITS[dtype] - 1)) * negative)

    return st.builds(build, st.integers(1, 2**width - 1), st.booleans())


def subnormals(dtype: str) -> st.SearchStrategy[np.floating]:
    """Subnormal floats and zeros of either sign."""
    width = np.finfo(dtype).nmant

    def build(bits: int, negative: bool) -> np.floating:
        return from_bits(dtype, bits | (1 << (BITS[dtype] - 1)) * negative)

    return st.builds(build, st.integers(0, 2**width - 1), st.booleans())


def floats(
    dtype: str = "float64",
    low: float = -math.inf,
    high: float = math.inf,
    *,
    nan: bool = False,
) -> st.SearchStrategy[np.floating]:
    """Floats in [low, high], over bit patterns, edges, subnormals and, if asked for, NaN."""
    anywhere = st.integers(0, 2 ** BITS[dtype] - 1).map(lambda bits: from_bits(dtype, bits))
    numbers = st.one_of(
        anywhere,
        edges(dtype),
        subnormals(dtype),
        st.sampled_from([np.dtype(dtype).type(v) for v in (-math.inf, math.inf)]),
        # Where the functions have their shape.
        st.floats(max(low, -800.0), min(high, 800.0)).map(np.dtype(dtype).type),
    )
    inside = numbers.filter(lambda v: low <= v <= high)
    return st.one_of(inside, nans(dtype)) if nan else inside


def non_negative(dtype: str = "float64", *, nan: bool = False) -> st.SearchStrategy[np.floating]:
    """Values of u: floats in [0, inf], folded from all floats."""
    folded = floats(dtype).map(abs)
    return st.one_of(folded, nans(dtype)) if nan else folded


def arrays(
    dtype: str, elements: st.SearchStrategy, size: int = 40
) -> st.SearchStrategy[np.ndarray]:
    """One-dimensional arrays that keep the payload of each NaN."""

    def build(values: list) -> np.ndarray:
        bits = [to_bits(value) for value in values]
        return np.array(bits, dtype=f"uint{BITS[dtype]}").view(dtype)

    return st.lists(elements, min_size=1, max_size=size).map(build)
