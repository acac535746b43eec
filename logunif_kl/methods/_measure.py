"""Measure the largest errors of a method's value and gradient, and where they occur."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _api
from .._display import Table, Tabular
from .._errors import shown
from ._arguments import integer
from ._extrema import Error, Extremum, finite, least_and_greatest
from ._method import WIDE, Interval, Method

FARTHEST = 100.0  # the relative error 3.5 alpha^4 of `kingma_grad` overflows for log_alpha > 177


@dataclass(frozen=True, slots=True)
class Measurement(Tabular):
    """The errors of one method over one interval of log alpha.

    Attributes
    ----------
    method : str
        The method's name.
    interval : Interval
        Where the errors were measured.
    value : Extremum
        The error of -KL, method minus exact, where its magnitude is largest.
    value_mean : float
        Mean magnitude of the error of -KL, over log alpha uniform in the interval. If an end is
        infinite, only the part within [-10, 10] counts.
    best_constant : float
        The constant that minimises the worst error when added to the method.
    value_best_constant : float
        The worst error after `best_constant` is added.
    gradient : Extremum or None
        The relative error of d(-KL)/d log alpha where its magnitude is largest; None if the method
        has no gradient.
    gradient_mean : float or None
        Mean magnitude of the relative error of the gradient, averaged as in `value_mean`.
    """

    method: str
    interval: Interval
    value: Extremum
    value_mean: float
    best_constant: float
    value_best_constant: float
    gradient: Extremum | None
    gradient_mean: float | None

    def __repr__(self) -> str:
        errors = f"value={self.value.error:+.3g}"
        if self.gradient is not None:
            errors += f", gradient={self.gradient.error:+.3g}"
        return f"<Measurement of {self.method} over {self.interval.name}; worst errors: {errors}>"

    def _tables(self) -> list[Table]:
        rows = [_row(self.value, self.value_mean, f"{self.value_best_constant:.2e}")]
        if self.gradient is not None and self.gradient_mean is not None:
            rows.append(_row(self.gradient, self.gradient_mean, ""))
        title = f"Errors of {self.method} over {self.interval.name}"
        headings = ("error of the", "worst", "at log_alpha", "mean", "with the best constant")
        return [Table(title, headings, rows)]


def _row(worst: Extremum, mean: float, best: str) -> tuple[str, ...]:
    what = "value" if worst.quantity == "value" else "gradient, relative"
    return what, f"{worst.error:+.2e}", f"{worst.log_alpha:.2f}", f"{mean:.2e}", best


def value_error(method: Method) -> Error:
    """Return the signed error of -KL as a function of log alpha; the constant cancels."""
    if method.kind == "statistical":
        raise ValueError(
            f"{method.name} gives an estimate with a standard error, and has no single error: "
            "take another method, or check its standard errors with logunif-kl validate"
        )

    def error(log_alpha: np.ndarray) -> np.ndarray:
        return np.asarray(method.function(log_alpha) - _api.neg_kl(log_alpha))

    return error


def gradient_error(method: Method) -> Error:
    """Return the signed relative error of a method's gradient as a function of log alpha."""
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
        Where to compare; log_alpha in [-10, 10] by default. Finite ends must lie in [-100, 100].
    points : int, optional
        Size of the initial grid of the search, at least 3.

    Returns
    -------
    Measurement

    Raises
    ------
    TypeError
        If `method` is not a `Method` (a name is not enough), `interval` is not an `Interval`, or
        `points` is not an integer.
    ValueError
        If `points` is below 3, if an end is out of range, or if the method is statistical.

    Examples
    --------
    >>> from logunif_kl.methods import METHODS, measure
    >>> found = measure(METHODS["molchanov"])
    >>> print(f"{found.value.error:.2e} at {found.value.log_alpha:.2f}")
    -9.37e-03 at -3.51
    >>> print(found)
    Errors of molchanov over log_alpha in [-10, 10]
    error of the            worst  at log_alpha      mean  with the best constant
    value               -9.37e-03         -3.51  2.15e-03                6.87e-03
    gradient, relative  +3.76e-02          2.64  1.14e-02
    """
    _check(method, interval, points)
    for end in (interval.low, interval.high):
        if math.isfinite(end) and abs(end) > FARTHEST:
            raise ValueError(
                f"a finite end must lie in [-{FARTHEST:g}, {FARTHEST:g}], but log_alpha = {end:g} "
                "was given: take a smaller interval, or an infinite end for the limit"
            )
    value = value_error(method)
    gradient = None if method.gradient is None else gradient_error(method)
    low, high = interval.low, interval.high
    grid = np.linspace(*finite(low, high), points)
    lowest, highest = least_and_greatest(value, grid, low, high, "value")
    steepest = (
        None
        if gradient is None
        else _larger(*least_and_greatest(gradient, grid, low, high, "gradient"))
    )
    return Measurement(
        method=method.name,
        interval=interval,
        value=_larger(lowest, highest),
        value_mean=_mean(value, interval, points),
        best_constant=-(lowest.error + highest.error) / 2.0,
        value_best_constant=(highest.error - lowest.error) / 2.0,
        gradient=steepest,
        gradient_mean=None if gradient is None else _mean(gradient, interval, points),
    )


def _check(method: Any, interval: Any, points: Any) -> None:
    if not isinstance(method, Method):
        raise TypeError(
            "method must be an entry of logunif_kl.methods.METHODS, but "
            f"{type(method).__name__} {shown(method)} was given: pass METHODS["
            f"{shown(method) if isinstance(method, str) else repr('molchanov')}]"
        )
    if not isinstance(interval, Interval):
        raise TypeError(
            f"interval must be a logunif_kl.methods.Interval, but {type(interval).__name__} "
            f"{shown(interval)} was given: pass Interval(name, low, high) in log_alpha"
        )
    integer("points", points, 3, None, "pass the size of the grid")


def _larger(one: Extremum, other: Extremum) -> Extremum:
    return one if abs(one.error) >= abs(other.error) else other


def _mean(error: Error, interval: Interval, points: int) -> float:
    low, high = finite(interval.low, interval.high, WIDE.high)
    if not low < high:
        return math.nan
    grid = np.linspace(low, high, points)
    return float(np.trapezoid(np.abs(error(grid)), grid) / (high - low))
