"""Kummer's form in any number of digits: sum its alternating series in fixed point.

The series loses log2(e) u bits to cancellation, so it is summed with as many extra bits. When u is
above about 1.5 times the requested number of bits, the expansion for large u gives all the
requested bits and is used instead.
"""

from __future__ import annotations

from typing import Any

from mpmath import libmp

from . import asymptotic, precision


def _alternating(u: Any, wp: int, *, gap: bool) -> Any:
    """Sum u (-u)^k/(3/2)_k over k in fixed point, each term divided by k + 1 if `gap`.

    The largest term is below e^u, which has log2(e) u bits. The sum is at least 1/(2u + 1).
    """
    above = max(0, int(libmp.to_int(u)) + 1 if u[2] + u[3] > 0 else 0)
    bits = wp + 3 * above // 2 + 2 * (above + wp).bit_length() + 16
    point = precision.fixed(u, bits)
    term, total, k = 1 << bits, 0, 0
    while term:
        total += (-1) ** k * (term // (k + 1) if gap else term)
        k += 1
        term = (term * point >> (bits - 1)) // (2 * k + 1)
    return libmp.mpf_mul(u, libmp.from_man_exp(total, -bits, wp + 16, "n"), wp + 8, "n")


def _alternates(u: Any, wp: int) -> bool:
    return bool(libmp.mpf_lt(u, libmp.from_int(asymptotic.smallest_for(wp))))


def gap(u: Any, wp: int) -> Any:
    """Compute F(u) with a relative error of 2**-wp."""
    return _alternating(u, wp, gap=True) if _alternates(u, wp) else asymptotic.gap(u, wp)


def slope(u: Any, wp: int) -> Any:
    """Compute u F'(u) with a relative error of 2**-wp."""
    return _alternating(u, wp, gap=False) if _alternates(u, wp) else asymptotic.slope(u, wp)
