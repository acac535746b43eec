"""Each closed form is the published one, under every convention, for every kind of array."""

import math
import pickle

import array_api_strict
import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.methods import METHODS as EVERY_METHOD
from logunif_kl.methods._kingma import C1, C2, C3
from logunif_kl.methods._lower_bound import ALPHA_STAR, LOG_ALPHA_STAR
from logunif_kl.methods._molchanov import K1, K2, K3

METHODS = {name: m for name, m in EVERY_METHOD.items() if m.kind == "closed form"}
X = np.linspace(-12.0, 6.0, 181)
ALPHA = np.exp(X)
AS_PUBLISHED = {
    "kingma": 0.5 * np.log(ALPHA) + C1 * ALPHA + C2 * ALPHA**2 + C3 * ALPHA**3,
    "molchanov": K1 / (1 + np.exp(-(K2 + K3 * X))) - 0.5 * np.log(1 + 1 / ALPHA) - K1,
    "lower_bound": 0.5 * np.log(ALPHA),
}

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
every_function = pytest.mark.parametrize(
    "function",
    [f for m in METHODS.values() for f in (m.function, m.gradient)],
    ids=lambda f: f.__name__,
)


def test_published_coefficients():
    assert (C1, C2, C3) == (1.16145124, -1.50204118, 0.58629921)
    assert (K1, K2, K3) == (0.63576, 1.87320, 1.48695)


@every_method
def test_the_formula_is_the_published_one_up_to_its_constant(method):
    difference = method.function(X) - AS_PUBLISHED[method.name]
    scale = np.maximum(1.0, np.abs(AS_PUBLISHED[method.name]))
    assert np.max(np.abs(difference - difference[0]) / scale) < 1e-14


@every_method
def test_the_name_leads_to_the_function(method):
    assert getattr(lk.methods, method.name) is method.function
    assert getattr(lk.methods, f"{method.name}_grad") is method.gradient


def test_kingma_meets_the_exact_value_at_alpha_one():
    assert abs(lk.methods.kingma(0.0, zero_at=1.0)) < 1e-16
    assert abs(lk.methods.kingma(0.0) - lk.neg_kl(0.0)) < 1e-16


def test_molchanov_vanishes_at_infinity_without_cancelling():
    assert lk.methods.molchanov(np.inf) == 0.0
    far = lk.methods.molchanov(np.float32(30.0))
    assert -1e-13 < far < 0.0
    assert lk.methods.molchanov(18.0) == pytest.approx(-0.5 * math.exp(-18.0), rel=1e-3)


def test_molchanovs_gradient_vanishes_no_sooner_than_the_exact_one():
    """exp(log_alpha) overflows at 709.8, its reciprocal underflows at 745."""
    x = np.array([709.0, 710.0, 720.0, 740.0])
    exact = lk.neg_kl_grad(x)
    np.testing.assert_allclose(lk.methods.molchanov_grad(x), exact, rtol=1e-14, atol=5e-324)
    assert np.all(exact > 0.0)


def test_the_lower_bound_is_one_up_to_alpha_star_only():
    below = np.linspace(-30.0, LOG_ALPHA_STAR - 1e-9, 2001)
    above = np.linspace(LOG_ALPHA_STAR + 1e-9, 30.0, 2001)
    slack = 1e-14
    assert np.all(lk.methods.lower_bound(below) <= lk.neg_kl(below) + slack)
    assert np.all(lk.methods.lower_bound(above) > lk.neg_kl(above))


def test_alpha_star_is_where_the_expectation_vanishes():
    import mpmath

    with mpmath.workdps(30):
        alpha = mpmath.mpf("2.42124952103683604")
        expectation = (mpmath.log(2 * alpha) + mpmath.digamma(0.5)) / 2 + lk.reference.kl_gap(
            1 / (2 * alpha), 30
        )
        assert abs(expectation) < mpmath.mpf(10) ** -17
    assert float("2.42124952103683604") == ALPHA_STAR


@every_method
@pytest.mark.parametrize("convention", [{"zero_at": 1.0}, {"zero_at": 0.3}, {"log_c": -2.0}])
def test_a_convention_moves_the_method_as_it_moves_the_exact_value(method, convention):
    x = np.linspace(-10.0, 1.0, 45)
    moved = method.function(x, **convention) - method.function(x)
    exact = lk.neg_kl(x, **convention) - lk.neg_kl(x)
    np.testing.assert_allclose(moved, exact, rtol=0.0, atol=4e-15)


@every_method
def test_the_gradient_is_the_derivative(method):
    x, step = np.linspace(-8.0, 4.0, 97), 1e-3
    up2, up, down, down2 = (method.function(x + k * step) for k in (2, 1, -1, -2))
    numeric = (8.0 * (up - down) - (up2 - down2)) / (12.0 * step)
    scale = np.maximum(1.0, np.abs(method.function(x)))
    assert np.max(np.abs(method.gradient(x) - numeric) / scale) < 1e-10


@every_function
def test_types_shapes_and_array_libraries(function):
    x = np.linspace(-3.0, 0.0, 12).reshape(3, 4)
    for dtype in (np.float16, np.float32, np.float64):
        narrow = function(x.astype(dtype))
        assert narrow.dtype == dtype
        assert narrow.shape == (3, 4)
        wide = function(x.astype(dtype).astype(np.float64))
        np.testing.assert_allclose(narrow, wide, rtol=4 * np.finfo(dtype).eps, atol=0.0)
    assert np.ndim(function(0.5)) == 0
    assert function(np.empty((0, 2))).shape == (0, 2)
    np.testing.assert_array_equal(function(x.tolist()), function(x))
    x.setflags(write=False)
    strict = function(array_api_strict.asarray(x))
    assert isinstance(strict, type(array_api_strict.asarray(0.0)))
    np.testing.assert_allclose(np.asarray(strict), function(x), rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "at_minus_infinity", "at_infinity"),
    [
        ("kingma", -math.inf, math.inf),
        ("kingma_grad", 0.5, math.inf),
        ("molchanov", -math.inf, 0.0),
        ("molchanov_grad", 0.5, 0.0),
        ("lower_bound", -math.inf, math.inf),
        ("lower_bound_grad", 0.5, 0.5),
    ],
)
def test_limits_come_without_a_warning(name, at_minus_infinity, at_infinity):
    function = getattr(lk.methods, name)
    x = np.array([-np.inf, -1e308, -745.0, 745.0, 1e308, np.inf, np.nan])
    y = function(x)
    assert y[0] == at_minus_infinity
    assert y[5] == at_infinity
    assert np.isnan(y[6])
    assert np.all(np.isfinite(y[2]))
    assert not np.isnan(y[:6]).any()


@every_function
@pytest.mark.parametrize("wrong", [1j, "0.5", None, np.array([True])])
def test_what_is_not_a_real_number_is_refused(function, wrong):
    with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
        function(wrong)


@every_method
def test_the_conventions_refuse_what_neg_kl_refuses(method):
    with pytest.raises(ValueError, match="were both given"):
        method.function(0.0, zero_at=1.0, log_c=0.0)
    with pytest.raises(ValueError, match="zero_at must be a positive alpha"):
        method.function(0.0, zero_at=-1.0)


@every_function
def test_dask_evaluates_in_its_own_graph(function):
    array = pytest.importorskip("dask.array")
    x = np.linspace(-3.0, 0.0, 1000)
    lazy = function(array.from_array(x, chunks=300))
    assert isinstance(lazy, array.Array)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lazy)).compute(), function(x))
