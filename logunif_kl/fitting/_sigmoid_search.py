"""Fit a sum of sigmoids: least squares from many starts, then minimax by SLSQP.

The family is not linear in its constants, so there are several local optima. The search begins at
fixed starts (from an additive recurrence, not from random numbers) and at the best least-squares
solutions. It keeps the best result, which need not be the global optimum. `minimise_by_slsqp`
minimises h subject to |error(x_i)| <= h at points x_i, by sequential quadratic programming. It adds
the extrema of each solution to the points. The second-order information of SLSQP is needed because
the best fit of two sigmoids has fewer extrema than constants. If the error has (parameters + 1)
extrema, `_exchange` then refines the result to rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import least_squares, minimize

from .._convention import HALF_GAMMA_LOG_2
from ._families import SigmoidFamily
from ._problem import Array, Problem

ROUNDS = 25
SETTLED = 1e-7
FEW = 30
# The steps of Roberts' additive recurrence are 1/t and 1/t^2, where t^3 = t + 1.
_STEPS = np.array([0.7548776662466927, 0.5698402909980532])


def starts(family: SigmoidFamily, count: int) -> Iterator[Array]:
    """Yield `count` starting points. Centres are spread over [-5, 1], steepnesses over [1, 3]."""
    n = family.terms
    for i in range(count):
        u = np.modf(0.5 + np.multiply.outer(np.arange(1 + i * n, 1 + (i + 1) * n), _STEPS))[0]
        centre, steep = -5.0 + 6.0 * u[:, 0], 1.0 + 2.0 * u[:, 1]
        height = np.full(n, HALF_GAMMA_LOG_2 / n)
        if i % 2:
            # use heights of both signs, because in some of the best sums the sigmoids nearly cancel
            height = np.where(np.arange(n) % 2 == 0, HALF_GAMMA_LOG_2, -HALF_GAMMA_LOG_2 / 2.0)
            height[0] += HALF_GAMMA_LOG_2 - height.sum()
        rows = np.stack([height, -centre * steep, steep], axis=1)
        yield family.parameters(rows)


def least_squares_fits(problem: Problem, nodes: Array, weights: Array, count: int) -> list[Array]:
    """Return the distinct local minima of the weighted sum of squares, the least sum first."""
    family = problem.family
    assert isinstance(family, SigmoidFamily)
    root = np.tile(np.sqrt(weights), len(problem.quantities))

    def error(p: Array) -> Array:
        return np.asarray(root * np.concatenate([q.error(p, nodes) for q in problem.quantities]))

    def jacobian(p: Array) -> Array:
        jacobians = [q.jacobian(p, nodes) for q in problem.quantities]
        return np.asarray(root[:, None] * np.concatenate(jacobians))

    found: list[tuple[float, Array]] = []
    for start in starts(family, count):
        with np.errstate(all="ignore"):
            try:
                end = least_squares(
                    error,
                    start,
                    jacobian,
                    method="lm",
                    max_nfev=400,
                    xtol=1e-14,
                    ftol=1e-14,
                    gtol=1e-14,
                )
            except (ValueError, np.linalg.LinAlgError):
                continue  # the iteration overflowed
        if np.all(np.isfinite(end.x)):
            found.append((float(end.cost), end.x))
    found.sort(key=lambda entry: entry[0])
    distinct: list[tuple[float, Array]] = []
    for cost, p in found:
        if not distinct or cost > distinct[-1][0] * (1.0 + 1e-4):
            distinct.append((cost, p))
    return [p for _, p in distinct]


def minimise_by_slsqp(problem: Problem, p: Array, grid: Array, to_beat: float = math.inf) -> Array:
    """Return parameters that locally minimise the largest error, from a search that begins at p.

    Stop if the minimax error at the points exceeds ``to_beat``: more points only raise that error.
    """
    found = [q.extrema(p, grid) for q in problem.quantities]
    points = [_thinned(grid, x) for x, _ in found]
    best, best_p = problem.worst(p, grid), p
    for done in range(ROUNDS):
        p, level = _programme(problem, p, points)
        found = [q.extrema(p, grid) for q in problem.quantities]
        worst = max(float(np.max(np.abs(e))) for _, e in found)
        if not math.isfinite(worst):
            break
        if worst < best:
            best, best_p = worst, p
        if worst <= level * (1.0 + SETTLED) or (done and level > to_beat * (1.0 + SETTLED)):
            break
        near = 0.3 * level
        points = [
            np.union1d(old[np.abs(q.error(p, old)) > near], x[np.abs(e) > near])
            for q, old, (x, e) in zip(problem.quantities, points, found, strict=True)
        ]
    return best_p


def _thinned(grid: Array, x: Array) -> Array:
    core = grid[np.abs(grid) <= 12.0]
    return np.union1d(core[:: max(1, core.size // FEW)], x[:: max(1, x.size // FEW)])


def _programme(problem: Problem, p: Array, points: list[Array]) -> tuple[Array, float]:
    """Minimise h subject to -h <= error <= h at the points. Return the parameters and h."""
    pairs = [(q, x) for q, x in zip(problem.quantities, points, strict=True) if x.size]
    unit = max(float(np.max(np.abs(q.error(p, x)))) for q, x in pairs)
    scale = np.maximum(np.abs(p), 0.05)

    def slack(z: Array) -> Array:
        error = np.concatenate([q.error(z[:-1] * scale, x) for q, x in pairs]) / unit
        return np.concatenate([z[-1] - error, z[-1] + error])

    def slack_jacobian(z: Array) -> Array:
        of = np.concatenate([q.jacobian(z[:-1] * scale, x) for q, x in pairs]) * scale / unit
        ones = np.ones((len(of), 1))
        return np.block([[-of, ones], [of, ones]])

    last = np.zeros(p.size + 1)
    last[-1] = 1.0
    with np.errstate(all="ignore"):
        end = minimize(
            lambda z: z[-1],
            np.append(p / scale, 1.0),
            jac=lambda z: last,
            constraints=[{"type": "ineq", "fun": slack, "jac": slack_jacobian}],
            method="SLSQP",
            options={"maxiter": 150, "ftol": 1e-11},
        )
        z = end.x if np.all(np.isfinite(end.x)) else np.append(p / scale, 1.0)
        level = float(np.max(np.abs(slack(z) - z[-1]))) * unit
    return z[:-1] * scale, level
