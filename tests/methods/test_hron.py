"""Hron's two forms, the series of Eq. 1 and Kummer's of Eq. 2: exact but for rounding."""

import math
import threading
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given

import logunif_kl as lk
from logunif_kl import reference
from logunif_kl.methods._kummer import KUMMER, SWITCH
from logunif_kl.methods._method import EVERYWHERE
from logunif_kl.methods._poisson import LARGEST
from logunif_kl.methods._series import SERIES
from tests import strategies
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


@every_method
@given(x=strategies.floats())
def test_every_double_agrees_with_the_exact_functions(method, x):
    exact, slope = float(lk.neg_kl(x)), float(lk.neg_kl_grad(x))
    got, got_slope = float(method.function(x)), float(method.gradient(x))
    if math.isinf(exact):
        assert got == exact
    else:
        # both have an error of their own
        assert abs(got - exact) <= (method.claims[0].value + 4e-16) * abs(exact) + SUBNORMAL
    assert abs(got_slope - slope) <= (method.claims[0].gradient + 4e-16) * slope + SUBNORMAL


@every_method
def test_nothing_jumps_where_one_way_ends_and_the_next_begins(method):
    for place in EDGES[:2]:
        x = beside(place, steps=40)
        assert np.ptp(method.function(x) - lk.neg_kl(x)) < 2e-14
        assert np.ptp(method.gradient(x) / lk.neg_kl_grad(x)) < 4e-15


@every_function
def test_memory_is_bounded(function):
    x = np.linspace(-12.47, -11.0, 3000)
    function(x[:2])
    tracemalloc.start()
    function(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20  # a table of their terms would take 120 MiB


# In any number of digits.

DIGIT_POINTS = (
    *(-1e308, -1e4, -700.0, -40.0, -13.0, -12.48, -12.47, -12.0, -9.5, -7.3, -6.0, -5.0, -4.4),
    *(-4.3, -3.0, -1.5, -0.1, 0.0, 5e-324, 0.3, 1.0, 4.0, 12.0, 40.0, 700.0, 1e4, 1e308),
)


@every_method
@pytest.mark.parametrize(("dps", "bound"), [(50, "1e-49"), (5, "2e-5"), (300, "1e-299")])
def test_digits_agree_with_the_reference(method, dps, bound):
    for x in DIGIT_POINTS:
        for got, truth in (
            (method.function(x, dps=dps), reference.neg_kl(x, dps + 10)),
            (method.gradient(x, dps=dps), reference.neg_kl_grad(x, dps + 10)),
        ):
            with mpmath.workdps(dps + 10):
                assert abs(got - truth) <= mpmath.mpf(bound) * abs(truth)


@every_method
def test_fifty_digits_densely(method):
    with mpmath.workdps(60):
        for x in np.linspace(-12.0, 12.0, 61):
            off = method.function(x, dps=50) - reference.neg_kl(x, 60)
            assert abs(off) < mpmath.mpf("1e-49") * max(1, abs(reference.neg_kl(x, 60)))


@every_method
def test_digits_under_each_convention(method):
    third = mpmath.mpf(1) / 3
    for x in (-9.0, 0.0, 2.0, -math.inf, math.inf):
        for convention in ({"zero_at": 1.0}, {"zero_at": third}, {"log_c": -2.5}, {"log_c": third}):
            got = method.function(x, dps=50, **convention)
            truth = reference.neg_kl(x, 60, **convention)
            with mpmath.workdps(60):
                assert got == truth or abs(got - truth) < mpmath.mpf("1e-48")
    assert method.function(0.0, zero_at=1, dps=50) == 0


@every_method
def test_digits_come_in_the_shape_of_the_argument(method):
    for function in (method.function, method.gradient):
        for scalar in (1, 1.0, np.float32(1.0), np.int8(1), mpmath.mpf(1), np.array(1.0)):
            one = function(scalar, dps=20)
            assert isinstance(one, mpmath.mpf)
            assert one == function(1.0, dps=20)
        table = function([[0.5, 1.0], [mpmath.mpf(2), math.nan]], dps=20)
        assert isinstance(table, np.ndarray)
        assert table.dtype == object
        assert table.shape == (2, 2)
        assert table[0, 1] == one
        assert mpmath.isnan(table[1, 1])
        assert function(np.empty((0, 3)), dps=20).shape == (0, 3)
        assert function((1.0,), dps=20)[0] == one
    assert method.function(-math.inf, dps=20) == -mpmath.inf
    assert method.function(math.inf, dps=20) == 0
    assert method.gradient(-math.inf, dps=20) == 0.5
    assert method.gradient(math.inf, dps=20) == 0


@every_function
def test_digits_leave_mpmath_as_it_was(function):
    with mpmath.workdps(7):
        got = function(-3.0, dps=40)
        assert mpmath.mp.dps == 7
    assert got == function(-3.0, dps=40)
    assert got != function(-3.0, dps=39)


@every_function
def test_digits_in_threads(function):
    expected = function(-3.3, dps=120)
    results = []
    threads = [
        threading.Thread(target=lambda d=d: results.append((d, function(-3.3, dps=d))))
        for d in (30, 120, 60, 120)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [value for d, value in results if d == 120] == [expected, expected]


@every_method
def test_a_constant_that_cannot_be_read_exactly_is_refused(method):
    with pytest.raises(TypeError, match=r"zero_at must hold real numbers .* Fraction"):
        method.function(0.0, zero_at=Fraction(1, 3), dps=20)
