"""Proper priors, which tend to the log-uniform prior."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from logunif_kl.posteriors import (
    Density,
    HorseshoePrior,
    PowerPrior,
    TruncatedLogUniform,
    neg_kl_posterior,
)
from tests.priors import HORSESHOE

POSTERIORS = [stats.norm(1.0, 0.5), stats.norm(0.0, 2.0), stats.laplace(0.3, 0.1), stats.gamma(2.0)]


@pytest.mark.parametrize("df", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("posterior", POSTERIORS, ids=lambda d: d.dist.name)
def test_student(posterior, df):
    prior = stats.t(df, scale=0.7)
    value, error = neg_kl_posterior(posterior, prior=prior, return_error=True)

    def integrand(w):
        q = posterior.pdf(w)
        return q * (prior.logpdf(w) - posterior.logpdf(w)) if q > 0.0 else 0.0

    ends = [*posterior.ppf([1e-15, 0.1, 0.5, 0.9]), posterior.isf(1e-15)]
    expected = sum(
        integrate.quad(integrand, low, high, limit=200, epsabs=1e-13)[0]
        for low, high in itertools.pairwise(ends)
    )
    assert error < 1e-9
    assert value == pytest.approx(expected, abs=1e-9)
    assert value < 0.0 or df < 1.0


@pytest.mark.parametrize("df", [3.0, 50.0, 1e3, 1e5, 3e5, 2e6, 1e12, math.inf])
@pytest.mark.parametrize(("mu", "most"), [(0.0, 1e-13), (0.6, 1e-9)])
def test_student_of_many_degrees(df, mu, most):
    """The error is within its bound, against mpmath with digits to spare."""
    sigma = 0.5
    value, error = neg_kl_posterior(stats.norm(mu, sigma), prior=stats.t(df), return_error=True)
    with mpmath.workdps(40):
        second_moment = mpmath.mpf(mu) ** 2 + mpmath.mpf(sigma) ** 2
        expected = mpmath.mpf(1) / 2 - second_moment / 2 + mpmath.log(sigma)
        if df < math.inf:
            n = mpmath.mpf(df)

            def integrand(x):
                w = mu + sigma * x
                return mpmath.npdf(x) * mpmath.log1p(w * w / n)

            mean = mpmath.quad(integrand, range(-14, 15, 2))
            of_prior = mpmath.loggamma(n / 2 + mpmath.mpf(0.5)) - mpmath.loggamma(n / 2)
            of_prior -= mpmath.log(n * mpmath.pi) / 2 + (n + 1) / 2 * mean
            expected = of_prior + mpmath.log(2 * mpmath.pi * mpmath.e * mpmath.mpf(sigma) ** 2) / 2
        assert abs(value - expected) <= error < most
    assert value < 0.0


@pytest.mark.parametrize(("given", "exact"), HORSESHOE)
def test_horseshoe(given, exact):
    """Against quadrature in 50 digits, within the error that is returned."""
    mu, log_sigma2, scale = given
    posterior = stats.norm(mu, math.exp(0.5 * log_sigma2))
    prior = HorseshoePrior(scale)
    value, error = neg_kl_posterior(posterior, prior=prior, return_error=True)
    assert abs(value - exact[0]) <= error + 4e-15 * (1.0 + abs(exact[0]))
    assert error < 1e-8


@pytest.mark.parametrize("posterior", POSTERIORS, ids=lambda d: d.dist.name)
@pytest.mark.parametrize("c", [-0.5, 0.0, 0.5, 1.0, 1.5])
def test_power(posterior, c):
    """H - c E log|w|, from the uniform and the log-uniform prior."""
    value, error = neg_kl_posterior(posterior, prior=PowerPrior(c), return_error=True)
    entropy = float(posterior.entropy())
    log_uniform = neg_kl_posterior(posterior, log_c=0.0)
    assert abs(value - (entropy + c * (log_uniform - entropy))) <= error + 1e-9
    assert error < 1e-7


@pytest.mark.parametrize(
    ("posterior", "c"),
    [(stats.dgamma(0.01), 3.0), (stats.dgamma(0.02), 100.0), (stats.t(0.05), 0.5)],
    ids=lambda each: each.dist.name if hasattr(each, "dist") else str(each),
)
def test_power_of_what_is_beyond_the_range_of_floats(posterior, c):
    """The error covers mass at so small or so large w that log p(w) there decides the integral."""
    value, error = neg_kl_posterior(posterior, prior=PowerPrior(c), return_error=True)
    (a,) = posterior.args
    with mpmath.workdps(30):
        if posterior.dist.name == "dgamma":
            mean_log = mpmath.digamma(a)
            entropy = a + mpmath.loggamma(a) + (1 - a) * mean_log + mpmath.log(2)
        else:
            spread = mpmath.digamma((a + 1) / 2) - mpmath.digamma(a / 2)
            entropy = (a + 1) / 2 * spread + mpmath.log(a) / 2
            entropy += mpmath.log(mpmath.beta(a / 2, 0.5))
            mean_log = (mpmath.log(a) + mpmath.digamma(0.5) - mpmath.digamma(a / 2)) / 2
        exact = float(entropy - c * mean_log)
    assert abs(value - exact) <= error < 1.0


def test_power_refusals():
    with pytest.raises(ValueError, match="c must be finite, but inf was given: pass 1"):
        PowerPrior(math.inf)


def test_a_large_scale_of_a_normal_prior():
    found = neg_kl_posterior(stats.norm(3.0, 0.5), prior=stats.t(math.inf, scale=20.0))
    assert found == pytest.approx(0.5 * (1.0 - 9.25 / 400.0) + math.log(0.5 / 20.0), rel=1e-13)


@pytest.mark.parametrize("posterior", POSTERIORS, ids=lambda d: d.dist.name)
def test_student_tends_to_the_improper_prior(posterior):
    """p(w) |w|/(df/2) -> 1 as df -> 0."""
    improper = neg_kl_posterior(posterior, log_c=0.0)
    errors = [
        abs(neg_kl_posterior(posterior, prior=stats.t(df)) - math.log(df / 2.0) - improper)
        for df in (1e-2, 1e-4, 1e-6)
    ]
    # A posterior with a density at 0 has a probability of the order of sqrt(df) where |w| is less.
    assert errors[0] > 5.0 * errors[1] > 25.0 * errors[2]
    assert errors[2] < 1e-3


def test_truncated_tends_to_the_improper_prior():
    """The posterior is cut off where the prior is (Hron et al. 2018)."""
    improper = neg_kl_posterior(stats.norm(1.0, 0.5), log_c=0.0)
    errors = []
    for low in (1e-2, 1e-4, 1e-6):
        prior = TruncatedLogUniform(low, 10.0)
        mass = 1.0 - (stats.norm.cdf(low, 1.0, 0.5) - stats.norm.cdf(-low, 1.0, 0.5))

        def cut(w, low=low, mass=mass):
            return stats.norm.pdf(w, 1.0, 0.5) / mass if low < abs(w) < 10.0 else 0.0

        posterior = Density(cut, support=(-10.0, 10.0), points=(-low, low, 1.0))
        value = neg_kl_posterior(posterior, log_c=prior.log_c)
        errors.append(abs(value - prior.log_c - improper))
    assert errors[0] > 10.0 * errors[1] > 100.0 * errors[2]


def test_truncated():
    prior = TruncatedLogUniform(1e-3, 10.0)
    found = neg_kl_posterior(stats.uniform(0.5, 1.0), prior=prior)
    w = np.linspace(0.5, 1.5, 200_001)
    assert found == pytest.approx(np.trapezoid(-np.log(2.0 * math.log(1e4) * w), w), abs=1e-9)
    both = neg_kl_posterior(stats.uniform(-1.0, 0.5), prior=prior)
    assert both == neg_kl_posterior(stats.uniform(0.5, 0.5), prior=prior)
    # The prior itself, of one sign, and of both.
    of_one_sign = neg_kl_posterior(stats.loguniform(1e-3, 10.0), prior=prior)
    assert of_one_sign == pytest.approx(-math.log(2.0), abs=1e-12)


@pytest.mark.parametrize(
    "posterior",
    [*POSTERIORS, stats.uniform(-1.0, 2.0), stats.uniform(9.0, 2.0)],
    ids=lambda d: f"{d.dist.name}{d.args}",
)
def test_truncated_of_posteriors_that_reach_outside(posterior):
    prior = TruncatedLogUniform(1e-3, 10.0)
    assert neg_kl_posterior(posterior, prior=prior) == -math.inf
    assert neg_kl_posterior(posterior, prior=prior, return_error=True) == (-math.inf, 0.0)


@pytest.mark.parametrize("inside", [lambda w: 0.5 <= abs(w) <= 2.0, lambda w: 0.5 < abs(w) < 2.0])
def test_truncated_prior_of_itself(inside):
    """Even if the function is not 0 at the ends of the prior, whose probability a scan adds up."""

    def density(w):
        return 1.0 / (2.0 * math.log(4.0) * abs(w)) if inside(w) else 0.0

    itself = Density(density, support=(-2.0, 2.0), points=[-0.5, 0.5])
    found, error = neg_kl_posterior(itself, prior=TruncatedLogUniform(0.5, 2.0), return_error=True)
    assert abs(found) <= error < 1e-6
    assert neg_kl_posterior(itself, prior=TruncatedLogUniform(0.51, 2.0)) == -math.inf


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        (
            {"prior": 1.0},
            TypeError,
            r"prior must be a TruncatedLogUniform, HorseshoePrior, PowerPrior or a frozen "
            r"scipy\.stats\.t, but float 1\.0 was given: leave it out",
        ),
        ({"prior": stats.norm()}, TypeError, r"scipy\.stats\.t, but scipy\.stats\.norm was given"),
        (
            {"prior": stats.t(2.0, loc=1.0)},
            ValueError,
            r"symmetric about 0, but loc=1\.0 was given",
        ),
        ({"log_c": 0.0}, ValueError, "prior was given with zero_at or log_c, but with a prior"),
        ({"method": "closed"}, ValueError, r"norm\(.*\) and this prior: pass"),
    ],
)
def test_refusals(options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        neg_kl_posterior(stats.norm(1.0, 0.5), **{"prior": stats.t(2.0)} | options)


def test_truncated_refusals():
    with pytest.raises(ValueError, match="low and high must be sizes of weights with 0 < low"):
        TruncatedLogUniform(1.0, 1.0)
    with pytest.raises(TypeError, match="high must be one real number"):
        TruncatedLogUniform(1.0, "2")
