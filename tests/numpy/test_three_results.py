"""special.neg_kl_normal_and_grad takes arrays of dask, xarray, pandas and polars."""

import re
import textwrap

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._numpy import ufuncs
from logunif_kl.special import neg_kl_normal_and_grad
from tests.test_units import Astropy
from tests.ufunc_battery import same

MU, LOG_SIGMA2 = np.linspace(-1.0, 1.0, 10), np.linspace(-20.0, 5.0, 10)


@pytest.fixture(params=["this", "python"], autouse=True)
def kernel(request, monkeypatch):
    if request.param == "python":
        name = "neg_kl_normal_and_grad"
        monkeypatch.setattr(ufuncs, name, ufuncs.python_ufunc(name))


def masked(x):
    return np.ma.masked_less(x, 0.0)


@pytest.mark.parametrize(
    ("of_mu", "of_log_sigma2"),
    [
        (lambda x: x, lambda x: x.rechunk(3) if hasattr(x, "chunks") else x),
        (lambda x: x.astype("float32"), lambda x: x.astype("float32")),
        (lambda x: x.astype("float16"), lambda x: -1.0),
        (lambda x: x.astype("float32"), lambda x: np.float64(-1.0)),
        (lambda x: x.astype("int64"), lambda x: np.arange(10.0)),
        (lambda x: 2, lambda x: x),
        (lambda x: x, lambda x: list(range(10))),
        (lambda x: x[:, None], lambda x: x),
        (lambda x: x[:0], lambda x: 1.0),
        (lambda x: x[x > 0.0], lambda x: x[x > 0.0]),
        (lambda x: x.map_blocks(masked) if hasattr(x, "chunks") else masked(x), lambda x: 1.0),
        (lambda x: x, lambda x: masked(np.linspace(-1.0, 1.0, 10))),
    ],
)
def test_dask(of_mu, of_log_sigma2, da):
    """Dtypes, shapes, chunks and masks, also together with numbers and arrays of NumPy."""
    x = da.from_array(MU, chunks=4)
    lazy = neg_kl_normal_and_grad(of_mu(x), of_log_sigma2(x))
    exact = neg_kl_normal_and_grad(of_mu(MU), of_log_sigma2(MU))
    for one, expected in zip(lazy, exact, strict=True):
        assert isinstance(one, da.Array)
        got = one.compute()
        assert one.dtype == got.dtype == expected.dtype
        assert type(got) is type(expected)
        if isinstance(got, np.ma.MaskedArray):
            np.testing.assert_array_equal(got.mask, expected.mask)
        assert same(np.ma.filled(got, 0.0), np.ma.filled(expected, 0.0))


def test_dask_computes_each_block_once(monkeypatch, da):
    import dask

    sizes = []

    def counted(mu, log_sigma2):
        sizes.append(mu.size)
        return ufunc(mu, log_sigma2)

    ufunc = ufuncs.neg_kl_normal_and_grad
    monkeypatch.setattr(ufuncs, "neg_kl_normal_and_grad", counted)
    dask.compute(neg_kl_normal_and_grad(da.from_array(MU, chunks=4), 0.0), scheduler="sync")
    assert sorted(size for size in sizes if size > 1) == [2, 4, 4]  # smaller ones find the dtypes


def test_xarray_over_dask_by_the_call_that_the_docstring_gives(xr, da):
    (call,) = re.findall(r"xarray\.\w+\(.*?\n    \)", neg_kl_normal_and_grad.__doc__, re.DOTALL)
    mu = xr.DataArray(da.from_array(MU, chunks=4), dims="weight")
    names = {"xarray": xr, "mu": mu, "log_sigma2": LOG_SIGMA2}
    found = eval(textwrap.dedent(call), names | {"neg_kl_normal_and_grad": neg_kl_normal_and_grad})
    for one, expected in zip(found, neg_kl_normal_and_grad(MU, LOG_SIGMA2), strict=True):
        assert isinstance(one.data, da.Array)
        np.testing.assert_array_equal(one.to_numpy(), expected)


def sentence(given):
    library = given.partition(".")[0]
    return (
        rf"^mu is of type {given}, for which {library} cannot compute this function: convert it to "
        "an array of NumPy$"
    )


def test_what_is_refused(xr, da):
    lazy = da.from_array(MU, chunks=4)
    for given, name in ((lazy, "dask.array.Array"), (MU, "numpy.ndarray")):
        words = f"^mu must hold real numbers .* but {name} of dtype co"
        with pytest.raises(TypeError, match=words):
            neg_kl_normal_and_grad(given * 1j, 0.0)
    with pytest.raises(TypeError, match=r"^log_sigma2 must be a pure number, but a tests.Astr"):
        neg_kl_normal_and_grad(0.0, np.ones(2).view(Astropy))
    with pytest.raises(TypeError, match=r"^dask arrays were given with options of a ufunc, such"):
        neg_kl_normal_and_grad(lazy, 0.0, where=MU > 0.0)
    with pytest.raises(ValueError, match=r"^mu of shape \(3, 4\) and log_sigma2 of shape \(5,\)"):
        neg_kl_normal_and_grad(da.ones((3, 4)), da.ones(5))
    with pytest.raises(TypeError, match=sentence("xarray.DataArray of dtype float64")):
        neg_kl_normal_and_grad(xr.DataArray(lazy), 0.0)
    with pytest.raises(
        TypeError, match=r"^mu of type dask.array.Array and log_sigma2 of type xarray"
    ):
        neg_kl_normal_and_grad(lazy, xr.DataArray(lazy))


def test_polars_and_indices_of_pandas(pl, pd):
    with pytest.raises(TypeError, match=sentence("polars.Series of dtype Float64")):
        neg_kl_normal_and_grad(pl.Series(MU), 0.0)
    with pytest.raises(TypeError, match=sentence("pandas.Index of dtype float64")):
        neg_kl_normal_and_grad(pd.Index(MU), 0.0)
    pytest.importorskip("pyarrow")
    frames = pytest.importorskip("dask.dataframe")
    column = frames.from_pandas(pd.DataFrame({"mu": MU}), npartitions=2).mu
    with pytest.raises(TypeError, match=sentence("dask.dataframe.Series of dtype float64")):
        neg_kl_normal_and_grad(column, 0.0)


def test_the_function_of_one_result_takes_them_as_they_are(da):
    lazy = lk.neg_kl_normal(da.from_array(MU, chunks=4), LOG_SIGMA2)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), lk.neg_kl_normal(MU, LOG_SIGMA2))


def test_labels_are_kept(xr, pd):
    letters = list("abcdefghij")
    for mu in (xr.DataArray(MU, {"weight": letters}, "weight"), pd.Series(MU, index=letters)):
        found = neg_kl_normal_and_grad(mu, LOG_SIGMA2)
        for one, expected in zip(found, neg_kl_normal_and_grad(MU, LOG_SIGMA2), strict=True):
            assert type(one) is type(mu)
            assert list(one.weight.values if hasattr(one, "dims") else one.index) == letters
            np.testing.assert_allclose(one.to_numpy(), expected, rtol=1e-15)
