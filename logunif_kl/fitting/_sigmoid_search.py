"""Fit a sum of sigmoids: least squares from many starts, then ever higher powers, then minimax.

The family is not linear in its constants, so there are many local optima, of which several are
close to the best. The search begins at fixed starts (from an additive recurrence, not from random
numbers) with the heights that fit best there. It keeps the best result, which need not be the
global optimum.

1. `least_squares_fits` finds local minima of the sum of squares. More candidates are the best fits
   of one term less with a term added (`with_one_more`).
2. `of_high_power` moves each to a minimum of the sum of 32nd powers, which is close to one of the
   largest error.
3. `minimise_by_slsqp` minimises h subject to |error(x_i)| <= h at points x_i, by sequential
   quadratic programming. It adds the extrema of each solution to the points. The second-order
   information of SLSQP is needed because the best fit of two sigmoids has fewer extrema than
   constants.
4. If the error has (parameters + 1) extrema, `_exchange` refines the result to rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import leastsq, minimize

from .._convention import HALF_GAMMA_LOG_2
from ._families import SigmoidFamily
from ._problem import Array, Problem

ROUNDS = 25
SETTLED = 1e-7
FEW = 30
#: The largest allowed sum of |k1|. Larger terms nearly cancel, which loses digits in float32.
MAX_AMPLITUDE = 4.0
STEPS = 60
KEPT, PLACES = 10, 10
POWERS = (4, 8, 16, 32)
# The steps of Roberts' additive recurrence are 1/t and 1/t^2, where t^3 = t + 1.
_STEPS = np.array([0.7548776662466927, 0.5698402909980532])


def amplitude(family: SigmoidFamily, p: Array) -> float:
    """Return the sum of |k1|."""
    return float(np.sum(np.abs(family.constants(p)[:, 0])))


def starts(problem: Problem, nodes: Array, root: Array, count: int) -> Iterator[Array]:
    """Yield `count` starting points, with steepnesses in [0.6, 3.3]."""
    n, (left, right) = _family(problem).terms, _within(problem)
    for i in range(count):
        u = np.modf(0.5 + np.multiply.outer(np.arange(1 + i * n, 1 + (i + 1) * n), _STEPS))[0]
        centre, steep = left + (right - left) * u[:, 0], 0.6 * 5.5 ** u[:, 1]
        rows = np.stack([np.zeros(n), -centre * steep, steep], axis=1)
        yield _with_heights(problem, nodes, root, rows)


def with_one_more(problem: Problem, nodes: Array, rows: Array) -> Iterator[Array]:
    """Yield starting points from a fit of one term less, with the new term in several places."""
    for centre in np.linspace(*_within(problem), PLACES):
        for steep in (1.3, 2.0):
            more = np.vstack([rows, [0.0, -centre * steep, steep]])
            yield _with_heights(problem, nodes, np.ones_like(nodes), more)


def _within(problem: Problem) -> tuple[float, float]:
    """Return where centres may be: also somewhat outside the range, where only a tail is in it."""
    return max(-8.0, problem.low - 4.0), min(max(2.0, problem.low + 4.0), problem.high + 1.0)


def _with_heights(problem: Problem, nodes: Array, root: Array, rows: Array) -> Array:
    """Return parameters with the heights that have the least sum of squares."""
    family, (error, jacobian) = _family(problem), _residuals(problem, nodes, root)
    p, heights = family.parameters(rows).copy(), slice(2 if family.fixed else 0, None, 3)
    p[heights] = 0.0
    # The error is linear in the heights.
    p[heights] = np.linalg.lstsq(jacobian(p)[:, heights], -error(p), rcond=1e-8)[0]
    return p


def _family(problem: Problem) -> SigmoidFamily:
    assert isinstance(problem.family, SigmoidFamily)
    return problem.family


def _residuals(
    problem: Problem, nodes: Array, root: Array
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return the errors of all quantities times the roots of the weights, and their Jacobian."""
    root = np.tile(root, len(problem.quantities))
    column = root[:, None]
    errors, jacobians = zip(*(q.at(nodes) for q in problem.quantities), strict=True)

    def error(p: Array) -> Array:
        return np.asarray(root * np.concatenate([of(p) for of in errors]))

    def jacobian(p: Array) -> Array:
        return np.asarray(column * np.concatenate([of(p) for of in jacobians]))

    return error, jacobian


def _descended(
    error: Callable[[Array], Array],
    jacobian: Callable[[Array], Array],
    p: Array,
    steps: int,
    close: float = 1e-6,
) -> tuple[float, Array]:
    """Return a smaller sum of squares and its parameters, by Levenberg and Marquardt's method."""
    # `least_squares` calls the same code of MINPACK, and spends half of the time around it.
    with np.errstate(all="ignore"):
        try:
            end, *_ = leastsq(
                *(error, p, (), jacobian, True), ftol=close, xtol=close, gtol=0.0, maxfev=steps
            )
        except (ValueError, TypeError, np.linalg.LinAlgError):
            return math.inf, p  # the iteration overflowed
        cost = float(np.sum(error(end) ** 2))
    return (cost, end) if math.isfinite(cost) and np.all(np.isfinite(end)) else (math.inf, p)


def least_squares_fits(
    problem: Problem, nodes: Array, weights: Array, count: int, close: float = 1e-6
) -> list[Array]:
    """Return distinct local minima of the weighted sum of squares, the least sum first."""
    error, jacobian = _residuals(problem, nodes, np.sqrt(weights))
    found = [
        _descended(error, jacobian, p, STEPS)
        for p in starts(problem, nodes, np.sqrt(weights), count)
    ]
    near = distinct([(cost, p) for cost, p in found if math.isfinite(cost)])[:KEPT]
    sharp = [_descended(error, jacobian, p, 20 * STEPS, close) for _, p in near]
    return [p for _, p in distinct(sharp)]


def distinct(found: list[tuple[float, Array]], apart: float = 1e-3) -> list[tuple[float, Array]]:
    """Return the results in ascending order, without those that are no worse than one before."""
    kept: list[tuple[float, Array]] = []
    for cost, p in sorted(found, key=lambda entry: entry[0]):
        if not kept or cost > kept[-1][0] * (1.0 + apart):
            kept.append((cost, p))
    return kept


def with_rising_signs(problem: Problem, p: Array) -> Array:
    """Return parameters with the same slope whose k3 are positive, if only the slope is fitted.

    The slope of k1 sigmoid(z) is that of -k1 sigmoid(-z).
    """
    family = _family(problem)
    if family.fixed or [q.name for q in problem.quantities] != ["gradient"]:
        return p
    rows = family.constants(p)
    return family.parameters(rows * np.where(rows[:, 2:] < 0.0, -1.0, 1.0))


def of_high_power(problem: Problem, p: Array, nodes: Array, steps: int = STEPS) -> Array:
    """Return a local minimum of the sum of high powers of the errors, from one of their squares."""
    error, jacobian = _residuals(problem, nodes, np.ones_like(nodes))
    for power in POWERS:
        unit = float(np.max(np.abs(error(p))))

        def raised(p: Array, half: float = power / 2, unit: float = unit) -> Array:
            return np.asarray(np.abs(error(p) / unit) ** half)

        def slopes(p: Array, half: float = power / 2, unit: float = unit) -> Array:
            scaled = error(p) / unit
            factor = half * np.sign(scaled) * np.abs(scaled) ** (half - 1.0) / unit
            return np.asarray(factor[:, None] * jacobian(p))

        _, p = _descended(raised, slopes, p, steps)
    return with_rising_signs(problem, p)


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
    pairs = zip(problem.quantities, points, strict=True)
    errors, jacobians = zip(*(q.at(x) for q, x in pairs if x.size), strict=True)
    unit = max(float(np.max(np.abs(of(p)))) for of in errors)
    scale = np.maximum(np.abs(p), 0.05)

    def slack(z: Array) -> Array:
        error = np.concatenate([of(z[:-1] * scale) for of in errors]) / unit
        return np.concatenate([z[-1] - error, z[-1] + error])

    def slack_jacobian(z: Array) -> Array:
        slopes = np.concatenate([of(z[:-1] * scale) for of in jacobians]) * scale / unit
        ones = np.ones((len(slopes), 1))
        return np.block([[-slopes, ones], [slopes, ones]])

    last = np.zeros(p.size + 1)
    last[-1] = 1.0
    constraints = [{"type": "ineq", "fun": slack, "jac": slack_jacobian}]
    if problem.family.size > 3:
        # The sum of |k1| is linear as long as no height changes its sign.
        constant, of_heights = _amplitude_of(problem, p)
        last_height = np.append(of_heights * scale, 0.0)
        constraints.append(
            {
                "type": "ineq",
                "fun": lambda z: MAX_AMPLITUDE - constant - last_height @ z,
                "jac": lambda z: -last_height,
            }
        )
    with np.errstate(all="ignore"):
        end = minimize(
            lambda z: z[-1],
            np.append(p / scale, 1.0),
            jac=lambda z: last,
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 150, "ftol": 1e-11},
        )
        z = end.x if np.all(np.isfinite(end.x)) else np.append(p / scale, 1.0)
        level = float(np.max(np.abs(slack(z) - z[-1]))) * unit
    return z[:-1] * scale, level


def _amplitude_of(problem: Problem, p: Array) -> tuple[float, Array]:
    """Return the sum of |k1| near p as a constant and a factor for each parameter."""
    family = _family(problem)
    signs = np.sign(family.constants(p)[:, 0])
    factors = np.zeros(family.size)
    if not family.fixed:
        factors[::3] = signs
        return 0.0, factors
    factors[2::3] = signs[1:] - signs[0]
    return float(signs[0]) * HALF_GAMMA_LOG_2, factors
