"""What `test_sharding` runs with eight devices. It prints as JSON whether each check holds."""

import json
import sys

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from logunif_kl.jax import nn
from tests.jax.nn.layers import ESTIMATORS
from tests.jax.nn.test_transforms import loss, made, network

KEY = jax.random.key(9)
ROWS, COLUMNS = PartitionSpec("rows"), PartitionSpec(None, "columns")


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
    found = {"devices": devices.size == 8}
    mesh = Mesh(devices, ("rows", "columns"), axis_types=(AxisType.Auto, AxisType.Auto))
    both = jax.jit(jax.value_and_grad(loss), static_argnums=3)
    draw = jax.jit(network, static_argnums=3)
    for estimator in ESTIMATORS:
        alone, drawn = both(params, x, KEY, estimator), draw(params, x, KEY, estimator)
        for way in ("examples", "examples and weights"):
            leaves, structure = jax.tree.flatten(params)
            places = [NamedSharding(mesh, spec_of(leaf, way)) for leaf in leaves]
            placed = jax.tree.unflatten(structure, map(jax.device_put, leaves, places))
            given = jax.device_put(x, NamedSharding(mesh, ROWS))
            got = both(placed, given, KEY, estimator)
            y = draw(placed, given, KEY, estimator)
            found[f"{estimator}, {way}"] = close(got, alone) and close(y, drawn)
            found[f"devices of {estimator}, {way}"] = len(y.sharding.device_set) == 8
            if way != "examples":
                # The gradient is where the parameter is.
                hidden, place = got[1]["hidden"].theta.sharding, NamedSharding(mesh, COLUMNS)
                found[f"gradient of {estimator}"] = hidden.is_equivalent_to(place, 2)
    alone = jax.jit(nn.kl)(params)
    found["kl"] = close(jax.jit(nn.kl)(placed), alone)
    # That agreement is not found everywhere.
    off = jax.tree.map(lambda leaf: leaf * 1.001, params)
    found["control"] = not close(both(off, x, KEY, estimator), both(params, x, KEY, estimator))
    json.dump(found, sys.stdout)
