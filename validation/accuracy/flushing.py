"""Errors of a kernel whose processor replaces subnormal numbers, given or found, by zero.

XLA and TensorFlow set their threads on the CPU to do so. This is not counted as an error of the
arithmetic. A zero for a subnormal truth counts as right. So does the right result for zeros in the
place of subnormal arguments. The range of a claim on such a kernel says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .truth import Truth, truth
from .ulp import FORMATS, Format, error

KERNELS = ("jax", "tensorflow")


def range_of(kernel: str, domain: str, described: str) -> str:
    """Return the range of a claim, with what does not count as an error of the kernel."""
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
        # A subnormal number may be returned unchanged, though it was taken for zero.
        zeroed = np.where(np.abs(got[moved]) < tiny, got.dtype.type(0), got[moved])
        errors[moved] = np.minimum(errors[moved], _forgiven(zeroed, other, fmt))
    return errors


def _forgiven(got: NDArray, exact: Truth, fmt: Format) -> NDArray[np.float64]:
    _, exponent = np.frexp(exact.hi)
    subnormal = (exact.hi != 0) & np.isfinite(exact.hi) & (exact.scale + exponent <= fmt.emin)
    errors = error(got, exact, fmt.name)
    return np.where(subnormal & (got == 0), 0.0, errors)


def unflushed(got: NDArray, want: NDArray[np.float64], fmt: Format) -> NDArray[np.float64]:
    """Replace each zero that stands for a subnormal truth by that truth, rounded."""
    smallest = np.ldexp(1.0, fmt.emin)
    spacing = np.ldexp(1.0, fmt.emin - fmt.precision + 1)
    rounded = np.rint(want / spacing) * spacing
    return np.where((got == 0) & (np.abs(want) < smallest), rounded, got)
