"""Minimax polynomials of least relative error, by the exchange algorithm, in mpmath arithmetic.

The polynomial is ``known + sum_k c_k v^k`` over the free powers ``k``. ``known`` holds a base that
is kept exact and coefficients that are already rounded. The levelled error is ``(p(v) -
P(v))/W(v)``, where W is P, or the result that has P as a term. The exchange uses a fixed Chebyshev
grid of `PER_TERM` points for each free power, which finds a level within about 1 % of the optimum.
Claims use the error on a finer grid, measured afterwards, not this level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpmath import mp, mpf

PER_TERM = 14
MAX_EXCHANGES = 40
Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Grid:
    """P and W sampled on [lo, hi] in the fitted (centred) variable."""

    v: list[mpf]
    p: list[mpf]
    w: list[mpf]

    @classmethod
    def chebyshev(cls, f: Function, lo: mpf, hi: mpf, n: int, w: Function | None = None) -> Grid:
        v = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
        return cls._sampled(f, v, w)

    @classmethod
    def uniform(cls, f: Function, lo: mpf, hi: mpf, n: int, w: Function | None = None) -> Grid:
        return cls._sampled(f, [lo + (hi - lo) * i / (n - 1) for i in range(n)], w)

    @classmethod
    def _sampled(cls, f: Function, v: list[mpf], w: Function | None) -> Grid:
        v = [x for x in v if x != 0]
        p = [f(x) for x in v]
        return cls(v, p, p if w is None else [w(x) for x in v])


def horner(coefficients: dict[int, mpf], v: mpf) -> mpf:
    total = mpf(0)
    for power in range(max(coefficients, default=0), -1, -1):
        total = total * v + coefficients.get(power, mpf(0))
    return total


def errors(grid: Grid, coefficients: dict[int, mpf]) -> list[mpf]:
    samples = zip(grid.v, grid.p, grid.w, strict=True)
    return [(horner(coefficients, v) - p) / w for v, p, w in samples]


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
            v, p, w = grid.v[at], grid.p[at], grid.w[at]
            power_of_v = (v / scale) ** powers[0]
            for j, k in enumerate(powers):
                if j:
                    power_of_v *= (v / scale) ** (k - powers[j - 1])
                rows[i, j] = power_of_v / w
            rows[i, n] = mpf((-1) ** i)
            right[i] = (p - base[at]) / w
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
            # There are fewer sign changes than at an optimum: the rounding of known coefficients
            # dominates.
            break
    return fitted, level
