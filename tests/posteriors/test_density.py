"""Posteriors as functions and as kernel density estimates."""

import math
import re
import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats

from logunif_kl._convention import PROPER_CONSTANT
from logunif_kl.posteriors import Density, dropout_posterior, neg_kl_posterior, neg_kl_split
from tests.posteriors.exact import neg_kl_of

KNOWN = [
    *(stats.norm(1.0, 0.5), stats.norm(0.0, 1e-5), stats.laplace(1.0, 0.5), stats.cauchy(0.3)),
    *(stats.gamma(0.1), stats.beta(2.0, 3.0), stats.uniform(-1.0, 3.0), stats.lognorm(3.0)),
]
LOG_DENSITIES = pytest.mark.parametrize("log", [False, True], ids=["density", "logarithm"])


def of(dist, log=False, **options):
    return Density(dist.logpdf if log else dist.pdf, dist.support(), log=log, **options)


def minus(w):
    return -stats.norm.pdf(w)


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
    (
        lambda: Density(minus, (-1, math.inf)),
        ValueError,
        "of Density(minus, support=(-1, inf)) is",
    ),
    (
        lambda: stats.gaussian_kde(np.eye(2, 5)),
        ValueError,
        "of 2 dimensions was given: pass the ",
    ),
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

    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0 - 1e-6])
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

    def test_far_from_0_it_may_overflow(self):
        exact = neg_kl_posterior(stats.logistic(0.0))
        for pdf in (
            lambda w: math.exp(w) / (1.0 + math.exp(w)) ** 2,  # raises OverflowError
            lambda w: np.exp(w) / (1.0 + np.exp(w)) ** 2,  # is NaN
        ):
            value, error = neg_kl_posterior(Density(pdf), return_error=True)
            assert abs(value - exact) <= error < 1e-11

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
    @pytest.mark.parametrize("bandwidth", [None, 0.003])
    def test_against_mpmath(self, bandwidth):
        kde = stats.gaussian_kde([0.2, -0.5, 1.0, 1.3, 4.0], bandwidth, [1, 2, 3, 2, 1])
        value, error = neg_kl_posterior(kde, return_error=True)
        assert abs(value - exact(kde)) <= error < 1e-10

    def test_far_from_0(self):
        """In w = loc + scale z, a narrow posterior loses no digits."""
        data = np.array([0.0, 0.25, 1.0, 1.5])
        near = stats.gaussian_kde(1.0 + data)
        far = stats.gaussian_kde(2.0**40 + data * 2.0**-8)
        value, error = neg_kl_posterior(far, return_error=True)
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

    def test_split_and_dropout(self):
        kde = stats.gaussian_kde([0.2, -0.5, 1.0])
        split = neg_kl_split(kde)
        assert abs(split.sign_bit + split.magnitude - split.total) <= split.error < 1e-10
        scaled = dropout_posterior(kde, -3.0)
        assert neg_kl_posterior(scaled) == pytest.approx(split.total, abs=1e-11)


def test_the_part_of_the_circle_is_taken():
    value, error = neg_kl_posterior(stats.vonmises_line(2.0), return_error=True)
    line = Density(stats.vonmises_line(2.0).pdf, (-math.pi, math.pi))
    known = neg_kl_posterior(line, return_error=True)
    assert abs(value - known[0]) <= error + known[1] < 1e-11


def test_the_filters_of_warnings_stay_as_they_are():
    """They belong to all threads. Those of NumPy's errors belong to a thread."""
    before, seen = [*warnings.filters], set()

    def pdf(w):
        seen.add((warnings.filters == before, np.geterr()["over"]))
        return np.exp(-np.abs(w)) / 2.0

    assert neg_kl_posterior(Density(pdf)) == pytest.approx(neg_kl_posterior(stats.laplace()))
    assert seen == {(True, "ignore")}
