"""Moments without samples: against PyTorch's, explicit samples, and finite differences."""

import math
from functools import partial

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax.test_util import check_grads

from logunif_kl.jax import nn
from tests.jax.nn import layers
from tests.jax.nn.layers import KINDS, POSTERIORS, weight_of

INDEPENDENT = [name for name in POSTERIORS if "correlated" not in name]
SAMPLES, SIGMAS = 500_000, 5.0
RTOL = {"float32": 3e-6, "float64": 1e-13}


def apart(found, samples):
    """How many standard errors of the samples the moments are from theirs, at most."""
    samples = samples.astype("float64")
    mean, n = samples.mean(0), len(samples)
    squares = (samples - mean) ** 2
    variance = squares.mean(0)
    ours, spread = (np.asarray(each, "float64").reshape(-1) for each in found)
    of_mean = np.abs(ours - mean) / np.sqrt(variance / n + 1e-30)
    return max(of_mean.max(), (np.abs(spread - variance) / (squares.std(0) / n**0.5)).max())


class TestSamples:
    @pytest.mark.parametrize("name", INDEPENDENT)
    @pytest.mark.parametrize("kind", KINDS)
    def test_certain_inputs(self, kind, name):
        layer = KINDS[kind]
        weight = weight_of(name, layer)
        mean, variance = layer.call(nn.Moments(jnp.asarray(layer.x[None])), weight)
        samples = layers.sampled_outputs(kind, weight, SAMPLES)
        noisy = samples.std(0) > 0.0  # the weight of mean 0 has no noise if alpha is its own
        mean, variance = (np.asarray(each).reshape(-1) for each in (mean, variance))
        assert (variance[~noisy] == 0.0).all()
        pair = mean[noisy], variance[noisy]
        assert apart(pair, samples[:, noisy]) < SIGMAS
        assert apart((pair[0], 1.02 * pair[1]), samples[:, noisy]) > SIGMAS

    def test_noisy_inputs(self):
        rng = np.random.default_rng(3)
        weight = weight_of("additive", KINDS["dense"])
        x, spread = KINDS["dense"].x, rng.uniform(0.1, 1.0, 5).astype("float32")
        found = nn.dense(nn.Moments(x, spread), weight)
        inputs = x + np.sqrt(spread) * rng.normal(size=(SAMPLES, 5))
        weights = layers.sampled_weights(weight, KINDS["dense"], rng, SAMPLES)
        samples = np.einsum("ni,nio->no", inputs, weights)
        assert apart(found, samples) < SIGMAS
        without = nn.dense(nn.Moments(x), weight).variance + spread @ weight.mean**2
        assert apart((found.mean, without), samples) > SIGMAS  # the product of the variances


def parameters(dtype):
    rng = np.random.default_rng(1)
    weights = {
        name: nn.Weight(0.3 * rng.normal(size=shape), rng.uniform(-5.0, -2.0, shape))
        for name, shape in (("conv", (4, 2, 3, 3)), ("hidden", (16, 6)), ("out", (6, 3)))
    }
    biases = {name: rng.normal(size=n) for name, n in (("conv", 4), ("hidden", 6), ("out", 3))}
    x = rng.normal(size=(5, 2, 8, 8))
    made = weights, biases, x, 0.1 + x * x
    return jax.tree.map(lambda leaf: jnp.asarray(leaf.astype(dtype)), made)


def network(weights, biases, x, pool):
    h = nn.conv(x, weights["conv"], biases["conv"], padding="SAME")
    h = nn.avg_pool(pool(nn.relu(h), (1, 1, 2, 2)), (1, 1, 2, 2))
    h = nn.relu(nn.dense(h.reshape(h.shape[0], -1), weights["hidden"], biases["hidden"]))
    return nn.dense(h, weights["out"], biases["out"])


_rng = np.random.default_rng(2)
REALS, RATES = _rng.normal(size=(5, 3)), _rng.uniform(size=(5, 3))
LABELS = np.array([0, 2, 1, 1, 0])
# A likelihood -> its function, targets, and the last argument.
LIKELIHOODS = {
    "normal": ("expected_normal_log_likelihood", REALS, -0.5),
    "probit": ("expected_bernoulli_log_likelihood", RATES, "probit"),
    "logit": ("expected_bernoulli_log_likelihood", RATES, "logit"),
    "tilted": ("expected_categorical_log_likelihood", LABELS, "tilted"),
    "quadratic": ("expected_categorical_log_likelihood", LABELS, "quadratic"),
    "taylor": ("expected_categorical_log_likelihood", LABELS, "taylor"),
}


def likelihood(name, module, output, array, dtype):
    function, targets, option = LIKELIHOODS[name]
    targets = targets if targets is LABELS else targets.astype(dtype)
    return getattr(module, function)(output, array(targets), option)


class TestAgainstTorch:
    @pytest.mark.parametrize("dtype", RTOL)
    @pytest.mark.parametrize("steepness", [math.inf, 3.0])
    @pytest.mark.parametrize("pool", ["max", "avg"])
    def test_network_and_likelihoods(self, pool, steepness, dtype):
        torch = pytest.importorskip("torch")
        from logunif_kl.torch import nn as torch_nn

        def tensor(array):
            return torch.tensor(np.asarray(array))

        with jax.enable_x64(dtype == "float64"):
            weights, biases, x, variance = parameters(dtype)
            model = torch.nn.Sequential(
                torch_nn.VariationalConv2d(2, 4, 3, padding=1),
                torch.nn.ReLU(),
                (torch.nn.MaxPool2d if pool == "max" else torch.nn.AvgPool2d)(2),
                torch.nn.AvgPool2d(2),
                torch.nn.Flatten(),
                torch_nn.VariationalLinear(16, 6),
                torch.nn.ReLU(),
                torch_nn.VariationalLinear(6, 3),
            ).to(getattr(torch, dtype))
            kept = [model[0], model[5], model[7]]
            for layer, (name, weight) in zip(kept, weights.items(), strict=True):
                mu, log_sigma2, bias = (tensor(a) for a in (*jax.tree.leaves(weight), biases[name]))
                # PyTorch keeps a dense kernel as (outputs, inputs).
                layer.weight.data = mu if name == "conv" else mu.T
                layer.log_sigma2.data = log_sigma2 if name == "conv" else log_sigma2.T
                layer.bias.data = bias
            theirs = torch_nn.moments(model, tensor(x), tensor(variance), steepness=steepness)

            pool = nn.max_pool if pool == "max" else nn.avg_pool
            of = jax.jit(partial(network, pool=pool))
            ours = of(weights, biases, nn.Moments(x, variance, steepness))
            close = partial(np.testing.assert_allclose, rtol=RTOL[dtype], atol=RTOL[dtype])
            for a, b in zip(ours, theirs, strict=True):
                assert a.dtype == dtype
                close(a, b.detach())

            for name in LIKELIHOODS:
                expected = likelihood(name, torch_nn, theirs, torch.tensor, dtype)
                found = likelihood(name, nn, ours, jnp.asarray, dtype)
                assert found.dtype == dtype
                close(found, expected.reshape(5, -1).sum(1).detach(), err_msg=name)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_margins(self, dtype):
        torch = pytest.importorskip("torch")
        from logunif_kl.torch import nn as torch_nn

        # Both sides of the border between two formulas, and it.
        border = np.nextafter(np.float32(-8.0 * math.sqrt(2.0)), np.float32([-20.0, 0.0]))
        border = np.concatenate([border, np.float32([-8.0 * math.sqrt(2.0)])])
        sweep = np.concatenate([[-1e5, -3e3, 1e5], np.linspace(-40.0, 40.0, 8001), border])
        margins = sweep.astype(dtype)[:, None]
        ones = np.ones_like(margins)
        t = torch.tensor(margins, requires_grad=True)
        theirs = torch_nn.expected_bernoulli_log_likelihood(torch_nn.Moments(t), torch.tensor(ones))
        (slope,) = torch.autograd.grad(theirs.sum(), t)
        rtol, tiny = (5e-6, 1e-36) if dtype == "float32" else (1e-13, 1e-300)
        close = partial(np.testing.assert_allclose, rtol=rtol, atol=tiny)
        with jax.enable_x64(dtype == "float64"):

            def value(mean):
                return nn.expected_bernoulli_log_likelihood(nn.Moments(mean), ones)

            close(value(margins), theirs[:, 0].detach())
            close(jax.grad(lambda mean: value(mean).sum())(margins), slope)


class TestPooling:
    x = np.random.default_rng(4).normal(size=(2, 5, 7)).astype("float32")
    options = (1, 3, 2), (1, 2, 1), [(0, 0), (1, 1), (0, 1)]

    def windows(self):
        """The padded windows, by loops."""
        padded = np.pad(self.x, self.options[2], constant_values=np.nan)
        shape = (2, 3, 7)
        for at in np.ndindex(shape):
            i, j, k = at
            yield at, padded[i, 2 * j : 2 * j + 3, k : k + 2]

    def test_of_arrays(self):
        """For `Moments` the means are these, and the variances are of the element picked."""
        greatest, all_of, within = (
            np.asarray(f(self.x, *self.options))
            for f in (nn.max_pool, nn.avg_pool, partial(nn.avg_pool, count_include_pad=False))
        )
        picked = nn.max_pool(nn.Moments(self.x, np.exp(self.x)), *self.options)
        spread = nn.avg_pool(nn.Moments(self.x, self.x**2), *self.options).variance
        fewer = nn.avg_pool(
            nn.Moments(self.x, self.x**2), *self.options, count_include_pad=False
        ).variance
        np.testing.assert_array_equal(picked.mean, greatest)
        np.testing.assert_allclose(picked.variance, np.exp(greatest), rtol=1e-6)
        for at, window in self.windows():
            n = np.isfinite(window).sum()
            assert greatest[at] == np.nanmax(window)
            expected = [np.nansum(window) / 6, np.nanmean(window)]
            squares = np.nansum(window**2)
            np.testing.assert_allclose([all_of[at], within[at]], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(
                [spread[at], fewer[at]], [squares / 36, squares / n**2], rtol=1e-5
            )

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_half_types_do_not_add_up(self, dtype):
        """bfloat16 counts to 256, and float16 ends at 65504."""
        x = jnp.full((1, 32, 32), 100.0, dtype)
        assert nn.avg_pool(x, x.shape).tolist() == [[[100.0]]]
        mean, variance = nn.avg_pool(nn.Moments(x, x), x.shape)
        assert (mean.item(), variance.item(), mean.dtype) == (100.0, 100.0 / 1024, dtype)

    def test_same_padding(self):
        assert nn.max_pool(self.x, (1, 2, 2), padding="SAME").shape == (2, 3, 4)

    @pytest.mark.parametrize("pool", [nn.max_pool, nn.avg_pool])
    def test_of_tied_and_certain_elements(self, pool):
        """The first of equal elements is picked, and a variance that is not there stays so."""
        found = pool(nn.Moments(jnp.ones((1, 2))), (1, 2))
        assert found.variance is None
        picked = nn.max_pool(nn.Moments(jnp.ones((1, 2)), jnp.array([[3.0, 4.0]])), (1, 2))
        assert picked.variance.tolist() == [[3.0]]


class TestTransforms:
    @pytest.mark.parametrize(
        ("pool", "steepness"),
        [pytest.param(nn.max_pool, math.inf, marks=pytest.mark.slow), (nn.avg_pool, 2.0)],
    )
    def test_finite_differences(self, pool, steepness):
        with jax.enable_x64(True):
            weights, biases, x, variance = parameters("float64")

            def bound(weights, variance):
                output = network(weights, biases, nn.Moments(x[:2], variance, steepness), pool)
                return nn.expected_categorical_log_likelihood(output, jnp.array([1, 2]))

            check_grads(bound, (weights, variance[:2]), 1, modes=("fwd", "rev"), rtol=1e-4)

    @pytest.mark.parametrize("pool", [nn.max_pool, nn.avg_pool])
    def test_gradients_under_jit(self, pool):
        def total(x):
            return (pool(x, (2, 2)) ** 2).sum() + pool(nn.Moments(x, x * x), (2, 2)).variance.sum()

        x = jnp.arange(16.0).reshape(4, 4)
        np.testing.assert_allclose(jax.jit(jax.grad(total))(x), jax.grad(total)(x), rtol=1e-6)

    def test_vmap(self):
        weights, biases, x, variance = parameters("float32")
        given = nn.Moments(x, variance)
        of = partial(network, weights, biases, pool=nn.max_pool)
        one = jax.vmap(
            lambda x: jax.tree.map(lambda a: a[0], of(jax.tree.map(lambda a: a[None], x)))
        )
        for a, b in zip(jax.jit(one)(given), jax.jit(of)(given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_the_mean_is_that_without_a_key(self):
        """The same function serves arrays and moments."""
        weights, biases, x, _ = parameters("float32")
        found = network(weights, biases, nn.Moments(x), nn.max_pool)
        np.testing.assert_array_equal(found.mean, network(weights, biases, x, nn.max_pool))

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_half_types(self, dtype):
        """The square of 300 overflows float16; the variance is float32."""
        weight = nn.Weight.from_mean(jnp.ones((4, 2), dtype), nn.Additive(initial=-12.0))
        found = nn.dense(nn.Moments(jnp.full((1, 4), 300, dtype)), weight)
        assert (found.mean.dtype, found.variance.dtype) == (dtype, "float32")
        np.testing.assert_allclose(found.variance, 4 * 9e4 * math.exp(-12.0), rtol=0.01)

    def test_variances_stay_finite(self):
        weight = nn.Weight(jnp.ones((2, 1)), jnp.full((2, 1), 200.0))
        found = nn.dense(nn.Moments(jnp.full((1, 2), 1e10)), weight)
        assert found.variance.tolist() == [[float(jnp.finfo("float32").max)]]
