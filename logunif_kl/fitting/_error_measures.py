"""Measure the errors of a formula over a range, with its constants rounded to doubles.

`logunif_kl.methods._extrema` finds the largest error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..methods._extrema import worst
from ._formula import Formula
from ._problem import Array, Problem, Quantity, quantities

POINTS = 4001
NODES = 400
WIDE = (-10.0, 10.0)


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of a formula over one range of log alpha.

    Attributes
    ----------
    log_alpha_range : tuple of float
        The range of log alpha; an end may be infinite.
    max_error : float
        Worst absolute error of -KL.
    max_error_at : float
        The log alpha of `max_error`, or +-inf if the error is largest in that limit.
    rms_error : float
        Root mean square error of -KL, averaged uniformly over the variable that the option ``grid``
        names. If an end is infinite, only the part of the range within [-10, 10] counts.
    max_grad_error : float
        Worst relative error of d(-KL)/d log alpha.
    max_grad_error_at : float
        The log alpha of `max_grad_error`, or +-inf if the error is largest in that limit.
    """

    log_alpha_range: tuple[float, float]
    max_error: float
    max_error_at: float
    rms_error: float
    max_grad_error: float
    max_grad_error_at: float


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A formula with fixed constants, in the form of a `Family` without parameters."""

    formula: Formula
    size = 0
    linear = True

    def at(self, x: Array) -> _FixedAt:
        return _FixedAt(self.formula, x)


@dataclass(frozen=True, slots=True)
class _FixedAt:
    formula: Formula
    x: Array

    def value(self, p: Array) -> Array:
        return np.asarray(self.formula.value(np, self.x))

    def slope(self, p: Array) -> Array:
        return np.asarray(self.formula.slope(np, self.x))

    def value_jacobian(self, p: Array) -> Array:
        return np.empty((self.x.size, 0))

    slope_jacobian = value_jacobian


def fixed(formula: Formula, target: str, weight: object) -> tuple[Quantity, ...]:
    """Return the errors of a formula's value, its gradient or both, as `target` says."""
    return quantities(_Fixed(formula), target, weight)  # type: ignore[arg-type]


NOTHING = np.empty(0)


def measure(formula: Formula, low: float, high: float, grid: str = "log") -> Errors:
    """Measure a formula over a range of log alpha."""
    value, gradient = fixed(formula, "both", None)
    problem = Problem(value.family, (value, gradient), low, high)
    points = problem.grid(POINTS)
    with np.errstate(all="ignore"):
        found = worst(lambda x: value.error(NOTHING, x), points, low, high, value.name)
        slope = worst(lambda x: gradient.error(NOTHING, x), points, low, high, gradient.name)
        nodes, weights = quadrature(low, high, grid)
        square = float(weights @ value.error(NOTHING, nodes) ** 2)
    return Errors(
        log_alpha_range=(low, high),
        max_error=abs(found.error),
        max_error_at=found.log_alpha,
        rms_error=math.sqrt(square),
        max_grad_error=abs(slope.error),
        max_grad_error_at=slope.log_alpha,
    )


def quadrature(low: float, high: float, grid: str) -> tuple[Array, Array]:
    """Return nodes in log alpha, and weights for a uniform mean over the variable `grid`."""
    nodes, weights = _gauss_legendre()
    a, b = to_grid(low, grid), to_grid(high, grid)
    if not (math.isfinite(a) and math.isfinite(b)):
        a, b = (to_grid(min(max(end, WIDE[0]), WIDE[1]), grid) for end in (low, high))
    y = (a + b) / 2.0 + (b - a) / 2.0 * nodes
    if grid == "linear":
        y = np.log(y)
    elif grid == "dropout_rate":
        y = np.log(y / (1.0 - y))
    return y, weights / 2.0


@cache
def _gauss_legendre() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(NODES)


def to_grid(log_alpha: float, grid: str) -> float:
    """Turn log alpha into the variable that `grid` names."""
    if grid == "log":
        return log_alpha
    if grid == "linear":
        return math.exp(log_alpha)
    return 1.0 / (1.0 + math.exp(-log_alpha)) if log_alpha > -700.0 else 0.0
