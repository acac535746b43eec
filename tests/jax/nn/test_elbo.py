"""The bound from a minibatch, its schedule, and log-likelihoods."""

import math

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from scipy import stats

from logunif_kl.jax import nn


class TestElbo:
    def test_scaling(self):
        """N/M times the sum over the minibatch, and the KL once (Eqs. 1 and 3)."""
        likelihood = jnp.array([-1.0, -2.0, -6.0, -3.0])
        bound = nn.elbo(likelihood, jnp.array(-7.0), 60_000, kl_weight=0.25)
        assert bound.expected_log_likelihood == -12.0 * 60_000 / 4
        assert bound.neg_kl == -7.0
        assert bound.kl_weight == 0.25
        assert bound.value == -180_000 - 1.75
        assert math.isclose(bound.loss, (180_000 + 1.75) / 60_000, rel_tol=1e-6)

    def test_other_axes_are_summed(self):
        bound = nn.elbo(-jnp.ones((2, 3, 5)), jnp.array(0.0), 10)
        assert bound.expected_log_likelihood == -15.0 * 10

    def test_half_types(self):
        """The sum for all the data is above the largest float16."""
        bound = nn.elbo(-jnp.ones(100, "float16"), jnp.array(-1.0, "bfloat16"), 10**6)
        assert bound.value == -(10**6) - 1
        assert {each.dtype for each in bound} == {jnp.dtype("float32")}

    def test_transforms(self):
        def loss(likelihood, weight):
            bound = nn.elbo(likelihood, jnp.array(-3.0), 6, kl_weight=weight)
            return bound.loss, bound

        traced = jax.jit(jax.value_and_grad(loss, has_aux=True))
        (value, bound), gradient = traced(jnp.array([-1.0, -2.0]), jnp.array(0.5))
        assert value == bound.loss == (9.0 + 1.5) / 6
        assert gradient.tolist() == [-0.5, -0.5]

    def test_the_sign_of_the_loss(self):
        better = nn.elbo(jnp.array([-1.0]), jnp.array(-5.0), 10)
        worse = nn.elbo(jnp.array([-2.0]), jnp.array(-5.0), 10)
        simpler = nn.elbo(jnp.array([-1.0]), jnp.array(-4.0), 10)
        assert simpler.loss < better.loss < worse.loss


def test_warm_up():
    got = [float(nn.linear_warm_up(step, 10, 20)) for step in (0, 10, 15, 20, 10**9)]
    assert got == [0.0, 0.0, 0.5, 1.0, 1.0]
    traced = jax.jit(jax.vmap(lambda step: nn.linear_warm_up(step, 10, 20)))(jnp.arange(30))
    np.testing.assert_allclose(traced, np.clip((np.arange(30) - 10) / 10, 0, 1), rtol=1e-6)


class TestLikelihoods:
    rng = np.random.default_rng(0)

    def test_categorical(self):
        logits, labels = self.rng.normal(size=(4, 3, 5)), self.rng.integers(0, 5, (4, 3))
        p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        expected = np.log(np.take_along_axis(p, labels[..., None], -1)).sum((1, 2))
        got = nn.categorical_log_likelihood(jnp.asarray(logits), jnp.asarray(labels))
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    @pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
    def test_traced_labels_that_are_no_class(self, dtype):
        """They give NaN, below 0 too, and the other examples are as they would be."""
        logits = jnp.asarray(self.rng.normal(size=(4, 200)))
        wrong = 255 if dtype == "uint8" else -1
        labels = np.array([3, wrong, 127, 0], dtype)
        got = jax.jit(nn.categorical_log_likelihood)(logits, labels)
        assert np.isnan(got).tolist() == [False, True, False, False]
        fine = nn.categorical_log_likelihood(logits, np.array([3, 0, 127, 0]))
        np.testing.assert_allclose(got[np.array([0, 2, 3])], fine[np.array([0, 2, 3])], rtol=1e-5)

    def test_bernoulli(self):
        logits, targets = self.rng.normal(size=(4, 3)) * 5, self.rng.integers(0, 2, (4, 3))
        expected = -np.logaddexp(0.0, np.where(targets == 1, -logits, logits)).sum(1)
        got = nn.bernoulli_log_likelihood(jnp.asarray(logits), jnp.asarray(targets))
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        far = nn.bernoulli_log_likelihood(jnp.array([[1e4]]), jnp.array([[0.0]]))
        assert far.tolist() == [-1e4]

    def test_normal(self):
        mean, targets = self.rng.normal(size=(2, 4, 3))
        expected = stats.norm.logpdf(targets, mean, math.exp(-1.0)).sum(1)
        got = nn.normal_log_likelihood(jnp.asarray(mean), jnp.asarray(targets), -2.0)
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    @pytest.mark.parametrize("shape", [(), (1,), (3,), (4, 1), (4, 3)])
    def test_normal_with_a_variance_for_each(self, shape):
        mean, targets = self.rng.normal(size=(2, 4, 3))
        log_sigma2 = np.asarray(self.rng.normal(size=shape))
        expected = stats.norm.logpdf(targets, mean, np.exp(log_sigma2 / 2)).sum(1)
        arrays = map(jnp.asarray, (mean, targets, log_sigma2))
        np.testing.assert_allclose(nn.normal_log_likelihood(*arrays), expected, rtol=1e-5)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_half_types_are_computed_in_float32(self, dtype):
        got = nn.categorical_log_likelihood(jnp.zeros((2, 4, 10), dtype), jnp.zeros((2, 4), int))
        assert got.dtype == "float32"
