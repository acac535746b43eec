"""Make a `Fit` from a solved formula: measure its errors and record its levelled extrema."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..methods import Extremum
from ._error_measures import NOTHING, POINTS, WIDE, fixed, measure, quadrature
from ._exchange import alternation
from ._fit import Fit
from ._formula import Formula
from ._problem import Problem

LEVELLED = 1e-5  # extrema within this fraction of the largest extremum count as equally large


def _rounding(formula: Formula) -> float:
    """Estimate the error of the value that comes from rounding the coefficients."""
    return float(np.finfo(np.float64).eps * sum(abs(c) for c in formula.coefficients))


def make_fit(formula: Formula, problem: Problem, asked: dict[str, Any]) -> Fit:
    """Measure a formula and return a `Fit`. ``asked`` holds the options of the fit."""
    left_range = ValueError(
        "the fit left the range of a double: ask for fewer coefficients or a narrower range"
    )
    if not np.all(np.isfinite(formula.coefficients)):
        raise left_range
    low, high = problem.low, problem.high
    weight, target, grid = asked["weight"], asked["target"], asked["grid"]
    measured = fixed(formula, target, weight)
    as_rounded = dataclasses.replace(problem, quantities=measured)
    levelled: list[Extremum] = []
    if asked["norm"] == "minimax":
        points = problem.grid(POINTS)
        found = []
        for quantity in measured:
            x, error = quantity.extrema(NOTHING, points)
            kept = alternation(x, error, x.size)
            found += [Extremum(float(x[i]), float(error[i]), quantity.name) for i in kept]
        level = max(abs(e.error) for e in found)
        rounding = as_rounded.noise(points) + _rounding(formula)
        lowest = (1.0 - LEVELLED) * level - rounding
        levelled = [e for e in found if abs(e.error) >= lowest]
    else:
        nodes, weights = quadrature(low, high, grid)
        level = as_rounded.root_mean_square(NOTHING, nodes, weights)
    if not math.isfinite(level):
        raise left_range
    return Fit(
        family=formula.family,
        coefficients=formula.coefficients,
        constant=formula.constant,
        log_alpha_range=(low, high),
        level=level,
        extrema=tuple(levelled),
        inside=measure(formula, low, high, grid),
        wide=measure(formula, *WIDE, grid),
        **(asked | {"weight": "callable" if callable(weight) else weight}),
    )
