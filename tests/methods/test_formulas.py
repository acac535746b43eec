"""Each closed form is the published one."""

import math

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


def test_published_coefficients():
    assert (C1, C2, C3) == (1.16145124, -1.50204118, 0.58629921)
    assert (K1, K2, K3) == (0.63576, 1.87320, 1.48695)


@every_method
def test_the_formula_is_the_published_one_up_to_its_constant(method):
    difference = method.function(X) - AS_PUBLISHED[method.name]
    scale = np.maximum(1.0, np.abs(AS_PUBLISHED[method.name]))
    assert np.max(np.abs(difference - difference[0]) / scale) < 1e-14


def test_molchanov_vanishes_at_infinity_without_cancelling():
    assert lk.methods.molchanov(np.inf) == 0.0
    assert -1e-13 < lk.methods.molchanov(np.float32(30.0)) < 0.0
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
    assert np.all(lk.methods.lower_bound(below) <= lk.neg_kl(below) + 1e-14)
    assert np.all(lk.methods.lower_bound(above) > lk.neg_kl(above))
    assert float("2.42124952103683604") == ALPHA_STAR


@every_method
def test_the_gradient_is_the_derivative(method):
    x, step = np.linspace(-8.0, 4.0, 97), 1e-3
    up2, up, down, down2 = (method.function(x + k * step) for k in (2, 1, -1, -2))
    numeric = (8.0 * (up - down) - (up2 - down2)) / (12.0 * step)
    scale = np.maximum(1.0, np.abs(method.function(x)))
    assert np.max(np.abs(method.gradient(x) - numeric) / scale) < 1e-10
