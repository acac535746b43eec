"""Hron's two forms, the series of Eq. 1 and Kummer's of Eq. 2: exact but for rounding."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from logunif_kl.methods import _kummer, _poisson
from logunif_kl.methods._kummer import KUMMER, SWITCH, kummer, kummer_grad
from logunif_kl.methods._method import EVERYWHERE
from logunif_kl.methods._poisson import LARGEST
from logunif_kl.methods._series import SERIES, _slope_term
from logunif_kl.methods.arbitrary_precision import asymptotic
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


@pytest.mark.parametrize("u", [0.0, 1e-300, 1e-3, 1.0, 89.0, 91.0, 1e3, 1e5, LARGEST])
def test_what_the_window_of_the_series_leaves_out_is_negligible(u):
    first, last = _poisson.window(u)
    outside = stats.poisson.cdf(first - 1, u) + stats.poisson.sf(last, u)
    assert outside < 6e-20
    # by what matters: E g(K) over the k left out, against the whole, which is at least 1/(2u + 1)
    below = np.arange(first)
    lost = np.sum(stats.poisson.pmf(below, u) * _slope_term(below))
    lost += stats.poisson.sf(last, u) * _slope_term(np.array(last))
    assert lost < 2.0**-56 / (2 * u + 1)


def test_the_terms_that_kummers_series_leaves_out_are_negligible():
    # of the positive series, at the largest u
    left_out = special.pdtrc(_kummer._TERMS - 1, SWITCH)
    assert left_out < 2.0**-56 / (2 * SWITCH + 1)


@pytest.mark.parametrize("wp", [40, 200, 1000])
def test_the_expansion_in_digits_has_them_all_from_there_on(wp):
    u = mpmath.mpf(asymptotic.smallest_for(wp))
    with mpmath.workprec(wp + 60):
        x = -mpmath.log(2 * u)
        # more digits than wp bits: the alternating series
        digits = int(wp / 3.3) + 15
        at = mpmath.exp(-x) / 2
        gap = mpmath.make_mpf(asymptotic.gap(at._mpf_, wp))
        slope = mpmath.make_mpf(asymptotic.slope(at._mpf_, wp))
        assert abs(gap / -kummer(x, dps=digits) - 1) < mpmath.ldexp(1, -wp)
        assert abs(slope / kummer_grad(x, dps=digits) - 1) < mpmath.ldexp(1, -wp)
