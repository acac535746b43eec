"""Compute u E[g(K)] for K ~ Poisson(u), by a sum over the k with non-negligible probability.

Hron's Eq. 1 is an expectation under a Poisson law. The terms u^k/k! of its sum reach e^u, so they
may overflow, and the factor e^-u before the sum may underflow. The weights exp(k log u - u - log
k!) are inaccurate, because numbers of size u log u cancel to a number of size 1: at u = 80,000 six
of the sixteen digits are lost. Here log w_k is a sum of log ratios of neighbouring weights,

    log w_k = log w_(k-1) + log(u/k) = log w_(k-1) + log1p((u - k)/k),

and each log1p is small near the mode. The weights are then divided by their sum, which cancels any
error common to all of them.

**The window.** By Bernstein's inequality P(K <= u - t) <= exp(-t^2/(2u)) and P(K >= u + t) <=
exp(-t^2/(2u + 2t/3)). The sum runs over the k where the bounds exceed e^-45 = 3e-20: 9.5 sqrt(u)
terms below the mean, and 9.5 sqrt(u) + 30 above. The mean E[g(K)] is at least 1/(2u + 1), so up to
u = 1000 a loss of 3e-20 is less than 2^-53 times the mean. Above u = 1000, the k below u/2 have a
total probability below e^-125, and g(k) of any other k is below twice the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

#: Minus the log of the probability that the window may leave out at each end.
NEGLIGIBLE = 45.0
#: The largest allowed u, at log_alpha = -12.48. The window for this u has 6,886 terms.
LARGEST = 2.0**17
# The number of terms in a block, so that an array with a double per term takes half a MiB.
_BUDGET = 1 << 16
# A normal number, because the callbacks of XLA run with subnormal numbers flushed to zero.
_TINY = np.finfo(np.float64).tiny

Weighted = Callable[[np.ndarray], np.ndarray]


def window(u: float) -> tuple[int, int]:
    """Return the first and the last k of the sum for a Poisson mean u."""
    below = math.sqrt(2.0 * NEGLIGIBLE * u)
    third = NEGLIGIBLE / 3.0
    above = third + math.sqrt(third * third + 2.0 * NEGLIGIBLE * u)
    return max(math.floor(u - below), 0), math.ceil(u + above)


#: The largest k for which `mean_times_u` calls its function.
LAST = window(LARGEST)[1]


def mean_times_u(u: np.ndarray, g: Weighted) -> np.ndarray:
    """Compute u E[g(K)], K ~ Poisson(u), for a 1-d float64 array of u in [0, `LARGEST`].

    ``g`` takes an int64 array of k in [0, `LAST`]. ``g`` is elementwise, positive and decreasing,
    with g(0) = 1 and g(k) >= 1/(2k + 1). The relative error is a few units in the last place, even
    as u -> 0.
    """
    result = np.empty_like(u)
    # All u with the same ceil(2 log2(u)) use a window of the same width. A result therefore does
    # not depend on the other elements of the array.
    steps = np.ceil(2.0 * np.log2(np.maximum(u, 1.0)))
    for step in np.unique(steps):
        top = 2.0 ** (float(step) / 2.0)
        first, last = window(top)
        mode = math.floor(top)
        alike = np.flatnonzero(steps == step)
        rows = max(1, _BUDGET // (last - first + 1))
        for start in range(0, alike.size, rows):
            chosen = alike[start : start + rows]
            result[chosen] = u[chosen] * _mean(u[chosen], mode - first, last - mode, g)
    return result


def _mean(u: np.ndarray, below: int, above: int, g: Weighted) -> np.ndarray:
    """Return E[g(K)], summed over `below` terms below the mode floor(u) and `above` terms above."""
    mode = np.floor(u).astype(np.int64)[:, None]
    u = np.maximum(u, _TINY)[:, None]
    right = mode + np.arange(1, above + 1)
    left = np.maximum(mode - np.arange(below + 1), 0)
    with np.errstate(divide="ignore"):
        up = np.exp(np.cumsum(np.log1p((u - right) / right), axis=1))
        # w_(k-1)/w_k = k/u is 0 at k = 0, so all weights with k < 0 are 0.
        down = np.exp(np.cumsum(np.log1p((left[:, :-1] - u) / u), axis=1))
    total = 1.0 + up.sum(axis=1) + down.sum(axis=1)
    weighted = (up * g(right)).sum(axis=1) + (down * g(left[:, 1:])).sum(axis=1)
    return np.asarray((g(mode[:, 0]) + weighted) / total)
