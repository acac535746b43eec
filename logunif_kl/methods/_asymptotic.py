r"""Expansions of F(u) and uF'(u) in 1/u, from Hron's Eq. 1. See `logunif_kl.neg_kl` for F and u.

.. math:: F(u) \sim \tfrac12 \bigl[\log u - \psi(\tfrac12)\bigr]
          - \sum_{n \ge 1} \frac{(\frac12)_n}{2n\,u^n}, \qquad
          u F'(u) \sim \tfrac12 \sum_{n \ge 0} \frac{(\frac12)_n}{u^n}

To derive them, differentiate each term of Kummer's expansion (DLMF 13.7.2) by a, at a = 0.

.. math:: M(a; b; -u) \sim \frac{\Gamma(b)}{\Gamma(b - a)} u^{-a}
          \sum_n \frac{(a)_n (a - b + 1)_n}{n!\,u^n}

The terms shrink only until n = u, where they are about e^-u. At u = 40 the expansion is therefore
accurate to 1e-18 at best.
"""

from __future__ import annotations

import math
from typing import Any

from .._convention import HALF_GAMMA_LOG_2


class Expansion:
    """The expansions of F(u) and u F'(u) in double precision, for u >= `smallest`.

    Each expansion ends with the first n for which (1/2)_n/u^n is below 2^-56 at u = `smallest`.
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
        """Compute F(u) at x = log alpha. For u < `smallest` the result is finite but wrong."""
        over = self._over(xp, x)
        return (HALF_GAMMA_LOG_2 - 0.5 * x) - over * _horner(self._gap, over)

    def slope(self, xp: Any, x: Any) -> Any:
        """Compute u F'(u) at x = log alpha. For u < `smallest` the result is finite but wrong."""
        return _horner(self._slope, self._over(xp, x))

    def _over(self, xp: Any, x: Any) -> Any:
        """Return 1/u = 2 exp(x), but at most 1/`smallest`."""
        return 2.0 * xp.exp(xp.minimum(x, xp.full_like(x, -math.log(2.0 * self.smallest))))


def _horner(coefficients: list[float], at: Any) -> Any:
    result = coefficients[-1] + 0.0 * at
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + at * result
    return result
