"""Minimax polynomials of least relative error, by the exchange algorithm, in mpmath arithmetic.

The polynomial is ``known + sum_k c_k v^k`` over the free powers ``k``; ``known`` holds what is
already decided (a base kept exact, or coefficients already rounded). The error that is levelled is
``(p(v) - P(v))/P(v)``. The exchange works on a fixed Chebyshev grid of `PER_TERM` points for each
free power, which finds a level within about one per cent of the optimum. What is claimed of a table
is not this level but the deviation that is found afterwards on a finer grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpmath import mp, mpf

PER_TERM = 14
MAX_EXCHANGES = 40


@dataclass(frozen=True)
class Grid:
    """P sampled on [lo, hi] in the fitted (centred) variable."""

    v: list[mpf]
    p: list[mpf]

    @classmethod
    def chebyshev(cls, f: Callable[[mpf], mpf], lo: mpf, hi: mpf, n: int) -> Grid:
        v = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
        v = [x for x in v if x != 0]
        return cls(v, [f(x) for x in v])

    @classmethod
    def uniform(cls, f: Callable[[mpf], mpf], lo: mpf, hi: mpf, n: int) -> Grid:
        v = [lo + (hi - lo) * i / (n - 1) for i in range(n)]
        v = [x for x in v if x != 0]
        return cls(v, [f(x) for x in v])


def horner(coefficients: dict[int, mpf], v: mpf) -> mpf:
    total = mpf(0)
    for power in range(max(coefficients, default=0), -1, -1):
        total = total * v + coefficients.get(power, mpf(0))
    return total


def errors(grid: Grid, coefficients: dict[int, mpf]) -> list[mpf]:
    return [(horner(coefficients, v) - p) / p for v, p in zip(grid.v, grid.p, strict=True)]


def _extrema(error: Sequence[mpf], wanted: int) -> list[int]:
    """Return the index of the largest error in each run of one sign, at most ``wanted`` of them."""
    runs: list[int] = []
    for i, e in enumerate(error):
        if runs and (e > 0) == (error[runs[-1]] > 0):
            if abs(e) > abs(error[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > wanted:
        runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
    return runs


def minimax(grid: Grid, powers: Sequence[int], known: dict[int, mpf]) -> tuple[dict[int, mpf], mpf]:
    """Fit the free ``powers``; return all coefficients and the levelled error."""
    n = len(powers)
    base = [horner(known, v) for v in grid.v]
    if not n:
        return dict(known), max(abs(e) for e in errors(grid, known))
    scale = max(abs(v) for v in grid.v)
    count = len(grid.v)
    points = [round((count - 1) * (1 - float(mp.cos(mp.pi * i / n))) / 2) for i in range(n + 1)]
    for i in range(1, n + 1):
        points[i] = max(points[i], points[i - 1] + 1)
    fitted: dict[int, mpf] = {}
    level = mpf(0)
    for _ in range(MAX_EXCHANGES):
        rows, right = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for i, at in enumerate(points):
            v, p = grid.v[at], grid.p[at]
            power_of_v = (v / scale) ** powers[0]
            for j, k in enumerate(powers):
                if j:
                    power_of_v *= (v / scale) ** (k - powers[j - 1])
                rows[i, j] = power_of_v / p
            rows[i, n] = mpf((-1) ** i)
            right[i] = (p - base[at]) / p
        solution = mp.lu_solve(rows, right)
        level = abs(solution[n])
        fitted = dict(known)
        for j, k in enumerate(powers):
            fitted[k] = fitted.get(k, mpf(0)) + solution[j] / scale**k
        error = errors(grid, fitted)
        worst = max(abs(e) for e in error)
        if worst <= level * mpf("1.002"):
            break
        points = _extrema(error, n + 1)
        if len(points) < n + 1:
            # Fewer sign changes than an optimum has: the rounding of the known ones dominates.
            break
    return fitted, level
