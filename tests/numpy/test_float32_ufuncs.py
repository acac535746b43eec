"""The C ufuncs that compute in float32 throughout, by the kernel in use."""

import ctypes
import math
import warnings

import numpy as np
import pytest

from logunif_kl._numpy import ufuncs
from tests.ufunc_battery import all_same, same
from validation.accuracy import search, ulp
from validation.accuracy.functions import edges
from validation.accuracy.truth import truth

if ufuncs.kernel_name() == "python":
    pytest.skip("the C extension is not in use", allow_module_level=True)

from logunif_kl._numpy import _float32 as c

INF, NAN = math.inf, math.nan
NAMES = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
MOST_ULP = 4.0
SPECIAL = np.array(
    [0.0, 1e-45, 1e-40, 1.2e-38, 1e-20, 1.0, 1.5, 72.0, 88.7, 104.0, 216.0, 1e20, 3e38, INF, NAN],
    "float32",
)
COUNT = 100_000
ONE = np.float32(1.0)


@pytest.fixture(scope="module")
def points():
    """Points over the range of interest, over all bit patterns, near edges, and special values."""
    rng = np.random.default_rng(17)
    bits = rng.integers(0, 2**32, (2, COUNT), dtype=np.uint32).view(np.float32)
    both = np.concatenate([SPECIAL, -SPECIAL])
    parts = [
        search.sample("neg_kl_normal", rng, COUNT, "float32"),
        bits,
        search.beside_edges("neg_kl_normal", {d: edges(d) for d in ("u", "x")}, "float32"),
        [a.ravel() for a in np.meshgrid(both, both)],
    ]
    return np.concatenate([np.stack(part) for part in parts], axis=1)


@pytest.fixture(scope="module")
def results(points):
    """The value and its two derivatives."""
    with np.errstate(all="raise"):
        return np.stack([c.value(*points), *c.gradient(ONE, *points)])


class TestTheKernelInUse:
    @pytest.mark.parametrize("i", range(3), ids=NAMES)
    def test_accuracy(self, i, points, results):
        with np.errstate(invalid="ignore"):  # a NaN that signals is cast
            exact = truth(NAMES[i], *points)
        error = ulp.error(results[i], exact, "float32")
        worst = int(np.argmax(error))
        assert error[worst] <= MOST_ULP, (error[worst], *points[:, worst], results[i, worst])

    def test_limits_and_nan(self, points, results):
        with np.errstate(all="ignore"):
            expected = ufuncs.neg_kl_normal_and_grad(*points.astype("float64"))
        for got, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        # At mu = 0 all three results are exactly 0.
        zero = (points[0] == 0) & (points[1] > -INF)
        assert zero.sum() > 20
        assert not results[:, zero].any()


def _weights(n):
    rng = np.random.default_rng(n)
    mu = rng.normal(size=n).astype("float32")
    return mu, rng.normal(-4.0, 4.0, n).astype("float32")


@pytest.fixture(scope="module")
def known():
    """Arguments, and the results for them as dense arrays."""
    mu, log_sigma2 = _weights(1500)
    return (mu, log_sigma2, c.value(mu, log_sigma2), *c.gradient(ONE, mu, log_sigma2))


class TestArrays:
    def test_the_kernel_in_use(self):
        assert c.isa == ufuncs.kernel_name()

    @pytest.mark.parametrize("n", [0, 1, 3, 15, 16, 17, 63, 64, 65, 127, 130, 511, 512, 513, 1500])
    @pytest.mark.parametrize("start", [0, 1, 7])
    def test_every_length_and_start(self, n, start, known):
        """The result of an element does not depend on its position."""
        mu, log_sigma2, *expected = (a[start : start + n] for a in known)
        got = c.value(mu, log_sigma2), *c.gradient(ONE, mu, log_sigma2)
        assert all_same(got, expected)

    @pytest.mark.parametrize("step", [-1, 2, -3, 700])
    def test_strides(self, step, known):
        mu, log_sigma2, value, *slopes = (a[::step] for a in known)
        assert same(c.value(mu, log_sigma2), value)
        assert all_same(c.gradient(ONE, mu, log_sigma2), slopes)
        out = np.full((3, 2 * len(mu)), 7.0, "float32")
        c.value(mu, log_sigma2, out=out[0, ::2])
        c.gradient(ONE, mu, log_sigma2, out=(out[1, ::2], out[2, ::2]))
        for row, wanted in zip(out, (value, *slopes), strict=True):
            assert same(row[::2], wanted)
            assert (row[1::2] == 7.0).all()

    def test_in_place(self, known):
        mu, log_sigma2, value, *slopes = (a.copy() for a in known)
        c.gradient(ONE, mu, log_sigma2, out=(mu, log_sigma2))
        assert same(mu, slopes[0])
        assert same(log_sigma2, slopes[1])
        mu, log_sigma2 = (a.copy() for a in known[:2])
        c.value(mu, log_sigma2, out=mu)
        assert same(mu, value)

    @pytest.mark.parametrize("n", [1, 511, 513, 1500])
    @pytest.mark.parametrize("step", [1, -2])
    def test_numbers_and_arrays_in_turn(self, n, step, known):
        """Each argument is one number, a dense array, or one that is copied by blocks."""
        arrays = [known[0][:n][::step], known[1][:n][::step]]
        numbers = [np.broadcast_to(np.float32(x), arrays[0].shape) for x in (0.5, -3.0)]
        for mu, log_sigma2 in (numbers, (arrays[0], numbers[1]), (numbers[0], arrays[1])):
            copies = mu.copy(), log_sigma2.copy()
            wanted = [c.value(*copies), *c.gradient(ONE, *copies)]
            for spread in (1, 2):
                out = [np.zeros(spread * len(mu), "float32")[::spread] for _ in range(3)]
                c.value(mu, log_sigma2, out=out[0])
                c.gradient(ONE, mu, log_sigma2, out=(out[1], out[2]))
                assert all_same(out, wanted)
            scalars = [x[0] if x.strides == (0,) else x for x in (mu, log_sigma2)]
            for a, b in zip((c.value(*scalars), *c.gradient(ONE, *scalars)), wanted, strict=True):
                assert same(np.broadcast_to(a, b.shape), b)
            exact = math.fsum(wanted[0])
            assert abs(c.value_sum(mu, log_sigma2) - exact) <= n * 2.0**-53 * abs(exact)

    def test_a_factor(self, known):
        """One for all or one for each, dense or not: a product, rounded once."""
        mu, log_sigma2, _, *slopes = known
        each = np.linspace(-2.0, 3.0, len(mu), dtype="float32")
        for factor in (np.float32(-0.3), each, np.repeat(each, 2)[::2]):
            got = c.gradient(factor, mu, log_sigma2)
            for a, slope in zip(got, slopes, strict=True):
                assert same(a, factor * slope)
        # Also where a block is copied, and where the factor alone is.
        got = c.gradient(each[::-1], mu[::-1], log_sigma2)
        expected = c.gradient(each[::-1].copy(), mu[::-1].copy(), log_sigma2)
        assert all_same(got, expected)

    def test_no_warnings(self):
        mu, log_sigma2 = (a.ravel() for a in np.meshgrid(SPECIAL, np.r_[SPECIAL, -SPECIAL]))
        with np.errstate(all="warn"), warnings.catch_warnings():
            warnings.simplefilter("error")
            c.value(mu, log_sigma2)
            c.gradient(mu, mu, log_sigma2)
            c.value_sum(mu, log_sigma2)

    def test_float32_alone(self):
        for ufunc, count in ((c.value, 2), (c.gradient, 3), (c.value_sum, 2)):
            with pytest.raises(TypeError):
                ufunc(*[np.ones(3)] * count)


class TestSum:
    @pytest.mark.parametrize("step", [1, -2])
    @pytest.mark.parametrize("n", [0, 1, 15, 16, 63, 64, 65, 513, 1500, 5000])
    def test_it_is_the_sum_of_the_values(self, n, step):
        mu, log_sigma2 = _weights(n)
        mu, log_sigma2 = mu[::step], log_sigma2[:: abs(step)]
        exact = math.fsum(c.value(mu, log_sigma2))
        got = c.value_sum(mu, log_sigma2)
        assert got.dtype == np.float64
        # All values have one sign, so the relative error is that of n additions.
        assert abs(got - exact) <= n * 2.0**-53 * abs(exact)

    def test_rows(self):
        mu, log_sigma2 = (a.reshape(20, 75) for a in _weights(1500))
        expected = [c.value_sum(*row) for row in zip(mu, log_sigma2, strict=True)]
        assert same(c.value_sum(mu, log_sigma2), np.array(expected))
        out = np.zeros((20, 3))
        c.value_sum(mu, log_sigma2, out=out[:, 1])
        assert same(out[:, 1], np.array(expected))
        assert same(c.value_sum(mu[0], log_sigma2)[:1], np.array(expected[:1]))

    def test_nan_and_infinity(self):
        mu, log_sigma2 = _weights(100)
        for i in (0, 50, 99):
            mu[i] = NAN
            assert np.isnan(c.value_sum(mu, log_sigma2))
            mu[i] = INF
            assert c.value_sum(mu, log_sigma2) == -INF
            mu[i] = 0.0


class TestCapsule:
    """The kernels that other extensions take from the capsule, as `float32_capsule.h` declares."""

    POINTER, FLOAT, SIZE = ctypes.c_void_p, ctypes.c_float, ctypes.c_ssize_t
    TYPES = (
        (None, FLOAT, POINTER, POINTER, POINTER, SIZE),
        (None, POINTER, ctypes.c_int, POINTER, POINTER, POINTER, POINTER, SIZE),
        (None, FLOAT, POINTER, POINTER, POINTER, POINTER, POINTER, SIZE),
        (ctypes.c_double, POINTER, POINTER, SIZE),
    )

    def kernels(self):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        address = get(c.kernels, b"logunif_kl._numpy._float32.kernels")
        table = (ctypes.c_void_p * 4).from_address(address)
        return [ctypes.CFUNCTYPE(*t)(f) for t, f in zip(self.TYPES, table, strict=True)]

    @pytest.mark.parametrize("n", [1, 63, 64, 200])
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_as_the_ufuncs(self, n, sign):
        value, gradient, value_and_gradient, total = self.kernels()
        mu, log_sigma2 = (np.ascontiguousarray(a) for a in _weights(n))
        factor = np.full(1, sign, np.float32)
        expected = (factor * c.value(mu, log_sigma2), *c.gradient(factor, mu, log_sigma2))
        inputs = mu.ctypes.data, log_sigma2.ctypes.data
        got = [np.empty_like(mu) for _ in range(6)]
        places = [a.ctypes.data for a in got]
        value(sign, *inputs, places[0], n)
        gradient(factor.ctypes.data, 0, *inputs, *places[1:3], n)
        value_and_gradient(sign, *inputs, *places[3:], n)
        for one, other, wanted in zip(got[:3], got[3:], expected, strict=True):
            assert same(one, wanted)
            assert same(other, wanted)
        assert total(*inputs, n) == c.value_sum(mu, log_sigma2)


@pytest.mark.parametrize(
    ("mu", "log_sigma2"),
    [(-float.fromhex("0x1.a1ca34p+120"), 172.8987579345703), (2.0**-149, -208.16667175292969)],
)
def test_scaled_lanes_that_a_search_found(mu, log_sigma2):
    point = np.float32([mu]), np.float32([log_sigma2])
    got = (c.value(*point), *c.gradient(ONE, *point))
    exact = ufuncs.neg_kl_normal_and_grad(*(a.astype("float64") for a in point))
    for one, wanted in zip(got, exact, strict=True):
        if abs(wanted[0]) < np.finfo("float32").max:
            assert abs(one[0] - wanted[0]) <= MOST_ULP / 2 * np.spacing(np.float32(abs(wanted[0])))
