"""Train variational dropout with correlated noise on digits with Equinox.

    python with_equinox.py

The dropout rate of each input unit is learned, with Kingma's constraint alpha <= 1. Prints the
log-likelihood of an example, the KL of the scales, the test error, and the dropout rates.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits

import logunif_kl as lk
from logunif_kl.jax import nn

EPOCHS, BATCH = 20, 128

images, labels = load_digits(return_X_y=True)
images, labels = jnp.asarray(images, jnp.float32) / 16, jnp.asarray(labels)
test, train = slice(0, 450), slice(450, None)
n = len(labels[train])


class Layer(eqx.Module):
    """A dense layer for one example, whose input units have learned dropout rates."""

    weight: nn.Dropout
    bias: jax.Array

    def __init__(self, inputs, outputs, key):
        kernel = jax.nn.initializers.he_normal()(key, (inputs, outputs))
        self.weight = nn.Dropout.from_mean(
            kernel, sharing="input", noise="correlated", max_log_alpha=0.0
        )
        self.bias = jnp.zeros(outputs)

    def __call__(self, x, key=None):
        return nn.dense(x, self.weight, self.bias, key=key)


class Network(eqx.Module):
    """Two layers."""

    layers: list

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.layers = [Layer(64, 100, first), Layer(100, 10, second)]

    def __call__(self, x, key=None):
        keys = (None, None) if key is None else jax.random.split(key)
        return self.layers[1](jax.nn.relu(self.layers[0](x, keys[0])), keys[1])


def loss(model, x, y, key):
    # Each example has a key, and so noise, of its own.
    logits = jax.vmap(model)(x, jax.random.split(key, len(x)))
    likelihood = nn.categorical_log_likelihood(logits, y)
    bound = nn.elbo(likelihood, nn.neg_kl(model, of="scales"), n)
    return bound.loss, bound


@eqx.filter_jit
def step(optimizer, model, state, x, y, key):
    (_, bound), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(model, x, y, key)
    updates, state = optimizer.update(gradient, state)
    return eqx.apply_updates(model, updates), state, bound


@eqx.filter_jit
def error(model):
    return jnp.mean(jax.vmap(model)(images[test]).argmax(1) != labels[test])


def main():
    key, of_parameters = jax.random.split(jax.random.key(0))
    model = Network(of_parameters)
    optimizer = optax.adam(optax.linear_schedule(5e-3, 0.0, EPOCHS * (n // BATCH)))
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    print(f"before: KL {nn.kl(model):.0f}, error {error(model):.3f}")
    for epoch in range(1, EPOCHS + 1):
        key, of_order, of_noise = jax.random.split(key, 3)
        order = jax.random.permutation(of_order, n)[: n // BATCH * BATCH] + test.stop
        for i, batch in enumerate(order.reshape(-1, BATCH)):
            noise = jax.random.fold_in(of_noise, i)
            model, state, bound = step(optimizer, model, state, images[batch], labels[batch], noise)
        if epoch % 5 == 0:
            log_alpha = [layer.weight.log_alpha_of_weights() for layer in model.layers]
            rates = ", ".join(f"{lk.log_alpha.to_dropout_rate(x).mean():.3f}" for x in log_alpha)
            print(
                f"epoch {epoch}: log-likelihood {bound.expected_log_likelihood / n:.3f}, "
                f"KL {-bound.neg_kl:.1f}, error {error(model):.3f}, dropout rates {rates}"
            )


if __name__ == "__main__":
    main()
