"""Eq. 1 as it is written, why it is not computed so, and the window."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import logunif_kl as lk
from logunif_kl.methods import _poisson
from logunif_kl.methods._series import _gap_term, _slope_term, series, series_grad


@pytest.mark.parametrize("log_alpha", [-3.0, -1.0, 0.0, 2.0])
def test_it_is_the_published_series(log_alpha):
    with mpmath.workdps(60):
        u = mpmath.exp(-mpmath.mpf(log_alpha)) / 2
        # to 200 terms: u^k/k! is below 1e-200 there
        terms = [u**k / mpmath.factorial(k) * mpmath.psi(0, 0.5 + k) for k in range(200)]
        published = (mpmath.exp(-u) * mpmath.fsum(terms) - mpmath.psi(0, 0.5)) / 2
        assert abs(series(log_alpha, dps=50) + published) < mpmath.mpf("1e-49")
        slopes = [u**k / mpmath.factorial(k) / (2 * k + 1) for k in range(200)]
        gradient = u * mpmath.exp(-u) * mpmath.fsum(slopes)
        assert abs(series_grad(log_alpha, dps=50) - gradient) < mpmath.mpf("1e-49")
    assert float(series(log_alpha)) == pytest.approx(-float(published), rel=1e-15)


def test_the_difference_as_written_cancels_for_small_u():
    u = 1e-12
    k = np.arange(40)
    weights = np.exp(k * math.log(u) - u - special.gammaln(k + 1))
    naive = 0.5 * (np.sum(weights * special.psi(k + 0.5)) - special.psi(0.5))
    assert abs(naive / u - 1.0) > 1e-5
    assert series(-math.log(2 * u)) == pytest.approx(-u, rel=2e-12, abs=0.0)


def test_logarithms_as_written_cancel_for_large_u():
    u = 80_000.0
    first, last = _poisson.window(u)
    k = np.arange(first, last + 1.0)
    log_weight = k * np.log(u) - u - special.gammaln(k + 1)
    with mpmath.workdps(40):
        at = mpmath.mpf(int(u))
        truth = at * mpmath.log(at) - at - mpmath.loggamma(at + 1)
        error = abs(float(log_weight[int(u) - first] - truth))
    assert error > 1e-12
    assert series(-math.log(2 * u)) == pytest.approx(lk.neg_kl(-math.log(2 * u)), rel=1e-15)


@pytest.mark.parametrize("u", [0.0, 1e-300, 1e-3, 1.0, 89.0, 91.0, 1e3, 1e5, _poisson.LARGEST])
def test_what_the_window_leaves_out_is_negligible(u):
    first, last = _poisson.window(u)
    outside = stats.poisson.cdf(first - 1, u) + stats.poisson.sf(last, u)
    assert outside < 6e-20
    # by what matters: E g(K) over the k left out, against the whole, which is at least 1/(2u + 1)
    below = np.arange(first)
    lost = np.sum(stats.poisson.pmf(below, u) * _slope_term(below))
    lost += stats.poisson.sf(last, u) * _slope_term(np.array(last))
    assert lost < 2.0**-56 / (2 * u + 1)


def test_the_number_of_terms_is_bounded():
    first, last = _poisson.window(_poisson.LARGEST)
    assert last - first + 1 == 6886
    assert last == _poisson.LAST
    for u in np.geomspace(1e-6, _poisson.LARGEST, 50):
        first, last = _poisson.window(u)
        assert last - first + 1 <= 19 * math.sqrt(u) + 34


def test_the_terms_are_accurate():
    k = np.concatenate([np.arange(80), np.geomspace(80, _poisson.LAST, 100).astype(np.int64)])
    with mpmath.workdps(30):
        for i, gap, slope in zip(k.tolist(), _gap_term(k), _slope_term(k), strict=True):
            sums = mpmath.psi(0, i + mpmath.mpf(1.5)) - mpmath.psi(0, mpmath.mpf(0.5))
            assert abs(gap / (sums / (2 * i + 2)) - 1) < 5e-16
            assert abs(slope * (2 * i + 1) - 1) < 2e-16


def test_means_that_are_known():
    """E 1 = 1 and E 1/(K + 1) = (1 - e^-u)/u, for elements in any order."""
    u = np.array([0.0, 1e-320, 1e-9, 0.5, 1.0, 3.7, 88.0, 1e3, 7e4, _poisson.LARGEST])
    np.testing.assert_allclose(_poisson.mean_times_u(u, np.ones_like), u, rtol=1e-15, atol=0.0)
    shuffled = np.random.default_rng(1).permutation(np.geomspace(1e-3, 1e5, 500))
    for x, rtol in ((u, 1e-15), (shuffled, 2e-15)):
        got = _poisson.mean_times_u(x, lambda k: 1.0 / (k + 1.0))
        np.testing.assert_allclose(got, -np.expm1(-x), rtol=rtol, atol=0.0)
