"""Significant digits (appendix A), derived from the cells of a floating-point number."""

import math

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

import logunif_kl as lk
from logunif_kl.posteriors import neg_kl_posterior, significant_digits

BASES = [2, 10, math.e, 16]


def digits_of(dist, base):
    """Compute the digits as the docstring says for any posterior."""
    return (math.log(math.log(base)) - neg_kl_posterior(dist, log_c=0.0)) / math.log(base)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("digits", [0, 1, 3, 7])
def test_a_posterior_over_one_cell_keeps_the_digits_of_the_cell(base, digits):
    """Uniform in log|w| over the first of base**digits equal cells from 1 to base."""
    cell = stats.loguniform(1.0, float(base) ** (float(base) ** -digits))
    assert digits_of(cell, base) == pytest.approx(digits, abs=1e-7)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("log_alpha", [-20.0, -3.0, 0.0, 5.0])
def test_a_gaussian_is_a_posterior_like_any_other(base, log_alpha):
    dist = stats.norm(1.0, math.exp(log_alpha / 2.0))
    assert significant_digits(log_alpha, base) == pytest.approx(digits_of(dist, base), abs=1e-13)


@pytest.mark.parametrize("relative_to", [1.0, math.inf])
@given(log_alpha=st.floats(-300.0, 300.0))
def test_bits_and_decimals_and_nats_share_one_kl(log_alpha, relative_to):
    kl = float(lk.kl(log_alpha, zero_at=relative_to))
    for base in BASES:
        digits = float(significant_digits(log_alpha, base, relative_to=relative_to))
        assert digits * math.log(base) == pytest.approx(kl, rel=1e-14, abs=1e-14)


def test_the_limits():
    assert significant_digits(-math.inf) == math.inf
    assert significant_digits(math.inf, relative_to=math.inf) == 0.0
    assert significant_digits(math.inf) == pytest.approx(-3.49, abs=5e-3)
    assert significant_digits(math.inf, 10) == pytest.approx(-0.53, abs=5e-3)
    assert np.isnan(significant_digits(math.nan))
    small = math.log(1e-12)
    law = math.log10(math.log(10.0)) - 0.5 * math.log10(2.0 * math.pi * math.e * 1e-12)
    assert significant_digits(small, 10) == pytest.approx(law, abs=1e-11)
    gain = significant_digits(math.log(1e-13), 10) - significant_digits(small, 10)
    assert gain == pytest.approx(0.5, abs=1e-11)


@pytest.mark.parametrize(
    ("bits", "log_alpha", "dtype"), [(24, -36.8, np.float32), (53, -77.0, np.float64)]
)
def test_where_the_significands_are_full(bits, log_alpha, dtype):
    assert np.finfo(dtype).nmant + 1 == bits
    found = brentq(lambda x: float(significant_digits(x)) - bits, -200.0, 0.0)
    # The law for small alpha, log2(log 2) - log2(2 pi e alpha) / 2, solved for alpha.
    law = 2.0 * (math.log(math.log(2.0)) - bits * math.log(2.0)) - math.log(2.0 * math.pi * math.e)
    assert found == pytest.approx(law, rel=1e-11)
    assert round(found, 1) == log_alpha


def test_arrays_keep_their_kind():
    assert significant_digits(np.float32([-1.0, 0.0, np.inf])).dtype == np.float32
    strict = array_api_strict.asarray([-1.0, 0.0])
    digits = significant_digits(strict, 10)
    assert type(digits) is type(strict)
    np.testing.assert_allclose(np.asarray(digits), significant_digits(np.array([-1.0, 0.0]), 10))


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"base": 1}, ValueError, "base must be finite and above 1, but 1.0 was given: pass 2"),
        ({"base": math.inf}, ValueError, "base must be finite and above 1"),
        ({"base": math.nan}, ValueError, "base must be finite and above 1"),
        ({"base": "2"}, TypeError, "base must be one real number, but str '2' was given"),
        ({"relative_to": 0.0}, ValueError, "relative_to must be a positive alpha = sigma"),
        ({"relative_to": "1"}, TypeError, "relative_to must be one real number, but str '1'"),
    ],
)
def test_refusals(options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        significant_digits(0.0, **options)
