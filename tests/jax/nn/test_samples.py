"""Arrays of any tree that become Gaussian, their samples, and predictions from them."""

import math

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402
from scipy.special import expit, softmax  # noqa: E402

from logunif_kl.jax import nn  # noqa: E402

KEY = jax.random.key(0)


def params():
    return {
        "layers": [{"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}, {"table": jnp.ones((2, 2))}],
        "count": jnp.arange(6).reshape(2, 3),
    }


class TestTrees:
    def test_to_variational(self):
        made = nn.to_variational(params(), posterior=nn.Additive(initial=-2.0))
        assert [*nn.log_alpha(made)] == ["layers.0.kernel", "layers.1.table"]
        assert (made["layers"][0]["kernel"].log_sigma2 == -2.0).all()
        again = nn.to_variational(made, lambda path, leaf: path.endswith("bias"))
        assert [*nn.log_alpha(again)] == ["layers.0.bias", "layers.0.kernel", "layers.1.table"]
        assert again["layers"][1]["table"].log_sigma2[0, 0] == -2.0
        options = {"posterior": nn.Grouped("output"), "input_axis": 1, "output_axis": 0}
        units = nn.to_variational(params(), **options)  # as the layers of Equinox have them
        assert units["layers"][0]["kernel"].log_sigma2.shape == (3, 1)
        for a, b in zip(*map(jax.tree.leaves, (nn.to_deterministic(made), params())), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_sample(self):
        made = nn.to_variational(params(), posterior=nn.Additive(initial=0.0))
        found = nn.sample(made, KEY)
        assert jax.tree.structure(found) == jax.tree.structure(params())
        kernel, table = found["layers"][0]["kernel"], found["layers"][1]["table"]
        assert (kernel[:2] != table).all()  # each has noise of its own
        again = jax.jit(nn.sample)(made, KEY)
        np.testing.assert_allclose(again["layers"][0]["kernel"], kernel, rtol=1e-6)
        assert (nn.sample(made, jax.random.key(1))["layers"][1]["table"] != table).all()

    @pytest.mark.parametrize("sharing", ["weight", "output", "input", "layer"])
    def test_moments_of_dropout(self, sharing):
        node = nn.Weight.from_mean(
            jnp.array([[1.0, 2.0]] * 3), nn.Multiplicative(sharing, initial=-1.0)
        )
        drawn = jax.vmap(nn.sample, (None, 0))(node, jax.random.split(KEY, 20_000))
        np.testing.assert_allclose(drawn.mean(0), node.mean, atol=0.03)
        np.testing.assert_allclose(drawn.var(0), math.exp(-1.0) * node.mean**2, rtol=0.08)

    @pytest.mark.parametrize("axis", [-2, 1])
    def test_correlated_noise(self, axis):
        node = nn.Weight.from_mean(jnp.ones((3, 2)), nn.Correlated(initial=0.0), input_axis=axis)
        found = nn.sample(node, KEY)
        other = 1 - axis % 2
        assert (found == jnp.take(found, jnp.array([0]), other)).all()
        assert (jnp.diff(found, axis=axis) != 0.0).all()

    def test_half_types(self):
        node = nn.Weight(jnp.ones(4, jnp.float16), jnp.full(4, 60.0, jnp.float16))
        assert jnp.isfinite(nn.sample(node, KEY)).all()
        assert nn.sample(node, KEY).dtype == jnp.float16

    def test_to_deterministic_and_densities(self):
        node = nn.Weight(jnp.array([1.0, 0.1, 0.5, 0.0]), jnp.zeros(4))
        threshold = nn.density_threshold({"w": node}, 0.5)
        np.testing.assert_array_equal(nn.to_deterministic(node, threshold), [1.0, 0.0, 0.5, 0.0])
        assert 1e-6 < nn.density_threshold(node, 1.0) / math.log(100.0) - 1.0 < 1.2e-5
        assert nn.density_threshold(node, 0.0) == -math.inf
        same = nn.Weight(jnp.ones(4), jnp.zeros(4))
        assert nn.density_threshold(same, 0.5) == -math.inf

    def test_densities_are_kept_by_compiled_functions(self):
        """A compiler rounds log alpha of a group otherwise."""
        rng = np.random.RandomState(0)
        node = nn.Weight.from_mean(
            jnp.asarray(rng.randn(64, 4) * 0.5, "float32"), nn.Grouped("input", initial=-1.0)
        )
        node = jax.tree.map(lambda x: x + jnp.asarray(rng.randn(*x.shape) * 0.5, "float32"), node)
        compiled = jax.jit(lambda node: node.log_alpha_of_weights())(node)
        for kept in range(65):
            threshold = nn.density_threshold(node, kept / 64)
            assert nn.sparsity(node, threshold).kept == (compiled <= threshold).sum() == 4 * kept

    def test_zero_means(self):
        tree = {"a": nn.Weight(jnp.array([1.0, 0.1]), jnp.zeros(2))}
        tree["b"] = nn.Weight.from_mean(jnp.ones((1, 2)), nn.Multiplicative(initial=3.5))
        tree["tie"] = nn.Weight.from_mean(jnp.ones((1, 2)), nn.Multiplicative(initial=3.0))
        found = jax.jit(nn.zero_means)(tree)
        np.testing.assert_array_equal(found["a"].mean, [1.0, 0.0])
        np.testing.assert_array_equal(found["a"].log_sigma2, tree["a"].log_sigma2)
        np.testing.assert_array_equal(found["b"].mean, [[0.0, 0.0]])
        np.testing.assert_array_equal(found["tie"].mean, tree["tie"].mean)


def logits(key):
    return 2.0 * jax.random.normal(key, (5, 3))


class TestPredictions:
    def recorded(self, samples=50):
        return np.array([logits(key) for key in jax.random.split(KEY, samples)], float)

    def test_categorical(self):
        found = nn.predict(logits, KEY, 50)
        p = softmax(self.recorded(), -1)
        entropy = -(p.mean(0) * np.log(p.mean(0))).sum(-1)
        np.testing.assert_allclose(found.mean, p.mean(0), rtol=1e-5)
        np.testing.assert_allclose(found.variance, p.var(0, ddof=1), rtol=1e-4)
        np.testing.assert_allclose(found.entropy, entropy, rtol=1e-5)
        expected = entropy + (p * np.log(p)).sum(-1).mean(0)
        np.testing.assert_allclose(found.mutual_information, expected, rtol=1e-4)
        assert found.samples == 50

    def test_bernoulli(self):
        found = nn.predict(logits, KEY, 50, likelihood="bernoulli")
        np.testing.assert_allclose(found.mean, expit(self.recorded()).mean(0), rtol=1e-5)
        probit = nn.predict(logits, KEY, 50, likelihood="bernoulli", link="probit")
        assert (probit.mean != found.mean).all()

    @pytest.mark.parametrize("log_sigma2", [None, -2.0, np.zeros(3, np.float32)])
    def test_normal(self, log_sigma2):
        found = nn.predict(logits, KEY, 50, likelihood="normal", log_sigma2=log_sigma2)
        y, of_data = self.recorded(), np.exp(0.0 if log_sigma2 is None else log_sigma2)
        np.testing.assert_allclose(found.mean, y.mean(0), rtol=1e-5, atol=1e-6)
        v = y.var(0, ddof=1)
        np.testing.assert_allclose(found.variance, v, rtol=1e-4)
        entropy = 0.5 * np.log(2 * math.pi * math.e * (v + of_data))
        np.testing.assert_allclose(found.entropy, entropy, rtol=1e-5)
        expected = 0.5 * np.log1p(v / of_data)
        np.testing.assert_allclose(found.mutual_information, expected, rtol=1e-5)

    def test_normal_with_its_own_variance(self):
        def heads(key):
            output = logits(key)
            return output[..., :2], output[..., 2:]

        found = nn.predict(heads, KEY, 50, likelihood="normal")
        y = self.recorded()
        mean, log_sigma2 = y[..., :2], y[..., 2:]
        np.testing.assert_allclose(found.mean, mean.mean(0), rtol=1e-5, atol=1e-6)
        v = mean.var(0, ddof=1)
        np.testing.assert_allclose(found.variance, v, rtol=1e-4)
        total = v + np.exp(log_sigma2).mean(0)
        entropy = 0.5 * np.log(2 * math.pi * math.e * total)
        np.testing.assert_allclose(found.entropy, entropy, rtol=1e-5)
        of_samples = 0.5 * np.log(2 * math.pi * math.e) + 0.5 * log_sigma2.mean(0)
        of_samples = np.broadcast_to(of_samples, entropy.shape)
        np.testing.assert_allclose(found.expected_entropy, of_samples, rtol=1e-4)

    def test_of_a_model(self):
        """Under jit, with weights that are drawn for the whole batch."""
        tree = nn.to_variational({"w": jnp.eye(3)}, posterior=nn.Additive(initial=0.0))
        x = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        run = jax.jit(lambda tree, key: nn.predict(lambda k: x @ nn.sample(tree, k)["w"], key, 64))
        found = run(tree, KEY)
        assert found.mutual_information[0] > 0.1
        assert found.mutual_information[1] == pytest.approx(0.0, abs=1e-6)


class TestLikelihood:
    @pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_labels_that_do_not_count(self, wrap):
        x, labels = jax.random.normal(KEY, (2, 4, 5)), jnp.array([[0, 1, -100, -100], [4, 3, 2, 1]])

        def likelihood(x):
            return nn.categorical_log_likelihood(x, labels, ignore_index=-100)

        found = wrap(likelihood)(x)
        each = np.take_along_axis(jax.nn.log_softmax(x), np.abs(labels % 5)[..., None], -1)[..., 0]
        np.testing.assert_allclose(found, np.where(labels < 0, 0.0, each).sum(1), rtol=1e-5)
        slopes = jax.grad(lambda x: wrap(likelihood)(x).sum())(x)
        assert (slopes[0, 2:] == 0.0).all()
        assert (slopes[0, :2] != 0.0).all()


def test_layers_take_weights_without_noise():
    """As `to_deterministic` returns them: they compute the means, and the moments of the input."""
    x, ids = jax.random.normal(jax.random.key(3), (5, 4)), jnp.array([2, 0])
    weight = nn.Weight.from_mean(jax.random.normal(jax.random.key(4), (4, 3)))
    array = nn.to_deterministic(weight)
    np.testing.assert_array_equal(nn.dense(x, array), nn.dense(x, weight))
    np.testing.assert_array_equal(nn.embedding(ids, array), nn.embedding(ids, weight))
    image, kernel = x.reshape(1, 1, 4, 5), weight.mean.reshape(3, 1, 2, 2)
    expected = nn.conv(image, nn.Weight.from_mean(kernel))
    np.testing.assert_array_equal(nn.conv(image, kernel), expected)
    moments = nn.dense(nn.Moments(x, jnp.full_like(x, 0.5)), array)
    np.testing.assert_allclose(moments.variance, 0.5 * (jnp.ones_like(x) @ array**2), rtol=1e-6)
    slopes = jax.grad(lambda array: nn.dense(x, array).sum())(array)
    np.testing.assert_allclose(slopes, jnp.broadcast_to(x.sum(0)[:, None], (4, 3)), rtol=1e-6)


def test_an_exported_prediction_can_be_serialised():
    pytest.importorskip("flatbuffers")
    weight = nn.Weight.from_mean(jnp.ones((4, 3)), nn.Additive(initial=0.0))

    def predict(x, data):
        key = jax.random.wrap_key_data(data)
        return nn.predict(lambda key: nn.dense(x, weight, key=key), key, 5)

    (batch,) = export.symbolic_shape("batch")
    data = jax.random.key_data(jax.random.key(0))
    shape = jax.ShapeDtypeStruct((batch, 4), jnp.float32)
    made = export.export(jax.jit(predict))(shape, data).serialize()
    x = jnp.arange(8.0).reshape(2, 4)
    found, expected = export.deserialize(made).call(x, data), predict(x, data)
    assert type(found) is nn.Prediction
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
