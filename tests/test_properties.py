"""Properties that hold for every float, for arguments drawn over bit patterns.

Where errors of a few ulp suffice for a property, as for monotonicity, `test_accuracy` has it.
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
OF_U = [lk.special.kl_gap, lk.special.kl_gap_grad, lk.special.kl_gap_hess]
OF_X = [ufuncs.neg_kl, ufuncs.neg_kl_grad, ufuncs.neg_kl_hess]
DTYPES = ["float16", "float32", "float64"]


@given(strategies.floats(low=-math.inf, high=-5e-324))
def test_no_value_for_negative_u(u):
    assert all(math.isnan(f(u)) for f in OF_U)


@given(strategies.floats(low=-1e300, high=1e300), st.floats(1e-300, 1e300))
def test_convention_is_one_constant(x, alpha):
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
