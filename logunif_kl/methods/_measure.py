"""How far a method is from the exact value and gradient, and where.

The worst error over an interval is found on a dense grid in log alpha and then refined around each
extremum of the grid by golden-section search, so that the figure is that of the continuous
function, not of the grid. An infinite end is searched up to log_alpha = +-40, where every formula
here has reached its limit to double precision (alpha = 4e-18 or 2e17); a worst error found there is
reported at the infinite end itself.

What is *not* guaranteed: an extremum narrower than the grid's step (0.0025 over [-10, 10]) would
be missed. The errors of smooth formulae have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _api
from ._method import WIDE, Interval, Method

HORIZON = 40.0
FARTHEST = 100.0  # beyond, alpha^3 over the exact gradient leaves the range of a double
# Rounding of two values of magnitude HORIZON/2: less cannot tell a plateau from its limit.
_AT_ITS_LIMIT = 4.0 * HORIZON * np.finfo(np.float64).eps
_INVERSE_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class Extremum:
    """An error and the log alpha at which it is attained, or approached where that is infinite."""

    error: float
    log_alpha: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """The errors of one method over one interval of log alpha.

    Attributes
    ----------
    method : str
        The method's name.
    interval : Interval
        Where it was measured.
    value : Extremum
        The signed error of -KL, method minus exact, of largest magnitude.
    value_mean : float
        Mean magnitude of that error, uniformly in log alpha; over the part within [-10, 10] of an
        interval with an infinite end.
    best_constant : float
        The constant that, added to the method, makes its worst error least.
    value_best_constant : float
        The worst error after that.
    gradient : Extremum or None
        The signed relative error of d(-KL)/d log alpha of largest magnitude; None where the method
        has no gradient.
    gradient_mean : float or None
        Mean magnitude of that error, as for the value.
    """

    method: str
    interval: Interval
    value: Extremum
    value_mean: float
    best_constant: float
    value_best_constant: float
    gradient: Extremum | None
    gradient_mean: float | None


Error = Callable[[np.ndarray], np.ndarray]


def value_error(method: Method) -> Error:
    """Make a method's signed error of -KL a function of log alpha; no convention changes it."""
    if method.kind == "statistical":
        raise ValueError(
            f"{method.name} gives an estimate with a standard error, not one error to be measured: "
            "take another method, or hold it to its standard errors by logunif-kl validate"
        )

    def error(log_alpha: np.ndarray) -> np.ndarray:
        return np.asarray(method.function(log_alpha) - _api.neg_kl(log_alpha))

    return error


def gradient_error(method: Method) -> Error:
    """Make the signed relative error of a method's gradient a function of log alpha."""
    slope = method.gradient
    if slope is None:
        raise ValueError(
            f"{method.name} has no gradient to measure: take a method whose gradient is not None"
        )

    def error(log_alpha: np.ndarray) -> np.ndarray:
        exact = _api.neg_kl_grad(log_alpha)
        return np.asarray((slope(log_alpha) - exact) / exact)

    return error


def measure(method: Method, interval: Interval = WIDE, points: int = 8001) -> Measurement:
    """Compare a method with the exact value and gradient over an interval of log alpha.

    Parameters
    ----------
    method : Method
        An entry of `logunif_kl.methods.METHODS`.
    interval : Interval, optional
        Where; log_alpha in [-10, 10] by default. Finite ends lie in [-100, 100].
    points : int, optional
        Size of the grid that the search starts from, at least 3.

    Returns
    -------
    Measurement

    Examples
    --------
    >>> from logunif_kl.methods import METHODS, measure
    >>> found = measure(METHODS["molchanov"])
    >>> print(f"{found.value.error:.2e} at {found.value.log_alpha:.2f}")
    -9.37e-03 at -3.51
    """
    if points < 3:
        raise ValueError(f"points must be at least 3, but {points!r} was given: pass a larger grid")
    for end in (interval.low, interval.high):
        if math.isfinite(end) and abs(end) > FARTHEST:
            raise ValueError(
                f"a finite end must lie in [-{FARTHEST:g}, {FARTHEST:g}], but log_alpha = {end:g} "
                "was given: take a smaller interval, or an infinite end for the limit"
            )
    value = value_error(method)
    gradient = None if method.gradient is None else gradient_error(method)
    grid = np.linspace(*_finite(interval, HORIZON), points)
    lowest, highest = _extrema(value, grid, interval)
    return Measurement(
        method=method.name,
        interval=interval,
        value=_larger(lowest, highest),
        value_mean=_mean(value, interval, points),
        best_constant=-(lowest.error + highest.error) / 2.0,
        value_best_constant=(highest.error - lowest.error) / 2.0,
        gradient=None if gradient is None else _larger(*_extrema(gradient, grid, interval)),
        gradient_mean=None if gradient is None else _mean(gradient, interval, points),
    )


def _larger(one: Extremum, other: Extremum) -> Extremum:
    return one if abs(one.error) >= abs(other.error) else other


def _extrema(error: Error, grid: np.ndarray, interval: Interval) -> tuple[Extremum, Extremum]:
    """Find the least and the greatest signed error over the interval."""
    values = error(grid)
    return _refined(error, grid, int(np.argmin(values)), -1.0, interval), _refined(
        error, grid, int(np.argmax(values)), 1.0, interval
    )


def _refined(error: Error, grid: np.ndarray, at: int, sign: float, interval: Interval) -> Extremum:
    low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, grid.size - 1)])
    inner = golden_section(lambda x: sign * float(error(np.asarray(x))), low, high)
    best = max((float(grid[at]), inner), key=lambda x: sign * float(error(np.asarray(x))))
    found = float(error(np.asarray(best)))
    for end, limit in ((grid[0], interval.low), (grid[-1], interval.high)):
        if math.isinf(limit) and sign * (found - float(error(end))) <= _AT_ITS_LIMIT:
            return Extremum(found, limit)
    return Extremum(found, best)


def _finite(interval: Interval, horizon: float) -> tuple[float, float]:
    low = -horizon if math.isinf(interval.low) else interval.low
    high = horizon if math.isinf(interval.high) else interval.high
    return low, high


def _mean(error: Error, interval: Interval, points: int) -> float:
    low, high = _finite(interval, WIDE.high)
    if not low < high:
        return math.nan
    grid = np.linspace(low, high, points)
    return float(np.trapezoid(np.abs(error(grid)), grid) / (high - low))


def golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    """Find where in [low, high] a function with one maximum there is greatest."""
    left, right = high - _INVERSE_GOLDEN * (high - low), low + _INVERSE_GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-9 * max(1.0, abs(low), abs(high)):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _INVERSE_GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _INVERSE_GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2.0
