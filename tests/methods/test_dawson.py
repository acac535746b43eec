"""Eq. 3 by SciPy's Dawson function, and the exact gradient beside it."""

import math

import numpy as np
from scipy.special import dawsn

import logunif_kl as lk
from logunif_kl import reference
from logunif_kl.methods._dawson import _NEAR, _near, dawson_grad
from tests.rounding import beside, gradient_error
from tests.ulp import error

# SciPy's own: at log_alpha = -8.3, where the reference finds it 9.6 ulp off.
ULP = 10.0


def test_the_exact_gradient_agrees_over_all_doubles():
    rng = np.random.default_rng(1927)
    bits = rng.integers(0, 2**64, 400_000, dtype=np.uint64).view(np.float64)
    ordinary = rng.uniform(-50.0, 50.0, 400_000)
    edges = beside(0.0, 0.693147, -8.295, 36.0, 708.4, 745.13, -36.7, -745.0, -709.8, steps=50)
    x = np.concatenate([bits[~np.isnan(bits)], ordinary, rng.uniform(-800, 800, 50_000), edges])
    exact = lk.neg_kl_grad(x)
    assert np.all(np.abs(dawson_grad(x) - exact) <= ULP * np.spacing(exact))


def test_the_distance_is_not_of_the_exact_gradient():
    x = -8.295014227714613
    truth = reference.neg_kl_grad(x, 30)
    assert abs(error(float(lk.neg_kl_grad(x)), truth, "float64")) <= 1.0
    assert np.abs(gradient_error(lk.neg_kl_grad, np.linspace(-12, 12, 400))).max() < 3.4e-16


def test_for_small_and_large_u_the_limits_come_without_a_warning():
    x = np.array([-np.inf, -1e308, -2000.0, -710.0, -40.0, 40.0, 744.0, 2000.0, np.inf, np.nan])
    got = dawson_grad(x)
    np.testing.assert_array_equal(got[:5], 0.5)
    assert got[5] == 0.5 * math.exp(-40.0)
    np.testing.assert_array_equal(got[6:], [0.5 * math.exp(-744.0), 0.0, 0.0, np.nan])


def test_scipys_function_is_asked_from_where_it_is_accurate():
    s = np.linspace(_NEAR, 1.0, 500)
    truth = [reference.kl_gap_grad(float(v) ** 2, 30) for v in s]
    off = np.array([float(d / v / t) - 1.0 for d, v, t in zip(dawsn(s), s, truth, strict=True)])
    assert np.abs(off).max() < 2e-15
    np.testing.assert_allclose(_near(np.array([0.25])), dawsn(0.5) / 0.5, rtol=1e-15)
    assert _near(np.array([0.0])) == 1.0
