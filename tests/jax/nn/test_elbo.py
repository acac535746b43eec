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


def test_warm_ups():
    steps = np.linspace(0.0, 30.0, 61)
    linear = np.clip((steps - 10.0) / 10.0, 0.0, 1.0)
    for schedule, expected in (
        (lambda step: nn.linear_warm_up(step, 10, 20), linear),
        (lambda step: nn.cosine_warm_up(step, 10, 20), 0.5 - 0.5 * np.cos(np.pi * linear)),
        (lambda step: nn.cyclical_warm_up(step, 4.0, 0.7), np.minimum(steps % 4.0 / 2.8, 1.0)),
    ):
        for found in ([schedule(step) for step in steps], jax.jit(jax.vmap(schedule))(steps)):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert nn.linear_warm_up(10**9, 10, 20) == 1.0
    half = nn.linear_warm_up(jnp.array(30000.0, "float16"), -40000, 40000)
    assert half == nn.linear_warm_up(30000.0, -40000, 40000)


class TestLikelihoods:
    rng = np.random.default_rng(0)

    def test_categorical(self):
        logits, labels = self.rng.normal(size=(4, 3, 5)), self.rng.integers(0, 5, (4, 3))
        p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        expected = np.log(np.take_along_axis(p, labels[..., None], -1)).sum((1, 2))
        got = nn.categorical_log_likelihood(jnp.asarray(logits), jnp.asarray(labels))
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    def test_an_ignored_label_that_the_type_does_not_hold(self):
        """-100 would be 156."""
        logits = jnp.asarray(self.rng.normal(size=(2, 200)))
        labels = np.array([156, 3], "uint8")
        got = nn.categorical_log_likelihood(logits, labels, ignore_index=-100)
        np.testing.assert_array_equal(got, nn.categorical_log_likelihood(logits, labels))

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

    @pytest.mark.parametrize("shape", [None, (), (1,), (3,), (4, 1), (4, 3)])
    def test_normal(self, shape):
        """The logarithm of the variance is a number, or an array that broadcasts."""
        mean, targets = self.rng.normal(size=(2, 4, 3))
        log_sigma2 = -2.0 if shape is None else jnp.asarray(self.rng.normal(size=shape))
        expected = stats.norm.logpdf(targets, mean, np.exp(np.asarray(log_sigma2) / 2)).sum(1)
        got = nn.normal_log_likelihood(jnp.asarray(mean), jnp.asarray(targets), log_sigma2)
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_half_types_are_computed_in_float32(self, dtype):
        got = nn.categorical_log_likelihood(jnp.zeros((2, 4, 10), dtype), jnp.zeros((2, 4), int))
        assert got.dtype == "float32"
