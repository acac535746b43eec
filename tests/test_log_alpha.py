"""Conversions between parametrisations: limits, relative accuracy, round trips."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given

import logunif_kl as lk
from tests import strategies
from tests.conversions import CASES
from tests.conversions import function as conversion
from tests.ufunc_battery import same

pytestmark = pytest.mark.usefixtures("no_warnings_of_numpy")
INF, NAN = math.inf, math.nan
TINY, LARGEST = 5e-324, np.finfo("float64").max
la = lk.log_alpha


# For each function, arguments and results; a NaN gives a NaN.
LIMITS = {
    la.from_dropout_rate: [
        *((0.0, -INF), (-0.0, -INF), (0.5, 0.0), (1.0, INF), (-TINY, NAN), (1.0 + 2**-52, NAN)),
        *((INF, NAN), (-INF, NAN), (NAN, NAN)),
    ],
    la.to_dropout_rate: [
        *((-INF, 0.0), (0.0, 0.5), (INF, 1.0), (1e308, 1.0), (-1e308, 0.0), (NAN, NAN))
    ],
    la.from_alpha: [(0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (NAN, NAN)],
    la.to_alpha: [(-INF, 0.0), (0.0, 1.0), (1e308, INF), (NAN, NAN)],
    la.from_u: [(0.0, INF), (-0.0, INF), (0.5, 0.0), (INF, -INF), (-TINY, NAN), (NAN, NAN)],
    la.to_u: [(-INF, INF), (-1e308, INF), (0.0, 0.5), (INF, 0.0), (NAN, NAN)],
    la.from_normal: [
        *((0.0, 0.0, INF), (-0.0, 1e308, INF), (0.0, INF, INF), (INF, 0.0, -INF)),
        *((-INF, -INF, -INF), (2.0, -INF, -INF), (-1.0, -3.0, -3.0), (0.0, -INF, NAN)),
        *((INF, INF, NAN), (NAN, 1.0, NAN), (1.0, NAN, NAN)),
    ],
    la.to_log_sigma2: [
        *((0.0, 0.0, -INF), (INF, 1.0, INF), (-3.0, -1.0, -3.0), (INF, 0.0, NAN)),
        *((-INF, INF, NAN), (NAN, 1.0, NAN), (1.0, NAN, NAN)),
    ],
}
ONE = list(LIMITS)[:6]


@pytest.mark.parametrize("function", LIMITS, ids=lambda function: function.__name__)
def test_limits(xp, function):
    *together, truths = zip(*LIMITS[function], strict=True)
    np.testing.assert_array_equal(xp.numpy(function(*map(xp.array, together))), truths)
    for *alone, truth in LIMITS[function]:
        got = function(*(xp.array([argument]) for argument in alone))
        np.testing.assert_array_equal(xp.numpy(got), [truth])


REAL = (
    *(-745.0, -740.0, -710.4, -709.7, -700.0, -40.0, -1.0, -1e-9),
    *(TINY, 1e-20, 0.3, 1.0, 37.0, 40.0, 700.0, 708.0, 709.7),
)
POSITIVE = (
    *(TINY, 1e-310, 0.1, 0.5 - 2**-54, 0.5 + 2**-53, 0.51, 1.0 + 2**-52, 3.0),
    *(1e300, 8.9e307, LARGEST),
)
SIZES = tuple(sign * size for size in (TINY, 1e-200, 0.3, 1e200, LARGEST) for sign in (1, -1))
ARGUMENTS = {
    "from_dropout_rate": (
        *(TINY, 1e-310, 1e-300, 1e-9, 0.1, 0.2499999, 0.25, 0.3, 0.499, 0.5 - 2**-54),
        *(0.5 + 2**-53, 0.5 + 1e-9, 0.6, 0.75, 0.7500001, 0.9, 0.999, 1 - 2**-53),
    ),
    **dict.fromkeys(("to_dropout_rate", "to_alpha", "to_u"), REAL),
    **dict.fromkeys(("from_alpha", "from_u"), POSITIVE),
    **dict.fromkeys(("from_normal", "to_log_sigma2"), SIZES),
}


@pytest.mark.parametrize("name", CASES)
def test_relative_accuracy(xp, name):
    points = ARGUMENTS[name]
    got = xp.numpy(conversion(name)(xp.array(points)))
    for argument, value in zip(points, got, strict=True):
        with mpmath.workdps(400):
            truth = float(CASES[name][0](mpmath.mpf(argument)))
        assert value == truth or abs(value - truth) <= 4 * math.ulp(truth), argument


@pytest.mark.parametrize("function", ONE)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_types_are_rounded_once(function, dtype):
    x = np.linspace(0.01, 0.99, 500).astype(dtype)
    with np.errstate(all="ignore"):
        assert same(function(x), function(x.astype("float64")).astype(dtype))


class TestRoundTrips:
    @given(strategies.floats(low=-700.0, high=700.0))
    def test_of_log_alpha(self, x):
        unit = max(math.ulp(x), 2**-53)
        assert abs(la.from_u(la.to_u(x)) - x) <= 4 * unit
        assert abs(la.from_alpha(la.to_alpha(x)) - x) <= 4 * unit
        if x <= 0.0:
            assert abs(la.from_dropout_rate(la.to_dropout_rate(x)) - x) <= 8 * unit

    @given(strategies.floats(low=0.0, high=1.0))
    def test_dropout_rate_back(self, p):
        # p = to(from(p)) to within the error of from, times dp/dx = p (1 - p).
        p = float(p)
        x = float(la.from_dropout_rate(p))
        error = (4 * math.ulp(x) if math.isfinite(x) else 0.0) * p * (1 - p)
        assert abs(la.to_dropout_rate(x) - p) <= error + 4 * math.ulp(p)

    @given(strategies.floats(low=-1e6, high=1e6), strategies.floats(low=-1e100, high=1e100))
    def test_normal(self, x, mu):
        if mu != 0:
            size = max(abs(x), 2 * abs(math.log(abs(mu))), 2**-20)
            back = la.from_normal(mu, la.to_log_sigma2(x, mu))
            assert abs(back - x) <= 8 * math.ulp(float(size))
