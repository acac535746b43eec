r"""Sum power series for F, F', F'' and H = d^2(-KL)/dx^2 at moderate u (x = log alpha).

With (2k+1)!! = 1 3 5 ... (2k+1) and h_k = 1 + 1/3 + ... + 1/(2k-1),

====  ====================================  ==============================================
what  ``direct``: sum over k >= 0 of        ``positive``: exp(-u) times the sum of
====  ====================================  ==============================================
F     u (-2u)^k / ((2k+1)!! (k+1))          u^(k+1)/(k+1)! h_(k+1)
F'    (-2u)^k / (2k+1)!!                    u^k/k! / (2k+1)
F''   -2 (k+1) (-2u)^k / (2k+3)!!           -2 u^k/k! / ((2k+1)(2k+3))
H     -u (k+1) (-2u)^k / (2k+1)!!           u u^k/k! / ((2k-1)(2k+1))
====  ====================================  ==============================================

The column ``direct`` is u 2F2(1,1; 3/2,2; -u), M(1; 3/2; -u), -2/3 M(2; 5/2; -u) and
-u M(2; 3/2; -u). Its terms alternate and reach exp(u), so 1.44 u bits cancel. In the column
``positive``, F is Hron's Eq. 1, the mean of psi(1/2+k) under a Poisson law. F' is the expansion of
Dawson's integral exp(-u) int_0^1 exp(u s^2) ds, from which F'' and H follow. The terms of this
column have the same sign, except the first term of H, so digits cancel only near the zero of H.

All sums use integers in fixed point. Terms are grouped by the remainder of k modulo m. Then n terms
need only 2 m + 2 n/m full-length products, and otherwise short divisions (P. Smith, "Efficient
multiple-precision evaluation of elementary functions", Mathematics of Computation 52 (1989)).
"""

from __future__ import annotations

import math
from math import isqrt

from mpmath import libmp

from ._input import Raw, floor, magnitude

GUARD = 24


def fixed(u: Raw, w: int) -> int:
    """Return u 2**w rounded down, for any u >= 0."""
    if not u[1] or magnitude(u) < -w:
        return 0
    return int(libmp.to_fixed(u, w))


def _extra_bits(u: Raw) -> int:
    """Return extra bits, to cover the rounding of terms and the decay of F'' and H at large u."""
    return GUARD + 3 * max(0, magnitude(u))


def _terms(v: Raw, bits: int) -> int:
    """Estimate the number of terms until v^k/k! or v^k/(2k+1)!! is below 2**-bits."""
    x = max(1.0, float(libmp.to_float(v)))
    k = 2.0 * x + 8.0
    while k * (math.log2(k) - math.log2(x) - 1.4427) < bits:
        k *= 1.25
    return int(k)


def _block(v: Raw, bits: int) -> tuple[int, int]:
    """Return m, the number of terms in a block, and how many more bits the blocks need.

    More bits are needed because the terms of a block leave out factors up to v^(m-1).
    """
    over = max(0, magnitude(v))
    m = max(1, min(isqrt(_terms(v, bits)), bits // (16 * (over + 1))))
    return m, m * over


def _collected(sums: list[int], v: int, w: int) -> int:
    """Return sums[0] + v sums[1] + v^2 sums[2] + ..., all in units of 2**-w."""
    total = libmp.MPZ(0)
    for one in reversed(sums):
        total = (total * v >> w) + one
    return int(total)


def _powers(v: int, m: int, w: int) -> int:
    """Return v^m in units of 2**-w."""
    return int(libmp.to_fixed(libmp.mpf_pow_int(libmp.from_man_exp(v, -w), m, w + 32), w))


def direct(kind: str, u: Raw, wp: int) -> Raw:
    """Sum the alternating series: 2F2 for "gap", and Kummer's M for the other kinds."""
    bits = wp + _extra_bits(u) + 3 * floor(u) // 2
    m, more = _block(libmp.mpf_shift(u, 1), bits)
    w = bits + more
    v = libmp.MPZ(fixed(u, w) << 1)
    step = libmp.MPZ(_powers(v, m, w)) if m > 1 else v
    b = libmp.MPZ(1) << w
    sums = [libmp.MPZ(0)] * m
    k = 0
    while b:
        for j in range(m):
            if kind == "gap":
                term = b // (k + 1)
            elif kind == "gap_grad":
                term = b
            elif kind == "gap_hess":
                term = b * (k + 1) // (2 * k + 3)
            else:
                term = b * (k + 1)
            sums[j] += -term if k & 1 else term
            k += 1
            b //= 2 * k + 1
        b = b * step >> w
    total = _collected(sums, v, w)
    if kind == "gap_hess":
        total *= -2
    elif kind == "hess":
        total = -total
    result = libmp.from_man_exp(total, -w, wp + 8, "n")
    return libmp.mpf_mul(result, u, wp + 8, "n") if kind in ("gap", "hess") else result


def positive(kind: str, u: Raw, wp: int) -> Raw:
    """Sum exp(-u) times positive terms: Hron's Eq. 1 for "gap", otherwise Dawson's integral."""
    bits = wp + _extra_bits(u)
    m, more = _block(u, bits)
    w = bits + more
    v = libmp.MPZ(fixed(u, w))
    step = libmp.MPZ(_powers(v, m, w)) if m > 1 else v
    c = libmp.MPZ(1) << w
    harmonic = c if kind == "gap" else libmp.MPZ(0)  # c h_(k+1)
    sums = [libmp.MPZ(0)] * m
    k = 0
    while c:
        for j in range(m):
            if kind == "gap":
                sums[j] += harmonic // (k + 1)
            elif kind == "gap_grad":
                sums[j] += c // (2 * k + 1)
            elif kind == "gap_hess":
                sums[j] += c // ((2 * k + 1) * (2 * k + 3))
            else:
                sums[j] += c // (4 * k * k - 1)
            k += 1
            c //= k
            if kind == "gap":
                harmonic = harmonic // k + c // (2 * k + 1)
        c = c * step >> w
        harmonic = harmonic * step >> w
    total = _collected(sums, v, w)
    if kind == "gap_hess":
        total *= -2
    result = libmp.from_man_exp(total, -w, wp + 8, "n")
    result = libmp.mpf_mul(result, libmp.mpf_exp(libmp.mpf_neg(u), wp + 8, "n"), wp + 8, "n")
    return libmp.mpf_mul(result, u, wp + 8, "n") if kind in ("gap", "hess") else result
