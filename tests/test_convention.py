"""The additive constant: its value, and the arguments that are refused."""

import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._convention import PROPER_CONSTANT, ZERO_AT_INFINITY, additive_constant


def test_proper_constant():
    with mpmath.workdps(30):
        truth = (mpmath.log(mpmath.pi * mpmath.e) - mpmath.digamma(mpmath.mpf(1) / 2)) / 2
        assert float(truth) == PROPER_CONSTANT


def test_default_and_log_c():
    assert additive_constant() == additive_constant(math.inf) == 0.0
    assert additive_constant(np.float64("inf")) == additive_constant(log_c=-PROPER_CONSTANT) == 0.0
    assert additive_constant(log_c=0.0) == PROPER_CONSTANT


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 0.05, 1e-3, 1e3, 1e-300, 1e300])
def test_zero_at_is_the_gap_there(alpha):
    assert additive_constant(alpha) == lk.special.kl_gap(0.5 / alpha)


def test_zero_at_the_smallest_and_the_largest_alpha():
    # 1/(2 alpha) overflows below 2.8e-309; F(u) = (log(4 u) + gamma)/2 there.
    for alpha in (5e-324, 1e-310, 2.7e-309, 3e-309):
        with mpmath.workdps(30):
            truth = float((mpmath.log(2 / mpmath.mpf(alpha)) + mpmath.euler) / 2)
        assert abs(additive_constant(alpha) - truth) <= 2 * math.ulp(truth)
    largest = np.finfo("float64").max
    assert additive_constant(largest) == 0.5 / largest


@pytest.mark.parametrize("number", [1, np.float32(1), np.int8(1), Fraction(1), np.float64(1)])
def test_any_real_number_will_do(number):
    assert additive_constant(number) == additive_constant(1.0)
    assert additive_constant(log_c=number) == PROPER_CONSTANT + 1.0


RANGE = r"zero_at must be a positive alpha .* was given: "
FINITE = r"log_c must be finite.* was given: pass math.log\(C\)"
BOTH = r"zero_at=.* and log_c=0.0 were both given.*only one"
WRONG = [True, np.True_, "1", 1j, [1.0], np.ones(1), np.array(1.0), np.ones((2, 3)), object()]
REFUSED = [
    *((ValueError, {"zero_at": x}, RANGE) for x in (0.0, -0.0, -1.0, math.nan, -math.inf, 0)),
    *((ValueError, {"log_c": x}, FINITE) for x in (math.inf, -math.inf, math.nan)),
    *((ValueError, {"zero_at": x, "log_c": 0.0}, BOTH) for x in (math.inf, 1.0, np.inf)),
    (ValueError, {"log_c": 10**400}, "log_c is too large for a float"),
    *(
        (TypeError, {option: value}, f"{option} must be one real number, but .* was given: pass")
        for option in ("zero_at", "log_c")
        for value in WRONG
    ),
    (TypeError, {"zero_at": None}, "zero_at must be one real number, but NoneType None was given"),
    (TypeError, {"zero_at": np.ones((2, 3))}, r"but ndarray of shape \(2, 3\) was given"),
]


@pytest.mark.parametrize(("error", "options", "message"), REFUSED)
def test_refused(error, options, message):
    with pytest.raises(error, match=message):
        additive_constant(**options)


class TestDefault:
    def test_looks_like_infinity(self):
        assert math.inf == ZERO_AT_INFINITY
        assert repr(ZERO_AT_INFINITY) == "inf"

    def test_is_still_the_default_after_pickling(self):
        assert pickle.loads(pickle.dumps(ZERO_AT_INFINITY)) is ZERO_AT_INFINITY


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_public_functions(sign):
    of_log_alpha, of_normal = (lk.neg_kl, lk.neg_kl_normal) if sign > 0 else (lk.kl, lk.kl_normal)
    assert of_log_alpha(0.0, zero_at=1.0) == 0.0
    for function, arguments in ((of_log_alpha, (math.inf,)), (of_normal, (0.0, 0.0))):
        assert function(*arguments, zero_at=1.0) == sign * lk.special.kl_gap(0.5)
        assert function(*arguments, log_c=0.5) == sign * (PROPER_CONSTANT + 0.5)
        with pytest.raises(ValueError, match="both given"):
            function(*arguments, zero_at=math.inf, log_c=0.0)


def test_hron_equation_1():
    # KL = log of N(mu, sigma^2)'s density less log(C/|w|), expected under N(mu, sigma^2).
    mu, sigma, log_c = 0.7, 1.3, -0.4
    with mpmath.workdps(20):
        normal = lambda w: mpmath.npdf(w, mu, sigma)  # noqa: E731
        cuts = [-12, -3, -1, 0, 0.7, 1.5, 3, 6, 14]
        expected_log = mpmath.quad(lambda w: normal(w) * mpmath.log(abs(w)), cuts)
        entropy = mpmath.log(2 * mpmath.pi * mpmath.e * mpmath.mpf(sigma) ** 2) / 2
        truth = float(entropy + log_c - expected_log)
    found = lk.neg_kl_normal(mu, 2 * math.log(sigma), log_c=log_c)
    assert math.isclose(found, truth, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("log_alpha", "constant", "limit"),
    [
        *((np.float16(1), 1e6, np.inf), (np.ones(3, np.float32), 1e300, np.inf)),
        (-1e308, -1.7e308, -np.inf),
    ],
)
def test_a_constant_beyond_the_type_gives_infinity_and_no_warning(log_alpha, constant, limit):
    result = lk.neg_kl(log_alpha, log_c=constant)
    assert np.all(result == limit)
    assert result.dtype == np.asarray(log_alpha).dtype
