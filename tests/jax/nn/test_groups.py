"""Groups of weights with one variance, and weights with random scales, against PyTorch's layers."""

import math
from dataclasses import replace

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from logunif_kl.isotropic import kl_vector  # noqa: E402
from logunif_kl.jax import nn  # noqa: E402
from logunif_kl.nn.sparsity import SILENT  # noqa: E402

KEY = jax.random.key(0)
MU = jax.random.normal(jax.random.key(1), (4, 3))


class TestGroups:
    @pytest.mark.parametrize(("sharing", "axis"), [("input", 1), ("output", 0)])
    def test_the_kl(self, sharing, axis):
        node = nn.Weight.from_mean(MU, nn.Grouped(sharing, initial=-1.0))
        squares = (np.asarray(MU, float) ** 2).sum(axis)
        k = MU.shape[axis]
        expected = kl_vector(-1.0 - np.log(squares), k).sum()
        assert float(nn.kl({"w": node})) == pytest.approx(expected, rel=2e-6)
        log_alpha = node.log_alpha_of_weights()
        assert log_alpha.shape == MU.shape
        first = math.log(k) - 1.0 - math.log(squares[0])
        assert float(log_alpha[0, 0]) == pytest.approx(first, rel=1e-5)

    @pytest.mark.parametrize("size", [1e-4, 300.0])  # squares of float16 would be 0, or inf
    def test_half_types(self, size):
        half = nn.Weight.from_mean((MU * size).astype("float16"), nn.Grouped(initial=-6.0))
        wide = jax.tree.map(lambda leaf: leaf.astype("float32"), half)
        assert nn.kl(half) == nn.kl(wide)
        found, expected = jax.grad(nn.kl)(half), jax.grad(nn.kl)(wide)
        np.testing.assert_array_equal(found.mean, expected.mean.astype("float16"))
        np.testing.assert_array_equal(found.log_sigma2, expected.log_sigma2.astype("float16"))
        np.testing.assert_array_equal(half.log_alpha_of_weights(), wide.log_alpha_of_weights())

    def test_its_gradient(self):
        with jax.enable_x64(True):
            node = nn.Weight.from_mean(
                np.asarray(MU, "float64"), nn.Grouped("output", initial=-1.0)
            )
            check_grads(nn.kl, (node,), order=1, rtol=1e-6)

    def test_noise_of_each_weight(self):
        node = nn.Weight.from_mean(MU, nn.Grouped(initial=0.0))
        y = nn.dense(jnp.ones((20_000, 4)), node, key=KEY)
        np.testing.assert_allclose(y.mean(0), MU.sum(0), atol=0.04)
        np.testing.assert_allclose(y.var(0), 4.0, rtol=0.08)

    def test_whole_groups_are_pruned(self):
        mu = jnp.ones((4, 3)).at[1].multiply(1e-3).at[0, 0].set(0.0)
        node = nn.Weight.from_mean(mu, nn.Grouped(initial=0.0))
        found = nn.prune(node, 4.0)
        assert (found.mean[1] == 0.0).all()
        np.testing.assert_array_equal(found.log_sigma2[:, 0], [0.0, SILENT, 0.0, 0.0])
        assert jnp.isfinite(nn.kl(found))
        assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(jax.grad(nn.kl)(found)))
        assert nn.sparsity(node, 4.0).kept == 8  # a mean of the first group is 0
        again = nn.prune(found, math.inf, like=found)
        np.testing.assert_array_equal(again.mean, found.mean)

    def test_a_variance_of_fewer_axes(self):
        """It is that of the last axes, as everywhere in JAX."""
        whole = nn.Weight.from_mean(MU, nn.Grouped("output", initial=-1.0))
        fewer = replace(whole, log_sigma2=whole.log_sigma2[0])
        assert nn.kl(fewer) == nn.kl(whole)
        for threshold in (-3.0, -2.0, -1.0, 3.0):
            found, expected = nn.prune(fewer, threshold), nn.prune(whole, threshold)
            np.testing.assert_array_equal(found.mean, expected.mean)
            np.testing.assert_array_equal(found.log_sigma2, expected.log_sigma2[0])

    def test_other_penalties(self):
        node = nn.Weight.from_mean(MU, nn.Grouped())
        single = nn.Weight(MU, jnp.broadcast_to(node.log_sigma2, MU.shape))
        prior = nn.NormalPrior(2.0)
        assert nn.kl(node, penalty=prior) == nn.kl(single, penalty=prior)


class TestScaled:
    def node(self):
        node = nn.Weight.from_mean(MU, nn.Scaled(initial=-1.0))
        scale = jnp.array([[1.0], [0.5], [-2.0], [1e-2]])
        return replace(node, scale=scale, scale_log_sigma2=node.scale_log_sigma2 + 0.5)

    def test_the_kl(self):
        node = self.node()
        expected = nn.kl(nn.Weight(node.scale, node.scale_log_sigma2))
        expected += nn.kl(nn.Weight(node.mean, node.log_sigma2), penalty=nn.NormalPrior(1.0))
        assert float(nn.kl({"w": node})) == pytest.approx(float(expected), rel=1e-6)
        grouped = replace(node, groups=3)
        log_alpha = node.scale_log_sigma2 - 2.0 * jnp.log(jnp.abs(node.scale))
        found = nn.log_alpha({"w": node})["w"]
        np.testing.assert_allclose(found, jnp.broadcast_to(log_alpha, MU.shape), rtol=1e-6)
        more = 2.0 * nn.kl(nn.Weight(node.scale, node.scale_log_sigma2))
        assert float(nn.kl(grouped)) == pytest.approx(float(expected + more), rel=1e-6)

    @pytest.mark.parametrize("estimator", ["local", "per_example", "per_batch"])
    def test_moments_of_its_samples(self, estimator):
        node, x = self.node(), jnp.array([1.0, -0.5, 2.0, 3.0])
        keys = jax.random.split(KEY, 20_000)
        y = jax.vmap(lambda k: nn.dense(x[None], node, key=k, estimator=estimator)[0])(keys)
        np.testing.assert_allclose(nn.dense(x, node), x @ (node.scale * MU), rtol=1e-5, atol=1e-6)
        drawn = jax.vmap(nn.sample, (None, 0))(node, keys)
        variance = math.exp(-0.5)
        second = (node.scale**2 + variance) * (MU**2 + math.exp(-1.0))
        mean = node.scale * MU
        np.testing.assert_allclose(y.mean(0), x @ mean, atol=0.1)
        expected = (x**2) @ (second - mean**2)
        np.testing.assert_allclose(y.var(0), expected, rtol=0.1)
        np.testing.assert_allclose(drawn.mean(0), mean, atol=0.05)
        np.testing.assert_allclose(drawn.var(0), second - mean**2, rtol=0.1)

    def test_in_a_convolution(self):
        kernel = jnp.ones((3, 3, 2, 4))
        node = nn.Weight.from_mean(kernel, nn.Scaled(initial=0.0))
        images = jnp.ones((2, 5, 5, 2))
        layout = ("NHWC", "HWIO", "NHWC")
        found = nn.conv(images, node, padding="SAME", dimension_numbers=layout, key=KEY)
        assert found.shape == (2, 5, 5, 4)

    def test_inputs_are_pruned(self):
        node = self.node()  # log alpha of the last scale: 8.7
        found = jax.jit(lambda node: nn.prune(node, 3.0))(node)
        assert (found.mean[3] == 0.0).all()
        assert found.scale[3, 0] == 0.0
        assert (nn.to_deterministic(node, 3.0)[3] == 0.0).all()
        x = jnp.zeros(4).at[3].set(1.0)
        assert (nn.dense(x, found, key=KEY) == 0.0).all()
        assert float(nn.kl(found)) < float(nn.kl(node))
        assert nn.sparsity(node).kept == 9
