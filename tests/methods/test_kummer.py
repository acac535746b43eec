"""Eq. 2 as it is written, why it is transformed, and where each form holds."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special

from logunif_kl.methods import _asymptotic, _kummer
from logunif_kl.methods._kummer import SWITCH, kummer, kummer_grad
from logunif_kl.methods._series import series, series_grad
from logunif_kl.methods.arbitrary_precision import asymptotic


@pytest.mark.parametrize("log_alpha", [-3.0, -1.0, 0.0, 2.0, 6.0])
def test_it_is_the_published_derivative(log_alpha):
    with mpmath.workdps(60):
        u = mpmath.exp(-mpmath.mpf(log_alpha)) / 2
        half = mpmath.mpf(0.5)
        derivative = mpmath.diff(lambda a: mpmath.hyp1f1(a, half, -u), 0)
        assert abs(kummer(log_alpha, dps=50) - derivative / 2) < mpmath.mpf("1e-49")
        gradient = u * mpmath.hyp1f1(1, 3 * half, -u)
        assert abs(kummer_grad(log_alpha, dps=50) - gradient) < mpmath.mpf("1e-49")


def test_the_transformation_is_kummers():
    u = np.array([0.3, 2.0, 9.0])
    for a in (1e-3, 0.2):
        transformed = np.exp(-u) * special.hyp1f1(0.5 - a, 0.5, u)
        np.testing.assert_allclose(special.hyp1f1(a, 0.5, -u), transformed, rtol=1e-13)


def test_the_series_as_written_cancels():
    k = np.arange(1, 200)
    for u, least in ((20.0, 1e-10), (40.0, 0.1)):
        terms = np.cumprod(-u / (k - 0.5)) / k
        truth = -float(kummer(-math.log(2 * u)))
        assert abs(-0.5 * math.fsum(terms) / truth - 1.0) > least


def test_the_terms_left_out_are_negligible():
    # of the positive series, at the largest u
    left_out = special.pdtrc(_kummer._TERMS - 1, SWITCH)
    assert left_out < 2.0**-56 / (2 * SWITCH + 1)


@pytest.mark.parametrize("smallest", [SWITCH, 100.0, 2.0**17])
def test_the_expansion_holds_from_its_smallest_u(smallest):
    expansion = _asymptotic.Expansion(smallest)
    for factor in (1.0, 1.5, 10.0, 1e9):
        x = np.array([-math.log(2.0 * smallest * factor)])
        with mpmath.workdps(40):
            gap, slope = -series(float(x[0]), dps=40), series_grad(float(x[0]), dps=40)
            assert abs(float(expansion.gap(np, x)[0]) / gap - 1) < 3e-16
            assert abs(float(expansion.slope(np, x)[0]) / slope - 1) < 3e-16


def test_below_its_smallest_u_the_expansion_is_finite():
    x = np.array([-4.0, 0.0, 1e3, 1e308])
    expansion = _asymptotic.Expansion(SWITCH)
    assert np.isfinite(expansion.gap(np, x)).all()
    assert np.isfinite(expansion.slope(np, x)).all()


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
