"""What `test_sharding` runs with eight devices: it prints what each check found, as JSON."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from logunif_kl.jax import nn

KEY = jax.random.key(9)
ROWS, COLUMNS = PartitionSpec("rows"), PartitionSpec(None, "columns")


def made():
    rng = np.random.default_rng(3)

    def normal(*shape):
        return rng.normal(size=shape).astype("float32")

    params = {
        "table": nn.Weight.from_mean(normal(16, 8), nn.Multiplicative("input")),
        "conv": nn.Weight.from_mean(normal(8, 4, 3), nn.Additive(initial=-2.0)),
        "hidden": nn.Weight.from_mean(normal(24, 16), nn.Additive(initial=-2.0)),
        "out": nn.Weight.from_mean(normal(16, 4), nn.Multiplicative("layer", 0.0)),
        "scaled": nn.Weight.from_mean(normal(16, 4), nn.Correlated()),
    }
    return params, {"ids": rng.integers(0, 16, (16,)), "series": normal(16, 4, 4)}


def outputs(params, x, estimator):
    keys = jax.random.split(KEY, 5)
    rows = nn.embedding(x["ids"], params["table"], key=keys[0], estimator=estimator)
    series = nn.conv(x["series"], params["conv"], key=keys[1], estimator=estimator)
    both = jnp.concatenate([rows, series.reshape(16, -1)], 1)
    hidden = jax.nn.relu(nn.dense(both, params["hidden"], key=keys[2], estimator=estimator))
    out = nn.dense(hidden, params["out"], key=keys[3], estimator=estimator)
    return out + nn.dense(hidden, params["scaled"], key=keys[4], estimator=estimator)


def loss(params, x, estimator):
    y = outputs(params, x, estimator)
    return nn.elbo(-(y**2), nn.neg_kl(params), 1000).loss


def spec_of(leaf, way):
    """Where a parameter goes: to every device, or in parts."""
    if way == "examples" or min(leaf.shape, default=1) == 1:
        return PartitionSpec()
    return COLUMNS if leaf.ndim == 2 else PartitionSpec("columns")


def close(one, other):
    return all(
        bool(np.allclose(a, b, rtol=2e-5, atol=2e-5 * float(np.abs(b).max())))
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def main():
    devices = np.array(jax.devices()).reshape(4, 2)
    params, x = made()
    found = {"devices": devices.size}
    mesh = Mesh(devices, ("rows", "columns"), axis_types=(AxisType.Auto, AxisType.Auto))
    for estimator in ("local", "per_example", "per_batch"):
        both = jax.jit(jax.value_and_grad(loss), static_argnums=2)
        draw = jax.jit(outputs, static_argnums=2)
        alone, drawn = both(params, x, estimator), draw(params, x, estimator)
        for way in ("examples", "examples and weights"):
            leaves, structure = jax.tree.flatten(params)
            places = [NamedSharding(mesh, spec_of(leaf, way)) for leaf in leaves]
            placed = jax.tree.unflatten(structure, map(jax.device_put, leaves, places))
            given = jax.device_put(x, NamedSharding(mesh, ROWS))
            got = both(placed, given, estimator)
            y = draw(placed, given, estimator)
            found[f"{estimator}, {way}"] = close(got, alone) and close(y, drawn)
            found[f"devices of {estimator}, {way}"] = len(y.sharding.device_set)
            if way != "examples":
                hidden, place = got[1]["hidden"].mean.sharding, NamedSharding(mesh, COLUMNS)
                found[f"gradient of {estimator}"] = hidden.is_equivalent_to(place, 2)
    alone = jax.jit(nn.kl)(params)
    found["kl"] = close(jax.jit(nn.kl)(placed), alone)
    # That agreement is not found everywhere.
    off = jax.tree.map(lambda leaf: leaf * 1.001, params)
    found["control"] = not close(both(off, x, estimator), both(params, x, estimator))
    json.dump(found, sys.stdout)
