"""Properties that hold for every float, for arguments drawn over bit patterns.

Each inequality allows a few `EPS` for rounding. The functions' errors in ulp are measured
elsewhere.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import logunif_kl as lk
from logunif_kl._numpy import ufuncs
from tests import strategies
from tests.ufunc_battery import same

pytestmark = pytest.mark.usefixtures("no_warnings_of_numpy")
EPS = 2**-52
SMALLEST = 5e-324
OF_U = [lk.special.kl_gap, lk.special.kl_gap_grad, lk.special.kl_gap_hess]
OF_X = [ufuncs.neg_kl, ufuncs.neg_kl_grad, ufuncs.neg_kl_hess]
DTYPES = ["float16", "float32", "float64"]


def python(*values) -> tuple[float, ...]:
    """Python floats, whose arithmetic raises no warning."""
    return tuple(float(value) for value in values)


class TestGap:
    @given(strategies.non_negative(), strategies.non_negative())
    def test_increases_more_and_more_slowly(self, u, v):
        u, v = sorted(python(u, v))
        low, high = python(lk.special.kl_gap(u), lk.special.kl_gap(v))
        assert low <= high * (1 + 4 * EPS)
        high, low = python(lk.special.kl_gap_grad(u), lk.special.kl_gap_grad(v))
        assert low <= high * (1 + 4 * EPS)

    @given(strategies.non_negative())
    def test_lies_between_its_bounds(self, u):
        (u,) = python(u)
        gap, slope, curvature = python(*(f(u) for f in OF_U))
        below = 0.5 * math.log1p(2 * u)
        if 2 * u == math.inf > u:
            below = 0.5 * (math.log(u) + math.log(2))
        above = below + 0.63518142273073908501
        assert below * (1 - 4 * EPS) <= gap <= min(u, above) * (1 + 4 * EPS)
        product = slope * (1 + 2 * u) if u < 1e300 else 1.0
        assert 1 - 4 * EPS <= product < 1.641
        assert 0.0 <= slope <= 1.0
        assert -2 / 3 <= curvature <= 0.0

    @given(strategies.floats(low=0.0, high=1e150))
    def test_differential_equation(self, u):
        (u,) = python(u)
        slope, curvature = python(lk.special.kl_gap_grad(u), lk.special.kl_gap_hess(u))
        assert abs(2 * u * curvature + (1 + 2 * u) * slope - 1) <= 8 * EPS

    @given(strategies.floats(low=-math.inf, high=-SMALLEST))
    def test_no_value_for_negative_u(self, u):
        assert all(math.isnan(f(u)) for f in OF_U)


class TestNegKl:
    @given(strategies.floats(), strategies.floats())
    def test_increases(self, x, y):
        x, y = sorted(python(x, y))
        low, high = python(lk.neg_kl(x), lk.neg_kl(y))
        assert low <= high * (1 - 4 * EPS)
        assert high <= 0

    @given(strategies.floats())
    def test_gradient_is_positive_and_bounded(self, x):
        assert 0.0 <= lk.neg_kl_grad(x) < 0.64237471982842324 * (1 + 4 * EPS)

    @given(strategies.floats(low=-700.0, high=700.0))
    def test_is_the_gap_of_u(self, x):
        (x,) = python(x)
        u = float(lk.log_alpha.to_u(x))
        gap, slope, curvature = python(*(f(u) for f in OF_U))
        value, grad, hess = python(*(f(x) for f in OF_X))
        assert math.isclose(value, -gap, rel_tol=16 * EPS, abs_tol=SMALLEST)
        assert math.isclose(grad, u * slope, rel_tol=16 * EPS, abs_tol=SMALLEST)
        # The sum of u F' and u^2 F'' passes through zero.
        scale = abs(u * slope)
        if u < 1e150:
            assert abs(hess + (u * slope + u * u * curvature)) <= 16 * EPS * scale + SMALLEST

    @given(strategies.floats(low=-1e300, high=1e300), st.floats(1e-300, 1e300))
    def test_convention_is_one_constant(self, x, alpha):
        value = float(lk.neg_kl(x))
        constant = float(lk.special.kl_gap(0.5 / alpha))
        assert lk.neg_kl(x, zero_at=alpha) == value + constant
        assert lk.kl(x, zero_at=alpha) == -(value + constant)


def is_ordinary(mu: float, log_sigma2: float) -> bool:
    """Whether u is defined."""
    if mu == 0:
        return log_sigma2 > -math.inf
    return math.isfinite(mu) or log_sigma2 < math.inf


class TestNormal:
    @given(strategies.floats(), strategies.floats())
    def test_sign_of_mu_and_where_limits_meet(self, mu, log_sigma2):
        value, d_mu, d_log = outputs = ufuncs.neg_kl_normal_and_grad(mu, log_sigma2)
        mirrored = ufuncs.neg_kl_normal_and_grad(-mu, log_sigma2)
        assert same(mirrored[0], value)
        assert same(mirrored[2], d_log)
        assert math.isnan(d_mu) if math.isnan(mirrored[1]) else mirrored[1] == -d_mu
        undefined = not is_ordinary(float(mu), float(log_sigma2))
        assert [math.isnan(output) for output in outputs] == [undefined] * 3

    @given(
        strategies.either_sign(strategies.floats(low=1e-150, high=1e150)),
        strategies.floats(low=-600.0, high=600.0),
    )
    def test_same_value_from_log_alpha(self, mu, log_sigma2):
        x = float(lk.log_alpha.from_normal(mu, log_sigma2))
        value, by_x = float(lk.neg_kl_normal(mu, log_sigma2)), float(lk.neg_kl(x))
        # The error of x is relative to its larger term, and the gradient carries it to the value.
        size = max(abs(float(log_sigma2)), 2 * abs(math.log(abs(float(mu)))), abs(x))
        slack = 4 * math.ulp(size) * float(lk.neg_kl_grad(x))
        assert abs(value - by_x) <= slack + 8 * EPS * abs(by_x)

    @given(
        strategies.either_sign(strategies.floats(low=1e-100, high=1e100)),
        strategies.floats(low=-500.0, high=500.0),
        st.integers(-60, 60),
    )
    def test_common_scale_does_not_matter(self, mu, log_sigma2, k):
        shifted = float(log_sigma2) + 2 * k * math.log(2)
        value = float(lk.neg_kl_normal(mu, log_sigma2))
        scaled = float(lk.neg_kl_normal(float(mu) * 2.0**k, shifted))
        slope = float(ufuncs.neg_kl_normal_and_grad(mu, log_sigma2)[2])
        slack = 4 * slope * math.ulp(max(abs(shifted), abs(float(log_sigma2)), 128.0))
        assert abs(value - scaled) <= slack + 8 * EPS * abs(value) + SMALLEST

    @given(strategies.floats(low=-1e80, high=1e80), strategies.floats(low=-300.0, high=300.0))
    def test_gradients_are_those_of_u(self, mu, log_sigma2):
        mu, log_sigma2 = python(mu, log_sigma2)
        precision = math.exp(-log_sigma2)
        u = 0.5 * (mu * (mu * precision))
        _, d_mu, d_log = python(*ufuncs.neg_kl_normal_and_grad(mu, log_sigma2))
        slope = float(lk.special.kl_gap_grad(u))
        assert math.isclose(d_log, u * slope, rel_tol=32 * EPS, abs_tol=2 * SMALLEST)
        assert math.isclose(d_mu, -slope * (mu * precision), rel_tol=32 * EPS, abs_tol=2 * SMALLEST)


@pytest.mark.parametrize("dtype", DTYPES)
class TestElementwise:
    """An element's result depends on nothing but the element."""

    @given(data=st.data())
    def test_of_one(self, dtype, data):
        u = data.draw(strategies.arrays(dtype, strategies.non_negative(dtype, nan=True)))
        x = data.draw(strategies.arrays(dtype, strategies.floats(dtype, nan=True)))
        for functions, values in ((OF_U, u), (OF_X, x)):
            for f in functions:
                result = f(values)
                assert same(result, np.array([f(value) for value in values], dtype))
                assert np.array_equal(np.isnan(result), np.isnan(values))

    @given(data=st.data())
    def test_of_two(self, dtype, data):
        mu = data.draw(strategies.arrays(dtype, strategies.floats(dtype, nan=True)))
        log_sigma2 = data.draw(strategies.floats(dtype, nan=True))
        together = ufuncs.neg_kl_normal_and_grad(mu, log_sigma2)
        alone = [ufuncs.neg_kl_normal_and_grad(value, log_sigma2) for value in mu]
        for i in range(3):
            assert same(together[i], np.array([outputs[i] for outputs in alone], dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@given(data=st.data())
def test_a_narrow_type_gives_the_float64_result_rounded(dtype, data):
    value = data.draw(strategies.floats(dtype))
    for f in (*OF_U, *OF_X):
        narrow = f(value)
        with np.errstate(all="ignore"):
            rounded = f(value.astype("float64")).astype(dtype)
            if np.isfinite(rounded):
                assert abs(narrow - rounded) <= np.spacing(abs(rounded))
            else:
                assert same(rounded, narrow)
