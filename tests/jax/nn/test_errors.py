"""Each error is one sentence: what was wrong, what was given, what to do."""

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from logunif_kl.jax import nn
from tests.jax.nn.layers import check_refused

KEY = jax.random.key(0)
MEAN = jnp.ones((3, 2))
WEIGHT = nn.Normal.from_mean(MEAN)
X = jnp.ones((4, 3))
KERNEL = nn.Normal.from_mean(jnp.ones((2, 1, 3, 3)))
IMAGE = jnp.ones((1, 2, 5, 5))
SCALES = nn.Dropout.from_mean(MEAN, sharing="input", noise="correlated")

CASES = {
    "posterior": (
        lambda: nn.dense(X, MEAN),
        TypeError,
        "weight must be a Normal or a Dropout, but jaxlib.* was given: pass "
        "Normal.from_mean(weight)",
    ),
    "posterior of a convolution": (
        lambda: nn.conv(IMAGE, None),
        TypeError,
        "weight must be a Normal or a Dropout, but NoneType was given: pass "
        "Normal.from_mean(weight)",
    ),
    "x": (
        lambda: nn.dense([1.0], WEIGHT),
        TypeError,
        "x must be an array, but list [1.0] was given: pass a jax.Array",
    ),
    "x of integers": (
        lambda: nn.dense(jnp.ones((4, 3), int), WEIGHT),
        TypeError,
        "x must hold real floating-point numbers, but int32 was given: pass float32",
    ),
    "x, complex": (
        lambda: nn.dense(X * 1j, WEIGHT),
        TypeError,
        "x must hold real floating-point numbers, but complex64 was given: pass float32",
    ),
    "means of integers": (
        lambda: nn.Normal.from_mean(np.ones((3, 2), int)),
        TypeError,
        "mu must hold real floating-point numbers, but int* was given: pass float32",
    ),
    "dtype": (
        lambda: nn.dense(X, WEIGHT, dtype=int),
        TypeError,
        "dtype must be a floating type, but int* was given: pass float32",
    ),
    "shape": (
        lambda: nn.dense(jnp.ones((4, 5)), WEIGHT),
        ValueError,
        "x of shape (4, 5) does not fit a kernel of shape (3, 2): pass x of shape (..., 3)",
    ),
    "shape of the kernel": (
        lambda: nn.dense(X, nn.Normal.from_mean(jnp.ones(3))),
        ValueError,
        "weight of shape (3,) is no kernel of a dense layer: pass shape (inputs, outputs)",
    ),
    "shape of log_sigma2": (
        lambda: nn.dense(X, nn.Normal(MEAN, jnp.ones(3))),
        ValueError,
        "log_sigma2 of shape (3,) does not broadcast to mu's (3, 2): use Normal.from_mean",
    ),
    "shape of log_alpha": (
        lambda: nn.kl(nn.Dropout(MEAN, jnp.ones((3, 1, 1)))),
        ValueError,
        "log_alpha of shape (3, 1, 1) does not broadcast to theta's (3, 2): use Dropout.from_mean",
    ),
    "bias": (
        lambda: nn.dense(X, WEIGHT, jnp.ones(3)),
        ValueError,
        "bias of shape (3,) does not fit 2 output units: pass shape (2,)",
    ),
    "bias, text": (
        lambda: nn.dense(X, WEIGHT, "b"),
        TypeError,
        "bias must hold real numbers, but str 'b' was given: pass an array of them",
    ),
    "bias, complex": (
        lambda: nn.conv(IMAGE, KERNEL, jnp.ones(2) * 1j, feature_group_count=2),
        TypeError,
        "bias must hold real numbers, but complex64 was given: pass float32",
    ),
    "a key in the place of the bias": (
        lambda: nn.dense(X, WEIGHT, KEY),
        TypeError,
        "bias must hold real numbers, but key<fry> was given: pass float32, and a key as key=key",
    ),
    "a key of the older kind in the place of the bias": (
        lambda: nn.dense(X, WEIGHT, jax.random.PRNGKey(0)),
        TypeError,
        "bias must hold real numbers, but uint32 was given: pass float32, and a key as key=key",
    ),
    "dtype, a word": (
        lambda: nn.dense(X, WEIGHT, dtype="single float"),
        TypeError,
        "dtype must be a floating type, but 'single float' was given: pass 'float32'",
    ),
    "estimator": (
        lambda: nn.dense(X, WEIGHT, key=KEY, estimator="weights"),
        ValueError,
        "estimator must be 'local', 'per_example' or 'per_batch', but 'weights' was given: pass "
        "one of these",
    ),
    "estimator of an embedding": (
        lambda: nn.embedding(jnp.array([0]), WEIGHT, estimator=None),
        ValueError,
        "estimator must be 'local', 'per_example' or 'per_batch', but None was given: pass one of "
        "these",
    ),
    "key": (
        lambda: nn.dense(X, WEIGHT, key=0),
        TypeError,
        "key must be a key of jax.random or None, but int 0 was given: pass jax.random.key(0)",
    ),
    "key of floats": (
        lambda: nn.dense(X, WEIGHT, key=X),
        TypeError,
        "key must be a key of jax.random or None, but float32 was given: pass jax.random.key(0)",
    ),
    "keys": (
        lambda: nn.dense(X, WEIGHT, key=jax.random.split(KEY, 4)),
        ValueError,
        "key holds keys of shape (4,), but a layer takes one: pass key[0], or use jax.vmap",
    ),
    "keys of the older kind": (
        lambda: nn.dense(X, WEIGHT, key=jax.random.split(jax.random.PRNGKey(0), 4)),
        ValueError,
        "key holds keys of shape (4,), but a layer takes one: pass key[0], or use jax.vmap",
    ),
    "sharing": (
        lambda: nn.Dropout.from_mean(MEAN, sharing="row"),
        ValueError,
        "sharing must be 'weight', 'output', 'input' or 'layer', but 'row' was given: pass one of "
        "these",
    ),
    "noise": (
        lambda: nn.Dropout.from_mean(MEAN, noise="A"),
        ValueError,
        "noise must be 'independent' or 'correlated', but 'A' was given: pass one of these",
    ),
    "noise of a node": (
        lambda: nn.kl(nn.Dropout(MEAN, MEAN, noise="A")),
        ValueError,
        "noise must be 'independent' or 'correlated', but 'A' was given: pass one of these",
    ),
    "correlated noise": (
        lambda: nn.Dropout.from_mean(MEAN, noise="correlated"),
        ValueError,
        "noise='correlated' scales the inputs, but sharing='weight' was given: pass "
        "sharing='input' or sharing='layer'",
    ),
    "correlated noise of a node": (
        lambda: nn.dense(X, nn.Dropout(MEAN, MEAN, noise="correlated")),
        ValueError,
        "noise='correlated' scales the inputs, but log_alpha has shape (3, 2): pass "
        "sharing='input' or sharing='layer'",
    ),
    "axis": (
        lambda: nn.Dropout.from_mean(MEAN, sharing="input", input_axis=2),
        ValueError,
        "input_axis must be an axis of theta of shape (3, 2), but 2 was given: pass another",
    ),
    "axis of the scales": (
        lambda: nn.conv(
            IMAGE, nn.Dropout.from_mean(jnp.ones((2, 2, 3, 3)), sharing="input", noise="correlated")
        ),
        ValueError,
        "the input units are axis 1 of the weights, but input_axis=-2 was given: pass "
        "input_axis=1 to Dropout",
    ),
    "groups of the scales": (
        lambda: nn.conv(
            IMAGE,
            nn.Dropout.from_mean(
                KERNEL.mu, sharing="input", noise="correlated", input_axis=1, output_axis=0
            ),
            feature_group_count=2,
        ),
        ValueError,
        "the layer has 2 groups of channels, but the weights have groups=1: pass groups=2 to "
        "Dropout",
    ),
    "groups": (
        lambda: nn.Dropout.from_mean(MEAN, groups=0),
        ValueError,
        "groups must be a positive integer, but 0 was given: pass 1 for the usual case",
    ),
    "log_alpha": (
        lambda: nn.Dropout.from_mean(MEAN, float("nan")),
        ValueError,
        "log_alpha must be finite, but nan was given: pass a number like -3.0",
    ),
    "log_sigma2": (
        lambda: nn.Normal.from_mean(MEAN, "-10"),
        TypeError,
        "log_sigma2 must be one real number, but str '-10' was given: pass a float",
    ),
    "max_log_alpha": (
        lambda: nn.Dropout.from_mean(MEAN, max_log_alpha=float("inf")),
        ValueError,
        "max_log_alpha must be finite, but inf was given: pass a number like -3.0",
    ),
    "axes of a convolution": (
        lambda: nn.conv(IMAGE[0], KERNEL, feature_group_count=2),
        ValueError,
        "x of shape (2, 5, 5) and a kernel of shape (2, 1, 3, 3) must have the same three or more "
        "axes: pass x[None] for one example",
    ),
    "channels": (
        lambda: nn.conv(IMAGE, KERNEL),
        ValueError,
        "x with 2 channels does not fit a kernel of 1 in each of 1 groups and 2 out: change one",
    ),
    "feature_group_count": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2.0),
        ValueError,
        "feature_group_count must be a positive integer, but 2.0 was given: pass 1 for the usual "
        "case",
    ),
    "window_strides": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, window_strides=(1, 1, 1)),
        ValueError,
        "window_strides=(1, 1, 1) was given for 2 spatial dimensions: pass 2 integers, or one",
    ),
    "window_strides below 1": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, window_strides=-1),
        ValueError,
        "window_strides must be positive, but -1 was given: pass 1 for the usual case",
    ),
    "window_strides, a word": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, window_strides="ab"),
        TypeError,
        "window_strides must hold integers, but 'ab' was given: pass 2 integers, or one",
    ),
    "lhs_dilation": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, lhs_dilation=1.5),
        TypeError,
        "lhs_dilation must hold integers, but 1.5 was given: pass 2 integers, or one",
    ),
    "rhs_dilation": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, rhs_dilation=(1, 0)),
        ValueError,
        "rhs_dilation must be positive, but (1, 0) was given: pass 1 for the usual case",
    ),
    "ids": (
        lambda: nn.embedding(jnp.ones(3), WEIGHT),
        TypeError,
        "ids must hold integers, but float32 was given: pass int32",
    ),
    "ids, text": (
        lambda: nn.embedding("0", WEIGHT),
        TypeError,
        "ids must hold integers, but str was given: pass an array",
    ),
    "ids, a list of text": (
        lambda: nn.embedding(["0"], WEIGHT),
        TypeError,
        "ids must hold real numbers, but list ['0'] was given: pass an array of them",
    ),
    "table": (
        lambda: nn.embedding(jnp.array([0]), nn.Normal.from_mean(jnp.ones(3))),
        ValueError,
        "weight of shape (3,) is no table of embeddings: pass shape (rows, columns)",
    ),
    "tree": (
        lambda: nn.kl({"weight": MEAN}),
        ValueError,
        "tree is of type dict and holds no posterior: make weights Normal or Dropout nodes",
    ),
    "KL of correlated weights": (
        lambda: nn.kl(SCALES, of="weights"),
        ValueError,
        "the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3): pass "
        "of='scales'",
    ),
    "KL of scales": (
        lambda: nn.named_kl(WEIGHT, of="scales"),
        ValueError,
        "there are no scales under independent noise: pass of='weights', or noise='correlated' to "
        "Dropout",
    ),
    "of": (
        lambda: nn.kl(WEIGHT, of="biases"),
        ValueError,
        "of must be 'weights' or 'scales', but 'biases' was given: pass one of these",
    ),
    "penalty": (
        lambda: nn.kl(WEIGHT, penalty="cubic"),
        ValueError,
        "penalty='cubic' is not known: pass 'exact', a Fit or one of kingma, molchanov, "
        "lower_bound, series, kummer, quadrature",
    ),
    "penalty without gradient": (
        lambda: nn.kl(WEIGHT, penalty="monte_carlo"),
        ValueError,
        "penalty='monte_carlo' has no gradient to train with: pass 'exact'",
    ),
    "penalty, a number": (
        lambda: nn.kl(WEIGHT, penalty=1.0),
        TypeError,
        "penalty must be 'exact', a method's name or a Fit, but float was given: pass 'exact'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sentence(name):
    check_refused(*CASES[name])
