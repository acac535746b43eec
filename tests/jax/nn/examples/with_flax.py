"""Train a sparse convolutional network on digits with Flax NNX.

    python with_flax.py

Prints the log-likelihood of an example, the KL of each layer, and the test error.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from sklearn.datasets import load_digits

from logunif_kl.jax import nn

EPOCHS, BATCH, WARM_UP = 30, 128, (3, 15)

images, labels = load_digits(return_X_y=True)
images = jnp.asarray(images, jnp.float32).reshape(-1, 8, 8, 1) / 16
labels = jnp.asarray(labels)
test, train = slice(0, 450), slice(450, None)
n = len(labels[train])


class Variational(nnx.Module):
    """The parameters of a layer: a posterior of parameters of Flax, and a bias."""

    def __init__(self, shape, rngs):
        start = nn.Normal.from_mean(nnx.initializers.he_normal()(rngs.params(), shape))
        self.weight = nnx.data(jax.tree.map(nnx.Param, start))
        self.bias = nnx.Param(jnp.zeros(shape[-1]))


class Network(nnx.Module):
    """A convolution and a dense layer; `rngs` makes the noise, and None is for the mean."""

    def __init__(self, rngs):
        self.conv = Variational((3, 3, 1, 16), rngs)
        self.out = Variational((4 * 4 * 16, 10), rngs)

    def __call__(self, x, rngs=None):
        def key():
            return None if rngs is None else rngs.noise()

        x = nn.conv(
            x,
            self.conv.weight,
            self.conv.bias,
            window_strides=2,
            padding="SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            key=key(),
        )
        x = jax.nn.relu(x).reshape(len(x), -1)
        return nn.dense(x, self.out.weight, self.out.bias, key=key())


@nnx.jit
def step(model, optimizer, rngs, x, y, kl_weight):
    def loss(model, rngs):
        likelihood = nn.categorical_log_likelihood(model(x, rngs), y)
        bound = nn.elbo(likelihood, nn.neg_kl(model), n, kl_weight=kl_weight)
        return bound.loss, bound

    (_, bound), gradient = nnx.value_and_grad(loss, has_aux=True)(model, rngs)
    optimizer.update(model, gradient)
    return bound


@nnx.jit
def error(model):
    return jnp.mean(model(images[test]).argmax(1) != labels[test])


def main():
    rngs = nnx.Rngs(params=0, noise=1, order=2)
    model = Network(rngs)
    rate = optax.linear_schedule(5e-3, 0.0, EPOCHS * (n // BATCH))
    optimizer = nnx.Optimizer(model, optax.adam(rate), wrt=nnx.Param)
    print(f"before: KL {nn.kl(model):.0f}, error {error(model):.3f}")
    for epoch in range(1, EPOCHS + 1):
        order = jax.random.permutation(rngs.order(), n)[: n // BATCH * BATCH] + test.stop
        kl_weight = nn.linear_warm_up(epoch, *WARM_UP)
        for batch in order.reshape(-1, BATCH):
            bound = step(model, optimizer, rngs, images[batch], labels[batch], kl_weight)
        if epoch % 5 == 0:
            layers = ", ".join(f"{name} {kl:.0f}" for name, kl in nn.named_kl(model).items())
            print(
                f"epoch {epoch}: log-likelihood {bound.expected_log_likelihood / n:.3f}, "
                f"KL {-bound.neg_kl:.0f}, error {error(model):.3f} ({layers})"
            )


if __name__ == "__main__":
    main()
