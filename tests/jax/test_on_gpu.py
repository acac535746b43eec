"""What runs on a GPU in JAX: errors in ulp, jitted and not, and training."""

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import logunif_kl.jax as lj
from logunif_kl.jax import nn
from validation.accuracy import search
from validation.accuracy.flushing import errors_of
from validation.accuracy.functions import edges

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX finds no GPU"),
]
UNARY = ("neg_kl", "neg_kl_grad", "neg_kl_hess")
NORMAL = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
WORST = {"float64": 4.0, "float32": 4.5}  # ulp


def points_of(name, dtype, count=1 << 18):
    near = {kind: edges(kind) for kind in "ux"}
    points = search.sample(name, np.random.default_rng(4), count, dtype)
    beside = search.beside_edges(name, near, dtype)
    return [np.concatenate(parts) for parts in zip(points, beside, strict=True)]


def assert_accurate(name, dtype, points, got):
    places = iter(range(0, len(got), search.BLOCK))
    errors = search.measure(
        name,
        lambda *_: got[(i := next(places)) : i + search.BLOCK],
        points,
        errors_of("jax", name),
    )
    worst = int(np.argmax(errors))
    print(f"{name}, {dtype}: {errors[worst]:.4f} ulp at {[float(p[worst]).hex() for p in points]}")
    assert errors[worst] <= WORST[dtype]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("made", [jax.jit, lambda f: f], ids=["jitted", "eager"])
class TestErrors:
    @pytest.mark.parametrize("name", UNARY)
    def test_of_log_alpha(self, name, dtype, made):
        (x,) = points_of(name, dtype)
        with jax.enable_x64(dtype == "float64"):
            found = made(getattr(lj, name))(jnp.asarray(x))
            assert_accurate(name, dtype, [x], np.asarray(found))

    def test_of_mean_and_variance(self, dtype, made):
        points = points_of("neg_kl_normal", dtype)
        slopes = jax.grad(lambda *a: lj.neg_kl_normal(*a).sum(), (0, 1))
        with jax.enable_x64(dtype == "float64"):
            arguments = [jnp.asarray(p) for p in points]
            found = [made(lj.neg_kl_normal)(*arguments), *made(slopes)(*arguments)]
            for name, result in zip(NORMAL, found, strict=True):
                assert_accurate(name, dtype, points, np.asarray(result))


def test_trains():
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(500, 20)), "float32")
    y = (x.sum(1) > 0).astype("int32")
    parameters = {
        "mu": jnp.asarray(0.1 * rng.normal(size=(20, 2)), "float32"),
        "log_sigma2": jnp.full((20, 2), -8.0),
    }

    def loss(parameters, key):
        weight = nn.Normal(parameters["mu"], parameters["log_sigma2"])
        output = nn.dense(x, weight, key=key)
        return nn.elbo(nn.categorical_log_likelihood(output, y), nn.neg_kl(weight), len(y)).loss

    step = jax.jit(jax.value_and_grad(loss))
    losses = []
    for key in jax.random.split(jax.random.key(0), 200):
        value, slopes = step(parameters, key)
        parameters = jax.tree.map(lambda p, g: p - 0.5 * g, parameters, slopes)
        losses.append(float(value))
    assert next(iter(parameters["mu"].devices())).platform == "gpu"
    assert losses[-1] < losses[0] - 0.1
