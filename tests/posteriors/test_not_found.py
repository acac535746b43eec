"""Densities of which the quadrature misses a part, and the errors that say so."""

import math

import mpmath
import pytest
from scipy import stats
from scipy.special import ndtr

from logunif_kl.posteriors import neg_kl_posterior, neg_kl_split
from tests.posteriors.exact import bell, neg_kl_of

mixtures = pytest.mark.skipif(not hasattr(stats, "Mixture"), reason="an older SciPy")


def mixture(*parts):
    """A mixture of Gaussians, each with its probability, mean and standard deviation."""
    gaussians = [stats.Normal(mu=mu, sigma=sigma) for _, mu, sigma in parts]
    return stats.Mixture(gaussians, weights=[p for p, _, _ in parts])


def spike(p, mu, sigma):
    """N(0, 1) with a spike of probability p, and its -KL by mpmath."""
    with mpmath.workdps(30):
        center, width = mpmath.mpf(mu), mpmath.mpf(sigma)
        ends = [s * end for s in (-1, 1) for end in (0, 0.1, 1, 2, 4, 8, 40)]
        ends += [center + s * m * width for s in (-1, 1) for m in (0, 0.5, 1, 2, 4, 8, 14, 30, 100)]
        share = mpmath.mpf(p)
    exact = neg_kl_of(
        lambda w: share * mpmath.npdf(w, center, width) + (1 - share) * mpmath.npdf(w), ends
    )
    return mixture((p, mu, sigma), (1.0 - p, 0.0, 1.0)), exact


@mixtures
@pytest.mark.parametrize("sigma", [1e-6, 1e-9, 1e-12])
def test_a_spike(sigma):
    dist, exact = spike(0.1, 0.37, sigma)
    value, error = neg_kl_posterior(dist, return_error=True)
    assert abs(value - exact) <= error
    if sigma == 1e-6:
        assert error < 1e-8
    elif sigma == 1e-12:
        assert error == math.inf
        with pytest.raises(ArithmeticError, match=r"with 0\.9\d* of the probability: name the"):
            neg_kl_posterior(dist)


@mixtures
def test_a_spike_that_is_missed_is_found_by_a_point():
    """Its probability is below the least quantile that is asked for."""
    dist, exact = spike(1e-3, 2.0, 1e-6)
    assert neg_kl_posterior(dist, return_error=True)[1] == math.inf
    value, error = neg_kl_posterior(dist, points=[2.0], return_error=True)
    assert abs(value - exact) <= error < 1e-9


@mixtures
@pytest.mark.parametrize("sigma", [1e-4, 1e-8])
def test_a_named_point_is_the_middle_of_a_narrow_part(sigma):
    dist, truth = spike(0.5, 3.0, sigma)
    value, error = neg_kl_posterior(dist, points=[3.0], return_error=True)
    assert abs(value - truth) <= error < 1e-7


@mixtures
def test_two_narrow_parts():
    parts = ((0.25, -1.0, 1e-3), (0.75, 1.0, 1e-3))
    value, error = neg_kl_posterior(mixture(*parts), return_error=True)
    apart = sum(p * (neg_kl_posterior(stats.norm(m, s)) - math.log(p)) for p, m, s in parts)
    assert abs(value - apart) <= error < 1e-11


class TwiceByItsDensity(stats.rv_continuous):
    """SciPy takes quantiles from the integral of the density, which reaches 1 at 0."""

    def _pdf(self, x):
        return 2.0 * bell(x)


class Twice(TwiceByItsDensity):
    def _cdf(self, x):
        return ndtr(x)


def test_an_integral_of_two():
    dist, by_density = Twice(name="twice")(), TwiceByItsDensity(name="twice")()
    assert dist.ppf(0.99) > 0.0 > by_density.ppf(0.99)
    for of in (dist, by_density):
        with pytest.raises(ArithmeticError, match=r"twice\(loc=0.0, scale=1.0\) integrates to 2"):
            neg_kl_posterior(of, return_error=True)
    with pytest.raises(ArithmeticError, match="but it must integrate to 1: divide its pdf"):
        neg_kl_split(dist)


# By mpmath from the quantile function Q: the mean over p of log(Q'(p)/|Q(p)|).
SINGULAR_ENDS = [
    (stats.genextreme(20), -13.3527493294),
    (stats.genextreme(5, 0.3, 2), -2.98153444458),
    (stats.genextreme(-10, -1, 0.5), -1.54190039025),
    (stats.genpareto(-10, 0.2, 3), -9.19559174793),
]


@pytest.mark.parametrize(("dist", "expected"), SINGULAR_ENDS)
def test_densities_singular_at_an_end_where_rounding_is_coarse(dist, expected):
    value, error = neg_kl_posterior(dist, return_error=True)
    assert abs(value - expected) <= error + 1e-11 * abs(expected)
    assert error < 1e-7
    assert neg_kl_split(dist).total == pytest.approx(expected, abs=1e-7)


def test_an_extrapolated_tail_does_not_count_as_too_much_probability():
    value, error = neg_kl_posterior(stats.genhalflogistic(5), return_error=True)
    assert abs(value + 5.90683112606) <= error
    with pytest.raises(ArithmeticError, match=r"was found only to within 1.*return_error=True"):
        neg_kl_posterior(stats.genhalflogistic(5))


def test_quantiles_that_scipy_cannot_find():
    value, error = neg_kl_posterior(stats.norminvgauss(1.25, 0.5), return_error=True)
    # By mpmath from the density.
    assert abs(value - 0.06435626289726537) <= error < 1e-11


class Half(stats.rv_continuous):
    """SciPy's search for a quantile above 1/2 ends in an error of its solver."""

    def _pdf(self, x):
        return 0.5 * bell(x)

    def _cdf(self, x):
        return 0.5 * ndtr(x)


def test_quantiles_that_do_not_exist():
    half = Half(name="half")()
    with pytest.raises(ValueError, match="solver"):
        half.ppf(0.9)
    with pytest.raises(ArithmeticError, match=r"found only to within inf, with 0\.5 of the prob"):
        neg_kl_posterior(half)
