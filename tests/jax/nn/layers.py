"""A layer of each kind with each posterior, and its weights sampled one by one."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from logunif_kl.jax import nn

ESTIMATORS = ("local", "per_example", "per_batch")
POSTERIORS = {
    "additive": nn.Additive(),
    "weight": nn.Multiplicative(),
    "output": nn.Multiplicative("output"),
    "input": nn.Multiplicative("input"),
    "layer": nn.Multiplicative("layer"),
    "correlated, input": nn.Correlated(),
    "correlated, layer": nn.Correlated("layer"),
}


class Kind(NamedTuple):
    """A layer with its input, the shape of its weights, and what it says of their axes."""

    call: Any
    x: Any
    shape: tuple[int, ...]
    axes: dict[str, int]


_rng = np.random.default_rng(5)
_OPTIONS = {"window_strides": (1, 2), "padding": ((1, 0), (0, 1)), "rhs_dilation": (2, 1)}
_GROUPED = partial(nn.conv, **_OPTIONS, feature_group_count=2)
KINDS = {
    "dense": Kind(nn.dense, _rng.normal(size=5).astype("float32"), (5, 3), {}),
    "conv": Kind(
        _GROUPED,
        _rng.normal(size=(4, 3, 3)).astype("float32"),
        (2, 2, 2, 2),
        {"input_axis": 1, "output_axis": 0, "groups": 2},
    ),
    "embedding": Kind(nn.embedding, np.array([2, 0, 2]), (4, 3), {}),
}


def weight_of(name: str, kind: Kind, dtype: str = "float32") -> nn.Weight:
    """Parameters of ordinary size: alpha from 0.1 to 3, one mean 0."""
    rng = np.random.default_rng(6)
    mean = rng.normal(size=kind.shape).astype(dtype)
    mean.flat[1] = 0.0
    made = nn.Weight.from_mean(mean, POSTERIORS[name], **kind.axes)
    (means, spread), structure = jax.tree.flatten(made)
    spread = jnp.asarray(np.log(rng.uniform(0.1, 3.0, spread.shape)).astype(dtype))
    return jax.tree.unflatten(structure, [means, spread])


def sampled_weights(weight: Any, kind: Kind, rng: np.random.Generator, samples: int) -> np.ndarray:
    """Samples by NumPy in float64, of shape (samples, *shape)."""
    mean = np.asarray(jax.tree.leaves(weight)[0], "float64")
    spread = np.asarray(jax.tree.leaves(weight)[1], "float64")
    if not weight.posterior.relative:
        return mean + np.exp(spread / 2) * rng.normal(size=(samples, *mean.shape))
    if weight.posterior.independent:
        return mean * (1 + np.exp(spread / 2) * rng.normal(size=(samples, *mean.shape)))
    axis = weight.input_axis % mean.ndim
    inputs = mean.shape[axis]
    alpha = np.broadcast_to(np.exp(spread.reshape(-1)), inputs)
    # A convolution in groups of outputs: each group has channels of its own.
    scales = 1 + np.sqrt(alpha) * rng.normal(size=(samples, weight.groups, inputs))
    if weight.groups == 1:
        shape = [samples, *[inputs if i == axis else 1 for i in range(mean.ndim)]]
        return mean * scales.reshape(shape)
    assert axis == 1
    of_output = np.repeat(scales, mean.shape[0] // weight.groups, axis=1)
    return mean * of_output.reshape(samples, *mean.shape[:2], *[1] * (mean.ndim - 2))


def sampled_outputs(name: str, weight: Any, samples: int) -> np.ndarray:
    """Outputs of the layer with explicit samples of its weights, of shape (samples, outputs)."""
    kind = KINDS[name]
    rng = np.random.default_rng(7)
    weights = sampled_weights(weight, kind, rng, samples).reshape(samples, -1)
    if name == "conv":
        return weights @ _unfolded(kind).T
    rows = kind.x.astype("float64") if name == "dense" else np.eye(kind.shape[0])[kind.x]
    return weights @ np.kron(rows, np.eye(kind.shape[1])).T


def _unfolded(kind: Kind) -> np.ndarray:
    """The convolution as a matrix that multiplies its flattened weights."""

    def convolved(kernel: Any) -> Any:
        x, numbers = kind.x[None], ("NCHW", "OIHW", "NCHW")
        options = {**_OPTIONS, "feature_group_count": 2, "dimension_numbers": numbers}
        return jax.lax.conv_general_dilated(x, kernel, **options).reshape(-1)

    matrix = jax.jacfwd(convolved)(jnp.zeros(kind.shape))
    return np.asarray(matrix, "float64").reshape(len(matrix), -1)


def drawn_outputs(name: str, weight: Any, estimator: str, samples: int) -> np.ndarray:
    """As many draws of the layer for one example, each with a key of its own."""
    kind = KINDS[name]

    def draw(key: Any) -> Any:
        return kind.call(kind.x[None], weight, key=key, estimator=estimator).reshape(-1)

    keys = jax.random.split(jax.random.key(8), samples)
    every = jax.jit(lambda keys: jax.lax.map(draw, keys, batch_size=samples // 10))
    return np.asarray(every(keys))
