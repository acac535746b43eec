"""Dropout posteriors w = theta eps, whose -KL does not depend on theta (Eq. 40 to 42)."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from logunif_kl.posteriors import dropout_posterior, neg_kl_posterior

NOISES = [
    *(stats.norm(1.0, 0.5), stats.uniform(0.5, 1.0), stats.laplace(1.0, 0.3)),
    *(stats.gamma(4.0, scale=0.25), stats.lognorm(0.4, loc=0.2), stats.gumbel_r(1.0, 0.4)),
    *(stats.skewnorm(3.0, 1.0, 0.5), stats.beta(2.0, 3.0)),
]
THETAS = [1.0, -1.0, 0.03, -7.5, 1e-12, -1e9]
noises = pytest.mark.parametrize("noise", NOISES, ids=lambda d: f"{d.dist.name}{d.args}")


@noises
@pytest.mark.parametrize("theta", THETAS)
def test_neg_kl_does_not_depend_on_theta(noise, theta):
    value, error = neg_kl_posterior(noise, return_error=True)
    moved, moved_error = neg_kl_posterior(dropout_posterior(noise, theta), return_error=True)
    assert abs(moved - value) <= error + moved_error < 1e-10


@noises
@pytest.mark.parametrize("theta", [0.3, -0.3])
def test_it_is_the_distribution_of_the_product(noise, theta):
    posterior = dropout_posterior(noise, theta)
    q = np.linspace(0.01, 0.99, 9)
    w = np.sort(theta * noise.ppf(q))
    assert posterior.mean() == pytest.approx(theta * noise.mean(), rel=1e-12)
    assert posterior.var() == pytest.approx(theta**2 * noise.var(), rel=1e-12)
    np.testing.assert_allclose(posterior.ppf(q), w, rtol=1e-12)
    np.testing.assert_allclose(posterior.cdf(w), q, rtol=1e-9)
    np.testing.assert_allclose(posterior.sf(w), 1.0 - q, rtol=1e-9)
    np.testing.assert_allclose(posterior.isf(q), w[::-1], rtol=1e-12)
    np.testing.assert_allclose(posterior.pdf(w), noise.pdf(w / theta) / abs(theta), rtol=1e-12)
    np.testing.assert_allclose(posterior.logpdf(w), np.log(posterior.pdf(w)), rtol=1e-12)
    gain = math.log(abs(theta))  # Eq. 40
    assert float(posterior.entropy()) - float(noise.entropy()) == pytest.approx(gain, abs=1e-9)
    assert posterior.support() == tuple(sorted(theta * np.array(noise.support())))


def test_samples_and_moments_of_a_mirrored_noise():
    noise = stats.gamma(4.0, scale=0.25)
    posterior = dropout_posterior(noise, -0.5)
    sample = posterior.rvs(size=4000, random_state=np.random.default_rng(3))
    assert stats.kstest(-2.0 * sample, noise.cdf).pvalue > 0.01
    assert posterior.moment(5) == pytest.approx(-(0.5**5) * noise.moment(5), rel=1e-12)
    assert float(posterior.stats("s")) == pytest.approx(-float(noise.stats("s")), rel=1e-12)


def test_a_mirrored_noise_is_an_ordinary_frozen_distribution():
    posterior = dropout_posterior(stats.gamma(4.0), -0.5)
    assert posterior.dist.name == "mirrored_gamma"
    for copied in (pickle.loads(pickle.dumps(posterior)), copy.deepcopy(posterior)):
        assert copied.mean() == posterior.mean()
    twice = dropout_posterior(posterior, -2.0)
    assert twice.mean() == pytest.approx(4.0)
    assert neg_kl_posterior(twice) == pytest.approx(neg_kl_posterior(stats.gamma(4.0)), abs=1e-12)


@pytest.mark.parametrize(
    ("theta", "kind", "sentence"),
    [
        (0.0, ValueError, r"theta must be finite and not 0 \(0 makes an atom\), but 0.0 was"),
        (math.inf, ValueError, "theta must be finite and not 0"),
        (math.nan, ValueError, "theta must be finite and not 0"),
        ("1", TypeError, "theta must be one real number, but str '1' was given"),
        (True, TypeError, "theta must be one real number, but bool True was given"),
        (np.ones(2), TypeError, r"theta must be one real number, but ndarray of shape \(2,\)"),
    ],
)
def test_refusals(theta, kind, sentence):
    with pytest.raises(kind, match=sentence):
        dropout_posterior(stats.norm(1.0, 1.0), theta)


def test_discrete_noise_is_refused():
    with pytest.raises(TypeError, match="but bernoulli is discrete"):
        dropout_posterior(stats.bernoulli(0.5), 1.0)


@pytest.mark.skipif(not hasattr(stats, "Normal"), reason="SciPy 1.15 brought these")
@pytest.mark.parametrize("theta", [2.0, -0.03])
def test_new_style_noise(theta):
    for noise in (stats.Normal(mu=1.0, sigma=0.5), stats.Uniform(a=0.0, b=1.0)):
        posterior = dropout_posterior(noise, theta)
        assert float(posterior.mean()) == pytest.approx(theta * float(noise.mean()), rel=1e-14)
        assert neg_kl_posterior(posterior) == pytest.approx(neg_kl_posterior(noise), rel=1e-11)
    parts = stats.Mixture([stats.Normal(mu=m, sigma=1.0) for m in (0.0, 2.0)], weights=[0.5, 0.5])
    with pytest.raises(TypeError, match=r"^SciPy cannot scale a Mixture: pass noise of another"):
        dropout_posterior(parts, theta)


def test_a_histogram_needs_no_freezing():
    density, edges = np.histogram([-1.0, 2.0, 3.0, 4.0], bins=5)
    histogram = stats.rv_histogram((density, edges), density=True)
    exact = neg_kl_posterior(histogram(), points=edges)
    assert neg_kl_posterior(histogram, points=edges) == exact
    doubled = neg_kl_posterior(dropout_posterior(histogram, 2.0), points=2.0 * edges)
    assert doubled == pytest.approx(exact, rel=1e-11)
