"""The parts of -KL for sign and magnitude (Eq. 37) add up to Eq. 38."""

import math

import mpmath
import pytest
from scipy import stats

from logunif_kl.posteriors import Split, neg_kl_posterior, neg_kl_split

TEN_AND_MORE = [
    *(stats.norm(1.0, 0.7), stats.norm(-0.01, 1.0), stats.uniform(-0.3, 1.0)),
    *(stats.laplace(0.2, 0.1), stats.cauchy(-1.0, 2.0), stats.expon(loc=-0.5)),
    *(stats.halfnorm(scale=0.1), stats.gamma(2.5), stats.lognorm(0.5), stats.t(3.0)),
    *(stats.logistic(), stats.weibull_max(1.5), stats.gumbel_r(0.2, 1.0)),
    *(stats.skewnorm(4.0, -0.5, 1.0), stats.beta(2.0, 3.0, loc=-0.4)),
]


@pytest.mark.parametrize("dist", TEN_AND_MORE, ids=lambda d: f"{d.dist.name}{d.args}")
def test_the_parts_add_up(dist):
    split = neg_kl_split(dist)
    whole, error = neg_kl_posterior(dist, return_error=True)
    assert abs(split.sign_bit + split.magnitude - split.total) <= split.error < 1e-10
    assert abs(split.total - whole) <= error
    q = float(dist.cdf(0.0))
    sign_bit = math.log(0.5) - sum(p * math.log(p) for p in (q, 1.0 - q) if p)
    assert split.sign_bit == pytest.approx(sign_bit, abs=1e-15)
    assert -math.log(2.0) <= split.sign_bit <= 1e-16


@pytest.mark.parametrize("convention", [{"zero_at": 1.0}, {"log_c": -2.0}])
def test_the_constant_is_part_of_the_magnitude(convention):
    dist = stats.norm(1.0, 0.7)
    split, plain = neg_kl_split(dist, **convention), neg_kl_split(dist)
    assert split.total == neg_kl_posterior(dist, **convention)
    assert split.sign_bit == plain.sign_bit
    assert abs(split.sign_bit + split.magnitude - split.total) <= split.error < 1e-10


@pytest.mark.parametrize("mu", [0.0, 0.5, -2.0])
def test_the_magnitude_is_that_of_the_truncated_posteriors(mu):
    """The formula as Kingma writes it, each expectation under a truncated Gaussian."""
    with mpmath.workdps(25):
        below = mpmath.ncdf(-mu)

        def expectation(probability, ends):
            def integrand(w):
                if w == 0:
                    return mpmath.mpf(0)
                q = mpmath.npdf(w, mu, 1) / probability
                return q * (mpmath.log(q) + mpmath.log(abs(w)))

            return mpmath.quad(integrand, ends)

        log_c = mpmath.log(2) + mpmath.mpf(0.25)
        right = [0, 0.1, 1, 2, 5, 14]
        magnitude = log_c - below * expectation(below, [-w for w in reversed(right)])
        magnitude -= (1 - below) * expectation(1 - below, right)
    split = neg_kl_split(stats.norm(mu, 1.0), log_c=0.25)
    assert abs(split.magnitude - float(magnitude)) <= split.error


@pytest.mark.parametrize("mu", [0.0, 5e-324, 1.5, -4.0])
def test_folding_takes_the_sign_bit_only(mu):
    """The magnitudes of |w| and of w are the same if q is symmetric, and differ otherwise."""
    whole = neg_kl_split(stats.norm(mu, 1.0))
    folded = neg_kl_split(stats.foldnorm(abs(mu)))
    assert folded.sign_bit == -math.log(2.0)
    assert folded.magnitude >= whole.magnitude - folded.error - whole.error
    if mu == 0.0:
        assert folded.magnitude == pytest.approx(whole.magnitude, abs=1e-12)


def test_it_is_a_named_tuple():
    split = neg_kl_split(stats.norm(1.0, 1.0))
    assert isinstance(split, Split)
    assert split._fields == ("sign_bit", "magnitude", "total", "error")
    assert all(type(part) is float for part in split)


def test_refusals_are_those_of_the_whole():
    with pytest.raises(TypeError, match="but the family norm was given"):
        neg_kl_split(stats.norm)
    with pytest.raises(ValueError, match="were both given"):
        neg_kl_split(stats.norm(), zero_at=1.0, log_c=0.0)
    with pytest.raises(TypeError, match="points must be finite weights"):
        neg_kl_split(stats.norm(), points=[None])
    with pytest.raises(ArithmeticError, match="was found only to within"):
        neg_kl_split(stats.t(0.01))
