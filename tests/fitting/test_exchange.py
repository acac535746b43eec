"""The exchange's parts: alternation, starts, and grids."""

import math

import numpy as np
import pytest

from logunif_kl.fitting._exchange import alternation, remez
from logunif_kl.fitting._families import PolynomialFamily, SigmoidFamily
from logunif_kl.fitting._problem import Problem, quantities
from logunif_kl.fitting._sigmoid import GRID


@pytest.fixture
def problem():
    family = PolynomialFamily(3, 0.05, 1.0, True)
    return Problem(family, quantities(family, "value", None), math.log(0.05), 0.0)


@pytest.mark.parametrize(
    ("error", "wanted", "kept"),
    [
        ([1.0, 2.0, -1.0, 3.0, -2.0, -4.0], 6, [1, 2, 3, 5]),  # the largest of each sign
        ([1.0, -3.0, 3.0, -3.0, 2.0], 4, [1, 2, 3, 4]),  # without the smaller end
        ([3.0, -3.0, 0.5, -0.7, 3.0, -3.0], 4, [0, 1, 4, 5]),  # without an inner pair
    ],
)
def test_alternation(error, wanted, kept):
    assert alternation(np.arange(float(len(error))), np.array(error), wanted) == kept


@pytest.mark.parametrize("wanted", [2, 3, 4, 5, 6, 7])
def test_alternation_alternates_and_keeps_the_worst(wanted):
    rng = np.random.default_rng(7)
    for _ in range(50):
        error = rng.normal(size=9) * np.tile([1.0, -1.0], 5)[:9]
        chosen = alternation(np.arange(9.0), error, wanted)
        signs = np.sign(error[chosen])
        assert np.all(signs[1:] == -signs[:-1])
        assert len(chosen) <= wanted
        assert int(np.argmax(np.abs(error))) in chosen


def test_the_exchange_needs_no_good_start(problem):
    grid = problem.grid(1001)
    first = remez(problem, np.zeros(4), grid)
    second = remez(problem, np.array([5.0, -3.0, 2.0, 1.0]), grid)
    np.testing.assert_allclose(first, second, rtol=1e-7)


def test_a_start_from_which_newton_diverges_is_given_up():
    """The parameters reached 1e247, and the slope overflowed with a warning."""
    family = SigmoidFamily(2, False)
    problem = Problem(family, quantities(family, "gradient", None), -math.inf, math.inf)
    start = np.array([0.909044, 1.573545, 1.455559, 0.283728, -0.978808, -1.353116])
    assert remez(problem, start, problem.grid(GRID)) is None


def test_grids_cover_the_ends(problem):
    grid = problem.grid(101)
    assert (grid[0], grid[-1]) == (problem.low, problem.high)
    for low, high in ((-math.inf, math.inf), (-math.inf, 0.0), (-15.0, 18.0), (13.0, 20.0)):
        grid = Problem(problem.family, problem.quantities, low, high).grid(101)
        assert np.all(np.diff(grid) > 0.0)
        assert (grid[0], grid[-1]) == (max(low, -40.0), min(high, 40.0))
