"""The exchange's parts: extrema, alternation, and the search's starts."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.fitting._exchange import alternation, level, remez
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


def test_alternation_alternates_and_keeps_the_worst():
    rng = np.random.default_rng(7)
    for wanted in [2, 3, 4, 5, 6, 7] * 50:
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


class Arctangent:
    """The error arctan(p - x): Newton's steps square p, if it is not near x."""

    size, linear = 1, False

    def at(self, x):
        return SimpleNamespace(
            value=lambda p: lk.neg_kl(x) + np.arctan(p[0] - x),
            value_jacobian=lambda p: (1.0 / (1.0 + (p[0] - x) ** 2))[:, np.newaxis],
        )


def test_newton_stops_before_parameters_overflow():
    problem = Problem(Arctangent(), quantities(Arctangent(), "value", None), 0.0, 1.0)
    points, signs = [(0, 0.0), (0, 1.0)], np.array([1.0, -1.0])
    for start in (1e30, 1e60, 1e90):
        assert level(problem, np.array([start]), points, signs) is None
    p, h = level(problem, np.array([0.4]), points, signs)
    np.testing.assert_allclose([p[0], h], [0.5, np.arctan(0.5)], rtol=1e-12)
