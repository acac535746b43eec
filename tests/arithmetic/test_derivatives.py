"""Derivatives of second and higher order, against a recursion in 160 digits."""

import math

import mpmath
import numpy as np
import pytest

from logunif_kl import special
from logunif_kl._arithmetic import derivatives
from logunif_kl._numpy import operations
from tests import golden
from tests.derivatives import ALLOWED, ORDERS, check_ulps, in_log_alpha, truth, ulps

TABLES = [("float64", 2.0**-52), ("float32", 2.0**-23)]


def test_truth_is_that_of_differences():
    mu, log_sigma2 = mpmath.mpf("0.75"), mpmath.mpf("-1.25")

    def neg_kl(mu, log_sigma2):
        u = mu**2 * mpmath.exp(-log_sigma2) / 2
        return -u * mpmath.hyp2f2(1, 1, mpmath.mpf(3) / 2, 2, -u)

    with mpmath.workdps(60):
        for orders in ORDERS:
            found = mpmath.diff(neg_kl, (mu, log_sigma2), orders, h=mpmath.mpf(10) ** -12)
            assert mpmath.almosteq(found, truth(mu, log_sigma2, orders), 1e-9)


@pytest.fixture(scope="module", params=TABLES, ids=lambda table: table[0])
def sample(request):
    """Points over all ranges of the table, and near its bounds."""
    dtype, eps = request.param
    rng = np.random.default_rng(20261121)
    bounds = -np.log(2.0 * np.array(derivatives._table(dtype).ends))
    beside = [bounds + shift for shift in (-0.05, -0.01, -40 * eps, 0.0, 40 * eps, 0.01, 0.05)]
    x = np.concatenate([rng.uniform(-36.0, 14.0, 100), rng.uniform(-4.5, 0.5, 150), *beside])
    mu = rng.choice([-1.0, 1.0], x.size) * np.exp(rng.uniform(-2.0, 2.0, x.size))
    pairs = np.stack([mu, x + 2.0 * np.log(np.abs(mu))], axis=1)
    return (*pairs.T.astype(dtype), eps)


@pytest.mark.parametrize("orders", ORDERS, ids=str)
def test_of_normal(sample, orders):
    mu, log_sigma2, eps = sample
    with np.errstate(all="ignore"):
        got = derivatives.neg_kl_normal_derivative(np, mu, log_sigma2, *orders)
    assert got.dtype == mu.dtype
    check_ulps(got, mu, log_sigma2, orders, eps)


def test_first_derivatives_by_the_ufuncs_are_those_of_the_kernel():
    at = golden.load("neg_kl_normal").args()
    for i, orders in ((1, (1, 0)), (2, (0, 1))):
        found = operations.of_normal(*orders).ufunc(*at)
        np.testing.assert_array_equal(found, special.neg_kl_normal_and_grad(*at)[i])


@pytest.mark.parametrize("order", [3, 4])
def test_of_log_alpha(sample, order):
    mu, log_sigma2, eps = sample
    x = log_sigma2 - 2.0 * np.log(np.abs(mu))
    with np.errstate(all="ignore"):
        got = derivatives.neg_kl_derivative(np, x, order)
    for at, found in zip(x, got, strict=True):
        with mpmath.workdps(160):
            u = mpmath.exp(-mpmath.mpf(float(at))) / 2
            true, following = in_log_alpha(u, order), in_log_alpha(u, order + 1)
        assert ulps(found, true, following, eps) <= ALLOWED[order], at


def test_at_no_mean():
    """Even derivatives in mu are those of -u + u^2/3 - ...; odd ones are 0."""
    for dtype in ("float64", "float32"):
        mu, log_sigma2 = np.zeros(1, dtype), np.full(1, math.log(0.25), dtype)
        for orders, wanted in (
            ((2, 0), -4.0),
            ((2, 1), 4.0),
            ((2, 2), -4.0),
            ((4, 0), 2.0 * 4.0**2),
            ((1, 1), 0.0),
            ((0, 2), 0.0),
            ((3, 0), 0.0),
        ):
            with np.errstate(all="ignore"):
                (got,) = derivatives.neg_kl_normal_derivative(np, mu, log_sigma2, *orders)
            assert got == pytest.approx(wanted, rel=4 * float(np.finfo(dtype).eps), abs=0.0), orders


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_at_no_mean_and_no_variance(dtype):
    """u is 0 there, although 1/sigma^2 overflows."""
    log_sigma2 = np.array([-700.0, -1500.0, -1e4, -1e30], dtype)[dtype == "float64" :]
    for orders in ORDERS:
        with np.errstate(all="ignore"):
            got = derivatives.neg_kl_normal_derivative(
                np, np.zeros_like(log_sigma2), log_sigma2, *orders
            )
        sign = {(2, 0): -math.inf, (2, 1): math.inf, (2, 2): -math.inf, (4, 0): math.inf}
        np.testing.assert_array_equal(got, sign.get(orders, 0.0), err_msg=str(orders))


@pytest.mark.parametrize("orders", [(1, 1), (3, 0), (3, 1), (2, 0)], ids=str)
@pytest.mark.parametrize("point", [(1e-15, -60.0), (1e-13, -58.0), (1e15, 70.0), (1e12, 80.0)])
def test_beyond_the_range_of_a_variance(point, orders):
    """The derivative is finite in float32 even if 1/sigma^2 or its square overflows."""
    mu, log_sigma2 = (np.full(1, p, "float32") for p in point)
    with np.errstate(all="ignore"):
        (got,) = derivatives.neg_kl_normal_derivative(np, mu, log_sigma2, *orders)
    true = truth(mu[0], log_sigma2[0], orders)
    tiny, largest = (float(getattr(np.finfo("float32"), name)) for name in ("tiny", "max"))
    if abs(true) < largest:
        assert abs(mpmath.mpf(float(got)) - true) <= 4 * 2.0**-23 * abs(true) + tiny
    else:
        assert np.isinf(got)
