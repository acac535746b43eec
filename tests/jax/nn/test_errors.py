"""Each error says what was wrong, what was given and what to do, in one or two sentences."""

import math

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

LABELS = np.array([-100])

# The sentence -> the call that raises it.
TYPE_ERRORS = {
    (
        "measure must be a function of the pruned tree, but 3.0 was given: pass one that returns "
        "a loss"
    ): (lambda: nn.threshold_curve(WEIGHT, 3.0)),
    (
        "weight must be a Normal or a Dropout, but jaxlib.* was given: pass "
        "Normal.from_mean(weight)"
    ): (lambda: nn.dense(X, MEAN)),
    (
        "weight must be a Normal or a Dropout, but NoneType was given: pass "
        "Normal.from_mean(weight)"
    ): (lambda: nn.conv(IMAGE, None)),
    "x must be an array, but list [1.0] was given: pass a jax.Array": (
        lambda: nn.dense([1.0], WEIGHT)
    ),
    "x must hold real floating-point numbers, but int32 was given: pass float32": (
        lambda: nn.dense(jnp.ones((4, 3), int), WEIGHT)
    ),
    "x must hold real floating-point numbers, but complex64 was given: pass float32": (
        lambda: nn.dense(X * 1j, WEIGHT)
    ),
    "mu must hold real floating-point numbers, but int* was given: pass float32": (
        lambda: nn.Normal.from_mean(np.ones((3, 2), int))
    ),
    "dtype must be a floating type, but int* was given: pass float32": (
        lambda: nn.dense(X, WEIGHT, dtype=int)
    ),
    "bias must hold real numbers, but str 'b' was given: pass an array of them": (
        lambda: nn.dense(X, WEIGHT, "b")
    ),
    "bias must hold real numbers, but complex64 was given: pass float32": (
        lambda: nn.conv(IMAGE, KERNEL, jnp.ones(2) * 1j, feature_group_count=2)
    ),
    "bias must hold real numbers, but key<fry> was given: pass float32, and a key as key=key": (
        lambda: nn.dense(X, WEIGHT, KEY)
    ),
    "bias must hold real numbers, but uint32 was given: pass float32, and a key as key=key": (
        lambda: nn.dense(X, WEIGHT, jax.random.PRNGKey(0))
    ),
    "dtype must be a floating type, but 'single float' was given: pass 'float32'": (
        lambda: nn.dense(X, WEIGHT, dtype="single float")
    ),
    "key must be a key of jax.random or None, but int 0 was given: pass jax.random.key(0)": (
        lambda: nn.dense(X, WEIGHT, key=0)
    ),
    "key must be a key of jax.random or None, but float32 was given: pass jax.random.key(0)": (
        lambda: nn.dense(X, WEIGHT, key=X)
    ),
    "log_sigma2 must be one real number, but str '-10' was given: pass a float": (
        lambda: nn.Normal.from_mean(MEAN, "-10")
    ),
    "window_strides must hold integers, but 'ab' was given: pass 2 integers, or one": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, window_strides="ab")
    ),
    "lhs_dilation must hold integers, but 1.5 was given: pass 2 integers, or one": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, lhs_dilation=1.5)
    ),
    "ids must hold integers, but float32 was given: pass int32": (
        lambda: nn.embedding(jnp.ones(3), WEIGHT)
    ),
    "ids must hold integers, but str was given: pass an array": (lambda: nn.embedding("0", WEIGHT)),
    "ids must hold real numbers, but list ['0'] was given: pass an array of them": (
        lambda: nn.embedding(["0"], WEIGHT)
    ),
    "penalty must be 'exact', a method's name or a Fit, but float was given: pass 'exact'": (
        lambda: nn.kl(WEIGHT, penalty=1.0)
    ),
    "dataset_size must be one real number, but list [10] was given: pass a float": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), [10])
    ),
    "kl_weight must be one real number, but str '1' was given: pass a float": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight="1")
    ),
    "kl_weight must hold real numbers, but complex64 was given: pass float32": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=jnp.array(1j))
    ),
    "step must hold real numbers, but str 'a' was given: pass an array of them": (
        lambda: nn.linear_warm_up("a", 0, 1)
    ),
    "step must hold real numbers, but NoneType None was given: pass an array of them": (
        lambda: nn.linear_warm_up(None, 0, 1)
    ),
    "labels must hold integers, but float32 was given: pass int32": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.ones(3))
    ),
    "labels must hold real numbers, but NoneType None was given: pass an array of them": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), None)
    ),
    "targets must hold real numbers, but str 'abc' was given: pass an array of them": (
        lambda: nn.bernoulli_log_likelihood(jnp.ones(3), "abc")
    ),
    "targets must hold real numbers, but complex64 was given: pass float32": (
        lambda: nn.normal_log_likelihood(jnp.ones(3), jnp.ones(3) * 1j)
    ),
    "log_sigma2 must hold real numbers, but str 'a' was given: pass an array of them": (
        lambda: nn.normal_log_likelihood(jnp.ones(3), jnp.ones(3), "a")
    ),
}

VALUE_ERRORS = {
    "threshold must not be NaN: pass 3.0, or inf to prune only zeros": (
        lambda: nn.sparsity(WEIGHT, math.nan)
    ),
    "like has another structure than tree: pass what prune returned for the same model": (
        lambda: nn.prune({"w": WEIGHT}, like=WEIGHT)
    ),
    (
        "like has weights of shape (3, 1) at 'w', where tree has (3, 2): pass what prune returned "
        "for the same model"
    ): (lambda: nn.prune({"w": WEIGHT}, like={"w": nn.Normal.from_mean(MEAN[:, :1])})),
    "x of shape (4, 5) does not fit a kernel of shape (3, 2): pass x of shape (..., 3)": (
        lambda: nn.dense(jnp.ones((4, 5)), WEIGHT)
    ),
    "weight of shape (3,) is not a kernel of a dense layer: pass shape (inputs, outputs)": (
        lambda: nn.dense(X, nn.Normal.from_mean(jnp.ones(3)))
    ),
    "log_sigma2 of shape (3,) does not broadcast to mu's (3, 2): use Normal.from_mean": (
        lambda: nn.dense(X, nn.Normal(MEAN, jnp.ones(3)))
    ),
    "log_alpha of shape (3, 1, 1) does not broadcast to theta's (3, 2): use Dropout.from_mean": (
        lambda: nn.kl(nn.Dropout(MEAN, jnp.ones((3, 1, 1))))
    ),
    "bias of shape (3,) does not fit 2 output units: pass shape (2,)": (
        lambda: nn.dense(X, WEIGHT, jnp.ones(3))
    ),
    (
        "estimator must be 'local', 'per_example' or 'per_batch', but 'weights' was given: "
        "pass one of these"
    ): (lambda: nn.dense(X, WEIGHT, key=KEY, estimator="weights")),
    (
        "estimator must be 'local', 'per_example' or 'per_batch', but None was given: pass "
        "one of these"
    ): (lambda: nn.embedding(jnp.array([0]), WEIGHT, estimator=None)),
    "key holds keys of shape (4,), but a layer takes one: pass key[0], or use jax.vmap": [
        lambda: nn.dense(X, WEIGHT, key=jax.random.split(KEY, 4)),
        lambda: nn.dense(X, WEIGHT, key=jax.random.split(jax.random.PRNGKey(0), 4)),
    ],
    (
        "sharing must be 'weight', 'output', 'input' or 'layer', but 'row' was given: pass "
        "one of these"
    ): (lambda: nn.Dropout.from_mean(MEAN, sharing="row")),
    "noise must be 'independent' or 'correlated', but 'A' was given: pass one of these": [
        lambda: nn.Dropout.from_mean(MEAN, noise="A"),
        lambda: nn.kl(nn.Dropout(MEAN, MEAN, noise="A")),
    ],
    (
        "noise='correlated' scales the inputs, but sharing='weight' was given: pass "
        "sharing='input' or sharing='layer'"
    ): (lambda: nn.Dropout.from_mean(MEAN, noise="correlated")),
    (
        "noise='correlated' scales the inputs, but log_alpha has shape (3, 2): pass "
        "sharing='input' or sharing='layer'"
    ): (lambda: nn.dense(X, nn.Dropout(MEAN, MEAN, noise="correlated"))),
    "input_axis must be an axis of theta of shape (3, 2), but 2 was given: pass another": (
        lambda: nn.Dropout.from_mean(MEAN, sharing="input", input_axis=2)
    ),
    (
        "the input units are axis 1 of the weights, but input_axis=-2 was given: pass "
        "input_axis=1 to Dropout"
    ): (
        lambda: nn.conv(
            IMAGE, nn.Dropout.from_mean(jnp.ones((2, 2, 3, 3)), sharing="input", noise="correlated")
        )
    ),
    (
        "the layer has 2 groups of channels, but the weights have groups=1: pass groups=2 to "
        "Dropout"
    ): (
        lambda: nn.conv(
            IMAGE,
            nn.Dropout.from_mean(
                KERNEL.mu, sharing="input", noise="correlated", input_axis=1, output_axis=0
            ),
            feature_group_count=2,
        )
    ),
    "groups must be a positive integer, but 0 was given: pass 1 for the usual case": (
        lambda: nn.Dropout.from_mean(MEAN, groups=0)
    ),
    "log_alpha must be finite, but nan was given: pass a number like -3.0": (
        lambda: nn.Dropout.from_mean(MEAN, math.nan)
    ),
    "max_log_alpha must be finite, but inf was given: pass a number like -3.0": (
        lambda: nn.Dropout.from_mean(MEAN, max_log_alpha=math.inf)
    ),
    (
        "x of shape (2, 5, 5) and a kernel of shape (2, 1, 3, 3) must have the same three or "
        "more axes: pass x[None] for one example"
    ): (lambda: nn.conv(IMAGE[0], KERNEL, feature_group_count=2)),
    "x has 2 channels, but the kernel has 1 groups of 1 input channels and 2 output "
    "channels: change one": (lambda: nn.conv(IMAGE, KERNEL)),
    (
        "feature_group_count must be a positive integer, but 2.0 was given: pass 1 for the "
        "usual case"
    ): (lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2.0)),
    "window_strides=(1, 1, 1) was given for 2 spatial dimensions: pass 2 integers, or one": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, window_strides=(1, 1, 1))
    ),
    "window_strides must be positive, but -1 was given: pass 1 for the usual case": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, window_strides=-1)
    ),
    "rhs_dilation must be positive, but (1, 0) was given: pass 1 for the usual case": (
        lambda: nn.conv(IMAGE, KERNEL, feature_group_count=2, rhs_dilation=(1, 0))
    ),
    "weight of shape (3,) is not a table of embeddings: pass shape (rows, columns)": (
        lambda: nn.embedding(jnp.array([0]), nn.Normal.from_mean(jnp.ones(3)))
    ),
    "tree is of type dict and holds no posterior: make weights Normal or Dropout nodes": (
        lambda: nn.kl({"weight": MEAN})
    ),
    (
        "the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3): "
        "pass of='scales'"
    ): (lambda: nn.kl(SCALES, of="weights")),
    (
        "there are no scales under independent noise: pass of='weights', or "
        "noise='correlated' to Dropout"
    ): (lambda: nn.named_kl(WEIGHT, of="scales")),
    "of must be 'weights' or 'scales', but 'biases' was given: pass one of these": (
        lambda: nn.kl(WEIGHT, of="biases")
    ),
    (
        "penalty='cubic' is not known: pass 'exact', a Fit or one of kingma, molchanov, "
        "lower_bound, series, kummer, quadrature"
    ): (lambda: nn.kl(WEIGHT, penalty="cubic")),
    "penalty='monte_carlo' has no gradient to train with: pass 'exact'": (
        lambda: nn.kl(WEIGHT, penalty="monte_carlo")
    ),
    (
        "log_likelihood has shape (), but its first axis must be the minibatch: do not sum or "
        "average it"
    ): (lambda: nn.elbo(jnp.array(-3.0), jnp.array(-1.0), 10)),
    "neg_kl has shape (3,), but one number is needed: pass logunif_kl.jax.nn.neg_kl(tree)": (
        lambda: nn.elbo(jnp.ones(3), jnp.ones(3), 10)
    ),
    "dataset_size must be positive, but -10 was given: pass the number of examples": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), -10)
    ),
    "kl_weight must be finite and not negative, but -1.0 was given: pass 1.0 for the bound": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=-1.0)
    ),
    "kl_weight has shape (2,), but one number is needed: pass 1.0 for the bound": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=jnp.ones(2))
    ),
    "end must be above begin, but begin=10 and end=10 were given: exchange them": (
        lambda: nn.linear_warm_up(3, 10, 10)
    ),
    (
        "logits of shape (3, 1) were given, but a softmax over one class is always 1: use "
        "bernoulli_log_likelihood for a single logit"
    ): (lambda: nn.categorical_log_likelihood(jnp.ones((3, 1)), jnp.zeros(3, int))),
    "labels has shape (3, 1), but (3,) is needed: reshape it": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.ones((3, 1), int))
    ),
    "targets has shape (3,), but (3, 1) is needed: reshape it": (
        lambda: nn.normal_log_likelihood(jnp.ones((3, 1)), jnp.ones(3))
    ),
    (
        "log_sigma2 of shape (4,) does not broadcast to mean's (4, 1): pass one number, or "
        "the shape of mean"
    ): (lambda: nn.normal_log_likelihood(jnp.zeros((4, 1)), jnp.zeros((4, 1)), jnp.zeros(4))),
    (
        "log_sigma2 of shape (1, 4) does not broadcast to mean's (4,): pass one number, or "
        "the shape of mean"
    ): (lambda: nn.normal_log_likelihood(jnp.zeros(4), jnp.zeros(4), jnp.zeros((1, 4)))),
    (
        "targets hold numbers from -1 to 1, not from 0 to 1: pass (targets + 1)/2 for labels "
        "of -1 and 1"
    ): (lambda: nn.bernoulli_log_likelihood(jnp.zeros((2, 1)), jnp.array([[-1.0], [1.0]]))),
    "targets hold NaN: leave out the examples without one": (
        lambda: nn.bernoulli_log_likelihood(jnp.zeros(2), jnp.array([1.0, jnp.nan]))
    ),
    "targets has shape (), but (minibatch,) is needed: reshape it": (
        lambda: nn.bernoulli_log_likelihood(jnp.array(0.0), jnp.array(0.0))
    ),
    (
        "the minibatch has 11 examples, more than dataset_size=10: pass the size of the whole "
        "data set"
    ): (lambda: nn.elbo(jnp.ones(11), jnp.array(-1.0), 10)),
    "labels must be from 0 to 1, but 2 was given: pass the numbers of classes": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.array([0, 2, 1]))
    ),
    "labels must be from 0 to 1, but -1 was given: pass the numbers of classes": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 1, 2)), jnp.array([[0], [-1], [1]]))
    ),
    "labels must be from 0 to 1, but -100 was given: pass the numbers of classes": (
        lambda: jax.jit(lambda x: nn.categorical_log_likelihood(x, LABELS))(jnp.ones((1, 2)))
    ),
}


@pytest.mark.parametrize("sentence", [*TYPE_ERRORS, *VALUE_ERRORS])
def test_sentence(sentence):
    kind = TypeError if sentence in TYPE_ERRORS else ValueError
    calls = {**TYPE_ERRORS, **VALUE_ERRORS}[sentence]
    for call in calls if isinstance(calls, list) else [calls]:
        check_refused(call, kind, sentence)
