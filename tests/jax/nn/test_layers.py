"""What the layers compute: means, types, finite derivatives, layouts and noise."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax

from logunif_kl.jax import nn
from tests.jax.nn.layers import ESTIMATORS, KINDS, POSTERIORS, weight_of

KEY = jax.random.key(3)
SLOW = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("bfloat16", "float64")]


def leaves(tree):
    return [np.asarray(leaf, "float64") for leaf in jax.tree.leaves(tree)]


def minibatch(kind, dtype="float32", size=4):
    rng = np.random.default_rng(1)
    if kind == "embedding":
        return jnp.asarray(rng.integers(0, 4, (size, 3)))
    return jnp.asarray(rng.normal(size=(size, *KINDS[kind].x.shape)), dtype)


@pytest.mark.parametrize("name", POSTERIORS)
def test_without_a_key_the_mean_is_computed(name):
    bias = jnp.arange(3.0)
    weight = weight_of(name, KINDS["dense"])
    x = minibatch("dense")
    expected = x @ jax.tree.leaves(weight)[0] + bias
    assert (nn.dense(x, weight, bias) == expected).all()
    table = weight_of(name, KINDS["embedding"])
    ids = minibatch("embedding")
    assert (nn.embedding(ids, table) == jax.tree.leaves(table)[0][ids]).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_key_alone_decides_the_noise(kind, estimator):
    weight, x = weight_of("weight", KINDS[kind]), minibatch(kind)
    call = partial(KINDS[kind].call, x, weight, estimator=estimator)
    assert (call(key=KEY) == call(key=KEY)).all()
    assert not jnp.isclose(call(key=KEY), call(key=jax.random.key(4))).all()
    # Keys of the older kind serve too.
    assert jnp.isfinite(call(key=jax.random.PRNGKey(0))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_variances_of_fewer_parameters(kind):
    """Of a log_sigma2 that broadcasts to the means: the noise, and the gradient."""
    weight, x = weight_of("additive", KINDS[kind]), minibatch(kind)
    one = weight.log_sigma2[..., :1]

    def loss(log_sigma2):
        made = nn.Weight(weight.mean, log_sigma2)
        return KINDS[kind].call(x, made, key=KEY).sum() + nn.kl(made)

    found, slope = jax.value_and_grad(loss)(one)
    truth, slopes = jax.value_and_grad(loss)(jnp.broadcast_to(one, weight.mean.shape))
    assert jnp.isclose(found, truth)
    assert slope.shape == one.shape
    assert jnp.allclose(slope, slopes.sum(-1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("shape", [(0, 3), (0, 4, 3), (2, 0, 3)])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_examples(shape, estimator):
    weight = nn.Weight(jnp.ones((3, 2)), jnp.zeros((3, 2)))
    found = nn.dense(jnp.ones(shape), weight, key=KEY, estimator=estimator)
    assert found.shape == (*shape[:-1], 2)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_variance_that_is_no_number_is_seen(kind, estimator):
    weight = with_spread(weight_of("additive", KINDS[kind]), math.nan)
    found = KINDS[kind].call(minibatch(kind), weight, key=KEY, estimator=estimator)
    assert jnp.isnan(found).all()


DEGENERATE = {
    "zero inputs": lambda x, weight: (x * 0, weight),
    "zero means": lambda x, weight: (x, jax.tree.map(lambda a: a * 0, weight)),
    "zero inputs and means": lambda x, weight: (x * 0, jax.tree.map(lambda a: a * 0, weight)),
    "no variance": lambda x, weight: (x, with_spread(weight, -math.inf)),
    "hardly any variance": lambda x, weight: (x, with_spread(weight, -85.0)),
    "variance below the type": lambda x, weight: (x, with_spread(weight, -180.0)),
    "large inputs": lambda x, weight: (x * 0 + 300, weight),
    "alpha of e^10": lambda x, weight: (x, with_spread(weight, 10.0)),
}


def with_spread(weight, value):
    mean, spread = jax.tree.leaves(weight)
    return jax.tree.unflatten(jax.tree.structure(weight), [mean, jnp.full_like(spread, value)])


@pytest.mark.parametrize("dtype", ["float16", "float32", *SLOW])
@pytest.mark.parametrize(
    "name", ["additive", "layer", pytest.param("correlated, input", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_finite(kind, name, dtype):
    """Outputs and gradients, under each estimator, where the variance vanishes or is large."""
    with jax.enable_x64(dtype == "float64"):
        given = minibatch(kind, dtype if kind != "embedding" else "int32")

        @jax.jit
        def made(given, weight):
            cases = [change(given, weight) for change in DEGENERATE.values()]
            x = jnp.stack([given if kind == "embedding" else x for x, _ in cases])
            return x, jax.tree.map(lambda *leaves: jnp.stack(leaves), *(w for _, w in cases))

        x, weights = made(given, weight_of(name, KINDS[kind], dtype))

        def loss(weight, x, estimator):
            y = KINDS[kind].call(x, weight, key=KEY, estimator=estimator)
            assert y.dtype == dtype
            # As with a loss that is scaled for float16: no gradient is small or large.
            return (y / jnp.max(jnp.abs(y)).clip(1)).astype("float32").sum()

        wanted = (0, 1) if kind != "embedding" else 0

        @jax.jit
        @jax.vmap
        def all_three(weight, x):
            return [jax.value_and_grad(loss, wanted)(weight, x, e) for e in ESTIMATORS]

        for leaf in leaves(all_three(weights, x)):
            fine = [bool(np.isfinite(each).all()) for each in leaf]
            assert fine == [True] * len(DEGENERATE), list(DEGENERATE)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float16", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("kind", "name"),
    # Every row that is looked up has additive noise.
    [
        pair
        for pair in product(KINDS, ["additive", "weight", "correlated, input"])
        if pair != ("embedding", "additive")
    ],
)
def test_a_variance_that_overflows(kind, name, dtype):
    """A zero input, or a mean of 0 under a multiplicative posterior, has no noise."""
    x = minibatch(kind, dtype)
    mean, spread = jax.tree.leaves(weight_of(name, KINDS[kind], dtype))
    given = [mean * 0 if kind == "embedding" else mean, jnp.full_like(spread, 1e3)]
    weight = jax.tree.unflatten(jax.tree.structure(weight_of(name, KINDS[kind], dtype)), given)
    x = x if kind == "embedding" else x * 0

    def loss(weight, x, key, estimator="local"):
        return KINDS[kind].call(x, weight, key=key, estimator=estimator).astype("float32").sum()

    wanted = (0, 1) if kind != "embedding" else 0

    @jax.jit
    def every(weight, x):
        return [jax.value_and_grad(loss, wanted)(weight, x, KEY, e) for e in ESTIMATORS]

    for value, slopes in every(weight, x):
        assert value == loss(weight, x, None)
        # Samples of weights are gradients, and beyond the range of float16.
        assert dtype == "float16" or all(np.isfinite(leaf).all() for leaf in leaves(slopes))


@pytest.mark.parametrize("value", [87.0, 1e4])
def test_the_variance_of_an_input_that_is_always_zero(value):
    """The outputs and the derivatives are as with an ordinary variance."""
    x = jnp.array([[0.0, 0.5, 2.0], [0.0, -1.0, 1.0]])
    mu = jnp.arange(6.0).reshape(3, 2) - 2.5

    def loss(x, mu, spread):
        log_sigma2 = jnp.zeros((3, 2)).at[0].set(spread)
        return (1e3 * jnp.sin(nn.dense(x, nn.Weight(mu, log_sigma2), key=KEY))).sum()

    def batched(function, arguments):
        one = jax.jit(jax.vmap(jax.grad(function, arguments), (0, None, None)))
        return lambda x, *others: one(x[None], *others)

    def forward(function, arguments):
        return jax.jit(jax.jacfwd(function, arguments))

    for derivative in (jax.grad, forward, batched):
        of = derivative(loss, (0, 1))
        for found, ordinary in zip(of(x, mu, value), of(x, mu, -10.0), strict=True):
            np.testing.assert_array_equal(found, ordinary)
    # The curvature at 0 is that of the variance.
    hessian = jax.jit(jax.hessian(loss))
    second, near = (hessian(x.at[0, 0].set(at), mu, 0.0)[0, 0, 0, 0] for at in (0.0, 1e-4))
    assert float(second) == pytest.approx(float(near), rel=2e-3)


def test_the_gradient_of_the_deviation_is_zero_without_variance():
    def one(log_sigma2):
        weight = nn.Weight(jnp.ones((2, 1)), jnp.full((2, 1), log_sigma2))
        return nn.dense(jnp.zeros(2), weight, key=KEY).sum()

    assert jax.grad(one)(0.0) == 0.0
    assert jax.jvp(one, (0.0,), (1.0,)) == (0.0, 0.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_half_types_agree_with_float32(kind, dtype):
    """With inputs whose squares overflow in float16, and variances that are subnormal there."""
    weight = weight_of("additive", KINDS[kind])
    weight = nn.Weight(weight.mean, weight.log_sigma2 * 0 - 10)
    x = minibatch(kind, size=64) * 100
    half = jax.tree.map(lambda a: a.astype(dtype), weight)
    x = x.astype(dtype).astype("float32")
    exact = jax.tree.map(lambda a: a.astype("float32"), half)
    draw = partial(KINDS[kind].call, key=KEY)
    noise = draw(x, exact) - KINDS[kind].call(x, exact)
    for got in (draw(x.astype(dtype), half), draw(x, exact, dtype=dtype)):
        assert got.dtype == dtype
        deviation = jnp.sqrt(jnp.mean(noise**2))
        # The last bit of the output is of the size of the noise or below it.
        last = jnp.abs(got.astype("float32")).max() * jnp.finfo(dtype).eps
        off = got.astype("float32") - KINDS[kind].call(x, exact) - noise
        assert jnp.abs(off).max() < 0.02 * deviation * 3 + 2 * last


def test_noise_of_bfloat16_has_variance_one():
    """Normals made in bfloat16 itself have the variance 0.98, and end at 2.7."""
    weight = nn.Weight(jnp.zeros((1, 1), jnp.bfloat16), jnp.zeros((1, 1), jnp.bfloat16))
    x = jnp.ones((1_000_000, 1), jnp.bfloat16)
    y = np.asarray(nn.dense(x, weight, key=KEY), "float64")
    assert abs(y.var() - 1) < 5 * math.sqrt(2 / y.size)
    assert np.abs(y).max() > 4


def test_parameters_keep_their_type_under_dtype():
    """log_sigma2 = -10 in bfloat16 has steps of 6 % in the variance; `dtype` does not round it."""
    weight = nn.Weight(jnp.zeros((1, 1)), jnp.full((1, 1), -10.03))
    x = jnp.ones((100_000, 1), jnp.bfloat16)
    y = np.asarray(nn.dense(x, weight, key=KEY, dtype=jnp.bfloat16), "float64")
    assert abs(y.var() / math.exp(-10.03) - 1) < 0.02
    gradient = jax.grad(lambda w: nn.dense(x, w, key=KEY, dtype=jnp.bfloat16).sum())(weight)
    assert gradient.log_sigma2.dtype == "float32"


def test_float64():
    with jax.enable_x64(True):
        weight = weight_of("additive", KINDS["dense"], "float64")
        y = nn.dense(minibatch("dense", "float64"), weight, key=KEY)
        assert y.dtype == "float64"
        assert nn.kl(weight).dtype == "float64"


class TestConvolution:
    """Layouts and options of `jax.lax.conv_general_dilated`."""

    CASES = (
        {},
        {"padding": "SAME", "window_strides": np.int64(2)},
        {"padding": [(2, 0), (1, 1)], "window_strides": (1, 3), "rhs_dilation": (2, 1)},
        {"padding": [(0, 0), (2, 1)], "lhs_dilation": (2, 2)},
        {"padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")},
        {"padding": "SAME_LOWER", "dimension_numbers": ("NHWC", "OIHW", "NCHW")},
        {"padding": "SAME", "dimension_numbers": ("HWNC", "HWIO", "HWNC"), "window_strides": 2},
    )

    @staticmethod
    def made(options):
        numbers = options.get("dimension_numbers") or ("NCHW", "OIHW", "NCHW")
        sizes = {"N": 3, "C": 4, "H": 6, "W": 5}
        x = jax.random.normal(jax.random.key(0), [sizes[c] for c in numbers[0]])
        sizes = {"O": 6, "I": 4, "H": 3, "W": 2}
        kernel = jax.random.normal(jax.random.key(1), [sizes[c] for c in numbers[1]])
        spread = jax.random.normal(jax.random.key(2), kernel.shape)
        given = {k: (v, v) if isinstance(v, (int, np.integer)) else v for k, v in options.items()}
        given = {"window_strides": (1, 1), "padding": "VALID", **given}
        return x, nn.Weight(kernel, spread), numbers, given

    @pytest.mark.parametrize("options", CASES, ids=str)
    def test_is_that_of_jax(self, options):
        """The mean and the noise, also with weights for each example."""
        x, weight, numbers, given = self.made(options)
        bias = jnp.arange(6.0)
        expected = lax.conv_general_dilated(x, weight.mean, **given)
        assert (nn.conv(x, weight, **options) == expected).all()
        deviation = jnp.sqrt(lax.conv_general_dilated(x * x, jnp.exp(weight.log_sigma2), **given))
        noise = deviation * jax.random.normal(KEY, expected.shape)
        drawn = nn.conv(x, weight, key=KEY, **options)
        np.testing.assert_allclose(drawn, expected + noise, rtol=2e-5, atol=2e-5)
        axis = numbers[2].index("C")
        shifted = jnp.moveaxis(jnp.moveaxis(expected, axis, -1) + bias, -1, axis)
        assert (nn.conv(x, weight, bias, **options) == shifted).all()
        still = nn.Weight(weight.mean, jnp.full_like(weight.mean, -jnp.inf))
        got = nn.conv(x, still, key=KEY, estimator="per_example", **options)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
        # The same inputs give another output for each example.
        same = jnp.broadcast_to(jnp.take(x, jnp.array([0]), numbers[0].index("N")), x.shape)
        drawn = nn.conv(same, weight, key=KEY, estimator="per_example", **options)
        first, *others = jnp.moveaxis(drawn, numbers[2].index("N"), 0)
        assert all(not jnp.isclose(first, other).all() for other in others)

    @pytest.mark.parametrize("dimensions", [1, 3])
    def test_other_dimensions(self, dimensions):
        x = jnp.ones((2, 3, *[5] * dimensions))
        weight = nn.Weight.from_mean(jnp.ones((4, 3, *[2] * dimensions)))
        assert nn.conv(x, weight, key=KEY).shape == (2, 4, *[4] * dimensions)


def with_scales(shape, axis):
    return nn.Weight.from_mean(jnp.ones(shape), nn.Correlated(initial=0.0), input_axis=axis)


class TestExamples:
    """Which outputs share a draw."""

    NORMAL = nn.Weight(jnp.zeros((2, 1)), jnp.zeros((2, 1)))

    @pytest.mark.parametrize(
        ("call", "weight", "x", "counts"),
        [
            (nn.dense, NORMAL, (3, 4, 2), (12, 3, 1)),
            (nn.dense, with_scales((2, 1), 0), (3, 4, 2), (12, 3, 1)),
            (nn.conv, with_scales((1, 2, 1), 1), (3, 2, 5), (3, 3, 1)),
        ],
        ids=["dense", "dense with scales", "conv with scales"],
    )
    def test_counts(self, call, weight, x, counts):
        for estimator, count in zip(ESTIMATORS, counts, strict=True):
            found = call(jnp.ones(x), weight, key=KEY, estimator=estimator)
            assert distinct(found) == count
            assert estimator == "local" or (found == found[:, :1]).all()

    def test_one_example(self):
        x = jnp.ones(2)
        assert nn.dense(x, self.NORMAL, key=KEY, estimator="per_example").shape == (1,)

    def test_embedding(self):
        weight = nn.Weight(jnp.zeros((4, 1)), jnp.zeros((4, 1)))
        ids = jnp.array([[1, 1, 3], [1, 3, -1]])
        assert distinct(nn.embedding(ids, weight, key=KEY)) == 6
        of_example = nn.embedding(ids, weight, key=KEY, estimator="per_example")
        assert distinct(of_example) == 4
        assert of_example[0, 0] == of_example[0, 1]
        # -1 is the last row.
        assert of_example[1, 1] == of_example[1, 2]
        assert distinct(nn.embedding(ids, weight, key=KEY, estimator="per_batch")) == 2
        assert nn.embedding(1, weight, key=KEY, estimator="per_example").shape == (1,)

    @pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
    def test_equal_ids_of_every_kind_of_key(self, impl):
        weight, key = nn.Weight(jnp.zeros((4, 1)), jnp.zeros((4, 1))), jax.random.key(3, impl=impl)
        ids = jnp.array([[1, 1, 3], [1, 3, -1]])
        for estimator, counts in (("local", 6), ("per_example", 4), ("per_batch", 2)):
            assert distinct(nn.embedding(ids, weight, key=key, estimator=estimator)) == counts

    def test_ids_of_few_bits(self):
        weight = nn.Weight(jnp.arange(300.0)[:, None], jnp.full((300, 1), -40.0))
        for key in (None, KEY):
            found = nn.embedding(jnp.array([-1, -44, 127], "int8"), weight, key=key)
            np.testing.assert_allclose(found[:, 0], [299.0, 256.0, 127.0], atol=1e-5)

    def test_each_row_of_an_embedding_has_its_own_variance(self):
        weight = nn.Weight(jnp.ones((2, 3)), jnp.array([[0.0] * 3, [-1e4] * 3]))
        found = nn.embedding(jnp.array([0, 1]), weight, key=KEY) != 1.0
        assert found.all(1).tolist() == [True, False]
        assert found.any(1).tolist() == [True, False]

    def test_a_row_that_is_not_there(self):
        weight = nn.Weight.from_mean(jnp.zeros((4, 1)))
        assert jnp.isnan(nn.embedding(jnp.array([4]), weight)).all()
        assert jnp.isnan(nn.embedding(jnp.array([4]), weight, key=KEY)).all()


def distinct(y):
    return len(np.unique(np.asarray(y)))
