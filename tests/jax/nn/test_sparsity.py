"""Log alpha, counts of weights, pruned trees and thresholds of models of JAX."""

import math

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from logunif_kl.jax import nn  # noqa: E402
from logunif_kl.nn.sparsity import SILENT  # noqa: E402


def tree():
    keys = jax.random.split(jax.random.key(0), 4)
    shapes = (6, 5), (6, 5), (5, 3), (5, 1)
    mu, log_sigma2, theta, log_alpha = map(jax.random.normal, keys, shapes)
    hidden = nn.Weight(mu, 3.0 * log_sigma2)
    out = nn.Weight(theta, log_alpha=4.0 * log_alpha, posterior=nn.Multiplicative("input"))
    return {"hidden": hidden, "out": out, "bias": jnp.ones(3)}


def outputs(params, x, key=None):
    hidden = jax.nn.relu(nn.dense(x, params["hidden"], key=key))
    return nn.dense(hidden, params["out"], params["bias"], key=key)


X = jnp.linspace(-1.0, 1.0, 24).reshape(4, 6)


def test_log_alpha():
    params = tree()
    found = nn.log_alpha({"layers": [params]})
    assert list(found) == ["layers.0.hidden", "layers.0.out"]
    hidden = params["hidden"]
    expected = hidden.log_sigma2 - 2.0 * jnp.log(jnp.abs(hidden.mean))
    assert (found["layers.0.hidden"] == expected).all()
    assert found["layers.0.out"].shape == (5, 3)


@pytest.mark.parametrize("threshold", [-2.0, 0.5, 3.0, math.inf])
def test_what_is_counted_is_what_prune_leaves(threshold):
    params = tree()
    found, pruned = nn.sparsity(params, threshold), nn.prune(params, threshold)
    left = {name: int(jnp.count_nonzero(pruned[name].mean)) for name in found.layers}
    assert {name: each.kept for name, each in found.layers.items()} == left
    assert found.weights == 45
    assert nn.sparsity(pruned, math.inf).kept == found.kept
    kept = pruned["hidden"].mean != 0
    assert (kept == (nn.log_alpha(params)["hidden"] <= threshold)).all()
    assert (jnp.where(kept, params["hidden"].mean, 0.0) == pruned["hidden"].mean).all()
    assert pruned["bias"] is params["bias"]


def test_a_pruned_weight_has_no_noise():
    params = tree()
    pruned = nn.prune(params, -math.inf)
    one, two = (jax.jit(outputs)(pruned, X, jax.random.key(seed)) for seed in (1, 2))
    assert (one == two).all()
    assert (one == params["bias"]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "penalty", ["kingma", "molchanov", "lower_bound", "exact", nn.NormalPrior(1.0)]
)
def test_a_pruned_weight_has_no_kl_by_any_penalty(penalty, dtype):
    given = nn.Weight(jnp.array([1.0, 0.1], dtype), jnp.zeros(2, dtype))
    pruned = nn.prune(given)
    assert pruned.mean.tolist()[1] == 0.0
    alone = nn.Weight(given.mean[:1], given.log_sigma2[:1])
    assert nn.kl(pruned, penalty=penalty) == nn.kl(alone, penalty=penalty)
    cast = jax.tree.map(lambda leaf: leaf.astype("bfloat16").astype("float32"), pruned)
    assert nn.kl(cast, penalty=penalty) == nn.kl(alone, penalty=penalty)
    slopes = jax.jit(jax.grad(lambda p: nn.kl(p, penalty=penalty)))(pruned)
    assert slopes.mean.tolist()[1] == slopes.log_sigma2.tolist()[1] == 0.0


def test_further_training_keeps_the_zeros():
    pruned = nn.prune(tree(), 0.5)
    before = nn.sparsity(pruned, math.inf)

    @jax.jit
    def step(params, key):
        gradient = jax.grad(lambda p: nn.kl(p) + (outputs(p, X, key) ** 2).sum())(params)
        params = jax.tree.map(lambda p, g: p - 0.01 * g, params, gradient)
        return nn.prune(params, math.inf, like=pruned)

    params = pruned
    for number in range(3):
        params = step(params, jax.random.key(number))
    assert nn.sparsity(params, math.inf) == before
    assert (params["hidden"].log_sigma2[params["hidden"].mean == 0] == SILENT).all()
    assert not (params["hidden"].mean == pruned["hidden"].mean).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_types_and_static_fields_remain(dtype):
    scales = nn.Weight.from_mean(jnp.ones((4, 3), dtype), nn.Correlated(max_log_alpha=9.0))
    params = [nn.Weight.from_mean(jnp.full((2, 2), 1e-3, dtype)), scales]
    pruned = nn.prune(params)
    assert jax.tree.structure(pruned) == jax.tree.structure(params)
    assert {leaf.dtype for leaf in jax.tree.leaves(pruned)} == {jnp.dtype(dtype)}
    assert (pruned[0].mean == 0).all()
    assert nn.kl(pruned[0]) == 0.0


def test_groups_are_pruned_as_units():
    scales = nn.Weight(
        jnp.ones((3, 2)), log_alpha=jnp.array([[0.0], [9.0], [0.0]]), posterior=nn.Correlated()
    )
    assert nn.prune(scales).mean.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert nn.sparsity(scales).kept == 4


def test_parameters_of_flax():
    nnx = pytest.importorskip("flax.nnx")
    params = jax.tree.map(nnx.Param, nn.Weight(jnp.array([1.0, 0.1]), jnp.zeros(2)))
    pruned = nn.prune({"weight": params})["weight"]
    assert isinstance(pruned.mean, nnx.Param)
    assert pruned.mean.get_value().tolist() == [1.0, 0.0]
    assert nn.sparsity(params).kept == 1


def test_the_curve():
    params = tree()
    curve = nn.threshold_curve(
        params, lambda p: jnp.abs(outputs(p, X) - outputs(params, X)).max(), [3.0, -1.0, math.inf]
    )
    assert curve.thresholds == (-1.0, 3.0, math.inf)
    assert curve.losses[-1] == 0.0 < curve.losses[0]
    assert curve.sparsities[1] == nn.sparsity(params, 3.0)
    assert len(nn.threshold_curve(params, lambda p: 0.0).thresholds) == 25
