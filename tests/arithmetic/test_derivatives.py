"""Derivatives of second and higher order, against a recursion in 160 digits."""

import functools
import math

import mpmath
import numpy as np
import pytest

from logunif_kl._arithmetic import derivatives, tables

ORDERS = [(j, total - j) for total in (2, 3, 4) for j in range(total + 1)]
TABLES = [("float64", 2.0**-52), ("float32", 2.0**-23)]
# By order: errors in units of the last place of the derivative and of the next one in log_sigma2,
# because an error in u moves the result by the next one. The fourth derivative differentiates fits
# of the second twice.
ALLOWED = {2: 4.0, 3: 6.0, 4: 1024.0}


@functools.cache
def polynomials(n: int) -> tuple[dict, dict]:
    """Polynomials a, b with D^(n+1)(-KL) = a(u) G + b(u), G = u F'(u) = D(-KL).

    F' = dawson(sqrt u)/sqrt u, so that u dG/du = (G + u - 2 u G)/2; and D = -u d/du.
    """
    if n == 0:
        return {0: mpmath.mpf(1)}, {}
    before, found = polynomials(n - 1), ({}, {})

    def add(which, power, value):
        found[which][power] = found[which].get(power, 0) - value

    for which in (0, 1):
        for power, c in before[which].items():
            add(which, power, power * c)
    for power, c in before[0].items():
        add(0, power, c / 2)
        add(0, power + 1, -c)
        add(1, power + 1, c / 2)
    return found


def in_log_alpha(u, n):
    """D^n(-KL) at u, for n >= 1."""
    g = u * mpmath.hyp1f1(1, mpmath.mpf(3) / 2, -u)
    a, b = (sum(c * u**k for k, c in p.items()) for p in polynomials(n - 1))
    return a * g + b


def truth(mu, log_sigma2, orders):
    """By d^(j+k) = mu^-j (-2D) (-2D - 1) ... (-2D - j + 1) D^k."""
    j, k = orders
    operator = {k: 1}
    for i in range(j):
        longer = {}
        for n, c in operator.items():
            longer[n + 1] = longer.get(n + 1, 0) - 2 * c
            longer[n] = longer.get(n, 0) - i * c
        operator = longer
    with mpmath.workdps(160):
        mu, log_sigma2 = mpmath.mpf(float(mu)), mpmath.mpf(float(log_sigma2))
        u = mu**2 * mpmath.exp(-log_sigma2) / 2
        return sum(c * in_log_alpha(u, n) for n, c in operator.items() if c) / mu**j


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
    bounds = np.array(tables.table("neg_kl_hess", dtype).bounds)
    beside = [bounds * (1.0 + n * eps) for n in (-40, -1, 0, 1, 40)]
    x = np.concatenate([rng.uniform(-36.0, 14.0, 100), rng.uniform(-4.5, 0.5, 150), *beside])
    mu = rng.choice([-1.0, 1.0], x.size) * np.exp(rng.uniform(-2.0, 2.0, x.size))
    return mu.astype(dtype), (x + 2.0 * np.log(np.abs(mu))).astype(dtype), eps


@pytest.mark.parametrize("orders", ORDERS, ids=str)
def test_of_normal(sample, orders):
    mu, log_sigma2, eps = sample
    with np.errstate(all="ignore"):
        got = derivatives.neg_kl_normal_derivative(np, mu, log_sigma2, *orders)
    assert got.dtype == mu.dtype
    for point in zip(mu, log_sigma2, got, strict=True):
        true = truth(*point[:2], orders)
        unit = abs(true) + abs(truth(*point[:2], (orders[0], orders[1] + 1)))
        assert abs(mpmath.mpf(float(point[2])) - true) <= ALLOWED[sum(orders)] * eps * unit, point


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
        error = abs(mpmath.mpf(float(found)) - true)
        assert error <= ALLOWED[order] * eps * (abs(true) + abs(following)), at


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
