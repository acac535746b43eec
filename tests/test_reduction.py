"""``reduction=`` for arrays of every library."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._numpy.reduction import reduced_over

ONE = [lk.neg_kl, lk.kl]
TWO = [lk.neg_kl_normal, lk.kl_normal]
REDUCTIONS = {"sum": math.fsum, "mean": lambda x: math.fsum(x) / len(x)}
every_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)


def calls(x, **options):
    """Call each function of an array of log alpha, or of means with one log sigma^2."""
    yield from (function(x, **options) for function in ONE)
    yield from (function(x, -1.0, **options) for function in TWO)


def pairs(x, y, reduction, **options):
    """Results for an array with the reduction, beside those for another without it."""
    return zip(calls(x, reduction=reduction, **options), calls(y, **options), strict=True)


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=3000) * 3.0


@every_reduction
def test_is_rounded_once(reduction, x):
    for dtype in ("float32", "float64"):
        given = x.astype(dtype).reshape(30, 100)
        for got, elements in pairs(given, given, reduction, zero_at=0.5):
            wanted = REDUCTIONS[reduction](elements.ravel().astype("float64"))
            assert type(got) is np.dtype(dtype).type
            spacing = np.spacing(np.abs(np.array(wanted, dtype)))
            assert abs(float(got) - wanted) <= (0.51 if dtype == "float32" else 4.0) * spacing


@every_reduction
def test_half_type_is_rounded_after_it(reduction, x):
    given = x[:200].astype("float16")
    for got, elements in pairs(given, given.astype("float32"), reduction):
        wanted = REDUCTIONS[reduction](elements.astype("float64"))
        assert type(got) is np.float16
        assert got == np.float16(wanted)


def test_sum_of_halves_beyond_their_range():
    with np.errstate(all="raise"):
        assert lk.kl(np.full(10_000, -60.0, "float16"), reduction="sum") == np.inf
        assert lk.kl(np.full(10_000, -60.0, "float16"), reduction="mean") == np.float16(30.640615)


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
    assert list(calls(masked, reduction=reduction)) == list(calls([0.0, 2.0], reduction=reduction))
    assert np.ma.is_masked(lk.kl(np.ma.masked_all(3), reduction=reduction))


class Masked(np.ndarray):
    """Like astropy's: a subclass of ndarray with a mask, which its sum leaves out."""

    def __array_finalize__(self, of):
        self.mask = getattr(of, "mask", np.array([False, True, False]))

    def sum(self, **options):
        return np.asarray(self)[~self.mask].sum(**options)


def test_masked_elements_of_other_libraries_do_not_count():
    masked = np.array([0.0, 1.0, 2.0]).view(Masked)
    assert lk.kl(masked, reduction="mean") == lk.kl([0.0, 2.0], reduction="mean")


@every_reduction
def test_array_api(xp, reduction, x):
    for dtype in ("float32", "float64"):
        given = xp.array(x, dtype)
        for got, elements in pairs(given, given, reduction):
            assert xp.numpy(got).dtype == dtype
            assert xp.numpy(got).shape == ()
            wanted = REDUCTIONS[reduction](xp.numpy(elements).astype("float64"))
            np.testing.assert_allclose(xp.numpy(got), wanted, rtol=4 * np.finfo(dtype).eps)


OF_ONE = (*ONE, lk.kl_complex)
OF_TWO = (*TWO, lk.kl_complex_normal)
# Those of two arguments get the array as the mean and as the logarithm of the variance.
ALL = (*OF_ONE, *(lambda x, f=f, **options: f(x, x, **options) for f in OF_TWO))


def compare(reduction, given, wanted, functions=ALL, **options):
    """Check the results of functions of one array, and their dtype."""
    for function in functions:
        got = function(given, reduction=reduction, **options)
        exact = function(wanted, reduction=reduction, **options)
        got = got.compute() if hasattr(got, "compute") else got
        assert got.dtype == exact.dtype
        np.testing.assert_allclose(got, exact, rtol=max(1e-14, 2 * np.finfo(exact.dtype).eps))


def between(x):
    return (x > -1.0) & (x < 2.0)


def outside(x):
    return np.ma.masked_outside(x, -1.0, 2.0)


def positive(x):
    return np.ma.masked_greater(x, 0.0)


DASK = {
    "array": lambda da, x: (da, x),
    "masked": lambda da, x: (da.map_blocks(outside), outside(x)),
    "unknown chunks": lambda da, x: (da[between(da)], x[between(x)]),
    "masked, of unknown chunks": (
        lambda da, x: (da[between(da)].map_blocks(positive), positive(x[between(x)]))
    ),
    "empty": lambda da, x: (da[:0], x[:0]),
    "all masked": lambda da, x: (da.map_blocks(np.ma.masked_less, 1e4), np.ma.masked_less(x, 1e4)),
}


@every_reduction
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64"])
@pytest.mark.parametrize("form", DASK)
def test_dask(form, dtype, reduction, x, da):
    x = np.sort(x.astype(dtype))  # so that whole blocks are masked, or empty
    given, wanted = DASK[form](da.from_array(x, chunks=700), x)
    for got in calls(given, reduction=reduction):
        assert type(got) is da.Array
        assert got.shape == ()
    if form == "all masked":
        assert np.ma.is_masked(lk.kl(given, reduction=reduction).compute())
    else:
        with np.errstate(all="raise"):
            compare(reduction, given, wanted, zero_at=0.5)


@every_reduction
def test_dask_beside_numpy(reduction, x, da):
    lazy, y = da.from_array(x, chunks=700), np.linspace(-3.0, 3.0, len(x))
    for function in TWO:
        wanted = function(outside(x), positive(y), reduction=reduction)
        other = da.from_array(positive(y), chunks=900)
        for given in ((lazy.map_blocks(outside), positive(y)), (outside(x), other)):
            got = function(*given, reduction=reduction).compute()
            np.testing.assert_allclose(got, wanted, rtol=1e-14)


@every_reduction
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "Float32", "Int64", "double"])
def test_dask_dataframe(dtype, reduction, x, pd):
    pytest.importorskip("pyarrow")
    dataframe = pytest.importorskip("dask.dataframe")
    dtype = "double[pyarrow]" if dtype == "double" else dtype
    frame = pd.DataFrame(x.round().reshape(1500, 2), columns=["a", "b"]).astype(dtype)
    lazy = dataframe.from_pandas(frame, npartitions=4)
    compare(reduction, lazy.b, frame.b)
    for given, wanted in ((lazy, frame), (lazy[lazy.b > 0], frame[frame.b > 0])):
        compare(reduction, given, wanted, ALL if dtype.startswith("float") else OF_ONE)
    if not dtype.startswith("float"):
        for table, kind in ((lazy, "dask.dataframe.DataFrame"), (frame, "pandas.DataFrame")):
            library = kind.partition(".")[0]
            words = f"^mu is of type {kind}, for which {library} cannot compute this function: "
            words += "convert it to float64, or to an array of NumPy$"
            with pytest.raises(TypeError, match=words):
                lk.kl_normal(table, table)
            compare(reduction, table.astype("float64"), frame.astype("float64"))
    if dtype == "float64":
        compare(reduction, lazy.b.values, frame.b)
        compare(reduction, lazy.set_index("b").index, np.sort(frame.b))


@every_reduction
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_pandas(dtype, reduction, x, pd):
    x = x.astype(dtype)
    compare(reduction, pd.Series(x), x, zero_at=0.5)
    compare(reduction, pd.DataFrame(x.reshape(30, 100)), x, zero_at=0.5)
    if dtype != "float16":
        compare(reduction, pd.Index(x), x, zero_at=0.5)
    assert math.isnan(lk.kl(pd.Series([0.0, math.nan]), reduction=reduction))


@every_reduction
@pytest.mark.parametrize("dtype", ["Float64", "Float32", "Int64", "Int16", "double[pyarrow]"])
def test_pandas_with_missing_values(dtype, reduction, pd):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    whole, missing = (pd.Series(values, dtype=dtype) for values in ([0, 1], [0, None]))
    compare(reduction, whole, whole.to_numpy(whole.dtype.numpy_dtype))
    for got in calls(missing, reduction=reduction):
        assert math.isnan(got)
    frame = pd.DataFrame({"a": missing, "b": [0.0, 1.0]})
    assert math.isnan(lk.kl(frame, reduction=reduction))
    wanted = lk.kl([0.0, 1.0, 0.0, 1.0], reduction=reduction)
    assert lk.kl(frame.assign(a=whole), reduction=reduction) == pytest.approx(wanted, rel=1e-7)


@every_reduction
@pytest.mark.parametrize("dtype", ["Float64", "Float32", "Int64", "Int16", "UInt32"])
def test_polars(dtype, reduction, pl):
    series = pl.Series("x", [0, 1, 2], dtype=getattr(pl, dtype))
    compare(reduction, series, series.to_numpy(), zero_at=0.5)
    twice = pl.concat([series, series], rechunk=False)
    compare(reduction, twice, twice.to_numpy())
    missing = pl.Series([0, None], dtype=getattr(pl, dtype))
    for got in calls(missing, reduction=reduction):
        assert math.isnan(got)
    frame = pl.DataFrame({"x": series})
    assert lk.kl(frame, reduction=reduction) == lk.kl(series.to_numpy(), reduction=reduction)


@every_reduction
def test_what_is_not_one_array(reduction, pl, pd):
    for given, name in ((pl.col("x"), "polars.Expr"), (pd.NA, "pandas.NAType")):
        message = f"^a reduction takes one array, but {name} was given: convert it to an array of "
        for function in ONE:
            with pytest.raises(TypeError, match=message):
                function(given, reduction=reduction)


@every_reduction
def test_xarray(reduction, x, xr):
    whole = calls(x, reduction=reduction)
    for got, wanted in zip(calls(xr.DataArray(x), reduction=reduction), whole, strict=True):
        assert type(got) is xr.DataArray
        np.testing.assert_allclose(got, wanted, rtol=1e-14)
    assert math.isnan(lk.kl(xr.DataArray([0.0, math.nan]), reduction=reduction))
    compare(reduction, xr.DataArray(x.astype("float32")), x.astype("float32"))
    lazy = lk.kl(xr.DataArray(x).chunk(700), reduction=reduction)
    assert lazy.chunks == ()
    assert lazy.compute() == pytest.approx(lk.kl(x, reduction=reduction), rel=1e-14)
    message = r"^a reduction takes one array, but xarray.Dataset was given: call the function for "
    with pytest.raises(TypeError, match=message):
        lk.kl(xr.Dataset({"layer": ("weight", x)}), reduction=reduction)


def test_mean_over_a_namespace_of_a_size_that_is_not_known():
    result, xp = SimpleNamespace(shape=(None, 3)), SimpleNamespace(mean=lambda result: "of it")
    assert reduced_over(xp, result, "mean") == "of it"


@pytest.mark.parametrize("reduction", ["total", None, 0])
def test_others_are_refused(reduction):
    for function in ALL:
        with pytest.raises(ValueError, match=r"^reduction must be 'none', 'sum' or 'mean', but "):
            function(0.0, reduction=reduction)
