"""Which errors count if a processor replaces subnormal numbers by zero.

XLA and TensorFlow set their threads on the CPU to do so. A zero for a subnormal truth counts as
correct, and so does the correct result for zeros instead of subnormal arguments. For complex
weights and groups, only normal results of frameworks count. The range of a claim says so.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .doubledouble import Array
from .functions import ALL, ISOTROPIC
from .truth import Truth, truth
from .ulp import FORMATS, Format, error

KERNELS = ("jax", "tensorflow")


Errors = Callable[[str, NDArray, Truth, list[NDArray]], Array]


def range_of(kernel: str, name: str) -> str:
    """Return the range of a claim, and say which errors of the kernel do not count."""
    function = ALL[name]
    if name in ISOTROPIC:
        return "all" if kernel == "python" else "normal results"
    if kernel not in KERNELS:
        return function.range
    flushed = "subnormals 0" if function.domain == "normal" else "subnormal results 0"
    return f"{function.range}, {flushed}"


def errors_of(kernel: str, name: str) -> Errors:
    """Return the function that measures, in ulp, the errors of a kernel that count."""
    if name in ISOTROPIC and kernel != "python":
        return _normal_error
    return flushed_error if kernel in KERNELS else plain_error


def plain_error(name: str, got: NDArray, exact: Truth, points: list[NDArray]) -> Array:
    return error(got, exact, points[0].dtype.name)


def _normal_error(name: str, got: NDArray, exact: Truth, points: list[NDArray]) -> Array:
    fmt = FORMATS[points[0].dtype.name]
    return np.where(_subnormal(exact, fmt), 0.0, error(got, exact, fmt.name))


def flushed_error(name: str, got: NDArray, exact: Truth, points: list[NDArray]) -> Array:
    """Return the error in ulp if subnormal numbers may have been replaced by zeros."""
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
        # A subnormal number may be returned unchanged although computations treat it as zero.
        zeroed = np.where(np.abs(got[moved]) < tiny, got.dtype.type(0), got[moved])
        errors[moved] = np.minimum(errors[moved], _forgiven(zeroed, other, fmt))
    return errors


def _forgiven(got: NDArray, exact: Truth, fmt: Format) -> Array:
    return np.where(_subnormal(exact, fmt) & (got == 0), 0.0, error(got, exact, fmt.name))


def _subnormal(exact: Truth, fmt: Format) -> NDArray[np.bool_]:
    _, exponent = np.frexp(exact.hi)
    found: NDArray[np.bool_] = (exact.hi != 0) & np.isfinite(exact.hi)
    return found & (exact.scale + exponent <= fmt.emin)


def unflushed(got: NDArray, want: Array, fmt: Format) -> Array:
    """Replace each zero that stands for a subnormal truth by that truth, rounded."""
    smallest = np.ldexp(1.0, fmt.emin)
    spacing = np.ldexp(1.0, fmt.emin - fmt.precision + 1)
    rounded = np.rint(want / spacing) * spacing
    return np.where((got == 0) & (np.abs(want) < smallest), rounded, got)
