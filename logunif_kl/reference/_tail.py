r"""Compute F, F', F'' and H = d^2(-KL)/dx^2 at large u, by a series and by an expectation.

With t_k = (2k-1)!!/(2u)^k, and s = eps^2/(2u) for eps ~ N(0, 1), so that E s^k = t_k,

====  ========================================  ================================================
what  ``asymptotic``                            ``expectation``
====  ========================================  ================================================
F     log(4u)/2 + gamma/2 - sum t_k/(2k)        log(4u)/2 + gamma/2 + E log|1 - s|/2
F'    1/(2u) sum t_k                            1/(2u) E 1/(1-s)
F''   -1/(2u^2) sum (k+1) t_k                   -1/(2u^2) E 1/(1-s)^2
H     1/(4u) sum (k+1)(2k+1) t_k                1/(4u) E eps^2/(1-s)^2
====  ========================================  ================================================

**The remainder of the asymptotic series.** Let a_k = (2k-1)!!/(2u)^(k+1), and let
S = a_0 + ... + a_(K-1) and E = F' - S. From 2u F'' + (1+2u) F' = 1 the sum telescopes to
(e^u sqrt(u) E)' = e^u sqrt(u) a_K. Integrate this equation from u/2 to u. At u/2, 0 < F' <= 1 and,
if 4K + 2 <= u, 0 < S <= 1. Above u/2 the integrand is a constant times g = e^t t^-(K+1/2), and the
logarithmic derivative of g is at least 1/2. Hence

    |F' - S| <= 2 a_K + e^(-u/2)                                          if 4K + 2 <= u, u >= 2,
    |F  - ...| <= 2 t_K/(2K) + 2 e^(-u/2)                                 (integrated to infinity),
    |F'' - S'| = |a_K - (1 + 1/(2u)) E| <= 4 a_K + 2 e^(-u/2),
    |H - ...| = |u^2 E - u^2 a_K - u E/2| <= (3u^2 + u) a_K + (u^2 + u) e^(-u/2).

K is free. If K is the number of added terms plus two, then for every u the last two bounds are as
small as the first omitted term. ``is_tail`` requires e^(-u/2) u^3 < 2^-wp. The terms then fall
below 2^-wp before 4K + 10 > u.

**The expectation** is the E log|eps| of Kingma et al. (2015). It averages the even part of
log|1 + eps/sqrt(2u)|, by the trapezoidal rule with step h and an error of about exp(-2 pi^2/h^2).
The pole at s = 1 has a weight of e^-u and lies beyond the nodes.
"""

from __future__ import annotations

from functools import lru_cache

from mpmath import libmp

from ._input import Raw, floor, magnitude
from ._series import fixed

GUARD = 24


def is_tail(u: Raw, wp: int) -> bool:
    """Whether both formulas of this module give wp bits at u."""
    m = magnitude(u)
    if m > wp.bit_length() + 40:
        return True
    return floor(u) >= 7 * (wp + 3 * max(m, 0) + 2 * GUARD) // 5


def _finish(kind: str, total: int, w: int, u: Raw, wp: int) -> Raw:
    """Return F, F', F'' or H, from the fixed-point sum or mean in its formula above."""
    s = libmp.from_man_exp(total, -w, wp + 8, "n")
    if kind == "gap":
        log4u = libmp.mpf_log(libmp.mpf_shift(u, 2), wp + 8, "n")
        top = libmp.mpf_add(log4u, libmp.mpf_euler(wp + 8, "n"), wp + 8, "n")
        return libmp.mpf_sub(libmp.mpf_shift(top, -1), s, wp + 8, "n")
    s = libmp.mpf_div(s, u, wp + 8, "n")
    if kind == "gap_grad":
        return libmp.mpf_shift(s, -1)
    if kind == "gap_hess":
        return libmp.mpf_neg(libmp.mpf_shift(libmp.mpf_div(s, u, wp + 8, "n"), -1))
    return libmp.mpf_shift(s, -2)


def asymptotic(kind: str, u: Raw, wp: int) -> Raw:
    """Sum the asymptotic series until its terms are 0, if u is large enough for the bound."""
    w = wp + GUARD
    r = libmp.MPZ(fixed(libmp.mpf_div(libmp.fone, libmp.mpf_shift(u, 1), w, "n"), w))
    t = libmp.MPZ(1) << w
    total = libmp.MPZ(0)
    k = 0
    while t:
        if kind == "gap":
            if k:
                total += t // (2 * k)
        elif kind == "gap_grad":
            total += t
        elif kind == "gap_hess":
            total += t * (k + 1)
        else:
            total += t * ((k + 1) * (2 * k + 1))
        t = t * r * (2 * k + 1) >> w
        k += 1
    if libmp.mpf_lt(u, libmp.from_int(4 * k + 10)):
        raise ArithmeticError(f"the asymptotic series was asked for {wp} bits at too small a u.")
    return _finish(kind, total, w, u, wp)


@lru_cache(maxsize=8)
def _normal_nodes(w: int) -> tuple[tuple[int, int], ...]:
    """Return (eps^2, weight) of the trapezoidal rule for a normal distribution, in fixed point."""
    bits = w + 8
    ln2 = libmp.mpf_ln2(bits)
    # For h^2 = 2 pi^2/(w log 2) the error exp(-2 pi^2/h^2) is 2^-w. Weights below 2^-w are 0.
    pi = libmp.mpf_pi(bits)
    h2 = libmp.mpf_div(
        libmp.mpf_shift(libmp.mpf_mul(pi, pi, bits), 1), libmp.mpf_mul_int(ln2, w, bits), bits
    )
    step = libmp.to_fixed(h2, w)
    h2 = libmp.from_man_exp(step, -w)
    nodes = []
    n = 0
    weight = 1
    while weight:
        half = libmp.mpf_shift(libmp.mpf_mul_int(h2, n * n, bits, "n"), -1)
        weight = libmp.to_fixed(libmp.mpf_exp(libmp.mpf_neg(half), bits), w) << (n > 0)
        nodes.append((n * n * step, weight))
        n += 1
    mass = sum(weight for _, weight in nodes)
    return tuple((eps2, (weight << w) // mass) for eps2, weight in nodes)


def expectation(kind: str, u: Raw, wp: int) -> Raw:
    """Compute F, F', F'' or H from the mean over eps ~ N(0, 1), by the trapezoidal rule."""
    w = -(-(wp + GUARD) // 32) * 32  # round up, so that similar precisions share nodes
    r = libmp.MPZ(fixed(libmp.mpf_div(libmp.fone, libmp.mpf_shift(u, 1), w, "n"), w))
    one = libmp.MPZ(1) << w
    total = libmp.MPZ(0)
    for eps2, weight in _normal_nodes(w):
        s = eps2 * r >> w
        if s >= one:
            break
        if kind == "gap":
            total += weight * _minus_log1m(s, w)
        elif kind == "gap_grad":
            total += (weight << w) // (one - s)
        else:
            over = (weight << 2 * w) // (one - s) ** 2
            total += over if kind == "gap_hess" else over * eps2 >> w
    if kind == "gap":
        total >>= w + 1
    return _finish(kind, total, w, u, wp)


def _minus_log1m(s: int, w: int) -> int:
    """Return -log(1 - s) in fixed point, 0 <= s < 1."""
    if s.bit_length() < w - (w >> 3):
        total = term = s
        k = 1
        while term:
            k += 1
            term = term * s >> w
            total += term // k
        return total
    one = libmp.from_man_exp((1 << w) - s, -w)
    return int(libmp.to_fixed(libmp.mpf_neg(libmp.mpf_log(one, w + 8, "n")), w))
