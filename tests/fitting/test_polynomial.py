"""Kingma's family: the known figures, equioscillation, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logunif_kl as lk
from logunif_kl._convention import HALF_GAMMA_LOG_2
from logunif_kl.fitting import fit_polynomial

KINGMA = (1.16145124, -1.50204118, 0.58629921)


def on_a_grid(n, degree=3):
    """Points uniform in log alpha over Kingma's range, and the powers of alpha there."""
    x = np.linspace(math.log(0.05), 0.0, n)
    return x, np.exp(np.multiply.outer(x, np.arange(degree + 1.0)))


def error_of(fit, x):
    return fit.neg_kl(x) - lk.neg_kl(x)


def assert_alternates(fit, points):
    assert len(fit.extrema) == points
    errors = np.array([e.error for e in fit.extrema])
    assert np.all(errors[1:] * errors[:-1] < 0.0)
    # rounded coefficients and the difference of two values of this size
    rounding = np.finfo(float).eps * (64.0 + np.abs(fit.coefficients).sum())
    np.testing.assert_allclose(np.abs(errors), fit.level, rtol=1e-5, atol=rounding)


def test_the_best_cubic_equioscillates_at_five_points():
    fit = fit_polynomial(3, (0.05, 1.0), norm="minimax")
    assert f"{fit.max_error:.2e}" == "5.26e-03"
    assert_alternates(fit, 5)
    assert fit.level == fit.max_error
    x = np.array([e.log_alpha for e in fit.extrema])
    np.testing.assert_array_equal(error_of(fit, x), [e.error for e in fit.extrema])
    assert x[0] == math.log(0.05)
    assert x[-1] == 0.0
    everywhere = np.abs(error_of(fit, np.linspace(x[0], 0.0, 20001)))
    assert everywhere.max() <= fit.max_error * (1.0 + 1e-12)


def test_least_squares_on_the_log_grid_gives_kingmas_coefficients():
    fit = fit_polynomial(3, (0.05, 1.0), norm="least_squares", grid="log")
    np.testing.assert_allclose(fit.coefficients, KINGMA, rtol=2e-3)
    assert fit.extrema == ()
    assert fit.level == pytest.approx(fit.rms_error, rel=1e-12)
    x, powers = on_a_grid(20001)
    # a fine grid is the integral but for half a step at the ends
    dense = np.linalg.lstsq(powers, lk.neg_kl(x) - 0.5 * x)[0]
    np.testing.assert_allclose(fit.coefficients, dense[1:], rtol=1e-3)
    assert math.sqrt(np.mean(error_of(fit, x) ** 2)) == pytest.approx(fit.rms_error, rel=1e-3)


@pytest.mark.parametrize("grid", ["linear", "dropout_rate"])
def test_other_grids_are_uniform_in_their_variable(grid):
    fit = fit_polynomial(3, norm="least_squares", grid=grid)
    low, high = (0.05, 1.0) if grid == "linear" else (0.05 / 1.05, 0.5)
    step = (high - low) / 20000
    y = low + step * (np.arange(20000) + 0.5)
    x = np.log(y) if grid == "linear" else np.log(y / (1.0 - y))
    powers = np.exp(np.multiply.outer(x, np.arange(4.0)))
    dense = np.linalg.lstsq(powers, lk.neg_kl(x) - 0.5 * x)[0]
    np.testing.assert_allclose([fit.constant, *fit.coefficients], dense, rtol=1e-5)


def test_a_fixed_constant_is_the_exact_limit():
    fit = fit_polynomial(3, free_constant=False)
    assert fit.constant == -HALF_GAMMA_LOG_2 == -(np.euler_gamma + math.log(2.0)) / 2.0
    assert fit.exact_limit
    assert_alternates(fit, 4)
    assert fit.neg_kl(-30.0) == pytest.approx(lk.neg_kl(-30.0), rel=1e-13)


def test_a_range_may_begin_at_zero():
    fit = fit_polynomial(3, (0.0, 1.0))
    assert_alternates(fit, 5)
    assert fit.log_alpha_range == (-math.inf, 0.0)
    kingma = lk.methods.METHODS["kingma"]
    published = lk.methods.measure(kingma, kingma.domain)
    assert fit.max_error < published.value_best_constant


def test_the_gradient_as_target():
    fit = fit_polynomial(3, target="gradient")
    assert_alternates(fit, 4)
    assert {e.quantity for e in fit.extrema} == {"gradient"}
    assert fit.level == pytest.approx(fit.max_grad_error, rel=1e-9)
    assert fit.max_grad_error < fit_polynomial(3).max_grad_error
    # the constant, on which the gradient does not depend, is the best one
    error = error_of(fit, np.linspace(math.log(0.05), 0.0, 20001))
    assert error.max() == pytest.approx(-error.min(), rel=1e-6)


def test_both_targets_together():
    fit = fit_polynomial(3, target="both", weight=lambda x: np.full_like(x, 2.0))
    assert fit.weight == "callable"
    assert fit.level == pytest.approx(2.0 * max(fit.max_error, fit.max_grad_error), rel=1e-9)
    # neither alone does as well
    for target in ("value", "gradient"):
        other = fit_polynomial(3, target=target)
        assert fit.level <= 2.0 * max(other.max_error, other.max_grad_error) * (1.0 + 1e-9)


def test_both_targets_that_bind_together():
    fit = fit_polynomial(4, target="both", free_constant=False)
    assert {e.quantity for e in fit.extrema} == {"value", "gradient"}
    assert len(fit.extrema) == 5
    assert fit.max_error == pytest.approx(fit.max_grad_error, rel=1e-6)


def test_both_by_least_squares_lies_between():
    targets = ("value", "gradient", "both")
    value, gradient, both = (fit_polynomial(3, norm="least_squares", target=t) for t in targets)
    assert value.rms_error < both.rms_error < gradient.rms_error
    assert both.level**2 < value.rms_error**2 + value.max_grad_error**2


@pytest.mark.parametrize("weight", ["relative", lambda x: -1.0 / lk.neg_kl(x)])
def test_weights(weight):
    fit = fit_polynomial(3, weight=weight)
    assert_alternates(fit, 5)
    x = np.linspace(math.log(0.05), 0.0, 4001)
    assert np.max(np.abs(error_of(fit, x) / lk.neg_kl(x))) <= fit.level * (1.0 + 1e-9)
    assert fit.level < np.max(np.abs(error_of(fit_polynomial(3), x) / lk.neg_kl(x)))


def test_an_absolute_weight_takes_the_gradient_as_it_is():
    fit = fit_polynomial(3, target="gradient", weight="absolute")
    x = np.linspace(math.log(0.05), 0.0, 4001)
    error = fit.neg_kl_grad(x) - lk.neg_kl_grad(x)
    assert np.max(np.abs(error)) == pytest.approx(fit.level, rel=1e-5)


@pytest.mark.parametrize("degree", [1, 2, 6, 10, 14, 18])
def test_higher_degrees_alternate_too(degree):
    assert_alternates(fit_polynomial(degree), degree + 2)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.floats(1e-2, 1.0), st.floats(4.0, 50.0))
def test_any_range_is_fitted_and_alternates(degree, low, ratio):
    fit = fit_polynomial(degree, (low, low * ratio))
    assert_alternates(fit, degree + 2)
