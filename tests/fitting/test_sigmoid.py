"""Molchanov's family: better constants of his own formula, limits, and further terms."""

import math

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._convention import HALF_GAMMA_LOG_2
from logunif_kl.fitting import fit_sigmoid
from logunif_kl.fitting._families import SigmoidFamily
from logunif_kl.methods import METHODS, measure
from logunif_kl.methods._molchanov import K1, K2, K3

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


def test_the_published_constants_are_not_a_least_squares_fit_either():
    fit = fit_sigmoid(1, (-10.0, 10.0), norm="least_squares")
    assert fit.rms_error == pytest.approx(fit.level, rel=1e-9)
    x = np.linspace(-10.0, 10.0, 20001)
    ours = math.sqrt(np.mean((fit.neg_kl(x) - lk.neg_kl(x)) ** 2))
    theirs = math.sqrt(np.mean((lk.methods.molchanov(x) - lk.neg_kl(x)) ** 2))
    assert ours == pytest.approx(fit.rms_error, rel=1e-3)
    assert ours < theirs


def test_least_squares_is_stationary():
    fit = fit_sigmoid(1, (-10.0, 10.0), norm="least_squares")
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x = 10.0 * nodes
    family, p = SigmoidFamily(1, False), np.array(fit.coefficients)
    residual = family.value(p, x) - lk.neg_kl(x)
    gradient = family.value_jacobian(p, x).T @ (weights * residual)
    assert np.max(np.abs(gradient)) < 1e-8 * np.max(np.abs(residual))


def test_a_fixed_limit_is_exact_at_both_ends():
    fit = fit_sigmoid(1, fix_limit=True)
    assert fit.coefficients[0] == HALF_GAMMA_LOG_2
    assert fit.exact_limit
    assert len(fit.extrema) == 3
    for x in (-36.0, 36.0):
        assert fit.neg_kl(x) == pytest.approx(lk.neg_kl(x), rel=1e-14)
    assert fit_sigmoid(1).max_error < fit.max_error < abs(measure(METHODS["molchanov"]).value.error)
    two = fit_sigmoid(2, fix_limit=True)
    assert two.coefficients[0] + two.coefficients[3] == pytest.approx(HALF_GAMMA_LOG_2, rel=1e-15)
    assert two.max_error < 0.2 * fit.max_error


def test_two_sigmoids():
    fit = fit_sigmoid(2)
    assert fit.max_error < 1.41e-3
    assert fit.coefficients[0] >= fit.coefficients[3]
    assert np.max(np.abs(fit.neg_kl(X) - lk.neg_kl(X))) <= fit.max_error * (1.0 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("terms", "reached"), [(3, 1.88e-4), (4, 4.2e-5)])
def test_more_sigmoids(terms, reached):
    fit = fit_sigmoid(terms)
    assert fit.max_error < reached
    assert sum(abs(k) for k in fit.coefficients[::3]) <= 4.0
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


@pytest.mark.parametrize("fixed", [False, True])
def test_jacobians(fixed):
    family = SigmoidFamily(2, fixed)
    rows = np.array([[K1 - 0.1, K2, K3], [0.1, 0.5, 2.0]])
    p, x, h = family.parameters(rows), np.linspace(-6.0, 3.0, 11), 1e-6
    assert family.size == p.size
    for of in ("value", "slope"):
        numeric = [
            (getattr(family, of)(p + h * e, x) - getattr(family, of)(p - h * e, x)) / (2.0 * h)
            for e in np.eye(p.size)
        ]
        exact = getattr(family, of + "_jacobian")(p, x)
        np.testing.assert_allclose(exact, np.transpose(numeric), rtol=1e-6, atol=1e-8)
    slope = (family.value(p, x + h) - family.value(p, x - h)) / (2.0 * h)
    np.testing.assert_allclose(family.slope(p, x), slope, rtol=1e-7)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"terms": 0}, "terms must be between 1 and 5, but 0 was given"),
        ({"terms": 6}, "terms must be between 1 and 5, but 6 was given"),
        ({"log_alpha_range": (1.0, -1.0)}, r"\(1, -1\) was given, which is empty"),
        ({"log_alpha_range": (30.0, 40.0)}, r"log_alpha_range must overlap \[-20, 20\]"),
        ({"log_alpha_range": (math.nan, 1.0)}, "holds NaN"),
    ],
)
def test_what_is_refused(asked, words):
    with pytest.raises(ValueError, match=words) as caught:
        fit_sigmoid(**asked)
    assert "\n" not in str(caught.value)


def test_wrong_types():
    with pytest.raises(TypeError, match=r"terms must be an integer, but float 1\.0 was given"):
        fit_sigmoid(1.0)
    with pytest.raises(TypeError, match="log_alpha_range must be two numbers, but None was given"):
        fit_sigmoid(1, None)


def test_the_progress_of_a_fit(terminal):
    shown = terminal()
    plain = fit_sigmoid(1)
    assert shown.getvalue() == ""
    assert fit_sigmoid(1, progress=True) == plain
    assert "fitting" in shown.getvalue()
    assert "100%" in shown.getvalue()
