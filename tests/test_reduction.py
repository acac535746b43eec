"""``reduction=`` of the functions for arrays of every library."""

import math

import numpy as np
import pytest

import logunif_kl as lk

ONE = [lk.neg_kl, lk.kl]
TWO = [lk.neg_kl_normal, lk.kl_normal]
REDUCTIONS = {"sum": math.fsum, "mean": lambda x: math.fsum(x) / len(x)}
every_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)


def calls(x, **options):
    """Call each function of an array of log alpha, or of means with one log sigma^2."""
    yield from (function(x, **options) for function in ONE)
    yield from (function(x, -1.0, **options) for function in TWO)


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=3000) * 3.0


@every_reduction
def test_is_rounded_once(reduction, x):
    for dtype in ("float32", "float64"):
        given = x.astype(dtype).reshape(30, 100)
        options = {"zero_at": 0.5}
        for got, elements in zip(
            calls(given, reduction=reduction, **options), calls(given, **options), strict=True
        ):
            wanted = REDUCTIONS[reduction](elements.ravel().astype("float64"))
            assert type(got) is np.dtype(dtype).type
            spacing = np.spacing(np.abs(np.array(wanted, dtype)))
            assert abs(float(got) - wanted) <= (0.51 if dtype == "float32" else 4.0) * spacing


@every_reduction
def test_half_type_is_rounded_after_it(reduction, x):
    given = x[:200].astype("float16")
    for got, elements in zip(
        calls(given, reduction=reduction), calls(given.astype("float32")), strict=True
    ):
        wanted = REDUCTIONS[reduction](elements.astype("float64"))
        assert type(got) is np.float16
        assert got == np.float16(wanted)


def test_sum_of_halves_beyond_their_range():
    with np.errstate(all="raise"):
        assert lk.kl(np.full(10_000, -60.0, "float16"), reduction="sum") == np.inf
        assert lk.kl(np.full(10_000, -60.0, "float16"), reduction="mean") == np.float16(30.640615)


def test_the_constant_counts_for_each_element():
    assert lk.neg_kl([0.0, 0.0, 0.0], zero_at=1.0, reduction="sum") == 0.0
    both = lk.neg_kl([0.0, 1.0], log_c=2.0)
    assert lk.neg_kl([0.0, 1.0], log_c=2.0, reduction="sum") == both.sum()


def test_numbers_and_empty_arrays():
    assert lk.kl(0.0, reduction="sum") == lk.kl(0.0, reduction="mean") == lk.kl(0.0)
    assert type(lk.kl(0.0, reduction="sum")) is np.float64
    with np.errstate(all="raise"):
        assert lk.kl(np.zeros(0), reduction="sum") == 0.0
        assert math.isnan(lk.kl(np.zeros(0), reduction="mean"))


@every_reduction
def test_nan_counts(reduction):
    assert all(map(math.isnan, calls(np.array([0.0, math.nan]), reduction=reduction)))


@every_reduction
def test_masked_elements_do_not(reduction):
    masked = np.ma.array([0.0, 1.0, 2.0], mask=[False, True, False])
    for got, wanted in zip(
        calls(masked, reduction=reduction), calls([0.0, 2.0], reduction=reduction), strict=True
    ):
        assert got == wanted
    assert np.ma.is_masked(lk.kl(np.ma.masked_all(3), reduction=reduction))


@every_reduction
def test_array_api(xp, reduction, x):
    for dtype in ("float32", "float64"):
        given = xp.array(x, dtype)
        for got, elements in zip(calls(given, reduction=reduction), calls(given), strict=True):
            assert xp.numpy(got).dtype == dtype
            assert xp.numpy(got).shape == ()
            wanted = REDUCTIONS[reduction](xp.numpy(elements).astype("float64"))
            np.testing.assert_allclose(xp.numpy(got), wanted, rtol=4 * np.finfo(dtype).eps)


@every_reduction
def test_dask(reduction, x):
    array = pytest.importorskip("dask.array")
    for got, wanted in zip(
        calls(array.from_array(x, chunks=700), reduction=reduction),
        calls(x, reduction=reduction),
        strict=True,
    ):
        assert type(got) is array.Array
        np.testing.assert_allclose(got.compute(), wanted, rtol=1e-14)


@every_reduction
def test_pandas(reduction, x):
    pandas = pytest.importorskip("pandas")
    for frame in (pandas.Series(x), pandas.DataFrame(x.reshape(30, 100))):
        for got, wanted in zip(
            calls(frame, reduction=reduction), calls(x, reduction=reduction), strict=True
        ):
            np.testing.assert_allclose(got, wanted, rtol=1e-14)
    assert math.isnan(lk.kl(pandas.Series([0.0, math.nan]), reduction=reduction))


@every_reduction
def test_xarray(reduction, x):
    xarray = pytest.importorskip("xarray")
    for got, wanted in zip(
        calls(xarray.DataArray(x, dims="weight"), reduction=reduction),
        calls(x, reduction=reduction),
        strict=True,
    ):
        assert type(got) is xarray.DataArray
        np.testing.assert_allclose(got, wanted, rtol=1e-14)
    assert math.isnan(lk.kl(xarray.DataArray([0.0, math.nan]), reduction=reduction))
    message = r"^a reduction takes one array, but xarray.Dataset was given: call the function for "
    with pytest.raises(TypeError, match=message):
        lk.kl(xarray.Dataset({"layer": ("weight", x)}), reduction=reduction)


@pytest.mark.parametrize("reduction", ["total", None, 0])
def test_others_are_refused(reduction):
    for function in ONE:
        with pytest.raises(ValueError, match=r"^reduction must be 'none', 'sum' or 'mean', but "):
            function(0.0, reduction=reduction)
    for function in TWO:
        with pytest.raises(ValueError, match=r"^reduction must be 'none', 'sum' or 'mean', but "):
            function(0.0, 0.0, reduction=reduction)
