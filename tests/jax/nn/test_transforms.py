"""The layers under the transforms of JAX, and the gradients of the estimators."""

import math

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax.test_util import check_grads

from logunif_kl.jax import nn
from tests.jax.nn.layers import ESTIMATORS, KINDS, POSTERIORS, posterior

KEY = jax.random.key(5)


def network(params, x, key, estimator="local"):
    """A convolution, a table and two dense layers."""
    keys = jax.random.split(key, 4)
    table = nn.embedding(x["ids"], params["table"], key=keys[0], estimator=estimator)
    images = nn.conv(x["images"], params["conv"], key=keys[1], estimator=estimator)
    both = jnp.concatenate([table.reshape(len(table), -1), images.reshape(len(images), -1)], 1)
    hidden = nn.dense(both, params["hidden"], key=keys[2], estimator=estimator)
    return nn.dense(jnp.tanh(hidden), params["out"], params["bias"], key=keys[3])


def made(seed=0):
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return jnp.asarray(rng.normal(size=shape).astype("float32"))

    params = {
        "table": nn.Dropout.from_mean(normal(7, 3), sharing="input"),
        "conv": nn.Normal.from_mean(normal(2, 1, 3, 3), -3.0),
        "hidden": nn.Dropout.from_mean(
            normal(38, 6), sharing="input", noise="correlated", max_log_alpha=0.0
        ),
        "out": nn.Dropout.from_mean(normal(6, 2), sharing="output"),
        "bias": normal(2),
    }
    x = {"ids": jnp.asarray(rng.integers(0, 7, (8, 2))), "images": normal(8, 1, 6, 6)}
    return params, x


def loss(params, x, key, estimator="local"):
    likelihood = -jnp.sum(network(params, x, key, estimator) ** 2, 1)
    return nn.elbo(likelihood, nn.neg_kl(params), 100).loss


def close(one, other, rtol=2e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * float(np.abs(b).max()))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_jit_and_checkpoint(estimator):
    """The key makes the noise again, so the gradient is that of the noise that was drawn."""
    params, x = made()

    def of(params, x, key):
        return -jnp.sum(network(params, x, key, estimator) ** 2)

    plain = jax.value_and_grad(of)(params, x, KEY)
    again = [jax.value_and_grad(f) for f in (of, jax.checkpoint(of))]
    for got in jax.jit(lambda *given: [f(*given) for f in again])(params, x, KEY):
        close(got, plain)


def test_vmap_over_an_ensemble():
    ensemble = [made(seed)[0] for seed in range(3)]
    x = made()[1]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *ensemble)
    keys = jax.random.split(KEY, 3)
    of = jax.jit(jax.value_and_grad(loss))
    got = jax.jit(jax.vmap(of, (0, None, 0)))(stacked, x, keys)
    for i, params in enumerate(ensemble):
        close(jax.tree.map(lambda leaf, i=i: leaf[i], got), of(params, x, keys[i]))


def test_scan_over_steps():
    params, x = made()

    @jax.jit
    def train(params):
        def step(params, key):
            value, gradient = jax.value_and_grad(loss)(params, x, key)
            return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradient), value

        return jax.lax.scan(step, params, jax.random.split(KEY, 200))

    after, values = train(params)
    assert values[-20:].mean() < values[:20].mean()
    assert jax.tree.structure(after) == jax.tree.structure(params)


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("kind", ["dense", "embedding"])
def test_gradients_of_a_draw(kind, name):
    """With the noise held fixed, in both modes, against finite differences in float64."""
    with jax.enable_x64(True):
        weight = posterior(name, KINDS[kind], "float64")
        x = KINDS[kind].x[None].astype("float64" if kind == "dense" else "int64")

        def draw(weight):
            return KINDS[kind].call(x, weight, key=KEY)

        check_grads(draw, (weight,), order=2, modes=("fwd", "rev"), rtol=1e-4)
        if kind == "dense":
            check_grads(nn.kl, (weight,), order=2, modes=("fwd", "rev"), rtol=1e-4)


@pytest.mark.parametrize("name", ["additive", "weight", "output", "input", "layer"])
def test_estimators_have_the_same_expected_gradient(name):
    """And that with weights sampled outside of the layer, in standard errors."""
    weight = posterior(name, KINDS["dense"])
    x = jnp.asarray(np.random.default_rng(2).normal(size=(2, 5)).astype("float32"))

    def value(y):
        return jnp.sum(jnp.tanh(y) * jnp.array([1.0, -2.0, 0.5])) + jnp.sum(y[0] ** 2)

    def of(estimator):
        def one(weight, key):
            if estimator != "explicit":
                return value(nn.dense(x, weight, key=key, estimator=estimator))
            noise = jax.random.normal(key, (5, 3))
            if name == "additive":
                w = weight.mu + jnp.exp(weight.log_sigma2 / 2) * noise
            else:
                w = weight.theta * (1 + jnp.exp(weight.log_alpha / 2) * noise)
            return value(x @ w)

        def both(key):
            gradient = jax.grad(one)(weight, key)
            return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(gradient)])

        keys = jax.random.split(jax.random.key(ORDER.index(estimator)), samples)
        found = jax.lax.map(both, keys, batch_size=samples // 10)
        return found.mean(0), found.std(0) / math.sqrt(samples)

    samples, ORDER = 200_000, ("explicit", *ESTIMATORS)
    (mean, error), *others = jax.jit(lambda: [of(estimator) for estimator in ORDER])()
    for other, its_error in others:
        unit = jnp.maximum(jnp.hypot(error, its_error), 1e-7)
        assert (jnp.abs(other - mean) / unit).max() < 5
        # That a gradient which is 5 % off somewhere is seen.
        assert (jnp.abs(1.05 * other - mean) / unit).max() > 5


def test_local_reparameterisation_has_the_smallest_variance():
    """Kingma et al. 2015, Table 1: local < per example < per batch."""
    params, _ = made()
    weight = nn.Normal.from_mean(params["out"].theta, -1.0)
    # Positive, as after a rectifier: the examples have much in common.
    inputs = jnp.abs(jnp.asarray(np.random.default_rng(0).normal(size=(64, 6)), "float32"))

    def variance(estimator):
        def one(key):
            of = lambda w: jnp.mean(jnp.tanh(nn.dense(inputs, w, key=key, estimator=estimator)))  # noqa: E731
            return jax.grad(of)(weight).log_sigma2

        return float(jax.jit(jax.vmap(one))(jax.random.split(KEY, 4000)).var(0).sum())

    found = [variance(estimator) for estimator in ESTIMATORS]
    assert 1.2 * found[0] < found[1]
    assert 5 * found[1] < found[2]
