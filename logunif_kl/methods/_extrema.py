"""Find where an error is largest: search a grid of log alpha, then refine between its points.

Here an *error* is a function from an array of log alpha to signed errors. `measure` passes the
error of a method, and `logunif_kl.fitting` passes the error of a fitted formula.

An infinite end of an interval is replaced by log_alpha = +-40, where every formula of this package
has reached its limit in double precision. An extremum found there is reported at the infinite end.
The search misses extrema narrower than a step of the grid, but smooth formulae have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Error = Callable[[Array], Array]

#: The magnitude of log alpha that replaces an infinite end.
HORIZON = 40.0
# At an infinite end, errors that differ by less than this differ by rounding only.
_AT_ITS_LIMIT = 4.0 * HORIZON * np.finfo(np.float64).eps
_INVERSE_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SECTIONS = 42  # these leave 2e-9 of a bracket, and the error of a maximum is about (2e-9)^2
_FLAT = 1e-11  # a relative gain below this counts as rounding


@dataclass(frozen=True, slots=True)
class Extremum:
    """A point where an error is extreme.

    Attributes
    ----------
    log_alpha : float
        The point. For an extremum in the limit log alpha -> +-inf, the point is +-inf in a
        `Measurement`, and a number beyond +-12 in a `logunif_kl.fitting.Fit`.
    error : float
        Signed error, approximate minus exact, multiplied by the weight of the `Fit`, if any.
    quantity : str
        Whether the error is of the ``"value"`` or of the ``"gradient"``.
    """

    log_alpha: float
    error: float
    quantity: str


def finite(low: float, high: float, horizon: float = HORIZON) -> tuple[float, float]:
    """Return `low` and `high`, with -inf replaced by -`horizon` and inf by `horizon`."""
    return (-horizon if math.isinf(low) else low), (horizon if math.isinf(high) else high)


def local_extrema(error: Error, grid: Array) -> tuple[Array, Array]:
    """Find all local maxima of the error's magnitude, including the ends of the ascending grid.

    Return their log alphas in ascending order, and the signed errors there.
    """
    values = error(grid)
    size = np.abs(values)
    padded = np.concatenate([[-np.inf], size, [-np.inf]])
    at = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] > padded[2:]))
    return _refined(error, grid, values, at, np.abs)


def worst(error: Error, grid: Array, low: float, high: float, quantity: str) -> Extremum:
    """Find where an error is largest in magnitude, from `low` to `high`, which may be infinite."""
    x, found = local_extrema(error, grid)
    i = int(np.argmax(np.abs(found)))
    ends = np.abs(error(grid[[0, -1]]))
    return Extremum(_place(float(x[i]), abs(found[i]), ends, low, high), float(found[i]), quantity)


def least_and_greatest(
    error: Error, grid: Array, low: float, high: float, quantity: str
) -> tuple[Extremum, Extremum]:
    """Find the least and the greatest signed error from `low` to `high`, which may be infinite."""
    values = error(grid)
    signs = np.array([-1.0, 1.0])
    at = np.array([np.argmin(values), np.argmax(values)])
    x, found = _refined(error, grid, values, at, lambda e: signs * e)
    least, greatest = (
        Extremum(
            _place(float(x[i]), sign * found[i], sign * values[[0, -1]], low, high),
            float(found[i]),
            quantity,
        )
        for i, sign in enumerate(signs)
    )
    return least, greatest


def _refined(
    error: Error, grid: Array, values: Array, at: Array, size: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Move each chosen grid point to where size(error) is largest between its neighbours.

    All brackets are searched at once, by golden sections. (SciPy's `minimize_scalar` searches one
    at a time, and its vectorised `elementwise.find_minimum` needs SciPy 1.15.)
    """
    low, high = grid[np.maximum(at - 1, 0)], grid[np.minimum(at + 1, grid.size - 1)]
    for _ in range(_SECTIONS):
        step = _INVERSE_GOLDEN * (high - low)
        left, right = high - step, low + step
        keep = size(error(left)) >= size(error(right))
        high, low = np.where(keep, right, high), np.where(keep, low, left)
    inner = (low + high) / 2.0
    found = error(inner)
    # if the gain is only rounding, keep the grid point, so that an extremum at an end stays there
    before = size(values[at])
    better = size(found) > before + _FLAT * np.abs(before)
    return np.where(better, inner, grid[at]), np.where(better, found, values[at])


def _place(x: float, size: float, ends: Array, low: float, high: float) -> float:
    """Return the infinite end if the error approaches its largest size there, otherwise x."""
    for there, limit in zip(ends, (low, high), strict=True):
        if math.isinf(limit) and there >= size - _AT_ITS_LIMIT:
            return limit
    return x
