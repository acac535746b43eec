"""Molchanov's family: -1/2 log(1 + 1/alpha) minus a sum of sigmoids in log alpha."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
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
from ._problem import Array, Problem, quantities
from ._sigmoid_search import least_squares_fits, minimise_by_slsqp, starts

GRID = 2001
CANDIDATES = 4
STARTS = {2: 16, 3: 12, 4: 12, 5: 8}
#: The largest allowed sum of |k1|. Larger terms nearly cancel, which loses digits in float32.
MAX_AMPLITUDE = 4.0


def fit_sigmoid(
    terms: int = 1,
    log_alpha_range: tuple[float, float] = (-math.inf, math.inf),
    *,
    norm: str = "minimax",
    fix_limit: bool = False,
    weight: str | Callable[[Any], Any] | None = None,
    target: str = "value",
    progress: bool = False,
) -> Fit:
    r"""Fit a sum of sigmoids in log alpha to -KL. Molchanov et al. used one sigmoid.

    .. math:: -\mathrm{KL} \approx \sum_i k_{1i}\, \sigma(k_{2i} + k_{3i} \log\alpha)
              - \tfrac12 \log(1 + \alpha^{-1}) - \sum_i k_{1i}

    Parameters
    ----------
    terms : int, default 1
        The number of sigmoids, from 1 to 5.
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
    """
    remedy = f"pass 1 to {MOST[SIGMOID]}, or use logunif_kl.neg_kl, which is exact"
    terms = integer("terms", terms, 1, MOST[SIGMOID], remedy)
    low, high = arguments.log_alpha_range(log_alpha_range)
    asked = arguments.options(norm, "log", target, weight, exact_limit=bool(fix_limit))
    best: tuple[float, Problem, Array] | None = None
    families = [SigmoidFamily(terms, fixed) for fixed in ((True,) if fix_limit else (False, True))]
    nodes, weights = quadrature(low, high, "log")
    with progress_bar("fitting", len(families), progress) as advance:
        for family in families:
            problem = Problem(family, quantities(family, target, weight), low, high)
            candidates = _candidates(problem, norm, nodes, weights)
            advance(0.5)
            for p in candidates:
                to_beat = math.inf if best is None else best[0]
                level, p = _improved(problem, p, norm, nodes, weights, to_beat)
                if _sound(problem, p) and (best is None or level < best[0]):
                    best = level, problem, p
                advance(0.5 / len(candidates))
    if best is None:
        raise ValueError(
            f"no fit of {terms} sigmoids was found over log_alpha in [{low:g}, {high:g}]: "
            "ask for fewer terms or a wider range"
        )
    _, problem, p = best
    assert isinstance(problem.family, SigmoidFamily)
    rows = problem.family.constants(p)
    rows = rows[np.argsort(-rows[:, 0], kind="stable")]
    formula = Formula(SIGMOID, 0.0, tuple(float(k) for k in rows.reshape(-1)))
    return make_fit(formula, problem, asked)


def _sound(problem: Problem, p: Array) -> bool:
    """Whether the value tends to 0 as alpha -> inf (all k3 > 0) and few digits cancel."""
    assert isinstance(problem.family, SigmoidFamily)
    steep = problem.family.constants(p)[:, 2]
    return _amplitude(problem, p) <= MAX_AMPLITUDE and bool(np.all(steep > 0.0))


def _amplitude(problem: Problem, p: Array) -> float:
    assert isinstance(problem.family, SigmoidFamily)
    return float(np.sum(np.abs(problem.family.constants(p)[:, 0])))


def _candidates(problem: Problem, norm: str, nodes: Array, weights: Array) -> list[Array]:
    """Return least-squares solutions and, for minimax with several terms, starting points."""
    family = problem.family
    assert isinstance(family, SigmoidFamily)
    count = 1 if family.terms == 1 else 4 + 2 * family.terms
    found = least_squares_fits(problem, nodes, weights, count)
    found = [p for p in found if _amplitude(problem, p) <= MAX_AMPLITUDE]
    if norm == "least_squares" or family.terms == 1:
        return found[:1]
    found = found[:CANDIDATES]
    if family.terms > 3:
        for of in arguments.TARGETS:
            other = dataclasses.replace(problem, quantities=quantities(family, of, None))
            more = least_squares_fits(other, nodes, weights, count)
            found += [p for p in more if _amplitude(problem, p) <= MAX_AMPLITUDE][: CANDIDATES // 2]
    return [*found, *starts(family, STARTS[family.terms])]


def _improved(
    problem: Problem, p: Array, norm: str, nodes: Array, weights: Array, to_beat: float
) -> tuple[float, Array]:
    """Improve a candidate in the chosen norm; return its error in that norm and its parameters."""
    if norm == "least_squares":
        return problem.root_mean_square(p, nodes, weights), p
    grid = problem.grid(GRID)
    p = minimise_by_slsqp(problem, p, grid, to_beat)
    level = problem.worst(p, grid)
    if len(problem.quantities) == 1 and level < 1.01 * to_beat:
        sharper = remez(problem, p, grid)
        if sharper is not None and problem.worst(sharper, grid) <= level * (1.0 + 1e-6):
            return problem.worst(sharper, grid), sharper
    return level, p
