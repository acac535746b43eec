"""Evaluate the expansions of `_asymptotic` in any number of digits.

The smallest terms of the expansions are about e^-u, so more digits need a larger u.
"""

from __future__ import annotations

from typing import Any

from mpmath import libmp


def smallest_for(wp: int) -> int:
    """Return the least u at which the expansion gives wp bits.

    If 4K + 2 <= u, the remainder after K terms is below twice the next term plus 2 exp(-u/2). For
    the largest such K, the next term is about (1/(4e))^(u/4) = 2^(-0.86 u).
    """
    return 3 * wp // 2 + 64


def gap(u: Any, wp: int) -> Any:
    """Compute F(u) to wp bits as a raw mpmath float, for a raw u >= ``smallest_for(wp)``."""
    log4u = libmp.mpf_log(libmp.mpf_shift(u, 2), wp + 16, "n")
    top = libmp.mpf_shift(libmp.mpf_add(log4u, libmp.mpf_euler(wp + 16, "n")), -1)
    return libmp.mpf_sub(top, _sum(u, wp + 16, divided=True), wp + 8, "n")


def slope(u: Any, wp: int) -> Any:
    """Compute u F'(u) to wp bits as a raw mpmath float, for a raw u >= ``smallest_for(wp)``."""
    half = libmp.from_man_exp(1, -1)
    return libmp.mpf_add(half, _sum(u, wp + 16, divided=False), wp + 8, "n")


def _sum(u: Any, wp: int, *, divided: bool) -> Any:
    """Sum (1/2)_n/(2 u^n) over n >= 1 in fixed point, each term divided by n if `divided`."""
    if u[2] + u[3] > wp:  # u >= 2^wp
        return libmp.fzero
    over = libmp.to_fixed(libmp.mpf_div(libmp.fone, u, wp, "n"), wp)
    term, total, n = 1 << (wp - 1), 0, 0
    while term:
        term = (term * over >> wp) * (2 * n + 1) >> 1
        n += 1
        total += term // n if divided else term
    return libmp.from_man_exp(total, -wp, wp, "n")
