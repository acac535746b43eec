"""Networks learn digits with Optax, and their KL goes the right way."""

from functools import partial

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
datasets = pytest.importorskip("sklearn.datasets")

import jax.numpy as jnp  # noqa: E402

from logunif_kl.jax import nn  # noqa: E402

EPOCHS, BATCH, TESTED = 20, 128, 450
KEYS, SHAPES = jax.random.split(jax.random.key(0)), ((64, 100), (100, 10))
initial = jax.nn.initializers.he_normal()


def of_trees():
    """Two layers with additive noise, as a tree of parameters."""
    parameters = [
        {"weight": nn.Weight.from_mean(initial(key, shape)), "bias": jnp.zeros(shape[1])}
        for key, shape in zip(KEYS, SHAPES, strict=True)
    ]

    def network(parameters, x, keys=(None, None)):
        hidden = jax.nn.relu(nn.dense(x, **parameters[0], key=keys[0]))
        return nn.dense(hidden, **parameters[1], key=keys[1])

    return parameters, lambda parameters: partial(network, parameters)


def of_equinox():
    """Two layers whose input units have learned dropout rates, with Kingma's alpha <= 1."""
    eqx = pytest.importorskip("equinox")

    class Layer(eqx.Module):
        weight: nn.Weight
        bias: jax.Array

        def __init__(self, key, shape):
            posterior = nn.Correlated(max_log_alpha=0.0)
            self.weight = nn.Weight.from_mean(initial(key, shape), posterior)
            self.bias = jnp.zeros(shape[-1])

        def __call__(self, x, key=None):
            return nn.dense(x, self.weight, self.bias, key=key)

    class Network(eqx.Module):
        layers: list

        def __call__(self, x, keys=None):
            first, second = self.layers
            if keys is None:
                return second(jax.nn.relu(first(x)))
            # Each example has keys, and so noise, of its own.
            of_one = jax.vmap(lambda x, one, two: second(jax.nn.relu(first(x, one)), two))
            return of_one(x, *(jax.random.split(key, len(x)) for key in keys))

    network = Network([Layer(*each) for each in zip(KEYS, SHAPES, strict=True)])
    parameters, static = eqx.partition(network, eqx.is_inexact_array)
    return parameters, partial(eqx.combine, static)


@pytest.mark.parametrize(
    ("made", "of", "warm_up", "kept"),
    [(of_trees, "weights", (2, 10), 0.4), (of_equinox, "scales", (-1, 0), 0.96)],
    ids=["trees", "equinox"],
)
def test_learns_digits(made, of, warm_up, kept):
    """The noise of weights makes most of them superfluous; the scales keep most of theirs."""
    images, labels = datasets.load_digits(return_X_y=True)
    images, labels = jnp.asarray(images, jnp.float32) / 16, jnp.asarray(labels)
    n = len(labels) - TESTED
    parameters, network = made()
    optimizer = optax.adam(optax.linear_schedule(5e-3, 0.0, EPOCHS * (n // BATCH)))

    def loss(parameters, batch, key, kl_weight):
        model = network(parameters)
        likelihood = nn.categorical_log_likelihood(
            model(images[batch], jax.random.split(key)), labels[batch]
        )
        bound = nn.elbo(likelihood, nn.neg_kl(parameters, of=of), n, kl_weight=kl_weight)
        return bound.loss, bound

    @jax.jit
    def train(parameters, state, key, kl_weight):
        def step(carry, given):
            (parameters, state), (batch, key) = carry, given
            slopes, bound = jax.grad(loss, has_aux=True)(parameters, batch, key, kl_weight)
            updates, state = optimizer.update(slopes, state)
            return (optax.apply_updates(parameters, updates), state), bound

        of_order, of_noise = jax.random.split(key)
        order = jax.random.permutation(of_order, n)[: n // BATCH * BATCH].reshape(-1, BATCH)
        given = order + TESTED, jax.random.split(of_noise, len(order))
        (parameters, state), bounds = jax.lax.scan(step, (parameters, state), given)
        return parameters, state, bounds.expected_log_likelihood[-1] / n

    @jax.jit
    def measured(parameters):
        model = network(parameters)
        wrong = model(images[:TESTED]).argmax(1) != labels[:TESTED]
        return nn.kl(parameters), wrong.mean()

    first, before = measured(parameters)
    assert before > 0.7
    state, kls = optimizer.init(parameters), [first]
    for epoch in range(EPOCHS):
        key, kl_weight = jax.random.fold_in(KEYS[0], epoch), nn.linear_warm_up(epoch, *warm_up)
        parameters, state, likelihood = train(parameters, state, key, kl_weight)
        if epoch % 5 == 4:
            kl, error = measured(parameters)
            assert error < 0.15
            kls.append(kl)

    assert kls == sorted(kls, reverse=True)
    assert kls[-1] < kept * first
    assert error < 0.1
    assert likelihood > -0.5
