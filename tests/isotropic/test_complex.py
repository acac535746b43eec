"""-KL of complex weights: values, limits, types, conventions, refusals."""

import math

import array_api_strict as xps
import dask.array as da
import mpmath
import numpy as np
import pytest
import xarray as xr
from scipy.special import expi

import logunif_kl as lk
from logunif_kl import reference
from logunif_kl._arithmetic.isotropic import complex_weights
from logunif_kl._arithmetic.isotropic.exponential import exp_in_two_words
from tests import ulp
from tests.isotropic import exact

X = np.concatenate([np.linspace(-9.0, 6.0, 61), [-700.0, -88.0, 40.0, 700.0, 744.0]])
NAMES = ("neg_kl_complex", "neg_kl_complex_grad", "neg_kl_complex_hess")
BOUNDS = {"float64": 2.5, "float32": 1.0, "float16": 1.0}


def worst_error(found, name, x, dtype):
    """In ulp."""
    truth = getattr(reference, name)
    assert found.dtype == dtype
    pairs = zip(found, x, strict=True)
    return max(abs(ulp.error(float(f), truth(float(v), dps=30), dtype)) for f, v in pairs)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", NAMES)
def test_values(name, dtype):
    with np.errstate(over="ignore"):
        x = X.astype(dtype)
    x = x[np.isfinite(x)]
    if dtype != "float64":
        x = x[np.abs(x) < 90]
    assert worst_error(getattr(lk, name)(x), name, x, dtype) <= BOUNDS[dtype]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("order", range(3))
def test_the_arithmetic_of_each_type(order, dtype):
    """JAX uses the arithmetic of float32."""
    x = np.random.default_rng(5).uniform(-4.4, 4.0, 60).astype(dtype)
    found = complex_weights.derivative(np, x, order)
    assert worst_error(found, NAMES[order], x, dtype) <= {"float64": 2.5, "float32": 4.0}[dtype]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exponential_in_two_words(dtype):
    y = np.linspace(-6.5, 6.5, 53).astype(dtype)
    words = exp_in_two_words(np, y, dtype)
    with mpmath.workprec(200):
        hi, lo, y = ([mpmath.mpf(float(v)) for v in each] for each in (*words, y))
        errors = [abs((a + b) / mpmath.exp(v) - 1) for a, b, v in zip(hi, lo, y, strict=True)]
    assert max(errors) < (2.0**-64 if dtype == "float64" else 2.0**-32)


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_whose_products_leave_the_range(dtype, count):
    at = exact.scattered(dtype, count, seed=count)
    with np.errstate(all="ignore"):
        value, *found = complex_weights.normal(np, *at)
        modulus = complex_weights.normal(np, np.hypot(at[0], at[1]), 0 * at[1], at[2])[0]
    assert exact.worst_gradient(found, at, dtype) <= 2.0
    finite = np.isfinite(modulus)
    np.testing.assert_allclose(value[finite], modulus[finite], rtol=1e-6, atol=1e-300)


def test_limits():
    x = np.array([-np.inf, np.inf, np.nan])
    for name, expected in zip(NAMES, ([-np.inf, 0.0], [1.0, 0.0], [0.0, 0.0]), strict=True):
        assert np.array_equal(getattr(lk, name)(x), [*expected, np.nan], equal_nan=True)
    assert lk.neg_kl_complex_hess(-1e300) == lk.neg_kl_complex_hess(1e300) == 0.0
    assert lk.neg_kl_complex(-1e300) == -1e300


MEANS = [
    (3e-170 + 4e-170j, 0.0),
    (3e160 + 4e160j, 0.0),
    (1e200j, 1000.0),
    (1e-200 + 1e-201j, -1000.0),
    (1.0 + 2.0j, -1e4),
    (1e-5 + 3.0j, 5.0),
    (0.6 + 0.8j, 0.3),
    (1.7e308 + 1.7e308j, 1430.0),  # abs() overflows
]


@pytest.mark.parametrize(("mu", "log_sigma2"), MEANS)
def test_normal_neither_overflows_nor_underflows(mu, log_sigma2):
    with mpmath.workprec(300):
        square = mpmath.mpf(mu.real) ** 2 + mpmath.mpf(mu.imag) ** 2
        truth = reference.neg_kl_complex(mpmath.mpf(log_sigma2) - mpmath.log(square), dps=40)
    for mean in (mu, np.array(mu)):
        found = float(lk.neg_kl_complex_normal(mean, log_sigma2))
        assert abs(ulp.error(found, truth, "float64")) <= 2.5


def test_normal_limits():
    inf, nan = np.inf, np.nan
    mu = [0, 0, inf, inf, 1, 0, nan, 1, 1j]
    log_sigma2 = np.array([0, -inf, inf, 0, -inf, inf, 0, nan, nan])
    expected = np.array([0, nan, nan, -inf, -inf, 0, nan, nan, nan])
    for means in (np.array(mu, complex), np.array(mu[:-1], float)):
        found = lk.neg_kl_complex_normal(means, log_sigma2[: means.size])
        assert np.array_equal(found, expected[: means.size], equal_nan=True)
    assert np.isnan(lk.neg_kl_complex_normal(complex(inf, nan), 0.0))
    assert np.isnan(lk.neg_kl_complex_normal(complex(inf, 0), inf))


def test_types_of_complex_means():
    one = np.complex64(1 + 1j)
    assert lk.neg_kl_complex_normal(one, 0).dtype == np.float32
    assert lk.neg_kl_complex_normal(one, np.float64(0)).dtype == np.float64
    assert lk.neg_kl_complex_normal(1j, np.float32(0)).dtype == np.float32
    assert lk.neg_kl_complex_normal(1j, 0.0).dtype == np.float64
    assert lk.neg_kl_complex_normal(np.ones((3, 1), "c8"), np.zeros(2, "f4")).shape == (3, 2)
    assert lk.neg_kl_complex_normal([1j, 2.0], [0.0, 1.0], reduction="mean").ndim == 0
    assert lk.neg_kl_complex_normal(np.ones((0, 3), complex), 0.0).shape == (0, 3)


def test_convention():
    at_zero = pytest.approx(0.0, abs=1e-16)
    assert lk.neg_kl_complex(0.7, zero_at=math.exp(0.7)) == at_zero
    assert lk.neg_kl_complex_normal(1j, 0.7, zero_at=math.exp(0.7)) == at_zero
    # KL of CN(mu, 1) to C/|w|^2 is -log(pi e) - log C + 2 E log|w|; at mu = 0 that is -gamma.
    constant = 1.0 + math.log(math.pi) + float(mpmath.euler) + 0.25
    found = lk.neg_kl_complex_normal(0.0, 0.3, log_c=0.25)
    assert found == pytest.approx(constant, abs=1e-15)
    truth = float(reference.neg_kl_complex(0.5, log_c=0))
    assert lk.neg_kl_complex(0.5, log_c=0.0) == pytest.approx(truth, abs=1e-15)
    total = lk.neg_kl_complex(0.5) + lk.neg_kl_complex(1.0)
    assert lk.neg_kl_complex([0.5, 1.0], reduction="sum") == pytest.approx(total)
    for options, sentence in (
        ({"zero_at": 1.0, "log_c": 0.0}, "were both given"),
        ({"zero_at": -1.0}, "zero_at must be a positive alpha"),
        ({"reduction": "all"}, "reduction must be"),
    ):
        for call in (lk.neg_kl_complex, lambda x, **o: lk.neg_kl_complex_normal(1j, x, **o)):
            with pytest.raises(ValueError, match=sentence):
                call(0.0, **options)


def test_kl_is_the_negative():
    for options in ({}, {"zero_at": 2.0}, {"log_c": 0.3, "reduction": "sum"}):
        assert lk.kl_complex(0.5, **options) == -lk.neg_kl_complex(0.5, **options)
        assert lk.kl_vector(0.5, 3, **options) == -lk.neg_kl_vector(0.5, 3, **options)
        found = lk.kl_complex_normal(1j, 0.5, **options)
        assert found == -lk.neg_kl_complex_normal(1j, 0.5, **options)


def test_libraries():
    x = np.linspace(-3, 3, 7)
    expected = lk.neg_kl_complex(x)
    lazy = lk.neg_kl_complex(da.from_array(x, chunks=3))
    assert isinstance(lazy, da.Array)
    assert np.array_equal(lazy.compute(), expected)
    assert np.array_equal(lk.neg_kl_complex(xr.DataArray(x)).values, expected)
    for dtype, rtol in ((xps.float64, 1e-15), (xps.float32, 2e-7)):
        found = lk.neg_kl_complex(xps.asarray(x, dtype=dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol)
    strict = lk.neg_kl_complex_normal(xps.asarray(x), xps.asarray(x))
    np.testing.assert_allclose(np.asarray(strict), lk.neg_kl_complex_normal(x, x), rtol=1e-15)


def test_refusals():
    with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
        lk.neg_kl_complex(1j)
    for log_sigma2 in (1j, [True]):
        with pytest.raises(TypeError, match="log_sigma2 must hold real numbers"):
            lk.neg_kl_complex_normal(1j, log_sigma2)
    words = (
        r"mu is complex and of type dask\.array\.Array, .* real means: pass the modulus, abs\(mu\)"
    )
    with pytest.raises(TypeError, match=words):
        lk.neg_kl_complex_normal(da.ones(3, dtype=complex), 0.0)
    with pytest.raises(TypeError, match="were given together"):
        lk.neg_kl_complex_normal(np.array([1j]), da.ones(1))
    with pytest.raises(TypeError, match="mu must hold real numbers"):
        lk.neg_kl_complex_normal(np.array([1j], np.clongdouble), 0.0)


def test_the_formula_of_cplxmodule():
    """The penalty of `CplxLinearVD` in cplxmodule 2022.6 lacks the constant gamma."""
    x = np.linspace(-6.0, 12.0, 37)
    penalty = -x - expi(-np.exp(-x))
    np.testing.assert_allclose(penalty + np.euler_gamma, lk.kl_complex(x), atol=1e-14)


def test_the_reference_where_the_exponential_is_beyond_all_digits():
    assert reference.neg_kl_complex_grad("-1e300") == 1
    for x in ("-1e300", -3000):
        with pytest.raises(OverflowError, match=rf"^log_alpha must be at least -2839 .* got .*{x}"):
            reference.neg_kl_complex_hess(x)
