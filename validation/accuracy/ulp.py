"""Error in units in the last place.

The error of a result is ``(got - truth) / ulp(truth)``. ``ulp(truth)`` is the spacing of the
format's numbers in the binade that contains the exact (not the rounded) truth. Below the smallest
normal number it is the spacing of the subnormal numbers. A correctly rounded result therefore has
an error of at most 1/2, and the unit is the same for results on either side of a power of two.

- An infinite result counts as 2**(emax + 1), the number after the largest. If the truth exceeds it,
  an infinite result has no error.
- Where the truth is infinite or NaN, the error is 0 for the same result, and infinite otherwise.
  The error of a NaN for a number is infinite. Signs of zeros are not compared.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .doubledouble import Array
from .truth import Truth


class Format(NamedTuple):
    """A binary floating-point format: precision in bits, exponents of the normal numbers."""

    name: str
    precision: int
    emin: int
    emax: int


FORMATS = {
    f.name: f
    for f in (
        Format("float64", 53, -1022, 1023),
        Format("float32", 24, -126, 127),
        Format("float16", 11, -14, 15),
        Format("bfloat16", 8, -126, 127),
    )
}

# 2 to this power is negligible next to 2**-1074, and 2**-1074 divided by it does not overflow.
_NEGLIGIBLE = -1900


def _int32(e: NDArray) -> NDArray[np.int32]:
    clipped: NDArray[np.int32] = np.clip(e, -9000, 9000).astype(np.int32)
    return clipped


def signed_error(got: NDArray, truth: Truth, format_name: str) -> Array:
    """Return the signed error of ``got`` in ulp of the format, elementwise."""
    fmt = FORMATS[format_name]
    got = np.asarray(got, dtype=np.float64)
    with np.errstate(all="ignore"):
        # Scale the truth to between 1/2 and 1, so that nothing overflows. For a truth far below the
        # smallest number the scale does not matter.
        hi, e = np.frexp(truth.hi)
        lo = np.ldexp(truth.lo, -e)
        scale = np.maximum(truth.scale + e, _NEGLIGIBLE)
        # hi is a power of two, and the truth is just below it.
        binade = scale - 1 - ((np.abs(hi) == 0.5) & (hi * lo < 0))
        spacing = np.where(hi == 0, fmt.emin, np.maximum(binade, fmt.emin)) - (fmt.precision - 1)
        beyond = np.ldexp(np.sign(got), _int32(fmt.emax + 1 - scale))
        scaled = np.where(np.isinf(got), beyond, np.ldexp(got, _int32(-scale)))
        error = np.ldexp((scaled - hi) - lo, _int32(scale - spacing))

        overflowed = np.isinf(got) & (binade > fmt.emax) & (np.sign(got) == np.sign(hi))
        error = np.where(overflowed, 0.0, error)
        same = (got == truth.hi) | (np.isnan(got) & np.isnan(truth.hi))
        error = np.where(np.isfinite(truth.hi), error, np.where(same, 0.0, np.inf))
        return np.where(np.isnan(error), np.inf, error)


def error(got: NDArray, truth: Truth, format_name: str) -> Array:
    return np.abs(signed_error(got, truth, format_name))


def round_to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round float32 numbers to the nearest bfloat16, ties to even; the result is still float32."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), values, rounded.view(np.float32))
