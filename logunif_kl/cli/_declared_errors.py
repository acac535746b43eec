"""Measure the errors of each method over its domain, and compare them with the declared ones.

The comparison depends on the kind of the method (see `logunif_kl.methods.Declared`):

- A closed form is measured by `logunif_kl.methods.measure`. The error of the value is absolute.
- A numerical method is evaluated at a grid, at random points and at both ends of the domain,
  including infinite ends. The error of the value is relative to max(1, |-KL|).
- A statistical method is evaluated with different seeds. Its standard errors must be as small as
  declared. They must also be correct: a chi-squared test checks that ((estimate - exact)/(standard
  error))^2 has a mean of 1.

First, `check_exact` compares the exact functions with `logunif_kl.reference`.

No finite number of points is certain to find the worst error. The errors of closed forms are
smooth, so the search refines their extrema.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _api, accuracy
from ..methods import Declared, Interval, Method, measure
from ..methods._method import EVERYWHERE

SEED = 20260101
GRID, RANDOM = 1201, 400  # numbers of grid points and of random points for a numerical method
FAR = 700.0  # for larger |log_alpha|, u = exp(-log_alpha)/2 leaves the range of a double
CORE = 40.0  # most of the points lie in [-CORE, CORE]
REPLICATES = 60
STATISTICAL_POINTS = 13
# The probability that a run rejects correct standard errors, whatever the number of points.
FALSE_ALARM = 1e-4
LIMITS_OF_TIMING = (0.05, 1 << 20)  # seconds, elements


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """A declared worst error, and the worst error found."""

    declared: float
    measured: float
    log_alpha: float

    @property
    def holds(self) -> bool:
        """Whether the error is at most the declared one; False for NaN."""
        return self.measured <= self.declared


@dataclasses.dataclass(frozen=True, slots=True)
class Honesty:
    """A test of standard errors: the mean of ((estimate - exact)/error)^2, and its likely range."""

    replicates: int
    mean_square: float
    low: float
    high: float
    log_alpha: float

    @property
    def holds(self) -> bool:
        """Whether `mean_square` lies between `low` and `high`."""
        return self.low <= self.mean_square <= self.high


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """The comparison of one method over one interval."""

    method: Method
    interval: Interval
    value: Compared | None = None
    best_constant: Compared | None = None
    gradient: Compared | None = None
    honesty: Honesty | None = None
    nanoseconds: float = math.nan

    def faults(self) -> list[str]:
        """Return a sentence for each error that is worse than declared."""
        name, where = self.method.name, self.interval.name
        compared = {"value": self.value, "gradient": self.gradient}
        compared["value with the best constant"] = self.best_constant
        found = [
            f"{name} is worse than it declares over {where}: the error of the {what} is "
            f"{c.measured:.3g} at log_alpha = {c.log_alpha:.6g}, where at most {c.declared:.3g} "
            "is declared"
            for what, c in compared.items()
            if c is not None and not c.holds
        ]
        if self.honesty is not None and not self.honesty.holds:
            found.append(
                f"{name} has wrong standard errors over {where}: the mean squared "
                f"score over {self.honesty.replicates} replicates is "
                f"{self.honesty.mean_square:.3g} at log_alpha = {self.honesty.log_alpha:.6g}, "
                f"and chance explains {self.honesty.low:.3g} to {self.honesty.high:.3g}"
            )
        return found


EXACT = Method(
    name="exact",
    function=_api.neg_kl,
    gradient=_api.neg_kl_grad,
    formula="constant - u 2F2(1, 1; 3/2, 2; -u), u = 1/(2 alpha)",
    equation="Eqs. 1 to 3",
    citation="Hron, Matthews and Ghahramani 2017, arXiv:1711.02989",
    claims=(
        Declared(
            EVERYWHERE,
            value=accuracy.worst("neg_kl", "float64").ulp * 2.0**-52,
            gradient=accuracy.worst("neg_kl_grad", "float64").ulp * 2.0**-52,
        ),
    ),
    constant="vanishes as alpha -> inf",
    outside="it has no outside",
    kind="numerical",
)


def check_exact(points: int = 60) -> Checked:
    """Compare the exact functions, in double precision, with `logunif_kl.reference`."""
    import mpmath

    from .. import reference

    declared = EXACT.claims[0]
    x = points_of(declared.interval, points, points)
    inside = np.isfinite(x)

    def errors(function: Callable[..., Any], true: Callable[..., Any], least: float) -> np.ndarray:
        """Return the errors of a function, in 40 digits so that rounding does not hide them."""
        found = np.zeros(x.size)
        with mpmath.workdps(40):
            for at in np.flatnonzero(inside):
                exact = true(float(x[at]), 30)
                away = abs(mpmath.mpf(float(function(x[at]))) - exact)
                found[at] = float(away / max(abs(exact), least))
        return found

    return Checked(
        EXACT,
        declared.interval,
        value=_worst(errors(_api.neg_kl, reference.neg_kl, 1.0), x, declared.value),
        gradient=_worst(errors(_api.neg_kl_grad, reference.neg_kl_grad, 0.0), x, declared.gradient),
        nanoseconds=nanoseconds(_api.neg_kl, declared.interval),
    )


def check(method: Method, declared: Declared) -> Checked:
    """Compare the errors that a method declares over one interval with those measured."""
    made = {"closed form": _closed_form, "numerical": _numerical, "statistical": _statistical}
    function = method.gradient if math.isnan(declared.value) else method.function
    assert function is not None
    checked = made[method.kind](method, declared)
    return dataclasses.replace(checked, nanoseconds=nanoseconds(function, declared.interval))


def _closed_form(method: Method, declared: Declared) -> Checked:
    found = measure(method, declared.interval)
    best, slope = declared.value_best_constant, declared.gradient
    return Checked(
        method,
        declared.interval,
        value=Compared(declared.value, abs(found.value.error), found.value.log_alpha),
        best_constant=None
        if best is None
        else Compared(best, found.value_best_constant, found.value.log_alpha),
        gradient=None
        if slope is None or found.gradient is None
        else Compared(slope, abs(found.gradient.error), found.gradient.log_alpha),
    )


def _numerical(method: Method, declared: Declared) -> Checked:
    x = points_of(declared.interval)
    return Checked(
        method,
        declared.interval,
        value=None
        if math.isnan(declared.value)
        else _worst(_relative(method.function(x), _api.neg_kl(x), 1.0), x, declared.value),
        gradient=None
        if method.gradient is None
        else _worst(_relative(method.gradient(x), _api.neg_kl_grad(x)), x, declared.gradient),
    )


def _statistical(method: Method, declared: Declared) -> Checked:
    from scipy.stats import chi2

    x = np.linspace(*_finite(declared.interval, 12.0), STATISTICAL_POINTS)
    exact = _api.neg_kl(x)
    pairs = [method.function(x, rng=SEED + seed) for seed in range(REPLICATES)]
    estimates, errors = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
    mean_squares = np.mean(((estimates - exact) / errors) ** 2, axis=0)
    tail = FALSE_ALARM / (2 * x.size)
    low, high = (float(chi2.ppf(p, REPLICATES)) / REPLICATES for p in (tail, 1.0 - tail))
    # Find the mean square farthest from 1, relative to the distance that chance allows.
    distance = np.where(
        mean_squares > 1.0, (mean_squares - 1.0) / (high - 1.0), (1.0 - mean_squares) / (1.0 - low)
    )
    at = int(np.argmax(np.where(np.isnan(distance), np.inf, distance)))
    typical = np.sqrt(np.mean(errors**2, axis=0))
    return Checked(
        method,
        declared.interval,
        value=_worst(typical, x, declared.value),
        honesty=Honesty(REPLICATES, float(mean_squares[at]), low, high, float(x[at])),
    )


def points_of(interval: Interval, grid: int = GRID, random: int = RANDOM) -> np.ndarray:
    """Choose the points of comparison: a grid, random points, and both ends."""
    rng = np.random.default_rng(SEED)
    core, whole = _finite(interval, CORE), _finite(interval, FAR)
    inner = np.linspace(*core, grid), rng.uniform(*core, random)
    if whole == core:
        return np.unique(np.concatenate([*inner, core]))
    outer = np.linspace(*whole, grid // 4), rng.uniform(*whole, random)
    return np.unique(np.concatenate([*inner, *outer, [interval.low, interval.high]]))


def _finite(interval: Interval, limit: float) -> tuple[float, float]:
    return max(interval.low, -limit), min(interval.high, limit)


def _relative(found: Any, exact: Any, least: float = 0.0) -> np.ndarray:
    """Return |found - exact|/max(least, |exact|), and 0 where both are the same infinity."""
    found, exact = np.asarray(found), np.asarray(exact)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(found - exact) / np.maximum(least, np.abs(exact))
    return np.asarray(np.where(found == exact, 0.0, error))


def _worst(errors: np.ndarray, x: np.ndarray, declared: float | None) -> Compared:
    """Compare the largest error, or NaN if there is one, with the declared error (None means 0)."""
    at = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
    return Compared(declared or 0.0, float(errors[at]), float(x[at]))


def nanoseconds(function: Callable[..., Any], interval: Interval) -> float:
    """Return the time per element in nanoseconds, on an array long enough for the timer."""
    low, high = _finite(interval, 10.0)
    rng = np.random.default_rng(SEED)
    enough, most = LIMITS_OF_TIMING
    size = 16
    while True:
        x = rng.uniform(low, high, size)
        function(x)
        took = math.inf
        for _ in range(3):
            began = time.perf_counter()
            function(x)
            took = min(took, time.perf_counter() - began)
        if took >= enough or size >= most:
            return 1e9 * took / size
        size = min(most, max(2 * size, int(size * enough / max(took, 1e-6))))
