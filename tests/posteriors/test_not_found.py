"""Densities of which the quadrature misses a part, and the errors that say so."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from logunif_kl._convention import PROPER_CONSTANT
from logunif_kl.posteriors import neg_kl_posterior, neg_kl_split
from tests.posteriors.exact import neg_kl_of

mixture = pytest.mark.skipif(not hasattr(stats, "Mixture"), reason="an older SciPy")


def spike(sigma):
    """A tenth of the probability in a spike at 0.37."""
    parts = [stats.Normal(mu=0.37, sigma=sigma), stats.Normal(mu=0.0, sigma=1.0)]
    return stats.Mixture(parts, weights=[0.1, 0.9])


def exact(sigma):
    """By mpmath, with panels that end at multiples of sigma."""
    with mpmath.workdps(30):
        center, width = mpmath.mpf(0.37), mpmath.mpf(sigma)
        ends = [-40, -8, -4, -2, -1, -0.1, 0, 0.1, 0.25, center, 0.5, 1, 2, 4, 8, 40]
        ends += [center + s * m * width for s in (-1, 1) for m in (0.5, 1, 2, 4, 8, 14, 30, 100)]
    return neg_kl_of(lambda w: (mpmath.npdf(w, center, width) + 9 * mpmath.npdf(w)) / 10, ends)


@mixture
@pytest.mark.parametrize("sigma", [1e-3, 1e-6, 1e-9, 1e-12])
def test_a_spike(sigma):
    value, error = neg_kl_posterior(spike(sigma), return_error=True)
    assert abs(value - exact(sigma)) <= error
    if sigma >= 1e-6:
        assert error < 1e-8
    elif sigma == 1e-12:
        assert error == math.inf
        with pytest.raises(ArithmeticError, match=r"with 0\.9\d* of the probability: name the"):
            neg_kl_posterior(spike(sigma))


class Slow(stats.rv_continuous):
    """log w has the density 1/t^2 from 1 on: its entropy is 2, and its mean is not finite."""

    def _pdf(self, x):
        return 1.0 / (x * np.log(x) ** 2)

    def _cdf(self, x):
        return 1.0 - 1.0 / np.log(x)


def test_probability_beyond_the_range():
    value, error = neg_kl_posterior(Slow(a=math.e, name="slow")(), return_error=True)
    assert abs(value - (2.0 - PROPER_CONSTANT)) <= error < 0.1
    with pytest.raises(ArithmeticError, match="was found only to within"):
        neg_kl_posterior(Slow(a=math.e, name="slow")())


class TwiceByItsDensity(stats.rv_continuous):
    """SciPy takes quantiles from the integral of the density, which reaches 1 at 0."""

    def _pdf(self, x):
        return 2.0 * stats.norm.pdf(x)


class Twice(TwiceByItsDensity):
    def _cdf(self, x):
        return stats.norm.cdf(x)


@pytest.mark.parametrize("function", [neg_kl_posterior, neg_kl_split])
@pytest.mark.parametrize("kind", [Twice, TwiceByItsDensity])
def test_an_integral_of_two(function, kind):
    dist = kind(name="twice")()
    assert (dist.ppf(0.99) < 0.0) == (kind is TwiceByItsDensity)
    with pytest.raises(ArithmeticError, match=r"twice\(loc=0.0, scale=1.0\) integrates to 2 or m"):
        function(dist)
    with pytest.raises(ArithmeticError, match="but it must integrate to 1: divide its pdf"):
        neg_kl_posterior(dist, return_error=True)


# By mpmath from the quantile function Q: the mean over p of log(Q'(p)/|Q(p)|).
SINGULAR_ENDS = [
    (stats.genextreme(5), -2.61428090485),
    (stats.genextreme(10), -6.02006857787),
    (stats.genextreme(-10), -0.247911928854),
    (stats.genextreme(20), -13.3527493294),
    (stats.genextreme(5, 0.3, 2), -2.98153444458),
    (stats.genextreme(-10, -1, 0.5), -1.54190039025),
    (stats.genextreme(20, 1, 1), -15.3630787401),
    (stats.genpareto(-10), -8.59807413845),
    (stats.genpareto(-5), -4.15650627519),
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
    assert error < 1e-11
    # Simpson's rule over log|w| on each side, to 1e-9.
    t = np.linspace(-60.0, 5.0, 400_001)
    total = 0.0
    for sign in (-1.0, 1.0):
        log_q = stats.norminvgauss.logpdf(sign * np.exp(t), 1.25, 0.5)
        entropy = -np.exp(log_q + t) * (log_q + t)
        weights = np.full(t.size, 2.0)
        weights[1::2] = 4.0
        weights[0] = weights[-1] = 1.0
        total += float(np.sum(weights * entropy) * (t[1] - t[0]) / 3.0)
    of_normal = 0.5 * math.log(2.0 * math.pi * math.e) + (np.euler_gamma + math.log(2.0)) / 2.0
    assert abs(value - (total - of_normal)) < 1e-8


class Half(stats.rv_continuous):
    """SciPy's search for a quantile above 1/2 ends in an error of its solver."""

    def _pdf(self, x):
        return 0.5 * stats.norm.pdf(x)

    def _cdf(self, x):
        return 0.5 * stats.norm.cdf(x)


def test_quantiles_that_do_not_exist():
    half = Half(name="half")()
    with pytest.raises(ValueError, match="solver"):
        half.ppf(0.9)
    with pytest.raises(ArithmeticError, match=r"found only to within inf, with 0\.5 of the prob"):
        neg_kl_posterior(half)
