"""Minimax fits by exchange: make the error equal at its extrema, find new extrema, repeat.

This is Remez's algorithm, with Newton steps if the formula is not linear in its parameters. At the
solution the weighted error reaches its largest size h at (parameters + 1) points. If only the value
or only the gradient is fitted, its error alternates in sign at these points. The alternation proves
that the fit is optimal for a linear formula, and locally optimal otherwise. If value and gradient
are fitted together, `_linear_programming` finds the points, and `refine` moves them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ._problem import Array, Problem

TOLERANCE = 1e-9
MAX_EXCHANGES = 60
DIVERGED = 1e100  # parameters above this count as diverged, well before their squares overflow


def alternation(x: Array, error: Array, wanted: int) -> list[int]:
    """Return the indices of at most ``wanted`` large extrema whose signs alternate."""
    chosen: list[int] = []
    for i in range(x.size):
        if chosen and (error[i] > 0) == (error[chosen[-1]] > 0):
            if abs(error[i]) > abs(error[chosen[-1]]):
                chosen[-1] = i
        else:
            chosen.append(i)
    while len(chosen) > wanted:
        if len(chosen) - wanted == 1:
            chosen.pop(0 if abs(error[chosen[0]]) < abs(error[chosen[-1]]) else -1)
            continue
        # drop the smallest error and its smaller neighbour, so that the other signs still alternate
        sizes = np.abs(error[chosen])
        least = int(np.argmin(sizes))
        if least in (0, len(chosen) - 1):
            chosen.pop(least)
        else:
            beside = least - 1 if sizes[least - 1] < sizes[least + 1] else least + 1
            for place in sorted((least, beside), reverse=True):
                chosen.pop(place)
    return chosen


def remez(problem: Problem, p: Array, grid: Array) -> Array | None:
    """Return the p that minimises the largest error, or None if the exchange does not converge."""
    (quantity,) = problem.quantities
    wanted = problem.family.size + 1
    x, error = quantity.extrema(p, grid)
    chosen = alternation(x, error, wanted)
    if problem.family.linear:
        middle = (np.arange(wanted) * (grid.size - 1)) // (wanted - 1)
        # start from the least-squares fit's extrema if these are enough, otherwise from grid points
        reference = x[chosen] if len(chosen) == wanted else grid[middle]
    elif len(chosen) < wanted:
        return None
    else:
        reference = x[chosen]
    signs = np.where(np.arange(wanted) % 2 == 0, 1.0, -1.0)
    noise = quantity.noise(grid)
    for _ in range(MAX_EXCHANGES):
        solved = level(problem, p, [(0, x) for x in reference], signs)
        if solved is None:
            return None
        p, h = solved
        x, error = quantity.extrema(p, grid)
        chosen = alternation(x, error, wanted)
        if len(chosen) < wanted:
            return None
        if np.max(np.abs(error)) <= abs(h) * (1.0 + TOLERANCE) + noise:
            return p
        reference = x[chosen]
    return None


def level(
    problem: Problem, p: Array, points: Sequence[tuple[int, float]], signs: Array
) -> tuple[Array, float] | None:
    """Solve error(p, x_i) = sign_i h for p and h by Newton's method, or return None on failure."""
    h = math.nan
    for _ in range(1 if problem.family.linear else 30):
        error = np.empty(len(points))
        matrix = np.empty((len(points), len(points)))
        for row, (of, x) in enumerate(points):
            at = np.array([x])
            error[row] = problem.quantities[of].error(p, at)[0]
            matrix[row, :-1] = problem.quantities[of].jacobian(p, at)[0]
        matrix[:, -1] = -signs
        scale = np.max(np.abs(matrix), axis=0)
        if not (np.all(scale > 0.0) and np.all(np.isfinite(matrix)) and np.all(np.isfinite(error))):
            return None
        try:
            step = np.linalg.solve(matrix / scale, -error) / scale
        except np.linalg.LinAlgError:
            return None
        before, h = h, float(step[-1])
        p = p + step[:-1]
        if not problem.family.linear and np.max(np.abs(p)) > DIVERGED:
            return None
        if abs(h - before) <= 1e-13 * abs(h):
            break
    return p, h


def refine(
    problem: Problem, p: Array, points: Sequence[tuple[int, float]], grid: Array
) -> Array | None:
    """Make the errors at the points equal, move each point to its extremum, and repeat."""
    wanted = problem.family.size + 1
    if len(points) != wanted:
        return None
    noise = problem.noise(grid)
    for _ in range(MAX_EXCHANGES):
        signs = np.array(
            [np.sign(problem.quantities[of].error(p, np.array([x]))[0]) for of, x in points]
        )
        solved = level(problem, p, points, signs)
        if solved is None:
            return None
        p, h = solved
        found = [quantity.extrema(p, grid) for quantity in problem.quantities]
        worst = max(float(np.max(np.abs(error))) for _, error in found)
        if worst <= abs(h) * (1.0 + TOLERANCE) + noise:
            return p
        if worst > 2.0 * abs(h):
            return None
        points = [
            (of, _nearest(*found[of], x, np.sign(h) * s))
            for (of, x), s in zip(points, signs, strict=True)
        ]
    return None


def _nearest(x: Array, error: Array, near: float, sign: float) -> float:
    same = np.flatnonzero(np.sign(error) == sign)
    if not same.size:
        return near
    return float(x[same[np.argmin(np.abs(x[same] - near))]])
