"""The functions in code that numba compiles, against those of NumPy."""

import sys
from functools import cache

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl import special
from tests.adapters.test_adapters import POINTS
from tests.child import output

numba = pytest.importorskip("numba")
ENDS = np.array([-np.inf, np.inf, np.nan, 0.0, 1e4, -1e4])
ONE = [lk.neg_kl, lk.kl, lk.neg_kl_grad, lk.neg_kl_hess]
ONE += [special.kl_gap, special.kl_gap_grad, special.kl_gap_hess]
TWO = [lk.neg_kl_normal, lk.kl_normal, special.neg_kl_normal_and_grad]


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Without an installation there is no entry point."""
    numba.njit(lambda x: x)(0.0)
    if "logunif_kl._numba" not in sys.modules:
        from logunif_kl import _numba

        _numba.init()


@cache
def compiled(function):
    return numba.njit((lambda x: function(x)) if function in ONE else lambda x, y: function(x, y))


def every(results):
    return results if isinstance(results, tuple) else (results,)


def check(function, *given):
    """Compare with NumPy, bit by bit. Results have the dtype that NumPy's have."""
    for got, truth in zip(every(compiled(function)(*given)), every(function(*given)), strict=True):
        np.testing.assert_array_equal(got, truth)
        assert np.shape(got) == np.shape(truth)
        assert not np.shape(got) or got.dtype == truth.dtype


@pytest.mark.parametrize("function", [*ONE, *TWO], ids=lambda f: f.__name__)
def test_values(function, record_property):
    nin = 1 if function in ONE else 2
    points = [np.concatenate([x, ENDS]) for x in POINTS[nin]]
    if function in ONE[4:]:
        points = [abs(points[0])]
    for dtype in ("float64", "float32"):
        check(function, *(x.astype(dtype) for x in points))
        record_property("capability", f"{function.__name__}:numba:{dtype}")
    check(function, *(float(x[0]) for x in points))
    for what in ("value", "compiled"):
        record_property("capability", f"{function.__name__}:numba:{what}")


def test_shapes():
    x = np.linspace(-3.0, 3.0, 12).reshape(3, 4)
    read_only = x.copy()
    read_only.flags.writeable = False
    for given in (x.T, x[::2, 1:], read_only, np.array(0.5), x[:, :0].T, np.arange(3), 2):
        check(lk.neg_kl, given)
    column = x[:, :1].astype("float32")
    for given in ((x.T, x[0, :3]), (x[0], column), (column.T, 2), (0.5, x), (x[:0], 1.0)):
        check(lk.kl_normal, *given)
    assert compiled(lk.neg_kl)(np.float32(-1.5)) == lk.neg_kl(np.float32(-1.5))
    with pytest.raises(ValueError, match="broadcast"):
        compiled(lk.kl_normal)(x.T, x[0])


def test_options(record_property):
    @numba.njit(fastmath=True)
    def of(x, zero_at, log_c):
        total = lk.kl(x, zero_at=zero_at, reduction="sum")
        return lk.neg_kl(x, log_c=log_c), lk.kl(x, log_c=log_c, reduction="mean"), total

    x = np.zeros(10**6, "float32")
    value, mean, total = of(x, 2.0, -1.0)
    np.testing.assert_array_equal(value, lk.neg_kl(x, log_c=-1.0))
    assert mean == lk.kl(x, log_c=-1.0, reduction="mean")
    assert total == lk.kl(x, zero_at=2.0, reduction="sum")
    assert of(-np.inf, 1e-310, 0.0)[1:] == (np.inf, np.inf)
    number = of(0.5, 5e-324, 1.0)
    assert number == (lk.neg_kl(0.5, log_c=1.0), lk.kl(0.5, log_c=1.0), lk.kl(0.5, zero_at=5e-324))
    assert np.isnan(of(x[:0], np.inf, 0.0)[1])
    for zero_at, log_c, words in ((0.0, 0.0, "zero_at must be a positive"), (1.0, np.inf, "log_c")):
        with pytest.raises(ValueError, match=words):
            of(0.5, zero_at, log_c)
    record_property("capability", "kl:numba:sums of many elements")


def test_numbers_in_ufuncs_and_loops():
    @numba.vectorize
    def of_number(mu, log_sigma2):
        return lk.kl_normal(mu, log_sigma2, zero_at=1.0)

    @numba.njit(parallel=True)
    def of_each(x):
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            out[i] = special.neg_kl_normal_and_grad(x[i], -1.0)[1]
        return out

    x = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(of_number(x, 0.5), lk.kl_normal(x, 0.5, zero_at=1.0), rtol=4e-16)
    np.testing.assert_array_equal(of_each(x), special.neg_kl_normal_and_grad(x, -1.0)[1])


def test_refused():
    for bad in (True, 1j, np.ones(2, "bool"), np.ones(2, "float16"), [1.0], None, "1"):
        with pytest.raises(TypeError, match=r"^log_alpha must hold real numbers"):
            compiled(lk.neg_kl)(bad)
        with pytest.raises(TypeError, match=r"^u must hold real numbers"):
            compiled(special.kl_gap)(bad)
    with pytest.raises(ValueError, match=r"^reduction must be"):
        numba.njit(lambda x: lk.kl(x, reduction="max"))(1.0)
    with pytest.raises(ValueError, match=r"^log_c must be finite and given without zero_at"):
        numba.njit(lambda x: lk.kl(x, zero_at=1.0, log_c=1.0))(1.0)


CACHED = """
import numba, numpy as np, logunif_kl as lk
@numba.njit(cache=True)
def f(x, y): return lk.kl_normal(x, y, zero_at=2.0, reduction="sum") + lk.neg_kl(0.5)
x = np.linspace(-3.0, 3.0, 7)
def truth(x, y): return lk.kl_normal(x, y, zero_at=2.0, reduction="sum") + lk.neg_kl(0.5)
np.testing.assert_allclose(f(x, x[:, None]), truth(x, x[:, None]), rtol=1e-15)
print(sum(f.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_code_is_kept_for_other_processes_and_kernels(tmp_path):
    (tmp_path / "kept.py").write_text(CACHED)
    for kernel, hits in (("", 0), ("", 1), ("python", 1), ("baseline", 1)):
        assert output("import kept", cwd=tmp_path, kernel=kernel).split() == [str(hits)]
