"""-KL of groups of weights."""

import pickle

import array_api_strict as xps
import dask.array as da
import mpmath
import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl import _isotropic, reference
from tests import ulp

X = (-9.0, -5.3, -4.6, -4.4, -2.0, 0.0, 3.0, 40.0, 700.0)


@pytest.mark.parametrize("k", [0.5, 1, 2, 3.5, 16, 300, 10000])
def test_values(k):
    for function, truth in (
        (lk.neg_kl_vector, reference.neg_kl_vector),
        (lk.neg_kl_vector_grad, reference.neg_kl_vector_grad),
    ):
        for x, got in zip(X, function(np.array(X), k).tolist(), strict=True):
            assert abs(ulp.error(got, truth(x, k, dps=25), "float64")) < 12.0


def test_one_and_two_dimensions():
    x = np.linspace(-8.0, 8.0, 33)
    np.testing.assert_allclose(lk.neg_kl_vector(x, 1), lk.neg_kl(x), rtol=2e-15)
    np.testing.assert_allclose(lk.neg_kl_vector_grad(x, 1), lk.neg_kl_grad(x), rtol=2e-15)
    of_two = lk.neg_kl_vector(x - np.log(2.0), 2)
    np.testing.assert_allclose(of_two, lk.neg_kl_complex(x), rtol=3e-15)
    for options in ({"zero_at": 0.7}, {"log_c": 0.3}):
        of_one = lk.neg_kl_vector(x, 1, **options)
        np.testing.assert_allclose(of_one, lk.neg_kl(x, **options), atol=1e-14)
    of_two = lk.neg_kl_vector(x - np.log(2.0), 2, log_c=0.3)
    np.testing.assert_allclose(of_two, lk.neg_kl_complex(x, log_c=0.3), atol=1e-14)


def test_the_definition_by_monte_carlo():
    rng = np.random.default_rng(4)
    k, sigma, count = 3, 0.7, 200_000
    mu = np.array([0.5, -0.4, 0.3])
    log_p = -k * np.log(np.linalg.norm(mu + sigma * rng.normal(size=(count, k)), axis=1))
    kl = -k / 2 * np.log(2 * np.pi * np.e * sigma**2) - log_p
    found = lk.neg_kl_vector(np.log(sigma**2 / (mu @ mu)), k, log_c=0.0)
    assert abs(kl.mean() + found) < 5.0 * kl.std() / np.sqrt(count)


def test_limits_and_types():
    found = lk.neg_kl_vector(np.array([-np.inf, np.inf, np.nan]), 3)
    assert np.array_equal(found, [-np.inf, 0.0, np.nan], equal_nan=True)
    found = lk.neg_kl_vector_grad(np.array([-np.inf, np.inf, np.nan]), 3)
    assert np.array_equal(found, [1.5, 0.0, np.nan], equal_nan=True)
    x = np.linspace(-3, 3, 5)
    assert lk.neg_kl_vector(x.astype("f4"), 3).dtype == np.float32
    assert lk.neg_kl_vector(list(x), 3, reduction="sum").ndim == 0
    lazy = lk.neg_kl_vector(da.from_array(x, chunks=2), 3)
    assert lazy.name != lk.neg_kl_vector(da.from_array(x, chunks=2), 4).name
    assert np.array_equal(lazy.compute(), lk.neg_kl_vector(x, 3))
    strict = lk.neg_kl_vector(xps.asarray(x), 3)
    np.testing.assert_allclose(np.asarray(strict), lk.neg_kl_vector(x, 3), rtol=1e-15)


def test_pickling():
    function = _isotropic.ufunc(3.5, 1)
    assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _isotropic.nonsense  # noqa: B018


def test_refusals():
    words = (
        "k must be a number of dimensions from 0.5 to 10000, but 0 was given: pass the number of"
    )
    with pytest.raises(ValueError, match=words):
        lk.neg_kl_vector(0.0, 0)
    with pytest.raises(TypeError, match="k must be one real number"):
        lk.neg_kl_vector_grad(0.0, [1, 2])


class TestReference:
    def test_more_digits(self):
        for function in (
            reference.neg_kl_complex,
            reference.neg_kl_complex_grad,
            reference.neg_kl_complex_hess,
            lambda x, dps: reference.neg_kl_vector(x, "3.5", dps=dps),
            lambda x, dps: reference.neg_kl_vector_grad(x, "3.5", dps=dps),
        ):
            for x in (-7, 0, 100):
                few, many = function(x, dps=20), function(x, dps=60)
                with mpmath.workdps(70):
                    assert abs(few / many - 1) < mpmath.mpf(10) ** -19

    def test_limits(self):
        assert reference.neg_kl_complex(float("-inf")) == -mpmath.inf
        assert reference.neg_kl_complex(float("inf")) == 0
        assert reference.neg_kl_complex_grad(float("-inf")) == 1
        assert reference.neg_kl_vector_grad(float("-inf"), 3) == 1.5
        assert mpmath.isnan(reference.neg_kl_vector(float("nan"), 3))
        with pytest.raises(ValueError, match="k must be a positive number of dimensions"):
            reference.neg_kl_vector(0, 0)
        with pytest.raises(ValueError, match="zero_at must be an alpha above 0"):
            reference.neg_kl_complex(0, zero_at=-1)
        with pytest.raises(ValueError, match="both fix the constant"):
            reference.neg_kl_complex(0, zero_at=1, log_c=0)
