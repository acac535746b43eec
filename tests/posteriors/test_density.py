"""Posteriors as functions and as kernel density estimates."""

import math
import re

import mpmath
import numpy as np
import pytest
from scipy import stats

from logunif_kl._convention import PROPER_CONSTANT
from logunif_kl.posteriors import Density, dropout_posterior, neg_kl_posterior, neg_kl_split
from tests.posteriors.exact import neg_kl_of, neg_kl_of_histogram

KNOWN = [
    *(stats.norm(1.0, 0.5), stats.norm(0.0, 1e-5), stats.laplace(1.0, 0.5), stats.cauchy(0.3)),
    *(stats.gamma(0.1), stats.beta(2.0, 3.0), stats.uniform(-1.0, 3.0), stats.lognorm(3.0)),
]
LOG_DENSITIES = pytest.mark.parametrize("log", [False, True], ids=["density", "logarithm"])


def of(dist, log=False, **options):
    return Density(dist.logpdf if log else dist.pdf, dist.support(), log=log, **options)


REFUSED = [
    (lambda: Density(3.0), TypeError, "pdf must be a function of one weight, but float 3.0"),
    (lambda: Density(abs, 1.0), TypeError, "support must be two numbers, but 1.0 was given"),
    (lambda: Density(abs, (0, "1")), TypeError, "two numbers, but (0, '1') was given: pass"),
    (lambda: Density(abs, (1, 0)), ValueError, "must ascend, but (1, 0) was given, which is"),
    (lambda: Density(abs, (0, math.nan)), ValueError, "must ascend, but (0, nan) was given"),
    (lambda: Density(abs, points=[None]), TypeError, "points must be finite weights at which"),
    (lambda: stats.norm.pdf, TypeError, "pass logunif_kl.posteriors.Density(it, support=(l"),
    (lambda: Density(lambda w: -1.0), ValueError, "not negative, or pass log=True if it is a log"),
    (lambda: Density(lambda w: [1, 2]), TypeError, "returned list [1, 2]: return a float"),
]


class TestFunction:
    @LOG_DENSITIES
    @pytest.mark.parametrize("dist", KNOWN, ids=lambda d: f"{d.dist.name}{d.args}")
    def test_against_closed_forms(self, dist, log):
        exact, rounding = neg_kl_posterior(dist, method="closed", return_error=True)
        value, error = neg_kl_posterior(of(dist, log), return_error=True)
        assert abs(value - exact) <= error + rounding
        assert error < 1e-11

    def test_a_point_finds_a_narrow_peak(self):
        dist = stats.norm(5.0, 1e-3)
        assert neg_kl_posterior(of(dist), return_error=True)[1] == math.inf
        with pytest.raises(ArithmeticError, match="narrow peaks of its density in points=, divide"):
            neg_kl_posterior(of(dist))
        exact = neg_kl_posterior(dist)
        for found, error in (
            neg_kl_posterior(of(dist, points=[5.0]), return_error=True),
            neg_kl_posterior(of(dist), points=[5.0], return_error=True),
            (neg_kl_split(of(dist), points=[5.0]).total, 1e-12),
        ):
            assert abs(found - exact) <= error < 1e-11

    @pytest.mark.parametrize("share", [0.5, 1.0 - 1e-6])
    def test_less_than_all_of_the_probability(self, share):
        less = Density(lambda w: share * stats.norm.pdf(w))
        assert neg_kl_posterior(less, return_error=True)[1] == math.inf
        with pytest.raises(ArithmeticError, match="divide it by its integral if that is not 1"):
            neg_kl_posterior(less)

    @pytest.mark.parametrize("function", [neg_kl_posterior, neg_kl_split])
    def test_more_than_all(self, function):
        words = "integrates to 2 or more, .* divide its pdf by that number$"
        with pytest.raises(ArithmeticError, match=words):
            function(Density(lambda w: 2.0 * stats.norm.pdf(w)))

    def test_nothing(self):
        assert neg_kl_posterior(Density(lambda w: 0.0), return_error=True)[1] == math.inf

    def test_far_from_0_it_may_overflow(self):
        exact = neg_kl_posterior(stats.logistic(0.0))
        for pdf in (
            lambda w: math.exp(w) / (1.0 + math.exp(w)) ** 2,  # raises OverflowError
            lambda w: np.exp(w) / (1.0 + np.exp(w)) ** 2,  # is NaN
        ):
            value, error = neg_kl_posterior(Density(pdf), return_error=True)
            assert abs(value - exact) <= error < 1e-11

    def test_many_points(self):
        """A histogram of a hundred bins."""
        edges = np.linspace(-1.0, 3.0, 101)
        heights = stats.norm.pdf(edges[1:], 1.0)
        heights /= heights.sum() * 0.04

        def pdf(w):
            return heights[min(int((w + 1.0) / 0.04), 99)]

        histogram = Density(pdf, (-1.0, 3.0), edges[1:-1].tolist())
        value, error = neg_kl_posterior(histogram, return_error=True)
        # The edge of a bin and that of its formula differ by rounding.
        assert abs(value - neg_kl_of_histogram(edges, heights * 0.04)) <= error + 1e-12
        assert error < 1e-9

    def test_split(self):
        dist = stats.norm(0.3, 0.5)
        known, found = neg_kl_split(dist), neg_kl_split(of(dist))
        for a, b in zip(known[:3], found[:3], strict=True):
            assert abs(a - b) <= known.error + found.error < 1e-10

    @pytest.mark.parametrize("theta", [2.0, -0.03])
    @LOG_DENSITIES
    def test_dropout(self, theta, log):
        noise = of(stats.expon(0.5, 0.5), log, points=[1.0])
        posterior = dropout_posterior(noise, theta)
        assert posterior.points == (theta,)
        assert sorted(posterior.support)[0 if theta > 0 else 1] == 0.5 * theta
        value, error = neg_kl_posterior(posterior, return_error=True)
        assert abs(value - neg_kl_posterior(stats.expon(0.5, 0.5))) <= error < 1e-11

    def test_text(self):
        def bell(w):
            return stats.norm.pdf(w)

        assert str(Density(bell, (-1, math.inf))) == "Density(bell, support=(-1, inf))"

    @pytest.mark.parametrize(("make", "kind", "sentence"), REFUSED, ids=lambda v: str(v)[:20])
    def test_refusals(self, make, kind, sentence):
        with pytest.raises(kind, match=re.escape(sentence)):
            neg_kl_posterior(make())


def exact(kde):
    """By mpmath, for few kernels."""
    with mpmath.workdps(25):
        width = mpmath.sqrt(mpmath.mpf(float(kde.covariance[0, 0])))
        kernels = list(zip(map(mpmath.mpf, kde.dataset[0]), kde.weights, strict=True))
        ends = [at + k * width for at, _ in kernels for k in (-14, -6, -3, -1, 0, 1, 3, 6, 14)]
        ends += [0, *(s * mpmath.mpf(10) ** -k for s in (-1, 1) for k in (1, 2, 4))]
    return neg_kl_of(lambda w: sum(p * mpmath.npdf(w, at, width) for at, p in kernels), ends, 25)


class TestKernels:
    @pytest.mark.parametrize("bandwidth", [None, 0.5, 0.003])
    def test_against_mpmath(self, bandwidth):
        kde = stats.gaussian_kde([0.2, -0.5, 1.0, 1.3, 4.0], bandwidth, [1, 2, 3, 2, 1])
        value, error = neg_kl_posterior(kde, return_error=True)
        assert abs(value - exact(kde)) <= error < 1e-10

    def test_as_a_function(self):
        kde = stats.gaussian_kde(np.random.default_rng(0).normal(0.4, 1.0, 30))
        value, error = neg_kl_posterior(kde, return_error=True)
        function = Density(lambda w: kde.pdf(w)[0], points=[0.4])
        other, other_error = neg_kl_posterior(function, return_error=True)
        assert abs(value - other) <= error + other_error < 1e-10

    def test_far_from_0(self):
        """In w = loc + scale z, a narrow posterior loses no digits."""
        data = np.array([0.0, 0.25, 1.0, 1.5])
        near = stats.gaussian_kde(1.0 + data)
        far = stats.gaussian_kde(2.0**40 + data * 2.0**-8)
        value, error = neg_kl_posterior(far, return_error=True)
        entropy = neg_kl_posterior(near, log_c=0.0)
        # log|w| is constant over the far one; H by quadrature over the shape of both.
        with mpmath.workdps(20):
            width = float(np.sqrt(near.covariance[0, 0]))

            def h(w):
                q = sum(mpmath.npdf(w, at, width) for at in data) / 4
                return -q * mpmath.log(q)

            entropy = mpmath.quad(h, [-9, -2, -1, 0, 0.25, 1, 1.5, 3, 4, 10])
        truth = float(entropy - 48 * mpmath.log(2)) - PROPER_CONSTANT
        assert abs(value - truth) <= error + 1e-12
        assert error < 1e-10

    def test_it_follows_the_samples(self):
        """Many samples of a Gaussian give a Gaussian with the variance of the kernels added."""
        kde = stats.gaussian_kde(stats.norm.ppf((np.arange(2000) + 0.5) / 2000, 1.0, 0.5))
        smooth = stats.norm(1.0, math.sqrt(0.25 + kde.covariance[0, 0]))
        assert neg_kl_posterior(kde) == pytest.approx(neg_kl_posterior(smooth), abs=2e-3)

    def test_split_and_dropout(self):
        kde = stats.gaussian_kde([0.2, -0.5, 1.0])
        split = neg_kl_split(kde)
        assert abs(split.sign_bit + split.magnitude - split.total) <= split.error < 1e-10
        scaled = dropout_posterior(kde, -3.0)
        assert neg_kl_posterior(scaled) == pytest.approx(split.total, abs=1e-11)

    def test_refused_in_two_dimensions(self):
        kde = stats.gaussian_kde(np.random.default_rng(0).normal(size=(2, 20)))
        with pytest.raises(
            ValueError,
            match=r"^dist must have one dimension, but a gaussian_kde of 2 dimensions was given: "
            r"pass the estimate of one weight, as kde.marginal\(0\)$",
        ):
            neg_kl_posterior(kde)


@pytest.mark.parametrize("function", [neg_kl_posterior, neg_kl_split])
def test_a_distribution_on_the_circle(function):
    with pytest.raises(
        ValueError,
        match=r"^vonmises\(kappa=2.0, loc=0.0, scale=1.0\) is a distribution on the circle, whose "
        r"density repeats along the whole line: pass scipy.stats.vonmises_line with the same "
        r"parameters, for weights in loc \+- pi scale$",
    ):
        function(stats.vonmises(2.0))


def test_the_part_of_the_circle_is_taken():
    value, error = neg_kl_posterior(stats.vonmises_line(2.0), return_error=True)
    line = Density(stats.vonmises_line(2.0).pdf, (-math.pi, math.pi))
    known = neg_kl_posterior(line, return_error=True)
    assert abs(value - known[0]) <= error + known[1] < 1e-11
