"""Between parametrisations: limits, relative accuracy where it is hard, round trips."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given

import logunif_kl as lk
from tests import strategies
from tests.ufunc_battery import extra_memory, same

INF, NAN = math.inf, math.nan
TINY, LARGEST = 5e-324, np.finfo("float64").max
la = lk.log_alpha


@pytest.fixture(autouse=True)
def no_warnings_of_numpy():
    with np.errstate(all="raise"):
        yield


# Function, arguments, result.
LIMITS = [
    (la.from_dropout_rate, (0.0,), -INF),
    (la.from_dropout_rate, (-0.0,), -INF),
    (la.from_dropout_rate, (0.5,), 0.0),
    (la.from_dropout_rate, (1.0,), INF),
    (la.from_dropout_rate, (-TINY,), NAN),
    (la.from_dropout_rate, (1.0 + 2**-52,), NAN),
    (la.from_dropout_rate, (INF,), NAN),
    (la.from_dropout_rate, (-INF,), NAN),
    (la.to_dropout_rate, (-INF,), 0.0),
    (la.to_dropout_rate, (0.0,), 0.5),
    (la.to_dropout_rate, (INF,), 1.0),
    (la.to_dropout_rate, (1e308,), 1.0),
    (la.to_dropout_rate, (-1e308,), 0.0),
    (la.from_alpha, (0.0,), -INF),
    (la.from_alpha, (1.0,), 0.0),
    (la.from_alpha, (INF,), INF),
    (la.from_alpha, (-1.0,), NAN),
    (la.to_alpha, (-INF,), 0.0),
    (la.to_alpha, (0.0,), 1.0),
    (la.to_alpha, (1e308,), INF),
    (la.from_u, (0.0,), INF),
    (la.from_u, (-0.0,), INF),
    (la.from_u, (0.5,), 0.0),
    (la.from_u, (INF,), -INF),
    (la.from_u, (-TINY,), NAN),
    (la.to_u, (-INF,), INF),
    (la.to_u, (-1e308,), INF),
    (la.to_u, (0.0,), 0.5),
    (la.to_u, (INF,), 0.0),
    (la.from_normal, (0.0, 0.0), INF),
    (la.from_normal, (-0.0, 1e308), INF),
    (la.from_normal, (0.0, INF), INF),
    (la.from_normal, (INF, 0.0), -INF),
    (la.from_normal, (-INF, -INF), -INF),
    (la.from_normal, (2.0, -INF), -INF),
    (la.from_normal, (-1.0, -3.0), -3.0),
    (la.from_normal, (0.0, -INF), NAN),
    (la.from_normal, (INF, INF), NAN),
    (la.to_log_sigma2, (0.0, 0.0), -INF),
    (la.to_log_sigma2, (INF, 1.0), INF),
    (la.to_log_sigma2, (-3.0, -1.0), -3.0),
    (la.to_log_sigma2, (INF, 0.0), NAN),
    (la.to_log_sigma2, (-INF, INF), NAN),
]
ONE = [
    la.from_dropout_rate,
    la.to_dropout_rate,
    la.from_alpha,
    la.to_alpha,
    la.from_u,
    la.to_u,
]


@pytest.mark.parametrize(("function", "arguments", "truth"), LIMITS)
def test_limits(xp, function, arguments, truth):
    got = function(*(xp.array([a]) for a in arguments))
    np.testing.assert_array_equal(xp.numpy(got), [truth])


@pytest.mark.parametrize("function", ONE)
def test_nan(function):
    assert math.isnan(function(NAN))


@pytest.mark.parametrize("function", [la.from_normal, la.to_log_sigma2])
def test_nan_of_two(function):
    assert math.isnan(function(NAN, 1.0))
    assert math.isnan(function(1.0, NAN))


# Each function in mpmath, from the exact values of floats.
TRUTH = {
    la.from_dropout_rate: lambda p: mpmath.log(p / (1 - p)),
    la.to_dropout_rate: lambda x: 1 / (1 + mpmath.exp(-x)),
    la.from_alpha: mpmath.log,
    la.to_alpha: mpmath.exp,
    la.from_u: lambda u: -mpmath.log(2 * u),
    la.to_u: lambda x: mpmath.exp(-x) / 2,
}
P = [
    TINY,
    1e-310,
    1e-300,
    1e-9,
    0.1,
    0.2499999,
    0.25,
    0.3,
    0.499,
    0.5 - 2**-54,
    0.5 + 2**-53,
    0.5 + 1e-9,
]
P += [0.6, 0.75, 0.7500001, 0.9, 0.999, 1 - 2**-53]
REAL = [
    -745.0,
    -740.0,
    -710.4,
    -709.7,
    -700.0,
    -40.0,
    -1.0,
    -1e-9,
    TINY,
    1e-20,
    0.3,
    1.0,
    37.0,
    40.0,
]
REAL += [700.0, 708.0, 709.7]
POSITIVE = [
    TINY,
    1e-310,
    0.1,
    0.5 - 2**-54,
    0.5 + 2**-53,
    0.51,
    1.0 + 2**-52,
    3.0,
    1e300,
    8.9e307,
    LARGEST,
]
ACCURATE = [
    *((la.from_dropout_rate, p) for p in P),
    *((la.to_dropout_rate, x) for x in REAL),
    *((la.from_alpha, a) for a in POSITIVE),
    *((la.to_alpha, x) for x in REAL),
    *((la.from_u, u) for u in POSITIVE),
    *((la.to_u, x) for x in REAL),
]


def truth_of(function, argument: float) -> float:
    with mpmath.workdps(400):
        return float(TRUTH[function](mpmath.mpf(argument)))


@pytest.mark.parametrize(("function", "argument"), ACCURATE)
def test_relative_accuracy(xp, function, argument):
    truth = truth_of(function, argument)
    got = float(xp.numpy(function(xp.array([argument])))[0])
    assert got == truth or abs(got - truth) <= 4 * math.ulp(truth)


@pytest.mark.parametrize("function", ONE)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_types_are_rounded_once(function, dtype):
    x = np.linspace(0.01, 0.99, 500).astype(dtype)
    with np.errstate(all="ignore"):
        assert same(function(x), function(x.astype("float64")).astype(dtype))


@pytest.mark.parametrize("function", ONE)
def test_types_and_shapes(xp, function):
    for dtype in ("float32", "float64"):
        got = function(xp.array([[0.25, 0.5]], dtype))
        assert type(got) is type(xp.array([0.5]))
        assert xp.numpy(got).dtype == dtype
        assert xp.numpy(got).shape == (1, 2)
    assert type(function(0.5)) is np.float64
    assert type(function(1)) is np.float64


def test_two_arguments_broadcast(xp):
    mu, log_sigma2 = np.array([[1.0], [2.0]]), np.array([-1.0, 0.0, 1.0])
    got = xp.numpy(la.from_normal(xp.array(mu), xp.array(log_sigma2)))
    np.testing.assert_allclose(got, log_sigma2 - 2 * np.log(mu), rtol=1e-15)
    back = xp.numpy(la.to_log_sigma2(xp.array(got), xp.array(mu)))
    np.testing.assert_allclose(back, np.broadcast_to(log_sigma2, (2, 3)), atol=1e-15)


def test_from_normal_of_either_sign_and_any_size():
    for mu in (TINY, 1e-200, 0.3, 1e200, LARGEST):
        truth = float(-3 - 2 * mpmath.log(mpmath.mpf(mu)))
        assert abs(la.from_normal(mu, -3.0) - truth) <= 2 * math.ulp(truth)
        assert la.from_normal(-mu, -3.0) == la.from_normal(mu, -3.0)


def test_memory():
    x = np.linspace(0.001, 0.999, 500_000)
    for call in (*(lambda f=f: f(x) for f in ONE), lambda: la.from_normal(x, x)):
        call()
        assert extra_memory(call) < 2**20


class TestRoundTrips:
    @given(strategies.floats(low=-700.0, high=700.0))
    def test_u(self, x):
        assert abs(la.from_u(la.to_u(x)) - x) <= 4 * max(math.ulp(x), 2**-53)

    @given(strategies.floats(low=-700.0, high=700.0))
    def test_alpha(self, x):
        assert abs(la.from_alpha(la.to_alpha(x)) - x) <= 4 * max(math.ulp(x), 2**-53)

    @given(strategies.floats(low=-700.0, high=0.0))
    def test_dropout_rate(self, x):
        assert abs(la.from_dropout_rate(la.to_dropout_rate(x)) - x) <= 8 * max(math.ulp(x), 2**-53)

    @given(strategies.floats(low=0.0, high=1.0))
    def test_dropout_rate_back(self, p):
        # p = to(from(p)) to within the error of from, times dp/dx = p (1 - p).
        p = float(p)
        x = float(la.from_dropout_rate(p))
        error = (4 * math.ulp(x) if math.isfinite(x) else 0.0) * p * (1 - p)
        assert abs(la.to_dropout_rate(x) - p) <= error + 4 * math.ulp(p)

    @given(strategies.floats(low=0.0, high=1.0))
    def test_mirrored_dropout_rate(self, p):
        if p >= 0.5:  # 1 - p is exact
            np.testing.assert_allclose(
                la.from_dropout_rate(1.0 - p), -la.from_dropout_rate(p), rtol=1e-15
            )

    @given(strategies.floats(low=-1e6, high=1e6), strategies.floats(low=-1e100, high=1e100))
    def test_normal(self, x, mu):
        if mu != 0:
            size = max(abs(x), 2 * abs(math.log(abs(mu))), 2**-20)
            back = la.from_normal(mu, la.to_log_sigma2(x, mu))
            assert abs(back - x) <= 8 * math.ulp(float(size))
