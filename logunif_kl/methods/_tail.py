r"""F and uF' for large u, by the expansion in 1/u of the expectation in Hron's Eq. 1.

.. math:: F(u) \sim \tfrac12 \bigl[\log u - \psi(\tfrac12)\bigr]
          - \sum_{n \ge 1} \frac{(\frac12)_n}{2n\,u^n}, \qquad
          u F'(u) \sim \tfrac12 \sum_{n \ge 0} \frac{(\frac12)_n}{u^n}

Termwise derivatives in a, at 0, of Kummer's own expansion (DLMF 13.7.2)

.. math:: M(a; b; -u) \sim \frac{\Gamma(b)}{\Gamma(b - a)} u^{-a}
          \sum_n \frac{(a)_n (a - b + 1)_n}{n!\,u^n}

The catch: the terms fall only until n = u, where they are about e^-u. So at u = 40 the expansion is
good to 1e-18 and no further, whatever the number of terms.
"""

from __future__ import annotations

import math
from typing import Any

from mpmath import libmp

# (gamma + log 2)/2, the limit of F - 1/2 log(2u), rounded once.
_LIMIT = 0.6351814227307391


class Tail:
    """Both expansions in double precision, for u of at least a given size.

    Parameters
    ----------
    smallest : float
        The least u; the expansion is cut off where (1/2)_n/u^n is below 2^-56 there.
    """

    def __init__(self, smallest: float) -> None:
        self.smallest = smallest
        self._gap, self._slope = [], [0.5]
        rising, n = 1.0, 0
        while n == 0 or rising / smallest**n > 2.0**-56:
            rising *= n + 0.5
            n += 1
            self._gap.append(rising / (2 * n))
            self._slope.append(rising / 2.0)

    def gap(self, xp: Any, x: Any) -> Any:
        """Compute F(u) of x = log alpha; anything finite where u is too small."""
        over = self._over(xp, x)
        return (_LIMIT - 0.5 * x) - over * _horner(self._gap, over)

    def slope(self, xp: Any, x: Any) -> Any:
        """Compute u F'(u) of x = log alpha; anything finite where u is too small."""
        return _horner(self._slope, self._over(xp, x))

    def _over(self, xp: Any, x: Any) -> Any:
        """1/u = 2 exp(x), which cannot overflow where u would."""
        return 2.0 * xp.exp(xp.minimum(x, xp.full_like(x, -math.log(2.0 * self.smallest))))


def _horner(coefficients: list[float], at: Any) -> Any:
    result = coefficients[-1] + 0.0 * at
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + at * result
    return result


def smallest_for(wp: int) -> int:
    """The u from which the expansion gives wp bits.

    The remainder after K terms is below twice the first one left out and 2 exp(-u/2), as long as
    4K + 2 <= u; where that ends, the terms are (1/(4e))^(u/4) = 2^(-0.86 u).
    """
    return 3 * wp // 2 + 64


def gap_digits(u: Any, wp: int) -> Any:
    """Compute F(u) to wp bits, for u >= ``smallest_for(wp)``; raw floats of mpmath."""
    log4u = libmp.mpf_log(libmp.mpf_shift(u, 2), wp + 16, "n")
    top = libmp.mpf_shift(libmp.mpf_add(log4u, libmp.mpf_euler(wp + 16, "n")), -1)
    return libmp.mpf_sub(top, _sum(u, wp + 16, divided=True), wp + 8, "n")


def slope_digits(u: Any, wp: int) -> Any:
    """Compute u F'(u) to wp bits, for u >= ``smallest_for(wp)``; raw floats of mpmath."""
    half = libmp.from_man_exp(1, -1)
    return libmp.mpf_add(half, _sum(u, wp + 16, divided=False), wp + 8, "n")


def _sum(u: Any, wp: int, *, divided: bool) -> Any:
    """Sum (1/2)_n/(2 u^n) over n >= 1, each divided by n or not, in fixed point."""
    if u[2] + u[3] > wp:  # u >= 2^wp
        return libmp.fzero
    over = libmp.to_fixed(libmp.mpf_div(libmp.fone, u, wp, "n"), wp)
    term, total, n = 1 << (wp - 1), 0, 0
    while term:
        term = (term * over >> wp) * (2 * n + 1) >> 1
        n += 1
        total += term // n if divided else term
    return libmp.from_man_exp(total, -wp, wp, "n")
