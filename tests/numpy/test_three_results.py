"""special.neg_kl_normal_and_grad of dask, xarray and pandas, as its docstring says."""

import re
import textwrap

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._numpy.ufuncs import python_ufunc
from logunif_kl.special import neg_kl_normal_and_grad

MU, LOG_SIGMA2 = np.linspace(-1.0, 1.0, 10), np.linspace(-20.0, 5.0, 10)
KERNELS = pytest.mark.parametrize(
    "ufunc",
    [neg_kl_normal_and_grad, python_ufunc("neg_kl_normal_and_grad")],
    ids=["this", "python"],
)


@KERNELS
def test_dask_by_the_call_that_the_docstring_gives(ufunc):
    da = pytest.importorskip("dask.array")
    import dask

    (call,) = re.findall(r"dask\.array\.apply_gufunc\(.*?\n    \)", ufunc.__doc__, re.DOTALL)
    mu, log_sigma2 = (da.from_array(x, chunks=4) for x in (MU, LOG_SIGMA2))
    names = {"dask": dask, "neg_kl_normal_and_grad": ufunc, "mu": mu, "log_sigma2": log_sigma2}
    lazy = eval(textwrap.dedent(call), names)
    for one, expected in zip(lazy, neg_kl_normal_and_grad(MU, LOG_SIGMA2), strict=True):
        assert isinstance(one, da.Array)
        assert one.numblocks == (3,)
        np.testing.assert_allclose(one.compute(), expected, rtol=1e-15)


def test_the_function_of_one_result_takes_them_as_they_are():
    da = pytest.importorskip("dask.array")
    lazy = lk.neg_kl_normal(da.from_array(MU, chunks=4), LOG_SIGMA2)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), lk.neg_kl_normal(MU, LOG_SIGMA2))


@KERNELS
def test_xarray(ufunc):
    xarray = pytest.importorskip("xarray")
    found = ufunc(xarray.DataArray(MU, dims="weight"), LOG_SIGMA2)
    for one, expected in zip(found, neg_kl_normal_and_grad(MU, LOG_SIGMA2), strict=True):
        assert one.dims == ("weight",)
        np.testing.assert_allclose(one.values, expected, rtol=1e-15)


@KERNELS
def test_pandas(ufunc):
    pandas = pytest.importorskip("pandas")
    found = ufunc(pandas.Series(MU, index=list("abcdefghij")), LOG_SIGMA2)
    for one, expected in zip(found, neg_kl_normal_and_grad(MU, LOG_SIGMA2), strict=True):
        assert list(one.index) == list("abcdefghij")
        np.testing.assert_allclose(one.to_numpy(), expected, rtol=1e-15)
