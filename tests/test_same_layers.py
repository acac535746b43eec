"""The layers for JAX and those for PyTorch: the same KL, and the same networks in training."""

import math

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")
pytest.importorskip("logunif_kl.torch.nn")

import jax
import jax.numpy as jnp
import torch

from logunif_kl.jax import nn
from logunif_kl.torch import nn as torch_nn
from tests.jax.nn.layers import POSTERIORS

EPOCHS, BATCH, RATE, WARM_UP = 30, 128, 3e-3, (5, 15)
SEEDS = 3


@pytest.mark.parametrize("name", POSTERIORS)
def test_kl(name):
    """Layers with the same parameters have the same KL; JAX stores the transposed matrix."""
    sharing, noise = POSTERIORS[name] or ("weight", "independent")
    posterior = "additive" if POSTERIORS[name] is None else "multiplicative"
    options = {"posterior": posterior, "sharing": sharing, "noise": noise, "initial": -1.5}
    layer = torch_nn.VariationalLinear(5, 3, **options)
    kernel = jnp.asarray(layer.weight.detach().numpy().T)
    if posterior == "additive":
        weight = nn.Normal.from_mean(kernel, -1.5)
    else:
        weight = nn.Dropout.from_mean(kernel, -1.5, sharing=sharing, noise=noise)
    assert math.isclose(nn.neg_kl(weight), layer.neg_kl().item(), rel_tol=1e-6)


@pytest.fixture(scope="module")
def digits():
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    return (images[450:], labels[450:]), (images[:450], labels[:450])


def batches(seed, n):
    """The same minibatches for both frameworks, each with the weight of the KL."""
    rng = np.random.default_rng(seed)
    for epoch in range(EPOCHS):
        for batch in rng.permutation(n)[: n // BATCH * BATCH].reshape(-1, BATCH):
            yield batch, float(nn.linear_warm_up(epoch, *WARM_UP))


def initial(seed):
    rng = np.random.default_rng(1000 + seed)
    return [
        (rng.normal(size=(i, o)) * math.sqrt(2 / i)).astype("float32")
        for i, o in ((64, 100), (100, 10))
    ]


def with_torch(seed, train, test):
    """The test error and the KL after training."""
    torch.manual_seed(seed)
    layers = [torch_nn.VariationalLinear(64, 100), torch_nn.VariationalLinear(100, 10)]
    for layer, kernel in zip(layers, initial(seed), strict=True):
        layer.weight.data = torch.from_numpy(kernel.T.copy())
        layer.bias.data.zero_()
    model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    x, y = (torch.from_numpy(each) for each in train)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for batch, kl_weight in batches(seed, len(x)):
        likelihood = -torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
        neg_kl = sum(layer.neg_kl() for layer in layers)
        optimizer.zero_grad()
        (-likelihood - kl_weight * neg_kl / len(x)).backward()
        optimizer.step()
    model.eval()
    found = model(torch.from_numpy(test[0])).argmax(1).numpy()
    return (found != test[1]).mean(), -sum(layer.neg_kl().item() for layer in layers)


def with_jax(seed, train, test):
    """The same by pure functions, with Adam by its definition."""
    x, y = (jnp.asarray(each) for each in train)
    params = [
        {"weight": nn.Normal.from_mean(kernel), "bias": jnp.zeros(kernel.shape[1])}
        for kernel in map(jnp.asarray, initial(seed))
    ]

    def logits(params, x, keys=(None, None)):
        hidden = jax.nn.relu(nn.dense(x, **params[0], key=keys[0]))
        return nn.dense(hidden, **params[1], key=keys[1])

    def loss(params, x, y, key, kl_weight):
        likelihood = nn.categorical_log_likelihood(logits(params, x, jax.random.split(key)), y)
        return nn.elbo(likelihood, nn.neg_kl(params), len(train[0]), kl_weight=kl_weight).loss

    @jax.jit
    def step(params, first, second, t, batch, key, kl_weight):
        gradient = jax.grad(loss)(params, x[batch], y[batch], key, kl_weight)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)

        def moved(p, m, v):
            return p - RATE * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)

        return jax.tree.map(moved, params, first, second), first, second

    zeros = jax.tree.map(jnp.zeros_like, params)
    state = params, zeros, zeros
    key = jax.random.key(seed)
    for i, (batch, kl_weight) in enumerate(batches(seed, len(x))):
        state = step(*state, i + 1.0, batch, jax.random.fold_in(key, i), kl_weight)
    found = np.asarray(logits(state[0], jnp.asarray(test[0])).argmax(1))
    return (found != test[1]).mean(), float(nn.kl(state[0]))


@pytest.mark.slow
def test_the_same_error(digits):
    """Networks with the same start and minibatches, but different noise, have the same error."""
    ours = np.array([with_jax(seed, *digits) for seed in range(SEEDS)])
    theirs = np.array([with_torch(seed, *digits) for seed in range(SEEDS)])
    print(ours.tolist(), theirs.tolist())
    error = theirs[:, 0].mean()
    assert error < 0.1
    # The standard error of a difference of two means, each of `SEEDS` trials of all test images.
    standard = math.sqrt(2 * error * (1 - error) / (SEEDS * len(digits[1][1])))
    assert abs(ours[:, 0].mean() - error) < 3 * standard
    np.testing.assert_allclose(ours[:, 1].mean(), theirs[:, 1].mean(), rtol=0.02)
