"""What runs on a GPU in JAX: errors in ulp, jitted and not, and training."""

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import logunif_kl.jax as lj
from logunif_kl.jax import nn
from tests.on_gpu import NORMAL, UNARY, assert_accurate, points_of
from validation.accuracy.flushing import errors_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX finds no GPU"),
]
MOST = {"float64": 2.23, "float32": 3.53}  # ulp, found on an H100


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("made", [jax.jit, lambda f: f], ids=["jitted", "eager"])
class TestErrors:
    @pytest.mark.parametrize("name", UNARY)
    def test_of_log_alpha(self, name, dtype, made):
        (x,) = points_of(name, dtype)
        with jax.enable_x64(dtype == "float64"):
            found = made(getattr(lj, name))(jnp.asarray(x))
            assert_accurate(name, [x], np.asarray(found), MOST, errors_of("jax", name))

    def test_of_mean_and_variance(self, dtype, made):
        points = points_of("neg_kl_normal", dtype)
        slopes = jax.grad(lambda *a: lj.neg_kl_normal(*a).sum(), (0, 1))
        with jax.enable_x64(dtype == "float64"):
            arguments = [jnp.asarray(p) for p in points]
            found = [made(lj.neg_kl_normal)(*arguments), *made(slopes)(*arguments)]
            for name, result in zip(NORMAL, found, strict=True):
                result = np.asarray(result)
                assert_accurate(name, points, result, MOST, errors_of("jax", name))


def test_trains():
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(500, 20)), "float32")
    y = (x.sum(1) > 0).astype("int32")
    parameters = {
        "mu": jnp.asarray(0.1 * rng.normal(size=(20, 2)), "float32"),
        "log_sigma2": jnp.full((20, 2), -8.0),
    }

    def loss(parameters, key):
        weight = nn.Weight(parameters["mu"], parameters["log_sigma2"])
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
