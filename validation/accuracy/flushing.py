"""Errors of a kernel whose processor replaces subnormal numbers, given or found, by zero.

XLA and TensorFlow set their threads on the CPU so. What this costs is told apart from the errors of
the arithmetic: a zero for a subnormal truth is right, and so is what would be right had the
subnormal arguments been zeros. The range of a claim on such a kernel says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .truth import Truth, truth
from .ulp import FORMATS, Format, error

KERNELS = ("jax", "tensorflow")


def range_of(kernel: str, domain: str, described: str) -> str:
    """Say in a claim's range what is not held against the kernel."""
    if kernel not in KERNELS:
        return described
    return described + (", subnormals 0" if domain == "normal" else ", subnormal results 0")


def flushed_error(
    name: str, got: NDArray, exact: Truth, points: list[NDArray]
) -> NDArray[np.float64]:
    """Return the error in ulp where subnormal numbers may have been taken for zeros."""
    dtype = points[0].dtype.name
    fmt = FORMATS[dtype]
    errors = _forgiven(got, exact, fmt)
    tiny = np.finfo(dtype).smallest_normal
    flushed = [np.where(np.abs(p) < tiny, p.dtype.type(0), p) for p in points]
    moved = np.zeros(len(got), dtype=bool)
    for p, q in zip(points, flushed, strict=True):
        moved |= (p != q) & ~np.isnan(p)
    if moved.any():
        other = truth(name, *(q[moved] for q in flushed))
        # A zero may come through as the subnormal number that it was taken for.
        zeroed = np.where(np.abs(got[moved]) < tiny, got.dtype.type(0), got[moved])
        errors[moved] = np.minimum(errors[moved], _forgiven(zeroed, other, fmt))
    return errors


def _forgiven(got: NDArray, exact: Truth, fmt: Format) -> NDArray[np.float64]:
    _, exponent = np.frexp(exact.hi)
    subnormal = (exact.hi != 0) & np.isfinite(exact.hi) & (exact.scale + exponent <= fmt.emin)
    errors = error(got, exact, fmt.name)
    return np.where(subnormal & (got == 0), 0.0, errors)


def unflushed(got: NDArray, want: NDArray[np.float64], fmt: Format) -> NDArray[np.float64]:
    """Replace the zeros that stand for subnormal truths by these, rounded."""
    smallest = np.ldexp(1.0, fmt.emin)
    spacing = np.ldexp(1.0, fmt.emin - fmt.precision + 1)
    rounded = np.rint(want / spacing) * spacing
    return np.where((got == 0) & (np.abs(want) < smallest), rounded, got)
