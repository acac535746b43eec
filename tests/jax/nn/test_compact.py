"""Trees without their dead units give what `to_deterministic` gives, and are smaller."""

import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from logunif_kl.jax import nn  # noqa: E402


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def weights(seed, *shape, outs=(), ins=()):
    """Weights of which some outputs and some inputs are 0."""
    found = normal(seed, *shape)
    return found.at[..., list(outs)].set(0.0).at[..., list(ins), :].set(0.0)


def compared(function, tree, x, expected):
    """Check the sizes, and the outputs for another input."""
    small = nn.to_compact(tree, function, jax.ShapeDtypeStruct(x.shape, x.dtype))
    assert {name: leaf.shape for name, leaf in small.items()} == expected
    for given in (x, 3.0 * x + 1.0):
        np.testing.assert_allclose(function(small, given), function(tree, given), 1e-5, 1e-5)
    return small


DENSE = {
    "first": weights(0, 4, 6, outs=[1, 3]),
    "bias": normal(1, 6),
    "last": weights(2, 6, 3, ins=[0]),
    "out": normal(3, 3),
}
SMALL = {"first": (4, 3), "bias": (3,), "last": (3, 3), "out": (3,)}


class TestWhatGoes:
    @pytest.mark.parametrize(
        "function",
        [
            *(jax.nn.relu, jax.nn.gelu, jnp.tanh, jax.nn.softplus, jnp.cos),
            *(lambda x: 2.0 * x - x**2, jax.checkpoint(jax.nn.softplus)),
            lambda x: jnp.squeeze(jnp.cos(x[:, None]), 1),
        ],
        ids=["relu", "gelu", "tanh", "softplus", "cos", "product", "checkpoint", "squeeze"],
    )
    def test_units_of_dense_layers(self, function):
        """Unit 0 is not read. Units 1 and 3 are constant, and the bias takes in the constants."""

        def network(p, x):
            return nn.dense(function(x @ p["first"] + p["bias"]), p["last"], p["out"])

        compared(network, DENSE, normal(4, 5, 4), SMALL)

    def test_no_bias_takes_in_a_constant(self):
        def network(p, x):
            return jax.nn.gelu(x @ p["first"] + p["bias"]) @ p["last"] * p["out"]

        with pytest.warns(UserWarning, match="of first: what they add is read, and no bias can"):
            compared(
                network,
                DENSE,
                normal(4, 5, 4),
                SMALL | {"first": (4, 5), "bias": (5,)} | {"last": (5, 3)},
            )

    def test_a_bias_along_another_dimension_takes_in_nothing(self):
        tree = DENSE | {"last": weights(2, 6, 5, ins=[0]), "out": normal(3, 5)}

        def network(p, x):
            return jax.nn.gelu(x @ p["first"] + p["bias"]) @ p["last"] + p["out"][:, None]

        with pytest.warns(UserWarning, match="no bias can take it in"):
            small = nn.to_compact(tree, network, normal(4, 5, 4))
        np.testing.assert_allclose(
            network(small, normal(5, 5, 4)), network(tree, normal(5, 5, 4)), 1e-5, 1e-5
        )

    def test_a_bias_that_is_read_twice_takes_in_nothing(self):
        def network(p, x):
            return (jax.nn.gelu(x @ p["first"] + p["bias"]) @ p["last"] + p["out"]) * p["out"]

        with pytest.warns(UserWarning, match="no bias can take it in"):
            small = nn.to_compact(DENSE, network, normal(4, 5, 4))
        np.testing.assert_allclose(
            network(small, normal(5, 5, 4)), network(DENSE, normal(5, 5, 4)), 1e-5, 1e-5
        )

    def test_a_bias_of_another_type_takes_in_a_constant(self):
        tree = DENSE | {"out": DENSE["out"].astype(jnp.float16)}

        def network(p, x):
            return jnp.cos(x @ p["first"] + p["bias"]) @ p["last"] + p["out"].astype(x.dtype)

        x = normal(4, 5, 4)
        small = nn.to_compact(tree, network, x)
        assert {name: leaf.shape for name, leaf in small.items()} == SMALL
        np.testing.assert_allclose(network(small, x), network(tree, x), atol=4e-3)

    def test_residual_sums_concatenations_and_normalisation(self):
        tree = {
            "stem": weights(0, 4, 6, outs=[0, 1]),
            "up": weights(1, 6, 8, outs=[2, 3, 4]),
            "down": weights(2, 8, 6, outs=[0, 2], ins=[7]),
            "mean": normal(3, 6),
            "scale": normal(4, 6),
            "side": weights(5, 6, 5, outs=[4]),
            "shift": jnp.arange(5.0),
            "last": weights(6, 11, 2, ins=[5, 6]),
            "bias": normal(7, 2),
        }

        def network(p, x):
            x = x @ p["stem"]
            x = x + jax.nn.relu(x @ p["up"]) @ p["down"]  # unit 0 is dead in both summands
            x = (x - p["mean"]) / jnp.sqrt(1e-3 + p["scale"] ** 2)
            x = jnp.concatenate([x, x @ p["side"] + p["shift"]], -1)
            return x @ p["last"] + p["bias"]

        with pytest.warns(UserWarning, match="units of down, stem: what they add is read"):
            compared(
                network,
                tree,
                normal(8, 5, 4),
                {"stem": (4, 5), "up": (5, 4), "down": (4, 5), "mean": (5,), "scale": (5,)}
                | {"side": (5, 3), "shift": (3,), "last": (8, 2), "bias": (2,)},
            )

    @pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
    @pytest.mark.parametrize("padding", ["SAME", "VALID"])
    def test_channels_through_pooling_and_a_flatten(self, layout, padding):
        """A constant other than 0 goes only without padding, or in a dense layer."""
        kernel = weights(1, 3, 3, 6, 5, outs=[4], ins=[5])
        tree = {
            "first": weights(0, 3, 3, 1, 6, outs=[0, 2]),
            "bias": jnp.asarray([-1.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
            "second": kernel,
            "shift": jnp.asarray([0.1, 0.2, 0.3, 0.4, 0.5]),
        }
        batch = (2, 8, 8, 1) if layout == "NHWC" else (2, 1, 8, 8)
        where = (1, 1, 1, -1) if layout == "NHWC" else (1, -1, 1, 1)

        def conv(x, kernel, bias):
            dimensions = (layout, "HWIO", layout)
            found = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), padding, dimension_numbers=dimensions
            )
            return jax.nn.relu(found + bias.reshape(where))

        def features(p, x):
            x = conv(conv(x, p["first"], p["bias"]), p["second"], p["shift"])
            size = (1, 2, 2, 1) if layout == "NHWC" else (1, 1, 2, 2)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, size, "VALID")
            return x.reshape(len(x), -1)

        x = normal(3, *batch)
        tree["last"] = normal(4, features(tree, x).shape[1], 3)
        tree["out"] = normal(5, 3)

        def network(p, x):
            return features(p, x) @ p["last"] + p["out"]

        kept = 3 if padding == "VALID" else 4  # channel 2 is 1 everywhere
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if padding == "SAME" else "error", UserWarning)
            compared(
                network,
                tree,
                x,
                {"first": (3, 3, 1, kept), "bias": (kept,), "second": (3, 3, kept, 4)}
                | {"shift": (4,), "last": (len(tree["last"]) * 4 // 5, 3), "out": (3,)},
            )

    def test_heads_of_attention(self):
        tree = {
            **{name: normal(i, 6, 4, 3) for i, name in enumerate("qkv")},
            "out": normal(3, 4, 3, 6).at[1:3].set(0.0),
        }

        def network(p, x):
            q, k, v = (jnp.einsum("bti,ihd->bthd", x, p[name]) for name in "qkv")
            scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[-1])
            read = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
            return jnp.einsum("bthd,hdi->bti", read, p["out"])

        expected = dict.fromkeys("qkv", (6, 2, 3)) | {"out": (2, 3, 6)}
        compared(network, tree, normal(4, 2, 5, 6), expected)

    def test_heads_that_a_reshape_makes(self):
        tree = {
            **{name: normal(i, 6, 12) for i, name in enumerate("qkv")},
            "out": normal(3, 12, 6).at[3:9].set(0.0),  # of four heads two are not read
        }

        def network(p, x):
            q, k, v = ((x @ p[name]).reshape(*x.shape[:2], -1, 3) for name in "qkv")
            scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(3)
            read = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
            return read.reshape(*x.shape[:2], -1) @ p["out"]

        expected = dict.fromkeys("qkv", (6, 6)) | {"out": (6, 6)}
        compared(network, tree, normal(4, 2, 5, 6), expected)

    def test_columns_of_a_table_and_depthwise_convolutions(self):
        tree = {
            "table": weights(0, 9, 6, outs=[1]),
            "each": normal(1, 3, 1, 6).at[..., 2].set(0.0),
            "last": weights(2, 6, 2, ins=[3]),
        }

        def network(p, ids):
            x = jax.lax.conv_general_dilated(
                *(p["table"][ids], p["each"], (1,), "SAME"),
                dimension_numbers=("NWC", "WIO", "NWC"),
                feature_group_count=p["each"].shape[-1],
            )
            return x.mean(1) @ p["last"]

        small = nn.to_compact(tree, network, jax.ShapeDtypeStruct((2, 7), jnp.int32))
        assert jax.tree.map(jnp.shape, small) == {
            "table": (9, 3),
            "each": (3, 1, 3),
            "last": (3, 2),
        }
        ids = jnp.arange(14).reshape(2, 7) % 9
        np.testing.assert_allclose(network(small, ids), network(tree, ids), 1e-5)

    def test_all_that_can_go(self):
        """With the threshold -inf all weights go, and each dimension keeps a unit."""
        sizes = {"a": (4, 50), "b": (50, 20), "c": (20, 2)}
        tree = {name: nn.Weight.from_mean(jnp.ones(size)) for name, size in sizes.items()}

        def network(p, x):
            return nn.dense(jax.nn.softmax(nn.dense(nn.dense(x, p["a"]), p["b"])), p["c"])

        with pytest.warns(UserWarning, match="units of b: reduce_max"):
            small = nn.to_compact(tree, network, jnp.ones((1, 4)), threshold=-np.inf)
        assert jax.tree.map(jnp.shape, small) == {"a": (4, 1), "b": (1, 20), "c": (20, 2)}

    @pytest.mark.parametrize(("multiple_of", "units"), [(1, 3), (2, 4), (5, 5), (7, 6)])
    def test_multiples(self, multiple_of, units):
        def network(p, x):
            return jax.nn.relu(x @ p["first"] + p["bias"]) @ p["last"] + p["out"]

        x = normal(4, 5, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            small = nn.to_compact(DENSE, network, x, multiple_of=multiple_of)
        assert small["first"].shape == (4, units)
        np.testing.assert_allclose(network(small, x), network(DENSE, x), 1e-5, 1e-5)

    def test_gradients_and_jit_of_the_result(self):
        def network(p, x):
            return jax.nn.relu(x @ p["first"] + p["bias"]) @ p["last"] + p["out"]

        small = nn.to_compact(DENSE, network, normal(4, 5, 4))
        slope = jax.jit(jax.grad(lambda x, p: network(p, x).sum()))
        np.testing.assert_allclose(
            slope(normal(5, 5, 4), small), slope(normal(5, 5, 4), DENSE), 1e-5
        )


class TestWhatStays:
    @pytest.mark.parametrize(
        ("function", "why"),
        [
            (jax.nn.softmax, "reduce_max reads them together"),
            (lambda x: x - x.mean(-1, keepdims=True), "reduce_sum reads them together"),
            (lambda x: x / x.shape[-1], "the function does not work with fewer of them"),
            (lambda x: x + jnp.zeros(6), "the function does not work with fewer of them"),
            (lambda x: x.reshape(5, 6), "the function does not work with fewer of them"),
            (lambda x: jnp.cumsum(x, -1), "cumsum is not followed"),
            (lambda x: x * np.arange(6.0), "an array that is not in the tree has their number"),
            (lambda x: x * jax.random.normal(jax.random.key(0), x.shape), "is not followed"),
            (lambda x: jax.lax.fori_loop(0, 2, lambda i, x: 2 * x, x), "scan is not followed"),
        ],
        ids=["softmax", "mean", "size", "zeros", "reshape", "cumsum", "elsewhere", "noise", "loop"],
    )
    def test_the_reason_is_named(self, function, why):
        def network(p, x):
            return function(x @ p["first"]) @ p["last"] + p["out"]

        with pytest.warns(UserWarning, match=why):
            small = nn.to_compact(DENSE, network, normal(4, 5, 4))
        assert small["first"].shape == (4, 6)

    def test_inputs_outputs_and_arrays_from_elsewhere(self):
        other = normal(0, 6, 3)
        tree = {"only": weights(1, 4, 6, outs=[0], ins=[1]), "unused": jnp.zeros((3, 3)), "n": 3}
        small = nn.to_compact(tree, lambda p, x: x @ p["only"], normal(2, 5, 4))
        assert jax.tree.map(jnp.shape, small) == {"only": (4, 6), "unused": (3, 3), "n": ()}
        with pytest.warns(UserWarning, match="of only: an array that is not in the tree has their"):
            small = nn.to_compact(tree, lambda p, x: x @ p["only"] @ other, normal(2, 5, 4))
        assert small["only"].shape == (4, 6)

    def test_weights_that_are_normalised(self):
        """A norm reads the weights of inputs that are 0."""
        tree = {"first": weights(0, 4, 6, outs=[1]), "last": normal(1, 6, 3)}

        def network(p, x):
            last = p["last"] / jnp.linalg.norm(p["last"], axis=0)
            return (x @ p["first"]) @ last

        with pytest.warns(UserWarning, match="reduce_sum"):
            compared(network, tree, normal(2, 5, 4), {"first": (4, 6), "last": (6, 3)})

    @pytest.mark.parametrize("what", ["integers", "complex", "callback", "padding", "fill"])
    @pytest.mark.filterwarnings("ignore:to_compact kept")
    def test_what_only_looks_constant(self, what):
        """Unit 1 is 1 for most of what is read, and not for all."""
        units = weights(0, 4, 6, outs=[1])
        tree = {"first": units, "one": jnp.ones(6), "last": normal(1, 6, 3), "out": normal(2, 3)}
        tree["imaginary"] = tree["last"]
        if what == "complex":
            tree["last"] = tree["last"].at[0].set(0.0)
        x = normal(3, 5, 4)

        def divided(size):
            return lambda array: np.asarray(array) / np.float32(size)

        def network(p, x):
            x = x @ p["first"] + p["one"]
            if what == "integers":
                return (x @ p["last"]).astype(int) + p["out"].astype(int)
            if what == "complex":
                return abs(x @ (p["last"] + 1j * p["imaginary"]) + p["out"])
            if what == "callback":
                kind = jax.ShapeDtypeStruct((5, 3), jnp.float32)
                return jax.pure_callback(divided(x.shape[-1]), kind, x @ p["last"] + p["out"])
            if what == "padding":
                size, pads = (2, 1), ((2, 2), (0, 0))
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, size, pads)
                x = jnp.maximum(x, -9.0)
            else:
                x = x.at[jnp.array([0, 9])].get(mode="fill", fill_value=0.0)
            return x @ p["last"] + p["out"]

        small = nn.to_compact(tree, network, x)
        np.testing.assert_allclose(network(small, x), network(tree, x), 1e-5, 1e-5)

    def test_a_shared_array_has_one_set_of_units(self):
        table = weights(0, 4, 6, outs=[1, 2])
        tree = {"first": table, "again": table}
        small = nn.to_compact(
            tree, lambda p, x: jnp.tanh(x @ p["first"]) @ p["again"].T, normal(1, 5, 4)
        )
        assert small["first"] is small["again"]
        assert small["first"].shape == (4, 4)


class TestModules:
    def test_flax(self):
        nnx = pytest.importorskip("flax.nnx")

        class Network(nnx.Module):
            def __init__(self, rngs):
                self.conv, self.norm = (
                    nnx.Conv(1, 12, (3, 3), rngs=rngs),
                    nnx.BatchNorm(12, rngs=rngs),
                )
                self.again = nnx.Conv(12, 12, (3, 3), rngs=rngs)
                self.drop, self.last = nnx.Dropout(0.5, rngs=rngs), nnx.Linear(12, 3, rngs=rngs)

            def __call__(self, x):
                x = nnx.relu(self.norm(self.conv(x)))
                return self.last(self.drop((x + self.again(x)).mean((1, 2))))

        model = Network(nnx.Rngs(0))
        model.eval()
        model.conv.kernel[...] = model.conv.kernel[...].at[..., :5].set(0.0)
        model.again.kernel[...] = model.again.kernel[...].at[..., :7].set(0.0)
        x = normal(0, 2, 8, 8, 1)
        with pytest.warns(UserWarning, match=r"of again\.kernel\.value: what they add is read"):
            small = nn.to_compact(model, lambda model, x: model(x), x)
        assert small.conv.kernel.shape == (3, 3, 1, 7)
        assert small.norm.mean.shape == (7,)
        np.testing.assert_allclose(small(x), model(x), 1e-5, 1e-6)

    def test_equinox(self):
        eqx = pytest.importorskip("equinox")
        keys = jax.random.split(jax.random.key(0), 3)
        model = eqx.nn.MLP(4, 3, 20, 2, key=keys[0])
        gaussian = nn.to_variational(model, input_axis=1, output_axis=0)
        noisy = jax.tree.map(lambda leaf: leaf, gaussian)
        noisy = eqx.tree_at(
            lambda m: m.layers[0].weight.log_sigma2,
            noisy,
            replace_fn=lambda leaf: leaf.at[:15].set(30.0),
        )
        x = normal(1, 5, 4)

        def network(model, x):
            return jax.vmap(model)(x)

        small = nn.to_compact(noisy, network, x)
        assert small.layers[0].weight.shape == (5, 4)
        assert small.layers[1].weight.shape == (20, 5)
        whole = nn.to_deterministic(noisy, 3.0)
        np.testing.assert_allclose(network(small, x), network(whole, x), 1e-5, 1e-6)


def random_network(rng):
    """Parameters, and a function that applies random layers."""
    params, steps, width = {}, [], 4
    functions = (jax.nn.relu, jax.nn.gelu, jnp.tanh, lambda x: x * x, lambda x: x + 0.5)

    def made(*shape):
        found = rng.normal(size=shape)
        for dim in range(len(shape)):
            if rng.random() < 0.6:
                found.swapaxes(0, dim)[rng.random(shape[dim]) < rng.choice([0.3, 0.9])] = 0.0
        name = f"p{len(params)}"
        params[name] = jnp.asarray(found)
        return name

    for kind in rng.integers(0, 8, size=5):
        wide, f = int(rng.integers(1, 8)), functions[rng.integers(len(functions))]
        if kind < 3:
            w, b = made(width, wide), made(wide)
            steps.append(lambda p, x, w=w, b=b, f=f: f(x @ p[w] + p[b]))
            width = wide
        elif kind == 3:
            w, v, b = made(width, wide), made(wide, width), made(width)
            steps.append(lambda p, x, w=w, v=v, b=b, f=f: x + f(x @ p[w]) @ p[v] + p[b])
        elif kind == 4:
            w = made(width, wide)
            steps.append(lambda p, x, w=w: jnp.concatenate([x @ p[w], x], 1))
            width += wide
        elif kind == 5:
            w, b = made(width, width), made(width)
            steps.append(lambda p, x, w=w, b=b: x * jnp.maximum(x @ p[w], p[b]))
        elif kind == 6:
            w, b = made(width), made(width)
            steps.append(lambda p, x, w=w, b=b: (x - p[b]) * jax.lax.rsqrt(p[w] ** 2 + 0.1))
        else:
            w = made(width, wide)
            steps.append(lambda p, x, w=w, f=f: f(x @ p[w]) @ p[w].T / np.sqrt(x.shape[1]))
    w, b = made(width, 2), made(2)

    def network(p, x):
        for step in steps:
            x = step(p, x)
        return x @ p[w] + p[b]

    return params, network


@pytest.mark.parametrize("seed", [*range(6), pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:to_compact kept")
def test_random_networks(seed):
    smaller = 0
    with jax.enable_x64(True):
        for each in range(12, 212) if seed is None else [seed]:
            rng = np.random.default_rng(each)
            tree, network = random_network(rng)
            x = jnp.asarray(rng.normal(size=(3, 4)))
            small = nn.to_compact(tree, network, x)
            smaller += sum(leaf.size for leaf in small.values()) < sum(
                leaf.size for leaf in tree.values()
            )
            for given in (x, 3.0 * x):
                wanted = network(tree, given)
                atol = 1e-10 * (1.0 + float(abs(wanted).max()))
                np.testing.assert_allclose(network(small, given), wanted, 0.0, atol)
    assert seed is not None or smaller > 100


def test_errors():
    with pytest.raises(TypeError, match="function must be a function of the tree, but 3 was given"):
        nn.to_compact(DENSE, 3)
    with pytest.raises(ValueError, match="multiple_of must be a positive integer, but 0 was"):
        nn.to_compact(DENSE, lambda p: p["out"], multiple_of=0)
    with pytest.raises(ValueError, match="threshold"):
        nn.to_compact(DENSE, lambda p: p["out"], threshold=np.nan)
