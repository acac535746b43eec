"""Hron's two forms, the series of Eq. 1 and Kummer's of Eq. 2: exact but for rounding."""

import math
import tracemalloc

import numpy as np
import pytest

from logunif_kl.methods._kummer import KUMMER, SWITCH
from logunif_kl.methods._method import EVERYWHERE
from logunif_kl.methods._poisson import LARGEST
from logunif_kl.methods._series import SERIES
from tests.rounding import beside, gradient_error, value_error

EDGES = (-math.log(2 * LARGEST), -math.log(2 * SWITCH), -0.5, -1.507, 12.0, -12.0, 36.0, 708.0)
SUBNORMAL = 5e-324

every_method = pytest.mark.parametrize("method", [SERIES, KUMMER], ids=lambda m: m.name)
every_function = pytest.mark.parametrize(
    "function",
    [SERIES.function, SERIES.gradient, KUMMER.function, KUMMER.gradient],
    ids=lambda f: f.__name__,
)


def points():
    """Where an error could be: densely where the window is, then to the ends of the doubles."""
    rng = np.random.default_rng(20171120)
    ranges = ((-12.6, -5.0, 1200), (-5.0, 1.0, 1600), (1.0, 40.0, 400), (-700.0, 700.0, 400))
    return np.concatenate([beside(*EDGES), *(rng.uniform(a, b, n) for a, b, n in ranges)])


@every_method
def test_declared_errors_are_true_and_not_needlessly_large(method):
    (claim,) = method.claims
    assert claim.interval is EVERYWHERE
    x = points()
    for declared, found in (
        (claim.value, value_error(method.function, x)),
        (claim.gradient, gradient_error(method.gradient, x)),
    ):
        assert np.abs(found).max() <= declared <= 2.5 * np.abs(found).max()


@every_method
def test_the_error_is_relative_to_the_value_itself_as_it_vanishes(method):
    x = np.concatenate([np.linspace(0.0, 707.0, 900), beside(0.0, 1.0, 700.0)])
    assert np.abs(value_error(method.function, x, floor=0.0)).max() <= method.claims[0].value
    x = np.linspace(708.0, 745.0, 200)
    got = -method.function(x)
    assert np.all(np.abs(got - 0.5 * np.exp(-x)) <= SUBNORMAL)
    assert np.all(np.abs(method.gradient(x) - 0.5 * np.exp(-x)) <= SUBNORMAL)


@every_function
def test_memory_is_bounded(function):
    x = np.linspace(-12.47, -11.0, 3000)
    function(x[:2])
    tracemalloc.start()
    function(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20  # a table of their terms would take 120 MiB
