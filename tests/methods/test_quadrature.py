"""Quadrature: the proper rules to the last digits, the naive one with an error that says so."""

import pickle

import mpmath
import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl import reference
from logunif_kl.methods import _quadrature_rules, quadrature, quadrature_grad
from logunif_kl.methods._quadrature import NODES, QUADRATURE, _operation

RULES = pytest.mark.parametrize("rule", NODES)
PROPER = pytest.mark.parametrize("rule", ["tanh_sinh", "gauss_legendre"])

# Dense where the forms meet (r = 1 and r = 9), and out to where a double ends.
EDGES = np.array([0.0, -2.0 * np.log(_quadrature_rules.REACH)])
BESIDE = (EDGES[:, np.newaxis] + np.array([-1e-3, -1e-15, 0.0, 1e-15, 1e-3])).ravel()
DENSE = np.unique(np.concatenate([np.linspace(-14.0, 14.0, 2801), BESIDE]))
FAR = np.array([-1e308, -1400.0, -700.0, -100.0, -40.0, 40.0, 100.0, 700.0, 1400.0, 1e308])
ALL = np.concatenate([DENSE, FAR])


class TestAccuracy:
    @PROPER
    def test_value(self, rule):
        exact = lk.neg_kl(ALL)
        with np.errstate(all="raise"):
            found = quadrature(ALL, rule=rule)
        error = np.abs(found - exact) / np.maximum(1.0, np.abs(exact))
        assert error.max() <= {"tanh_sinh": 1.2e-15, "gauss_legendre": 1.0e-15}[rule]
        assert QUADRATURE.claims[0].value == 1.2e-15

    @PROPER
    def test_gradient(self, rule):
        x = np.concatenate([DENSE, FAR[1:-2]])
        error = np.abs(quadrature_grad(x, rule=rule) / lk.neg_kl_grad(x) - 1.0)
        assert error.max() <= {"tanh_sinh": 1.6e-15, "gauss_legendre": 2.2e-15}[rule]
        assert QUADRATURE.claims[0].gradient == 1.6e-15

    @PROPER
    def test_it_is_relative_as_alpha_grows(self, rule):
        x = np.linspace(0.0, 700.0, 301)
        np.testing.assert_allclose(quadrature(x, rule=rule), lk.neg_kl(x), rtol=1e-15)

    @pytest.mark.parametrize("n", [2, 3, 49, 100])
    def test_the_rule_of_legendre_is_that_of_more_digits(self, n):
        """SciPy's own weights, whose last digits differ with the LAPACK, fail this."""
        at, weight = _quadrature_rules._legendre(n)
        np.testing.assert_array_equal(at, -at[::-1])
        np.testing.assert_array_equal(weight, weight[::-1])
        with mpmath.workdps(30):
            for i in {0, 1, n // 4, n // 2 - 1}:
                x = mpmath.findroot(lambda x: mpmath.legendre(n, x), at[i])
                exact = 2 * (1 - x * x) / (n * mpmath.legendre(n - 1, x)) ** 2
                assert abs(at[i] - x) < 3e-16
                assert abs(weight[i] - exact) < 6e-16

    def test_the_error_of_tanh_sinh_falls_exponentially(self):
        # -KL itself is -7 at the end of the range
        for n, most in ((40, 0.2), (80, 4e-5), (120, 2e-10), (160, 5e-15)):
            assert np.abs(quadrature(DENSE, n=n) - lk.neg_kl(DENSE)).max() < most


class TestNaiveRule:
    def test_it_is_what_people_write(self):
        t, w = np.polynomial.hermite.hermgauss(32)
        for x in np.linspace(-10.0, 10.0, 41):
            eps = 1.0 + np.exp(x / 2) * np.sqrt(2.0) * t
            mean_log = np.sum(w * np.log(np.abs(eps))) / np.sqrt(np.pi)
            psi_half = -np.euler_gamma - 2.0 * np.log(2.0)
            as_written = 0.5 * (x + np.log(2.0) + psi_half) - mean_log
            assert quadrature(x, rule="gauss_hermite") == pytest.approx(as_written, abs=1e-13)

    def test_it_is_infinite_where_a_node_meets_the_singularity(self):
        # the nodes for n = 2 are -1 and 1
        value, error = quadrature(0.0, rule="gauss_hermite", n=2, return_error=True)
        assert value == error == np.inf


class TestErrorEstimate:
    """The list of those that lie about their error is empty."""

    @RULES
    @pytest.mark.parametrize("n", [None, 2, 3, 5, 8, 17, 31, 50, 99, 120, 161, 500, 1000])
    @pytest.mark.parametrize("convention", [{}, {"zero_at": 1.0}, {"log_c": 3.0}])
    def test_it_is_never_smaller_than_the_error(self, rule, n, convention):
        value, error = quadrature(ALL, rule=rule, n=n, return_error=True, **convention)
        finite = np.isfinite(value)
        true = np.abs(value[finite] - lk.neg_kl(ALL[finite], **convention))
        assert np.all(error[finite] >= true)
        assert np.all(error[~finite] == np.inf)

    @pytest.mark.parametrize("rule", ["tanh_sinh", "gauss_legendre", "gauss_hermite"])
    def test_it_is_never_smaller_than_the_error_in_many_digits(self, rule):
        x = np.linspace(-12.0, 12.0, 25)
        value, error = quadrature(x, rule=rule, return_error=True)
        with mpmath.workdps(30):
            for at, v, e in zip(x.tolist(), value.tolist(), error.tolist(), strict=True):
                assert abs(mpmath.mpf(v) - reference.neg_kl(at, 25)) <= e

    @pytest.mark.parametrize("dtype", [np.float16, np.float32])
    def test_it_counts_the_rounding_to_a_narrow_type(self, dtype):
        x = np.linspace(-10.0, 10.0, 1001).astype(dtype)
        value, error = quadrature(x, return_error=True)
        assert (value.dtype, error.dtype) == (dtype, np.float64)
        assert np.all(error >= np.abs(value.astype(np.float64) - lk.neg_kl(x.astype(np.float64))))

    def test_it_is_not_needlessly_large(self):
        _, error = quadrature(DENSE, return_error=True)
        assert np.all(error <= 4e-15 * np.maximum(1.0, np.abs(lk.neg_kl(DENSE))))
        value, error = quadrature(DENSE, rule="gauss_hermite", return_error=True)
        np.testing.assert_allclose(error, np.abs(value - lk.neg_kl(DENSE)), rtol=1e-9, atol=2e-14)

    def test_limits(self):
        value, error = quadrature([-np.inf, np.inf, np.nan], return_error=True, zero_at=1.0)
        np.testing.assert_array_equal(value, lk.neg_kl([-np.inf, np.inf, np.nan], zero_at=1.0))
        np.testing.assert_array_equal(error, [0.0, 0.0, np.nan])


class TestArguments:
    def test_a_rule_is_pickled_by_what_it_was_made_from(self):
        ufunc = _operation("tanh_sinh", 51, gradient=False).ufunc
        assert pickle.loads(pickle.dumps(ufunc)) is ufunc

    @pytest.mark.parametrize("function", [quadrature, quadrature_grad])
    def test_what_is_refused(self, function):
        with pytest.raises(ValueError, match=r"rule='simpson' is not known: pass one of 'tanh_si"):
            function(0.0, rule="simpson")
        for n in (1, 0, -5, 1001):
            with pytest.raises(ValueError, match=f"n must be between 2 and 1000, but {n} was"):
                function(0.0, n=n)
        for n in (10.0, "10", True):
            with pytest.raises(TypeError, match="n must be an integer, but"):
                function(0.0, n=n)
