"""Tests that the functions of PyTorch and of JAX both pass."""

import mpmath
import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl import reference
from logunif_kl.isotropic import ACCURACY
from tests import ulp
from tests.isotropic.exact import EDGES, differs, hessian, scattered, worst_gradient
from validation.accuracy import plan, worker

DTYPES = ("float64", "float32")
# Its derivative in re is -1.24e-222.
UNEVEN = ("0x1.7bdb2268afb0fp-1006", "0x1.490a646c59eabp-134", "-0x1.01948dafb0089p+9")
CLAIMS = {(c.function, c.dtype, c.kernel): c.ulp for c in ACCURACY}
COMPLEX = sorted({name for name, *_ in CLAIMS if "complex" in name})


class Framework:
    """The tests, for a subclass that says how to call the framework with NumPy arrays.

    It has ``kernel``, a name of the claims, and these methods: ``array(x)``; ``most_ulps(dtype)``;
    ``derivatives(re, im, log_sigma2)``, which returns -KL of complex means with its derivatives;
    ``hessians(point)``, which yields the matrix by the formula of this package and, if it is
    finite, the matrix by the framework.
    """

    kernel: str

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_value_and_gradients_of_complex_means(self, dtype):
        rng = np.random.default_rng(2)
        at = [rng.normal(size=30).astype(dtype) * 3 for _ in range(3)]
        values, *found = self.derivatives(*at)
        assert values.dtype == dtype
        assert worst_gradient(found, at, dtype) <= self.most_ulps(dtype)
        for value, point in zip(values, zip(*at, strict=True), strict=True):
            with mpmath.workprec(200):
                re, im, log_sigma2 = (mpmath.mpf(float(x)) for x in point)
                x = log_sigma2 - mpmath.log(re * re + im * im)
                truth = reference.neg_kl_complex(x, dps=30)
            assert abs(ulp.error(float(value), truth, dtype)) <= self.most_ulps(dtype)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_gradients_in_a_part_far_smaller_than_the_other(self, dtype):
        at = scattered(dtype, 500, seed=3)
        if dtype == "float64":
            at = [np.append(a, float.fromhex(b)) for a, b in zip(at, UNEVEN, strict=True)]
        _, *found = self.derivatives(*at)
        assert worst_gradient(found, at, dtype) <= self.most_ulps(dtype)
        if dtype == "float64":
            assert found[0][-1] == pytest.approx(-1.2423763665146e-222, rel=1e-13)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_second_derivatives(self, dtype):
        for point in np.array(EDGES[dtype], dtype):
            expected = hessian(*map(float, point))
            for found in self.hessians(point):
                assert not differs(found, expected, dtype), point

    def test_zero_means(self):
        zero, log_sigma2 = np.zeros(2), np.array([0.0, 1.0])
        for found in self.derivatives(zero, zero, log_sigma2):
            assert not found.any()
        for s in log_sigma2:
            for found in self.hessians(np.array([0.0, 0.0, s])):
                np.testing.assert_allclose(np.diag(found)[:2], -2.0 * np.exp(-s), rtol=1e-6)

    def test_refusals(self):
        x = self.array(np.ones(2))
        with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
            lk.neg_kl_complex(x + 1j)
        with pytest.raises(TypeError, match="log_sigma2 must hold real numbers"):
            lk.neg_kl_complex_normal(x, x + 1j)
        with pytest.raises(ValueError, match="k must be a number of dimensions"):
            lk.neg_kl_vector(x, -1)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_claims_hold_at_other_points(self, dtype):
        wanted = {"functions": COMPLEX, "dtypes": [dtype], "count": 300}
        for job in plan.jobs("isotropic", [self.kernel], **wanted):
            name, claimed = job["function"], CLAIMS[job["function"], dtype, self.kernel]
            assert worker.measured(job | {"rounds": 0, "seed": 78})["ulp"] <= claimed, name
