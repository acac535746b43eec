"""Molchanov's family: better constants of his own formula, limits, and further terms."""

import math

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._convention import HALF_GAMMA_LOG_2
from logunif_kl.fitting import fit_sigmoid
from logunif_kl.fitting._families import SigmoidFamily
from logunif_kl.methods import METHODS, measure

X = np.linspace(-30.0, 30.0, 24001)


def test_one_sigmoid_halves_the_published_error():
    fit = fit_sigmoid(1, norm="minimax")
    assert fit.max_error <= 4.97e-3
    np.testing.assert_allclose(fit.coefficients, (0.63021, 1.86874, 1.49788), rtol=1e-5)
    assert fit.log_alpha_range == (-math.inf, math.inf)
    assert abs(measure(METHODS["molchanov"]).value.error) > 9.37e-3
    assert np.max(np.abs(fit.neg_kl(X) - lk.neg_kl(X))) <= fit.max_error * (1.0 + 1e-9)
    # one of its largest errors is that of the limit as alpha -> 0
    assert fit.inside.max_error_at == -math.inf
    assert HALF_GAMMA_LOG_2 - fit.coefficients[0] == pytest.approx(fit.max_error, rel=1e-9)


def test_it_equioscillates_at_four_points():
    fit = fit_sigmoid(1)
    errors = np.array([e.error for e in fit.extrema])
    assert errors.size == 4
    assert np.all(errors[1:] * errors[:-1] < 0.0)
    np.testing.assert_allclose(np.abs(errors), fit.level, rtol=1e-5)
    assert fit.extrema[0].log_alpha < -12.0


def test_the_gradient_is_better_than_the_published_one_too():
    published = abs(measure(METHODS["molchanov"]).gradient.error)
    assert fit_sigmoid(1).max_grad_error < published
    for_it = fit_sigmoid(1, target="gradient")
    assert for_it.max_grad_error < 0.5 * published
    assert for_it.level == pytest.approx(for_it.max_grad_error, rel=1e-9)
    # value and gradient together: here the gradient decides
    assert fit_sigmoid(1, target="both").level == pytest.approx(for_it.level, rel=1e-6)


def test_least_squares_is_stationary():
    fit = fit_sigmoid(1, (-10.0, 10.0), norm="least_squares")
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x = 10.0 * nodes
    family, p = SigmoidFamily(1, False).at(x), np.array(fit.coefficients)
    residual = family.value(p) - lk.neg_kl(x)
    gradient = family.value_jacobian(p).T @ (weights * residual)
    assert np.max(np.abs(gradient)) < 1e-8 * np.max(np.abs(residual))
    assert fit.rms_error == pytest.approx(fit.level, rel=1e-9)
    assert fit.rms_error == pytest.approx(math.sqrt(weights @ residual**2 / 2.0), rel=1e-9)


def test_a_fixed_limit_is_exact_at_both_ends():
    fit = fit_sigmoid(1, fix_limit=True)
    assert fit.coefficients[0] == HALF_GAMMA_LOG_2
    assert fit.exact_limit
    assert len(fit.extrema) == 3
    for x in (-36.0, 36.0):
        assert fit.neg_kl(x) == pytest.approx(lk.neg_kl(x), rel=1e-14)
    assert fit_sigmoid(1).max_error < fit.max_error < abs(measure(METHODS["molchanov"]).value.error)
    slope = fit_sigmoid(1, fix_limit=True, target="gradient")
    assert slope.level == pytest.approx(slope.max_grad_error, rel=1e-9)
    assert slope.max_grad_error < fit.max_grad_error
    two = fit_sigmoid(2, fix_limit=True)
    assert two.coefficients[0] + two.coefficients[3] == pytest.approx(HALF_GAMMA_LOG_2, rel=1e-15)
    assert two.max_error < 0.2 * fit.max_error


def test_two_sigmoids():
    fit = fit_sigmoid(2)
    assert fit.max_error < 1.41e-3
    assert fit.coefficients[0] >= fit.coefficients[3]
    assert np.max(np.abs(fit.neg_kl(X) - lk.neg_kl(X))) <= fit.max_error * (1.0 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("terms", "low", "high", "target", "reached"),
    [
        # what 60 seconds of random starts find
        (3, -6.0, 6.0, "value", 1.131e-4),
        (4, -6.0, 6.0, "value", 2.64e-5),
        (3, -math.inf, math.inf, "value", 1.88e-4),
        (4, -math.inf, math.inf, "value", 3.98e-5),
        (5, -math.inf, math.inf, "value", 2.25e-6),
        (4, -math.inf, math.inf, "gradient", 4.8e-4),
        (5, -math.inf, math.inf, "gradient", 1.55e-4),
    ],
)
def test_more_sigmoids(terms, low, high, target, reached):
    fit = fit_sigmoid(terms, (low, high), target=target)
    assert fit.level < reached
    assert sum(abs(k) for k in fit.coefficients[::3]) <= 4.0 * (1.0 + 1e-9)
    if terms == 3:
        errors = np.array([e.error for e in fit.extrema])
        assert errors.size == 10
        assert np.all(errors[1:] * errors[:-1] < 0.0)


def test_a_narrower_range_is_fitted_better():
    fit = fit_sigmoid(1, (-3.0, 2.0))
    assert fit.max_error < 0.4 * fit_sigmoid(1).max_error
    assert fit.wide.max_error > fit.max_error
    assert fit_sigmoid(1, (-3.0, math.inf)).max_error < fit_sigmoid(1).max_error


def test_a_relative_weight_keeps_the_tail():
    fit = fit_sigmoid(1, weight="relative")
    x = np.linspace(-30.0, 30.0, 6001)
    assert np.max(np.abs(fit.neg_kl(x) / lk.neg_kl(x) - 1.0)) <= fit.level * (1.0 + 1e-4)
    assert fit.level < np.max(np.abs(lk.methods.molchanov(x) / lk.neg_kl(x) - 1.0))


def test_the_progress_of_a_fit(terminal):
    shown = terminal()
    plain = fit_sigmoid(1)
    assert shown.getvalue() == ""
    assert fit_sigmoid(1, progress=True) == plain
    assert "fitting" in shown.getvalue()
    assert "100%" in shown.getvalue()
