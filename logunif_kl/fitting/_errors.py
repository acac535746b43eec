"""How far a formula is from the exact value and gradient over a range, and where.

What is measured is the formula as it is used, in double precision with rounded constants, not the
problem that was solved to find them. An infinite end is searched up to |log alpha| = 40.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ._exchange import extrema
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
        Where; an end may be infinite.
    max_error : float
        Worst absolute error of -KL.
    max_error_at : float
        The log alpha of it.
    rms_error : float
        Root of the mean square of that error, uniformly in the variable of the fit's grid; over
        the part within [-10, 10] of a range that is unbounded in it.
    max_grad_error : float
        Worst relative error of d(-KL)/d log alpha.
    max_grad_error_at : float
        The log alpha of it.
    """

    log_alpha_range: tuple[float, float]
    max_error: float
    max_error_at: float
    rms_error: float
    max_grad_error: float
    max_grad_error_at: float


@dataclass(frozen=True, slots=True)
class Extremum:
    """A point where the error that was levelled is largest.

    Attributes
    ----------
    log_alpha : float
        Where; beyond 12 in magnitude only approached.
    error : float
        Signed and weighted, approximate minus exact.
    quantity : str
        ``"value"`` or ``"gradient"``.
    """

    log_alpha: float
    error: float
    quantity: str


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A formula in the place of a family: it has no parameters."""

    formula: Formula

    size = 0
    linear = True

    def value(self, p: Array, x: Array) -> Array:
        return np.asarray(self.formula.value(np, x))

    def slope(self, p: Array, x: Array) -> Array:
        return np.asarray(self.formula.slope(np, x))

    def value_jacobian(self, p: Array, x: Array) -> Array:
        return np.empty((x.size, 0))

    slope_jacobian = value_jacobian


def fixed(formula: Formula, target: str, weight: object) -> tuple[Quantity, ...]:
    """Set a formula against the exact function, as a fit to the target does."""
    return quantities(_Fixed(formula), target, weight)  # type: ignore[arg-type]


NOTHING = np.empty(0)


def measure(formula: Formula, low: float, high: float, grid: str = "log") -> Errors:
    """Measure a formula over a range of log alpha."""
    value, gradient = fixed(formula, "both", None)
    problem = Problem(value.family, (value, gradient), low, high)
    points = problem.grid(POINTS)
    with np.errstate(all="ignore"):
        at, error = _worst(value, points, low, high)
        grad_at, grad_error = _worst(gradient, points, low, high)
        nodes, weights = quadrature(low, high, grid)
        square = float(weights @ value.error(NOTHING, nodes) ** 2)
    return Errors((low, high), error, at, math.sqrt(square), grad_error, grad_at)


def _worst(quantity: Quantity, grid: Array, low: float, high: float) -> tuple[float, float]:
    x, error = extrema(quantity, NOTHING, grid)
    i = int(np.argmax(np.abs(error)))
    worst = float(abs(error[i]))
    # an error that is only approached at an infinite end is reported there
    for end, limit in ((grid[0], low), (grid[-1], high)):
        if math.isinf(limit):
            there = float(abs(quantity.error(NOTHING, np.array([end]))[0]))
            if there >= worst - 4.0 * 40.0 * np.finfo(np.float64).eps:
                return limit, worst
    return float(x[i]), worst


def quadrature(low: float, high: float, grid: str) -> tuple[Array, Array]:
    """Nodes in log alpha and weights of sum 1 for the mean over a range, uniform in a variable."""
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
    """Turn log alpha into the variable that a grid is uniform in."""
    if grid == "log":
        return log_alpha
    if grid == "linear":
        return math.exp(log_alpha)
    return 1.0 / (1.0 + math.exp(-log_alpha)) if log_alpha > -700.0 else 0.0
