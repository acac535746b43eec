"""The layers under the transforms of JAX, and the gradients of the estimators."""

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax.test_util import check_grads

from logunif_kl.jax import nn
from tests.jax.nn.layers import ESTIMATORS, KINDS, POSTERIORS, weight_of

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
        "table": nn.Weight.from_mean(normal(8, 4), nn.Multiplicative("input")),
        "conv": nn.Weight.from_mean(normal(2, 2, 3, 3), nn.Additive(initial=-3.0)),
        "hidden": nn.Weight.from_mean(normal(40, 6), nn.Correlated(max_log_alpha=0.0)),
        "out": nn.Weight.from_mean(normal(6, 2), nn.Multiplicative("output")),
        "bias": normal(2),
    }
    x = {"ids": jnp.asarray(rng.integers(0, 8, (8, 2))), "images": normal(8, 2, 6, 6)}
    return params, x


def loss(params, x, key, estimator="local"):
    likelihood = -jnp.sum(network(params, x, key, estimator) ** 2, 1)
    return nn.elbo(likelihood, nn.neg_kl(params), 100).loss


def close(one, other, rtol=2e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * float(np.abs(b).max()))


@pytest.mark.parametrize(
    "estimator", [ESTIMATORS[0], *(pytest.param(e, marks=pytest.mark.slow) for e in ESTIMATORS[1:])]
)
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


# Default tests try dense layers with every posterior, and the other layers with these.
QUICK = ("additive", "input", "correlated, layer")
DRAWS = [
    pytest.param(kind, name, marks=[] if kind == "dense" or name in QUICK else pytest.mark.slow)
    for kind in KINDS
    for name in POSTERIORS
]


@pytest.mark.parametrize(("kind", "name"), DRAWS)
def test_gradients_of_a_draw(kind, name):
    """With the noise held fixed, in both modes, against finite differences in float64."""
    with jax.enable_x64(True):
        weight = weight_of(name, KINDS[kind], "float64")
        x = KINDS[kind].x[None].astype("int64" if kind == "embedding" else "float64")

        @jax.jit
        def draws(weight):
            return [KINDS[kind].call(x, weight, key=KEY, estimator=each) for each in ESTIMATORS]

        second = kind == "dense" and name in ("additive", "correlated, layer")
        check_grads(draws, (weight,), order=1 + second, rtol=1e-4)
        if kind == "dense":
            check_grads(nn.kl, (weight,), order=2, modes=("fwd", "rev"), rtol=1e-4)
