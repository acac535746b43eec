"""Priors other than the log-uniform one, as penalties."""

import math

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax.test_util import check_grads

from logunif_kl.jax import nn
from tests.priors import EPS, HORSESHOE, STUDENT, normal_ratios, student, student_slopes


class Laplace:
    """exp(-abs(w)/b)/(2 b), written from the documentation of `Prior` alone."""

    b = 0.5

    def neg_kl(self, mu, log_sigma2):
        sigma = jnp.exp(0.5 * log_sigma2)
        x = mu / sigma
        size = mu * jax.lax.erf(x / math.sqrt(2.0))
        size = size + sigma * math.sqrt(2.0 / math.pi) * jnp.exp(-0.5 * x * x)
        entropy = 0.5 * (math.log(2.0 * math.pi) + 1.0 + log_sigma2)
        return entropy - math.log(2.0 * self.b) - size / self.b


PRIORS = {
    "normal": nn.NormalPrior(0.5),
    "student": nn.StudentTPrior(2.0, 0.3),
    "horseshoe": nn.HorseshoePrior(0.3),
    "power": nn.PowerPrior(0.8),
    "toy": Laplace(),
    "mixture": nn.ScaleMixturePrior(0.25, 1.0, 0.05, samples=2, key=jax.random.key(0)),
}


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    with jax.enable_x64(request.param == "float64"):
        yield request.param


def test_values_of_student(dtype):
    for *given, df, scale in STUDENT:
        mu, log_sigma2 = np.array(given, dtype)
        exact = student(float(mu), float(log_sigma2), df, scale)
        found = float(nn.StudentTPrior(df, scale).neg_kl(jnp.asarray(mu), jnp.asarray(log_sigma2)))
        assert abs(found - exact) <= EPS[dtype] * (20.0 * (df + 1.0) + abs(exact))


def test_slopes_of_student(dtype):
    rows = [row for row in normal_ratios() if row[2] in (0.01, 3.0, 100.0) and row[3] == 1.0]
    for df, scale in {row[2:] for row in rows}:
        points = [row[:2] for row in rows if row[2:] == (df, scale)]
        mu = np.array([r * math.exp(0.5 * s) for r, s in points], dtype)
        log_sigma2 = np.array([s for _, s in points], dtype)
        prior = nn.StudentTPrior(df, scale)
        slopes = jax.jit(jax.vmap(jax.grad(prior.neg_kl, (0, 1))))(mu, log_sigma2)
        for m, s, *found in zip(mu, log_sigma2, *slopes, strict=True):
            d_mu, d_log_sigma2 = student_slopes(float(m), float(s), df, scale)
            assert abs(float(found[0]) - d_mu) <= 20.0 * EPS[dtype] * abs(d_mu)
            assert abs(float(found[1]) - d_log_sigma2) <= 10.0 * EPS[dtype] * (df + 1.0)


def test_horseshoe(dtype):
    for scale in {given[2] for given, _ in HORSESHOE}:
        rows = [(given, exact) for given, exact in HORSESHOE if given[2] == scale]
        mu, log_sigma2 = np.array([given[:2] for given, _ in rows], dtype).T
        of = jax.jit(jax.vmap(jax.value_and_grad(nn.HorseshoePrior(scale).neg_kl, (0, 1))))
        value, (d_mu, d_log_sigma2) = of(mu, log_sigma2)
        exact = np.array([each for _, each in rows]).T
        eps = EPS[dtype]
        assert (np.abs(value - exact[0]) <= eps * (20.0 + 2.0 * np.abs(exact[0]))).all()
        assert (np.abs(d_mu - exact[1]) <= 20.0 * eps * np.abs(exact[1])).all()
        assert (np.abs(d_log_sigma2 - exact[2]) <= 10.0 * eps).all()


@pytest.mark.slow
def test_second_derivatives_of_student():
    with jax.enable_x64(True):
        given = jnp.array(0.3), jnp.array(-2.0)
        check_grads(nn.StudentTPrior(1.5, 0.4).neg_kl, given, order=2, rtol=1e-6)


@pytest.mark.parametrize("name", PRIORS)
class TestTrees:
    TREE = {  # noqa: RUF012
        "a": nn.Weight(jnp.linspace(-1.0, 1.0, 6), jnp.full(6, -2.0)),
        "b": nn.Weight(jnp.linspace(-1.0, 1.0, 6), jnp.full(6, -2.0)),
    }

    def test_sums(self, name):
        prior = PRIORS[name]
        parts = nn.named_kl(self.TREE, penalty=prior)
        found = nn.kl(self.TREE, penalty=prior)
        assert math.isclose(found, sum(parts.values()), rel_tol=1e-6)
        assert (parts["a"] == parts["b"]) == (name != "mixture")
        assert math.isclose(
            jax.jit(lambda t: nn.kl(t, penalty=prior))(self.TREE), found, rel_tol=1e-6
        )

    def test_pruned_weights_do_not_count(self, name):
        pruned = nn.prune(self.TREE, threshold=-10.0)
        assert nn.kl(pruned, penalty=PRIORS[name]) == 0.0

    def test_trains(self, name):
        step = jax.jit(jax.grad(lambda tree: nn.kl(tree, penalty=PRIORS[name])))
        tree = self.TREE
        first = nn.kl(tree, penalty=PRIORS[name])
        for _ in range(200):
            tree = jax.tree.map(lambda x, g: x - 0.02 * jnp.clip(g, -1.0, 1.0), tree, step(tree))
        assert nn.kl(tree, penalty=PRIORS[name]) < 0.7 * first
        assert jnp.abs(tree["a"].mean).mean() < 0.4


def test_keys_of_a_mixture():
    """An object with another key may be an argument of a compiled function."""
    prior = PRIORS["mixture"]
    other = nn.ScaleMixturePrior(0.25, 1.0, 0.05, samples=2, key=jax.random.key(1))
    weight, of = TestTrees.TREE["a"], jax.jit(lambda prior: nn.kl(TestTrees.TREE, penalty=prior))
    assert of(prior) == of(prior) != of(other)
    value, error = prior.estimate(weight.mean, weight.log_sigma2)
    assert value.shape == error.shape == (6,)
    many = nn.ScaleMixturePrior(0.25, 1.0, 0.05, samples=20_000, key=jax.random.key(2))
    means = jax.vmap(
        lambda key: nn.ScaleMixturePrior(0.25, 1.0, 0.05, samples=50, key=key).neg_kl(
            weight.mean, weight.log_sigma2
        )
    )(jax.random.split(jax.random.key(3), 400))
    value, error = many.estimate(weight.mean, weight.log_sigma2)
    assert (jnp.abs(means.mean(0) - value) < 4.0 * jnp.sqrt(2.0) * error).all()
    np.testing.assert_allclose(means.std(0), error * 20.0, rtol=0.15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_noise_of_a_mixture_is_not_of_a_half_type(dtype):
    """JAX's normals of bfloat16 end at 2.9, and have the mean -0.012."""
    prior = nn.ScaleMixturePrior(0.25, 1.0, 0.5, samples=3, key=jax.random.key(0))
    mu, log_sigma2 = jnp.linspace(-1.0, 1.0, 100).astype(dtype), jnp.zeros((), dtype)
    wanted = prior.estimate(mu.astype("float32"), log_sigma2.astype("float32"))
    found = prior.estimate(mu, log_sigma2)
    for half, single in zip(found, wanted, strict=True):
        assert half.dtype == dtype
        assert jnp.abs(half - single).max() < 0.05
    np.testing.assert_array_equal(prior.neg_kl(mu, log_sigma2), found[0])
