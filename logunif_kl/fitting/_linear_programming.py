"""Find minimax fits of value and gradient together, by linear programming.

If both are fitted, the number of extrema is unknown, so `_exchange` has no points to start from.
Here a linear program finds the step that minimises the largest linearised error on a grid. A step
is taken if it lowers the true largest error. Otherwise the next step must be smaller. At the end
the points with active constraints are passed to `_exchange.refine`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from ._problem import Array, Problem

MAX_PROGRAMS = 80


def minimise_by_linear_programs(problem: Problem, p: Array, grid: Array) -> tuple[Array, list]:
    """Return parameters, and the points with active constraints as (quantity, log alpha)."""
    best = problem.worst(p, grid)
    radius = np.inf if problem.family.linear else 0.1
    points: list[tuple[int, float]] = []
    for _ in range(MAX_PROGRAMS):
        scale = np.maximum(np.abs(p), 0.05)
        step, expected, points = _program(problem, p, grid, best, radius * scale)
        gain = best - expected * best
        if not gain > 1e-10 * best:
            break
        worst = problem.worst(p + step, grid)
        ratio = (best - worst) / gain
        if ratio > 0.1:
            p, best = p + step, worst
            if ratio > 0.7:
                radius *= 2.0
        elif radius < 1e-9:
            break
        else:
            radius = min(radius, float(np.max(np.abs(step) / scale))) / 4.0
        if problem.family.linear and ratio > 0.999:
            # The linearised error is exact here, so the next step may have any size.
            radius = np.inf
    return p, points


def _program(
    problem: Problem, p: Array, grid: Array, level: float, radius: Array
) -> tuple[Array, float, list[tuple[int, float]]]:
    """Find the step with the least h such that |error + jacobian step| <= h ``level``."""
    errors = [q.error(p, grid) / level for q in problem.quantities]
    jacobians = [q.jacobian(p, grid) / level for q in problem.quantities]
    error, jacobian = np.concatenate(errors), np.concatenate(jacobians)
    unit = np.max(np.abs(jacobian), axis=0)
    unit[unit == 0.0] = 1.0
    scaled = jacobian / unit
    ones = np.ones((error.size, 1))
    bounds = [(-r * u, r * u) for r, u in zip(radius, unit, strict=True)]
    found = linprog(
        np.concatenate([np.zeros(p.size), [1.0]]),
        A_ub=np.block([[scaled, -ones], [-scaled, -ones]]),
        b_ub=np.concatenate([-error, error]),
        bounds=[*bounds, (0.0, None)],
        method="highs",
    )
    if found.x is None:
        return np.zeros_like(p), 1.0, []
    dual = np.abs(found.ineqlin.marginals)
    both = dual[: error.size] + dual[error.size :]
    points = [
        (int(i // grid.size), float(grid[i % grid.size])) for i in np.flatnonzero(both > 1e-9)
    ]
    return found.x[:-1] / unit, float(found.x[-1]), points
