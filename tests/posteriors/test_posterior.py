"""-KL of any posterior: the Gaussian, independent computations, error bounds, refusals."""

import math
import re

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import logunif_kl as lk
from logunif_kl._convention import PROPER_CONSTANT
from logunif_kl.posteriors import kl_posterior, neg_kl_posterior
from tests.posteriors.exact import bell, neg_kl_of

CONVENTIONS = [{}, {"zero_at": 1.0}, {"zero_at": 0.01}, {"log_c": 0.3}]


class LogCauchy(stats.rv_continuous):
    """log w is standard Cauchy: neither H(q) nor E log|w| exists, but their difference does."""

    def _logpdf(self, x):
        return -np.log(np.pi * x) - np.log1p(np.log(x) ** 2)

    def _cdf(self, x):
        return 0.5 + np.arctan(np.log(x)) / np.pi

    def _ppf(self, q):
        return np.exp(np.tan(np.pi * (q - 0.5)))


class Endless(stats.rv_continuous):
    """t = log w has the density 1/(t log(t)^2) above e: -KL is infinite."""

    def _logpdf(self, x):
        t = np.log(x)
        return -t - np.log(t) - 2.0 * np.log(np.log(t))

    def _cdf(self, x):
        return 1.0 - 1.0 / np.log(np.log(x))

    def _ppf(self, q):
        return np.exp(np.exp(1.0 / (1.0 - q)))


class HalfAnAtom(stats.rv_continuous):
    """Half of the probability is at w = 1, and the density does not have it."""

    def _pdf(self, x):
        return 0.5 * bell(x)

    def _cdf(self, x):
        return 0.5 * ndtr(x) + 0.5 * (np.asarray(x) >= 1.0)


class TestGaussian:
    @pytest.mark.parametrize("convention", CONVENTIONS)
    @pytest.mark.parametrize("method", ["auto", "quadrature"])
    @pytest.mark.parametrize("mu", [0.0, 1e-9, -0.3, 1.0, 7.0, -1e5])
    def test_agrees_with_neg_kl_normal(self, convention, method, mu):
        sigma = 0.37
        options = {"method": method, "return_error": True} | convention
        value, error = neg_kl_posterior(stats.norm(mu, sigma), **options)
        exact = float(lk.neg_kl_normal(mu, 2.0 * math.log(sigma), **convention))
        assert abs(value - exact) <= min(error, 1e-12)

    @pytest.mark.parametrize("options", [{}, {"log_c": 0.3}, {"prior": stats.t(3.0)}])
    def test_kl_is_the_negative(self, options):
        dist = stats.laplace(0.3, 0.1)
        value, error = neg_kl_posterior(dist, return_error=True, **options)
        assert kl_posterior(dist, **options) == -value
        assert lk.kl_posterior(dist, return_error=True, **options) == (-value, error)
        assert math.copysign(1.0, kl_posterior(stats.norm())) == 1.0


mp = mpmath.mpf
SHIFTED = {
    "gumbel_r": (
        stats.gumbel_r(0.2),
        lambda w: -(w - mp(0.2)) - mpmath.exp(-(w - mp(0.2))),
        [-5, -3, -1, -0.1, 0, 0.1, 1, 4, 10, 25, 80],
    ),
    "gamma": (
        stats.gamma(3.0, loc=-1.0),
        lambda w: 2 * mpmath.log(w + 1) - (w + 1) - mpmath.log(2),
        [-1, -0.5, -0.1, 0, 0.1, 1, 4, 10, 25, 80],
    ),
    "triang": (
        stats.triang(0.25, loc=-1.0, scale=4.0),
        lambda w: mpmath.log((1 + w) / 2 if w < 0 else (3 - w) / 6),
        [-1, -0.5, -0.1, 0, 0.1, 0.5, 1, 2, 3],
    ),
}


class TestTruth:
    @pytest.mark.parametrize("name", SHIFTED)
    def test_where_no_closed_form_is_known(self, name):
        dist, log_density, points = SHIFTED[name]
        value, error = neg_kl_posterior(dist, return_error=True)
        exact = neg_kl_of(lambda w: mpmath.exp(log_density(w)), points)
        assert abs(value - exact) <= error < 1e-11

    @pytest.mark.parametrize("mu", [1.0, 1e4, 1e8, 1e15])
    def test_a_narrow_posterior_is_not_lost_to_rounding(self, mu):
        value = neg_kl_posterior(stats.norm(mu, 1.0), method="quadrature")
        assert value == pytest.approx(float(lk.neg_kl_normal(mu, 0.0)), rel=1e-13)


DIFFICULT = [
    *(stats.gamma(1e-3), stats.gamma(1e-5), stats.gamma(1e6), stats.weibull_min(0.01)),
    *(stats.beta(0.01, 0.01), stats.beta(0.1, 0.2), stats.arcsine(), stats.t(0.01)),
    *(stats.lognorm(100.0), stats.lognorm(1e-8), stats.uniform(-1.0 + 1e-6), stats.uniform(1e-12)),
    *(stats.cauchy(1e-9), stats.pareto(0.01), stats.powerlaw(1e-3), stats.dgamma(0.01)),
]


class TestErrors:
    @pytest.mark.parametrize("dist", DIFFICULT, ids=lambda d: f"{d.dist.name}{d.args}")
    def test_the_error_bounds_the_difference_from_the_closed_form(self, dist):
        exact, rounding = neg_kl_posterior(dist, method="closed", return_error=True)
        found, error = neg_kl_posterior(dist, method="quadrature", return_error=True)
        assert abs(found - exact) <= error + rounding
        assert rounding < 1e-12

    def test_the_noise_of_a_density_is_not_resolved(self, monkeypatch):
        """Next to z = 1e6, the rounding of z changes the log density by 1e-4."""
        dist, calls = stats.truncnorm(1e6, math.inf), []
        log_density = dist.dist._logpdf
        monkeypatch.setattr(dist.dist, "_logpdf", lambda *z: calls.append(z) or log_density(*z))
        value, error = neg_kl_posterior(dist, return_error=True)
        assert abs(value - -28.68514107186696) <= error < 0.02
        assert len(calls) < 2000

    def test_log_cauchy_has_a_value_and_a_large_error(self):
        dist = LogCauchy(a=0.0, name="log_cauchy")()
        value, error = neg_kl_posterior(dist, return_error=True)
        assert abs(value - (math.log(4.0 * math.pi) - PROPER_CONSTANT)) <= error < 0.05
        with pytest.raises(ArithmeticError, match=r"was found only to within 2\.\d+e-02"):
            neg_kl_posterior(dist)

    @pytest.mark.parametrize(
        "dist",
        [Endless(a=math.exp(math.e), name="endless")(), HalfAnAtom(name="half_an_atom")()],
        ids=lambda d: d.dist.name,
    )
    def test_what_has_no_value_is_refused(self, dist):
        value, error = neg_kl_posterior(dist, return_error=True)
        assert error > abs(value)
        with pytest.raises(ArithmeticError, match="of the probability: name the jumps"):
            neg_kl_posterior(dist)


SENTENCES = [
    (lambda: stats.norm, TypeError, "dist must be one distribution, but the family norm was given"),
    (lambda: stats.poisson(3.0), TypeError, "dist must be continuous, but poisson is discrete"),
    (lambda: stats.poisson, TypeError, "dist must be continuous, but poisson is discrete"),
    (lambda: 3.0, TypeError, "dist must be a frozen continuous distribution of scipy.stats, but"),
    (lambda: stats.multivariate_normal([0.0, 1.0]), TypeError, "but multivariate_normal_frozen"),
    (lambda: stats.norm([0.0, 1.0]), ValueError, "but loc of norm has shape (2,): pass its"),
    (lambda: stats.gamma(a=[[2.0]]), ValueError, "but a of gamma has shape (1, 1): pass its"),
    (lambda: stats.norm(1.0, 0.0), ValueError, "norm(loc=1.0, scale=0.0) is not a continuous"),
    (lambda: stats.norm(math.nan), ValueError, "norm(loc=nan, scale=1.0) is not a continuous"),
    (lambda: stats.gamma(-1.0), ValueError, "gamma(a=-1.0, loc=0.0, scale=1.0) is not a"),
    (lambda: stats.vonmises(2.0), ValueError, "vonmises(kappa=2.0, loc=0.0, scale=1.0) is a distr"),
    (lambda: stats.uniform(0.0, math.inf), ValueError, "(a scale of 0 gives an atom, with"),
]


class TestRefusals:
    @pytest.mark.parametrize(("make", "kind", "sentence"), SENTENCES)
    def test_of_distributions(self, make, kind, sentence):
        with pytest.raises(kind, match=re.escape(sentence)):
            neg_kl_posterior(make())

    @pytest.mark.parametrize(
        ("options", "kind", "sentence"),
        [
            ({"method": "exact"}, ValueError, "method must be one of auto, closed, quadrature"),
            ({"points": 3.0}, TypeError, "points must be finite weights at which the density"),
            ({"points": [math.nan]}, TypeError, "points must be finite weights"),
            ({"points": ["1"]}, TypeError, "points must be finite weights"),
            ({"zero_at": 1.0, "log_c": 0.0}, ValueError, "were both given"),
            ({"zero_at": 0.0}, ValueError, "zero_at must be a positive alpha"),
        ],
    )
    def test_of_options(self, options, kind, sentence):
        with pytest.raises(kind, match=re.escape(sentence)):
            neg_kl_posterior(stats.norm(), **options)


@pytest.mark.skipif(not hasattr(stats, "Normal"), reason="SciPy before 1.15")
class TestNewStyle:
    def test_the_gaussian_and_the_uniform_are_known(self):
        for new, old in (
            (stats.Normal(mu=0.3, sigma=0.1), stats.norm(0.3, 0.1)),
            (stats.Uniform(a=-1.0, b=0.5), stats.uniform(-1.0, 1.5)),
        ):
            assert neg_kl_posterior(new) == neg_kl_posterior(old)

    def test_others_are_integrated(self):
        gamma = stats.make_distribution(stats.gamma)(a=2.0)
        value, error = neg_kl_posterior(gamma, return_error=True)
        assert abs(value - neg_kl_posterior(stats.gamma(2.0))) <= error < 1e-11

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"loc of norm has shape \(2,\)"):
            neg_kl_posterior(stats.Normal(mu=[0.0, 1.0]))
        gammas = stats.make_distribution(stats.gamma)
        with pytest.raises(ValueError, match=r"parameters of CustomDistribution have shape \(2,\)"):
            neg_kl_posterior(gammas(a=[1.0, 2.0]))
        for dist in (gammas(a=-1.0), stats.Normal(mu=0.0, sigma=-1.0)):
            with pytest.raises(ValueError, match="is not a continuous distribution"):
                neg_kl_posterior(dist)
