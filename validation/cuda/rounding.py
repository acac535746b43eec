"""Float32 arithmetic on the CPU with the roundings of a GPU."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Word = NDArray[Any]


def fma(a: Word, b: Word, c: Word, *, down: bool = False) -> Word:
    """Return ``a*b + c`` in float32, rounded once: to the nearest, or downward.

    The product is exact in float64. The sum is rounded to odd there, after which the rounding to
    float32 is that of the exact number.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    c = c.astype(np.float64)
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = np.atleast_1d(total).view(np.int64).reshape(total.shape)
    even = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    odd = np.where(even, bits + np.where(away, 1, -1), bits)
    total = np.atleast_1d(odd).view(np.float64).reshape(total.shape)
    result = total.astype(np.float32)
    if down:
        above = np.isfinite(total) & (result > total)
        result = np.where(above, np.nextafter(result, np.float32(-np.inf)), result)
    return result


def shifted(a: NDArray[np.float32], steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the float32 numbers so many places further from zero, but none beyond infinity."""
    bits = np.atleast_1d(a).view(np.uint32).astype(np.int64).reshape(a.shape)
    sign = bits & 0x80000000
    magnitude = np.clip((bits & 0x7FFFFFFF) + steps, 0, 0x7F800000)
    moved = np.where(steps == 0, bits, sign | magnitude).astype(np.uint32)
    result: NDArray[np.float32] = np.atleast_1d(moved).view(np.float32).reshape(a.shape)
    return result


def flushed(a: Word) -> Word:
    """Return subnormal numbers as zeros of their sign."""
    zero = np.copysign(np.float32(0.0), a)
    return np.where(np.abs(a) < np.finfo(np.float32).smallest_normal, zero, a)


def _saturated(a: Word) -> Word:
    a = a.view(np.float32)
    return np.where(np.isnan(a), np.float32(0), np.clip(a, 0, 1)).astype(np.float32).view(np.uint32)


def _integer(a: Word, how: Callable[[Word], Word]) -> Word:
    """Return whole numbers in the range of int32, and 0 for NaN."""
    whole = np.nan_to_num(
        how(a.view(np.float32).astype(np.float64)), posinf=2.0**31, neginf=-(2.0**31)
    )
    result: Word = np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int32).view(np.uint32)
    return result


CONVERSIONS: Mapping[str, Callable[[Word], Word]] = {
    "sat.f32.f32": _saturated,
    "rn.f32.s32": lambda a: a.view(np.int32).astype(np.float32).view(np.uint32),
    "rn.f32.u32": lambda a: a.view(np.uint32).astype(np.float32).view(np.uint32),
    "rni.f32.f32": lambda a: np.rint(a.view(np.float32)).view(np.uint32),
    "rni.s32.f32": lambda a: _integer(a, np.rint),
    "rzi.s32.f32": lambda a: _integer(a, np.trunc),
    "u32.u64": lambda a: a.astype(np.uint32),
    "u64.u32": lambda a: a.astype(np.uint64),
    "s64.s32": lambda a: a.view(np.int32).astype(np.int64),
}
"""How a register is converted, by the end of the instruction's name."""
