"""Hron's series in any number of digits: compute the Poisson mean of `_series` in fixed point.

Up to u = 2^17 the mean is a sum, which has about ten thousand terms at u = 2^17 for 50 digits. For
larger u the expansion in 1/u is used.
"""

from __future__ import annotations

from typing import Any

from mpmath import libmp

from .._poisson import LARGEST
from . import asymptotic, precision


def _mean(u: Any, wp: int, *, gap: bool) -> Any:
    """Compute u times the Poisson mean in fixed point, which is F if `gap`, otherwise uF'."""
    floor = int(libmp.to_int(u)) if u[2] + u[3] > 0 else 0
    reach = floor + wp + 64  # a bound on the number of terms
    # The error of a weight, in units of 2^-bits, is at most the number of terms.
    # The mean is at least 1/(2u + 1).
    bits = wp + 3 * reach.bit_length() + 16
    point = precision.fixed(u, bits)
    one, two = 1 << bits, 2 << bits

    def term(k: int, sums: int) -> int:
        return (sums if gap else two) // (2 * k + 2 if gap else 4 * k + 2)

    # Sum upwards from the mode, then downwards, until a weight falls below the last bit.
    at_mode = sum(two // (2 * j + 1) for j in range(floor + 1)) if gap else 0
    total = mean = 0
    k, sums, weight = floor, at_mode, one
    while weight:
        total += weight
        mean += weight * term(k, sums) >> bits
        k += 1
        weight = (weight * point >> bits) // k
        sums += two // (2 * k + 1)
    k, sums, weight = floor, at_mode, one
    over = (1 << 2 * bits) // point if floor else 0
    while k:
        weight = weight * k * over >> bits
        if not weight:
            break
        sums -= two // (2 * k + 1)
        k -= 1
        total += weight
        mean += weight * term(k, sums) >> bits
    expectation = libmp.from_rational(mean, total, wp + 16, "n")
    return libmp.mpf_mul(u, expectation, wp + 8, "n")


def _in_window(u: Any, wp: int) -> bool:
    return bool(libmp.mpf_le(u, libmp.from_int(max(int(LARGEST), asymptotic.smallest_for(wp)))))


def gap(u: Any, wp: int) -> Any:
    """Compute F(u) with a relative error of 2**-wp."""
    return _mean(u, wp, gap=True) if _in_window(u, wp) else asymptotic.gap(u, wp)


def slope(u: Any, wp: int) -> Any:
    """Compute u F'(u) with a relative error of 2**-wp."""
    return _mean(u, wp, gap=False) if _in_window(u, wp) else asymptotic.slope(u, wp)
