"""Train a sparse network on digits with pure functions of JAX and an optimizer of Optax.

    python with_optax.py

Prints the log-likelihood of an example, the KL, the test error and the mean dropout rate.
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits

import logunif_kl as lk
from logunif_kl.jax import nn

EPOCHS, BATCH, WARM_UP = 30, 128, (3, 15)

images, labels = load_digits(return_X_y=True)
images, labels = jnp.asarray(images, jnp.float32) / 16, jnp.asarray(labels)
test, train = slice(0, 450), slice(450, None)
n = len(labels[train])


def initial(key):
    first, second = jax.random.split(key)
    he = jax.nn.initializers.he_normal()
    return {
        "hidden": {"weight": nn.Normal.from_mean(he(first, (64, 100))), "bias": jnp.zeros(100)},
        "out": {"weight": nn.Normal.from_mean(he(second, (100, 10))), "bias": jnp.zeros(10)},
    }


def logits(params, x, key=None):
    keys = (None, None) if key is None else jax.random.split(key)
    hidden = nn.dense(x, **params["hidden"], key=keys[0])
    return nn.dense(jax.nn.relu(hidden), **params["out"], key=keys[1])


def loss(params, x, y, key, kl_weight):
    likelihood = nn.categorical_log_likelihood(logits(params, x, key), y)
    bound = nn.elbo(likelihood, nn.neg_kl(params), n, kl_weight=kl_weight)
    return bound.loss, bound


@partial(jax.jit, static_argnums=0)
def step(optimizer, params, state, x, y, key, kl_weight):
    (_, bound), gradient = jax.value_and_grad(loss, has_aux=True)(params, x, y, key, kl_weight)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(params, updates), state, bound


@jax.jit
def error(params):
    return jnp.mean(logits(params, images[test]).argmax(1) != labels[test])


def dropout_rate(params):
    """The mean of alpha/(1 + alpha) over the weights."""
    weights = [params[name]["weight"].log_alpha_of_weights().ravel() for name in params]
    return lk.log_alpha.to_dropout_rate(jnp.concatenate(weights)).mean()


def main():
    key, of_parameters = jax.random.split(jax.random.key(0))
    params = initial(of_parameters)
    optimizer = optax.adam(optax.linear_schedule(5e-3, 0.0, EPOCHS * (n // BATCH)))
    state = optimizer.init(params)
    print(f"before: KL {nn.kl(params):.0f}, error {error(params):.3f}")
    for epoch in range(1, EPOCHS + 1):
        key, of_order, of_noise = jax.random.split(key, 3)
        order = jax.random.permutation(of_order, n)[: n // BATCH * BATCH] + test.stop
        kl_weight = nn.linear_warm_up(epoch, *WARM_UP)
        for i, batch in enumerate(order.reshape(-1, BATCH)):
            noise = jax.random.fold_in(of_noise, i)
            params, state, bound = step(
                optimizer, params, state, images[batch], labels[batch], noise, kl_weight
            )
        if epoch % 5 == 0:
            print(
                f"epoch {epoch}: log-likelihood {bound.expected_log_likelihood / n:.3f}, "
                f"KL {-bound.neg_kl:.0f}, error {error(params):.3f}, "
                f"dropout rate {dropout_rate(params):.3f}"
            )


if __name__ == "__main__":
    main()
