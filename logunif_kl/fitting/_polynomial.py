"""Kingma's family: 1/2 log alpha plus a polynomial in alpha."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..methods._arguments import integer
from . import _arguments as arguments
from ._error_measures import NOTHING, POINTS, fixed, quadrature
from ._exchange import refine, remez
from ._families import PolynomialFamily
from ._fit import Fit
from ._formula import MOST, POLYNOMIAL, Formula
from ._linear_programming import minimise_by_linear_programs
from ._make import make_fit
from ._precision import shortest
from ._problem import Array, Problem, Quantity, quantities

GRID, COARSE = 1001, 201
#: A fit is rejected if rounding the coefficients multiplies the error by more than this.
ROUNDING = 1.01


def fit_polynomial(
    degree: int | None = None,
    alpha_range: tuple[float, float] = (0.05, 1.0),
    *,
    norm: str = "minimax",
    grid: str = "log",
    free_constant: bool = True,
    weight: str | Callable[[Any], Any] | None = None,
    target: str = "value",
    max_error: float | None = None,
    dtype: str = "float64",
) -> Fit:
    r"""Fit a polynomial in alpha to -KL, as Kingma et al. did.

    .. math:: -\mathrm{KL} \approx \text{constant} + \tfrac12 \log\alpha + c_1 \alpha
              + \dots + c_n \alpha^n

    Parameters
    ----------
    degree : int, optional
        n, from 1 to 60. The default is 3. Terms of a high degree nearly cancel. If rounding the
        coefficients raises the error by more than 1 % (over [0.05, 1] from about degree 20), a
        ValueError is raised.
    alpha_range : pair of float, default (0.05, 1)
        The range of alpha = sigma^2/mu^2, which may begin at 0 and must be finite.
    norm : {"minimax", "least_squares"}
        Minimise the largest error (by Remez's exchange) or the mean square error.
    grid : {"log", "linear", "dropout_rate"}
        The variable over which squares are averaged uniformly: log alpha, alpha, or
        p = alpha/(1 + alpha). A minimax fit does not depend on `grid`.
    free_constant : bool, default True
        Whether to fit the constant. If not, it is -(gamma + log 2)/2, which makes the formula exact
        as alpha -> 0.
    weight : {None, "absolute", "relative"} or callable
        With None, the error of -KL is absolute and the error of its gradient relative. With
        ``"absolute"`` both are absolute. With ``"relative"`` both are relative, where -KL is taken
        for ``zero_at=inf``. A callable takes an array of log alpha and returns positive factors,
        which multiply the errors that None uses.
    target : {"value", "gradient", "both"}
        What to minimise: the error of -KL, the error of its derivative in log alpha, or the larger
        of the two (for least squares, the sum of their squares). The gradient does not determine a
        free constant, so with ``"gradient"`` it is the best constant for the value.
    max_error : float, optional
        Return the fit with the fewest terms whose error is at most `max_error`. The error is the
        one that `target` and `weight` name. Leave `degree` out.
    dtype : {"float64", "float32"}
        With `max_error`: the type in which the formula will be computed. For ``"float32"`` the
        constants are rounded to float32, and the rounding errors of each operation count
        (for log alpha in [-40, 40], if the range is infinite).

    Returns
    -------
    Fit

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong type or out of range, or the degree is too high.

    Notes
    -----
    Over [0.05, 1] the best cubic has a worst error of 5.26e-3, reached at five points with
    alternating signs. Kingma's published coefficients, with their best constant, have a worst error
    of 6.64e-3. Least squares on the log grid reproduces those coefficients to 0.2 %.

    References
    ----------
    D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local Reparameterization
    Trick", NIPS 2015, arXiv:1506.02557, section 3.3 (after Eq. 12) and appendix C (after Eq. 42).

    Examples
    --------
    >>> from logunif_kl.fitting import fit_polynomial
    >>> fit = fit_polynomial(3, (0.05, 1.0))
    >>> print(f"{fit.max_error:.2e} at {len(fit.extrema)} points")
    5.26e-03 at 5 points
    >>> kingmas = fit_polynomial(3, (0.05, 1.0), norm="least_squares")
    >>> print(" ".join(f"{c:.3f}" for c in kingmas.coefficients))
    1.163 -1.504 0.586
    """
    remedy = "pass a number between them, or use fit_sigmoid"
    limit = arguments.within(max_error, dtype, degree, "degree")
    if limit is not None:
        same: dict[str, Any] = {"norm": norm, "grid": grid, "weight": weight, "target": target}
        return shortest(
            lambda n: fit_polynomial(n, alpha_range, free_constant=free_constant, **same),
            *(POLYNOMIAL, MOST[POLYNOMIAL], limit, dtype, weight),
        )
    degree = integer("degree", 3 if degree is None else degree, 1, MOST[POLYNOMIAL], remedy)
    low, high = arguments.alpha_range(alpha_range)
    asked = arguments.options(norm, grid, target, weight, exact_limit=not free_constant)
    if norm == "least_squares" and grid == "log" and low == 0.0:
        raise ValueError(
            "alpha_range begins at 0, where a grid uniform in log alpha cannot begin: "
            'begin it above 0, or ask for grid="linear"'
        )
    family = PolynomialFamily(degree, low, high, bool(free_constant) and target != "gradient")
    problem = Problem(
        family,
        quantities(family, target, weight),
        math.log(low) if low > 0.0 else -math.inf,
        math.log(high),
    )
    p = _squares(problem, *quadrature(problem.low, problem.high, grid))
    if norm == "minimax":
        p = _minimax(problem, p, degree)
    constant, coefficients = family.monomials(p)
    formula = Formula(POLYNOMIAL, constant, coefficients)
    if free_constant and target != "value":
        formula = _centred(formula, problem, norm, grid)
    fit = make_fit(formula, problem, asked)
    _check_rounding(fit, problem, p)
    return fit


def _squares(problem: Problem, nodes: Array, weights: Array) -> Array:
    zero, root = np.zeros(problem.family.size), np.sqrt(weights)
    matrix = np.concatenate([root[:, None] * q.jacobian(zero, nodes) for q in problem.quantities])
    right = np.concatenate([-root * q.error(zero, nodes) for q in problem.quantities])
    return np.asarray(np.linalg.lstsq(matrix, right)[0])


def _minimax(problem: Problem, p: Array, degree: int) -> Array:
    points = problem.grid(GRID + 20 * degree)
    if len(problem.quantities) == 1:
        found = remez(problem, p, points)
    else:
        found = _both(problem, p, points)
    if found is None and problem.worst(p, points) <= problem.noise(points):
        return p  # all errors are rounding errors
    if found is None:
        raise ValueError(
            f"the fit of degree {degree} over this range did not converge, because its error of "
            f"{problem.worst(p, points):.0e} is close to rounding errors: ask for a lower degree"
        )
    return found


def _both(problem: Problem, p: Array, points: Array) -> Array:
    """Minimise the larger of two errors. First try the fits that minimise only one of them."""
    family = problem.family
    assert isinstance(family, PolynomialFamily)
    for i, quantity in enumerate(problem.quantities):
        other = problem.quantities[1 - i]
        if quantity.name == "gradient" and family.free:
            narrow = dataclasses.replace(family, free=False)
            alone = remez(_only(problem, narrow, quantity), p[1:], points)
            if alone is None:
                continue
            alone = np.concatenate([[0.0], alone])
            error = other.error(alone, points) / other.jacobian(alone, points)[:, 0]
            alone[0] = -(float(np.max(error)) + float(np.min(error))) / 2.0
        else:
            alone = remez(_only(problem, family, quantity), p, points)
        if alone is not None and np.max(np.abs(other.error(alone, points))) <= np.max(
            np.abs(quantity.error(alone, points))
        ):
            return alone
    p, active = minimise_by_linear_programs(problem, p, problem.grid(COARSE))
    found = refine(problem, p, active, points)
    return minimise_by_linear_programs(problem, p, points)[0] if found is None else found


def _only(problem: Problem, family: PolynomialFamily, quantity: Quantity) -> Problem:
    alone = dataclasses.replace(quantity, family=family)
    return dataclasses.replace(problem, family=family, quantities=(alone,))


def _centred(formula: Formula, problem: Problem, norm: str, grid: str) -> Formula:
    """Choose the constant that minimises the value's error: a gradient does not determine it."""
    (value,) = fixed(formula, "value", None)
    if norm == "least_squares":
        nodes, weights = quadrature(problem.low, problem.high, grid)
        return _shifted(formula, -float(weights @ value.error(NOTHING, nodes)))
    points = problem.grid(POINTS)
    error = value.error(NOTHING, points)
    formula = _shifted(formula, -(float(np.max(error)) + float(np.min(error))) / 2.0)
    # The error now has both signs, so the maxima of |error| include its least and greatest value.
    (value,) = fixed(formula, "value", None)
    _, error = value.extrema(NOTHING, points)
    return _shifted(formula, -(float(np.max(error)) + float(np.min(error))) / 2.0)


def _shifted(formula: Formula, shift: float) -> Formula:
    return dataclasses.replace(formula, constant=formula.constant + shift)


def _check_rounding(fit: Fit, problem: Problem, p: Array) -> None:
    """Raise ValueError if rounding the coefficients makes the error more than 1 % larger."""
    points = problem.grid(GRID)
    if fit.norm == "minimax":
        solved = problem.worst(p, points)
    else:
        solved = problem.root_mean_square(p, *quadrature(problem.low, problem.high, fit.grid))
    if fit.level > ROUNDING * solved + problem.noise(points):
        largest = max(abs(c) for c in fit.coefficients)
        raise ValueError(
            f"degree {fit.terms} is too high for double precision: coefficients as large as "
            f"{largest:.0e} nearly cancel, and rounding them raises the error from "
            f"{solved:.1e} to {fit.level:.1e}: ask for a lower degree"
        )
