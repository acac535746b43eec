"""Eq. 1 as it is written, and the window."""

import math

import mpmath
import numpy as np
import pytest

from logunif_kl.methods import _poisson
from logunif_kl.methods._series import series, series_grad


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


def test_the_number_of_terms_is_bounded():
    first, last = _poisson.window(_poisson.LARGEST)
    assert (last - first + 1, last) == (6886, _poisson.LAST)
    for u in np.geomspace(1e-6, _poisson.LARGEST, 50):
        first, last = _poisson.window(u)
        assert last - first + 1 <= 19 * math.sqrt(u) + 34
