"""Molchanov's family: -1/2 log(1 + 1/alpha) minus a sum of sigmoids in log alpha."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..methods._arguments import integer
from ..methods._progress import progress_bar
from . import _arguments as arguments
from ._error_measures import quadrature
from ._exchange import remez
from ._families import SigmoidFamily
from ._fit import Fit
from ._formula import MOST, SIGMOID, Formula
from ._make import make_fit
from ._precision import shortest
from ._problem import Array, Problem, quantities
from ._sigmoid_search import (
    MAX_AMPLITUDE,
    STEPS,
    amplitude,
    distinct,
    least_squares_fits,
    minimise_by_slsqp,
    of_high_power,
    with_one_more,
    with_rising_signs,
)

GRID, NODES = 2001, 161
CANDIDATES, APART = 4, 1e-2
STARTS = {1: 4, 2: 30, 3: 50, 4: 80, 5: 80}


def fit_sigmoid(
    terms: int | None = None,
    log_alpha_range: tuple[float, float] = (-math.inf, math.inf),
    *,
    norm: str = "minimax",
    fix_limit: bool = False,
    weight: str | Callable[[Any], Any] | None = None,
    target: str = "value",
    max_error: float | None = None,
    dtype: str = "float64",
    progress: bool = False,
) -> Fit:
    r"""Fit a sum of sigmoids in log alpha to -KL. Molchanov et al. used one sigmoid.

    .. math:: -\mathrm{KL} \approx \sum_i k_{1i}\, \sigma(k_{2i} + k_{3i} \log\alpha)
              - \tfrac12 \log(1 + \alpha^{-1}) - \sum_i k_{1i}

    Parameters
    ----------
    terms : int, optional
        The number of sigmoids, from 1 to 5. The default is 1.
    log_alpha_range : pair of float, default (-inf, inf)
        The range of log alpha; either end may be infinite.
    norm : {"minimax", "least_squares"}
        Minimise the largest error, or the mean square error over log alpha. If the range has an
        infinite end, the mean is over its part within [-10, 10].
    fix_limit : bool, default False
        Constrain sum k1 to (gamma + log 2)/2, so that the value is exact as alpha -> 0. (The value
        is always exact as alpha -> inf.)
    weight, target
        The same as for `fit_polynomial`.
    max_error : float, optional
        Return the fit with the fewest sigmoids whose error is at most `max_error`. The error is the
        one that `target` and `weight` name. Leave `terms` out.
    dtype : {"float64", "float32"}
        With `max_error`: the type in which the formula will be computed. For ``"float32"`` the
        constants are rounded to float32, and the rounding errors of each operation count
        (for log alpha in [-40, 40], if the range is infinite).
    progress : bool
        Show a progress bar on standard error, if it is a terminal and the fit takes longer than two
        seconds. This needs the package rich.

    Returns
    -------
    Fit
        Its terms are in descending order of k1.

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong type or out of range, or if the search finds no fit.
    ImportError
        If a progress bar is requested but rich is not installed.

    Notes
    -----
    The best single sigmoid has constants near (0.63021, 1.86874, 1.49788) and a worst error of
    4.97e-3. Four extrema of alternating sign prove that it is a local optimum. The published
    constants have a worst error of 9.37e-3. With several terms, a better fit than the one found may
    exist. The search excludes sum |k1| > 4, because terms that nearly cancel lose digits.

    References
    ----------
    D. Molchanov, A. Ashukha, D. Vetrov, "Variational Dropout Sparsifies Deep Neural Networks",
    ICML 2017, arXiv:1701.05369, Eq. 14.

    Examples
    --------
    >>> from logunif_kl.fitting import fit_sigmoid
    >>> fit = fit_sigmoid(1)
    >>> print(" ".join(f"{k:.3f}" for k in fit.coefficients), f"{fit.max_error:.2e}")
    0.630 1.869 1.498 4.97e-03
    >>> fit_sigmoid(max_error=2e-3, dtype="float32").terms
    2
    """
    remedy = f"pass 1 to {MOST[SIGMOID]}, or use logunif_kl.neg_kl, which is exact"
    limit = arguments.within(max_error, dtype, terms, "terms")
    if limit is not None:
        same: dict[str, Any] = {
            "norm": norm,
            "fix_limit": fix_limit,
            "weight": weight,
            "target": target,
        }
        return shortest(
            lambda n: fit_sigmoid(n, log_alpha_range, progress=progress, **same),
            *(SIGMOID, MOST[SIGMOID], limit, dtype, weight),
        )
    terms = integer("terms", 1 if terms is None else terms, 1, MOST[SIGMOID], remedy)
    low, high = arguments.log_alpha_range(log_alpha_range)
    asked = arguments.options(norm, "log", target, weight, exact_limit=bool(fix_limit))
    family = SigmoidFamily(terms, bool(fix_limit))
    problem = Problem(family, quantities(family, target, weight), low, high)
    found: Array | None = None
    with progress_bar("fitting", 1, progress) as advance:
        if norm == "minimax":
            best = _minimax(problem, (target, weight), advance)
            found = None if best is None else best[1]
        else:
            nodes, weights = quadrature(low, high, "log")
            of_squares = least_squares_fits(problem, nodes, weights, STARTS[terms], 1e-14)
            found = next((p for p in of_squares if _sound(problem, p)), None)
            advance(1.0)
    if found is None:
        raise ValueError(
            f"no fit of {terms} sigmoids was found over log_alpha in [{low:g}, {high:g}]: "
            "ask for fewer terms or a wider range"
        )
    rows = family.constants(found)
    rows = rows[np.argsort(-rows[:, 0], kind="stable")]
    formula = Formula(SIGMOID, 0.0, tuple(float(k) for k in rows.reshape(-1)))
    return make_fit(formula, problem, asked)


def _sound(problem: Problem, p: Array) -> bool:
    """Whether the value tends to 0 as alpha -> inf (all k3 > 0) and few digits cancel."""
    family = problem.family
    assert isinstance(family, SigmoidFamily)
    few = amplitude(family, p) <= MAX_AMPLITUDE * (1.0 + 1e-9)
    return few and bool(np.all(family.constants(p)[:, 2] > 0.0))


def _minimax(
    problem: Problem, asked: Any, advance: Callable[[float], None]
) -> tuple[float, Array] | None:
    """Return the least largest error that was found, and its parameters."""
    family, grid = problem.family, problem.grid(GRID)
    assert isinstance(family, SigmoidFamily)
    near = _near(family.terms, family.fixed, problem.low, problem.high, *asked)
    advance(0.7)
    best: tuple[float, Array] | None = None
    for p in near:
        level, p = _sharpened(problem, p, grid, math.inf if best is None else best[0])
        if _sound(problem, p) and (best is None or level < best[0]):
            best = level, p
        advance(0.3 / len(near))
    return best


@lru_cache(maxsize=64)  # A ladder asks for the same fits of fewer terms.
def _near(
    terms: int, fixed: bool, low: float, high: float, target: str, weight: Any
) -> list[Array]:
    """Return a few parameters that are close to fits of the least largest error, the best first."""
    family = SigmoidFamily(terms, fixed)
    problem = Problem(family, quantities(family, target, weight), low, high)
    nodes, grid = problem.grid(NODES), problem.grid(GRID)
    found = least_squares_fits(problem, nodes, np.ones_like(nodes), STARTS[terms])
    if terms > 1:
        fewer = SigmoidFamily(terms - 1, fixed)
        for p in _near(terms - 1, fixed, low, high, target, weight)[:2]:
            found += with_one_more(problem, nodes, fewer.constants(p))
    found = [of_high_power(problem, p, nodes) for p in found]
    few: list[tuple[float, Array]] = []
    many: list[tuple[float, Array]] = []
    for p in found:
        size = amplitude(family, p)
        if size <= 2.0 * MAX_AMPLITUDE:
            (few if size <= MAX_AMPLITUDE else many).append((problem.worst(p, grid), p))
    # The last search pulls a sum of |k1| that is somewhat too large below the limit.
    near = distinct(few, APART)[:CANDIDATES] + distinct(many, APART)[: CANDIDATES // 2]
    # Along a ridge on which two terms nearly cancel, it takes many steps.
    further = [of_high_power(problem, p, nodes, 5 * STEPS) for _, p in near[:2]]
    return [*(p for _, p in near), *further]


def _sharpened(problem: Problem, p: Array, grid: Array, to_beat: float) -> tuple[float, Array]:
    p = with_rising_signs(problem, minimise_by_slsqp(problem, p, grid, to_beat))
    level = problem.worst(p, grid)
    if len(problem.quantities) == 1 and level < 1.01 * to_beat:
        sharper = remez(problem, p, grid)
        if sharper is not None and problem.worst(sharper, grid) <= level * (1.0 + 1e-6):
            return problem.worst(sharper, grid), sharper
    return level, p
