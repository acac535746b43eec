r"""F, F', F'' and H = d^2(-KL)/dx^2 at moderate u: two power series.

With (2k+1)!! the odd factorial and h_k = 1 + 1/3 + ... + 1/(2k-1),

====  ====================================  ==============================================
what  ``direct``: sum over k >= 0 of        ``positive``: exp(-u) times the sum of
====  ====================================  ==============================================
F     u (-2u)^k / ((2k+1)!! (k+1))          u^(k+1)/(k+1)! h_(k+1)
F'    (-2u)^k / (2k+1)!!                    u^k/k! / (2k+1)
F''   -2 (k+1) (-2u)^k / (2k+3)!!           -2 u^k/k! / ((2k+1)(2k+3))
H     -u (k+1) (-2u)^k / (2k+1)!!           u u^k/k! / ((2k-1)(2k+1))
====  ====================================  ==============================================

The first column is u 2F2(1,1; 3/2,2; -u), M(1; 3/2; -u), -2/3 M(2; 5/2; -u) and
-u M(2; 3/2; -u). Its terms alternate and reach exp(u), so 1.44 u bits cancel. The second column is
Hron's Eq. 1, the mean of psi(1/2+k) under a Poisson law, for F. For F', and for F'' and H, which
follow from it, it is the expansion of Dawson's integral exp(-u) int_0^1 exp(u s^2) ds. All of its
terms but the first of H are positive, so nothing cancels except near the zero of H.

All sums run in fixed point on integers: a term costs one multiplication and one short division.
"""

from __future__ import annotations

from mpmath import libmp

from ._input import Raw, magnitude

GUARD = 24


def fixed(u: Raw, w: int) -> int:
    """Return u 2**w rounded down, for any u >= 0."""
    if not u[1] or magnitude(u) < -w:
        return 0
    return int(libmp.to_fixed(u, w))


def _extra_bits(u: Raw) -> int:
    """Return the bits for the rounding of each term, and for the decay of F'' and H at large u."""
    return GUARD + 3 * max(0, magnitude(u))


def direct(kind: str, u: Raw, wp: int) -> Raw:
    """Sum the alternating series: 2F2 for "gap", Kummer's M for the others."""
    w = wp + _extra_bits(u) + 3 * int(libmp.to_int(u)) // 2
    v = libmp.MPZ(fixed(u, w) << 1)
    b = libmp.MPZ(1) << w
    sums = [libmp.MPZ(0), libmp.MPZ(0)]
    k = 0
    while b:
        if kind == "gap":
            sums[k & 1] += b // (k + 1)
        elif kind == "gap_grad":
            sums[k & 1] += b
        elif kind == "gap_hess":
            sums[k & 1] += b * (k + 1) // (2 * k + 3)
        else:
            sums[k & 1] += b * (k + 1)
        k += 1
        b = (b * v >> w) // (2 * k + 1)
    total = sums[0] - sums[1]
    if kind == "gap_hess":
        total *= -2
    elif kind == "hess":
        total = -total
    result = libmp.from_man_exp(total, -w, wp + 8, "n")
    return libmp.mpf_mul(result, u, wp + 8, "n") if kind in ("gap", "hess") else result


def positive(kind: str, u: Raw, wp: int) -> Raw:
    """Sum the series under exp(-u): Hron's Eq. 1 for "gap", Dawson's integral for the others."""
    w = wp + _extra_bits(u)
    v = libmp.MPZ(fixed(u, w))
    one = libmp.MPZ(1) << w
    c = one
    harmonic = libmp.MPZ(0)
    total = libmp.MPZ(0)
    k = 0
    while c:
        if kind == "gap":
            harmonic += one // (2 * k + 1)
            total += (c * harmonic >> w) // (k + 1)
        elif kind == "gap_grad":
            total += c // (2 * k + 1)
        elif kind == "gap_hess":
            total += c // ((2 * k + 1) * (2 * k + 3))
        else:
            total += c // (4 * k * k - 1)
        k += 1
        c = (c * v >> w) // k
    if kind == "gap_hess":
        total *= -2
    result = libmp.from_man_exp(total, -w, wp + 8, "n")
    result = libmp.mpf_mul(result, libmp.mpf_exp(libmp.mpf_neg(u), wp + 8, "n"), wp + 8, "n")
    return libmp.mpf_mul(result, u, wp + 8, "n") if kind in ("gap", "hess") else result
