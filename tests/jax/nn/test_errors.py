"""Each error says what was wrong, what was given and what to do, in one or two sentences."""

import builtins
import math  # noqa: F401 (REFUSALS uses it)
import re
from dataclasses import replace  # noqa: F401

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from logunif_kl.jax import nn

KEY = jax.random.key(0)
MEAN = jnp.ones((3, 2))
WEIGHT = nn.Weight.from_mean(MEAN)
X = jnp.ones((4, 3))
KERNEL = nn.Weight.from_mean(jnp.ones((2, 1, 3, 3)))
IMAGE = jnp.ones((1, 2, 5, 5))
SCALES = nn.Weight.from_mean(MEAN, nn.Correlated())
SCALED = nn.Weight.from_mean(MEAN, nn.Scaled())
OF_CHANNELS = nn.Weight.from_mean(KERNEL.mean, nn.Scaled(), input_axis=1)
MOMENTS = nn.Moments(X, X)
LABELS = np.array([-100])


class Returns:
    """A prior whose method returns what a function gives."""

    def __init__(self, function):
        self.neg_kl = function


# Calls, and indented below them what each of them raises. A `*` stands for letters.
REFUSALS = """
nn.threshold_curve(WEIGHT, 3.0)
    TypeError: measure must be a function of the pruned tree, but 3.0 was given: pass one that
    returns a loss
nn.dense(X, MEAN, key=KEY)
    TypeError: weight must be a Weight, but jaxlib.* was given: pass Weight.from_mean(weight), or
    floats without a key
nn.conv(IMAGE, None)
    TypeError: weight must be a Weight, but NoneType was given: pass Weight.from_mean(weight), or
    floats without a key
nn.dense([1.0], WEIGHT)
    TypeError: x must be an array, but list [1.0] was given: pass a jax.Array
nn.dense(X * 1j, WEIGHT)
    TypeError: x must hold real floating-point numbers, but complex64 was given: pass float32
nn.Weight.from_mean(np.ones((3, 2), int))
    TypeError: mean must hold real floating-point numbers, but int* was given: pass float32
nn.kl(nn.Weight(MEAN.astype("float8_e5m2"), jnp.zeros((3, 2))))
    TypeError: mean must hold real floating-point numbers, but float8_e5m2 was given: pass float32
nn.dense(X, WEIGHT, dtype="float8_e4m3fn")
    TypeError: dtype must be a floating type, but float8_e4m3fn was given: pass float32
nn.named_kl({"a.0": WEIGHT, "a": [KERNEL]})
    ValueError: two Weight nodes of the tree have the name 'a.0': use keys without dots
nn.dense(X, WEIGHT, dtype=int)
    TypeError: dtype must be a floating type, but int* was given: pass float32
nn.dense(X, WEIGHT, "b")
    TypeError: bias must hold real numbers, but str 'b' was given: pass an array of them
nn.dense(X, WEIGHT, KEY)
    TypeError: bias must hold real numbers, but key<fry> was given: pass float32, and a key as
    key=key
nn.dense(X, WEIGHT, jax.random.PRNGKey(0))
    TypeError: bias must hold real numbers, but uint32 was given: pass float32, and a key as key=key
nn.dense(X, WEIGHT, dtype="single float")
    TypeError: dtype must be a floating type, but 'single float' was given: pass 'float32'
nn.dense(X, WEIGHT, key=0)
    TypeError: key must be a key of jax.random or None, but int 0 was given: pass jax.random.key(0)
nn.dense(X, WEIGHT, key=X)
    TypeError: key must be a key of jax.random or None, but float32 was given: pass
    jax.random.key(0)
nn.Weight.from_mean(MEAN, -10.0)
nn.Weight(MEAN, MEAN, posterior=-10.0)
    TypeError: posterior=-10.0 was given, but a posterior is an object: pass nn.Additive(),
    nn.Grouped(), nn.Multiplicative(), nn.Correlated() or nn.Scaled()
nn.to_variational({"weight": MEAN}, posterior="multiplicative")
    TypeError: posterior='multiplicative' was given, but a posterior is an object: pass
    posterior=nn.Multiplicative()
nn.Normal
    AttributeError: module 'logunif_kl.jax.nn' has no attribute 'Normal': use
    nn.Weight.from_mean(mean), or nn.Weight(mean, log_sigma2)
nn.Dropout
    AttributeError: module 'logunif_kl.jax.nn' has no attribute 'Dropout': use
    nn.Weight.from_mean(mean, nn.Multiplicative(...)), or nn.Correlated(...)
nn.conv(IMAGE, KERNEL, feature_group_count=2, lhs_dilation=1.5)
    TypeError: lhs_dilation must hold integers, but 1.5 was given: pass 2 integers, or one
nn.embedding(jnp.ones(3), WEIGHT)
    TypeError: ids must hold integers, but float32 was given: pass int32
nn.embedding("0", WEIGHT)
    TypeError: ids must hold integers, but str was given: pass an array
nn.embedding(["0"], WEIGHT)
    TypeError: ids must hold real numbers, but list ['0'] was given: pass an array of them
nn.kl(WEIGHT, penalty=1.0)
    TypeError: penalty must be a name, a Fit or an object with neg_kl(mu, log_sigma2), but
    1.0 was given: pass one of 'exact', 'kingma', 'molchanov', 'lower_bound', 'series', 'kummer',
    'quadrature'
nn.kl(WEIGHT, penalty=nn.NormalPrior)
    TypeError: penalty must be a name, a Fit or an object with neg_kl(mu, log_sigma2), but the class
    NormalPrior was given: pass one of 'exact', 'kingma', 'molchanov', 'lower_bound', 'series',
    'kummer', 'quadrature'
nn.kl(SCALES, penalty=nn.StudentTPrior())
    ValueError: penalty=StudentTPrior(df=1.0, scale=1.0) was given with the posterior
    Correlated(): use Additive or Grouped
nn.kl(SCALED, penalty=nn.NormalPrior())
    ValueError: penalty=NormalPrior(variance=1.0) was given with the posterior Scaled(): use
    Additive or Grouped
nn.kl(WEIGHT, penalty=nn.ScaleMixturePrior(0.5, 1.0, 0.1))
    TypeError: key must be a key of jax.random or None, but NoneType None was given: pass
    jax.random.key(0)
nn.kl(WEIGHT, penalty=Returns(lambda mu, _: mu.sum()))
    ValueError: neg_kl of Returns returned an array of shape () and float32 for weights of shape
    (3, 2) and float32: return -KL of each weight, in the dtype of mu
nn.kl(WEIGHT, penalty=Returns(lambda mu, _: None))
    ValueError: neg_kl of Returns returned NoneType for weights of shape (3, 2) and float32: return
    -KL of each weight, in the dtype of mu
nn.StudentTPrior(0.0)
    ValueError: df must be positive and finite, but 0.0 was given: pass 1.0
nn.StudentTPrior(1.0, "1")
    TypeError: scale must be one real number, but str '1' was given: pass a float
nn.ScaleMixturePrior(1.0, 1.0, 0.1)
    ValueError: probability must be between 0 and 1, but 1.0 was given: pass 0.5, or a NormalPrior
    for one component
nn.ScaleMixturePrior(0.5, 1.0, 0.1, samples=0)
    ValueError: samples must be a positive integer, but 0 was given: pass 1 for the usual case
nn.ScaleMixturePrior(0.5, 1.0, 0.1, key=KEY).estimate(MEAN, MEAN)
    ValueError: samples=1 gives no standard error: pass samples=2 or more
nn.avg_pool(X, 2)
    TypeError: window_dimensions must hold integers, but 2 was given: pass 2 integers
nn.expected_normal_log_likelihood(X, X)
    TypeError: output must be Moments, but jaxlib.* was given: pass Moments(x) through the layers
nn.elbo(jnp.ones(3), jnp.array(-1.0), [10])
    TypeError: dataset_size must be one real number, but list [10] was given: pass a float
nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight="1")
    TypeError: kl_weight must be one real number, but str '1' was given: pass a float
nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=jnp.array(1j))
    TypeError: kl_weight must hold real numbers, but complex64 was given: pass float32
nn.linear_warm_up("a", 0, 1)
    TypeError: step must hold real numbers, but str 'a' was given: pass an array of them
nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.ones(3))
    TypeError: labels must hold integers, but float32 was given: pass int32
nn.categorical_log_likelihood(jnp.ones((3, 2)), None)
    TypeError: labels must hold real numbers, but NoneType None was given: pass an array of them
nn.bernoulli_log_likelihood(jnp.ones(3), "abc")
    TypeError: targets must hold real numbers, but str 'abc' was given: pass an array of them
nn.normal_log_likelihood(jnp.ones(3), jnp.ones(3) * 1j)
    TypeError: targets must hold real numbers, but complex64 was given: pass float32
nn.normal_log_likelihood(jnp.ones(3), jnp.ones(3), "a")
    TypeError: log_sigma2 must hold real numbers, but str 'a' was given: pass an array of them
nn.sparsity(WEIGHT, math.nan)
    ValueError: threshold must not be NaN: pass 3.0, or inf to prune only zeros
nn.prune({"w": WEIGHT}, like=WEIGHT)
    ValueError: the structures of tree and like differ: for like, pass the tree that prune returned
nn.prune({"w": WEIGHT}, like={"w": nn.Weight.from_mean(MEAN[:, :1])})
    ValueError: like has weights of shape (3, 1) at 'w', where tree has (3, 2): pass what prune
    returned for the same model
nn.dense(jnp.ones((4, 5)), WEIGHT)
    ValueError: x of shape (4, 5) does not fit a kernel of shape (3, 2): pass x of shape (..., 3)
nn.dense(X, nn.Weight.from_mean(jnp.ones(3)))
    ValueError: weight of shape (3,) is not a kernel of a dense layer: pass shape (inputs, outputs)
nn.dense(X, nn.Weight(MEAN, jnp.ones(3)))
    ValueError: log_sigma2 of shape (3,) does not broadcast to the means' (3, 2): use
    Weight.from_mean
nn.kl(nn.Weight(MEAN, log_alpha=jnp.ones((3, 1, 1)), posterior=nn.Multiplicative()))
    ValueError: log_alpha of shape (3, 1, 1) does not broadcast to the means' (3, 2): use
    Weight.from_mean
nn.kl(nn.Weight(MEAN))
    ValueError: a Weight with the posterior Additive() needs log_sigma2, but has none: use
    Weight.from_mean
nn.dense(X, nn.Weight(MEAN, MEAN, log_alpha=MEAN))
    ValueError: a Weight with the posterior Additive() needs log_sigma2, but has log_sigma2,
    log_alpha: use Weight.from_mean
nn.dense(X, WEIGHT, jnp.ones(3))
    ValueError: bias of shape (3,) does not fit 2 output units: pass shape (2,)
nn.dense(X, WEIGHT, key=KEY, estimator="weights")
nn.embedding(jnp.array([0]), WEIGHT, estimator="weights")
    ValueError: estimator must be 'local', 'per_example' or 'per_batch', but 'weights' was given:
    pass one of these
nn.dense(X, WEIGHT, key=jax.random.split(KEY, 4))
nn.dense(X, WEIGHT, key=jax.random.split(jax.random.PRNGKey(0), 4))
    ValueError: key holds keys of shape (4,), but a layer takes one: pass key[0], or use jax.vmap
nn.dense(X, nn.Weight(MEAN, log_alpha=MEAN, posterior=nn.Correlated()))
    ValueError: the scales of the inputs must have shape (3, 1) for means of shape (3, 2), but have
    (3, 2): use Weight.from_mean
nn.Weight.from_mean(MEAN, nn.Multiplicative("input"), input_axis=2)
nn.Weight.from_mean(MEAN, nn.Scaled(), input_axis=2)
    ValueError: input_axis must be an axis of means of shape (3, 2), but 2 was given: pass another
nn.Weight.from_mean(MEAN, nn.Grouped("output"), output_axis=2)
    ValueError: output_axis must be an axis of means of shape (3, 2), but 2 was given: pass another
nn.conv(IMAGE, nn.Weight.from_mean(jnp.ones((2, 2, 3, 3)), nn.Correlated()))
    ValueError: the input units are axis 1 of the weights, but axis 2 of the Weight has scales: pass
    input_axis=1
nn.conv(IMAGE, OF_CHANNELS, feature_group_count=2)
    ValueError: the layer has 2 groups of channels, but the Weight has groups=1: pass groups=2
nn.Weight.from_mean(MEAN, groups=0)
    ValueError: groups must be a positive integer, but 0 was given: pass 1 for the usual case
nn.conv(IMAGE[0], KERNEL, feature_group_count=2)
    ValueError: x of shape (2, 5, 5) and a kernel of shape (2, 1, 3, 3) must have the same number
    of axes, three or more: pass x[None] for one example
nn.conv(IMAGE, KERNEL)
    ValueError: x has 2 channels and the kernel 2 outputs, but 1 groups of 1 channels need 1
    channels and a multiple of 1 outputs: change the shapes or groups
nn.conv(IMAGE, KERNEL, feature_group_count=2.0)
    ValueError: feature_group_count must be a positive integer, but 2.0 was given: pass 1 for the
    usual case
nn.conv(IMAGE, KERNEL, feature_group_count=2, window_strides=(1, 1, 1))
    ValueError: window_strides=(1, 1, 1) was given for 2 spatial dimensions: pass 2 integers, or one
nn.conv(IMAGE, KERNEL, feature_group_count=2, rhs_dilation=(1, 0))
    ValueError: rhs_dilation must be positive, but (1, 0) was given: pass 1 for the usual case
nn.embedding(jnp.array([0]), nn.Weight.from_mean(jnp.ones(3)))
    ValueError: weight of shape (3,) is not a table of embeddings: pass shape (rows, columns)
nn.kl({"weight": MEAN})
nn.sample({"weight": MEAN}, KEY)
nn.log_alpha({"weight": MEAN})
    ValueError: tree is of type dict and holds no Weight: make its arrays Weight nodes, as
    to_variational does
nn.kl(SCALES, of="weights")
    ValueError: the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3):
    pass of='scales'
nn.named_kl(WEIGHT, of="scales")
    ValueError: there are no scales under independent noise: pass of='weights', or use
    the posterior nn.Correlated()
nn.kl(WEIGHT, of="biases")
    ValueError: of must be 'weights' or 'scales', but 'biases' was given: pass one of these
nn.kl(WEIGHT, penalty="cubic")
    ValueError: there is no penalty 'cubic': pass one of 'exact', 'kingma', 'molchanov',
    'lower_bound', 'series', 'kummer', 'quadrature', a Fit or a prior
nn.kl(WEIGHT, penalty="monte_carlo")
    ValueError: penalty='monte_carlo' was given, a method without a gradient: pass one of 'exact',
    'kingma', 'molchanov', 'lower_bound', 'series', 'kummer', 'quadrature'
nn.elbo(jnp.array(-3.0), jnp.array(-1.0), 10)
    ValueError: log_likelihood has shape (), but its first axis must be the minibatch: do not sum or
    average it
nn.elbo(jnp.ones(3), jnp.ones(3), 10)
    ValueError: neg_kl has shape (3,), but one number is needed: pass logunif_kl.jax.nn.neg_kl(tree)
nn.elbo(jnp.ones(3), jnp.array(-1.0), -10)
    ValueError: dataset_size must be positive, but -10 was given: pass the number of examples
nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=-1.0)
    ValueError: kl_weight must be finite and not negative, but -1.0 was given: pass 1.0 for the
    bound
nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=jnp.ones(2))
    ValueError: kl_weight has shape (2,), but one number is needed: pass 1.0 for the bound
nn.linear_warm_up(3, 10, 10)
nn.cosine_warm_up(3, 10, 10)
    ValueError: end must be above begin, but begin=10 and end=10 were given: exchange them
nn.categorical_log_likelihood(jnp.ones((3, 1)), jnp.zeros(3, int))
    ValueError: logits of shape (3, 1) were given, but a softmax over one class is always 1: use
    bernoulli_log_likelihood for a single logit
nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.ones((3, 1), int))
    ValueError: labels has shape (3, 1), but (3,) is needed: reshape it
nn.categorical_log_likelihood(jnp.ones((3, 4, 5)), jnp.ones((3, 5), int))
    ValueError: labels of shape (3, 5) fit logits of shape (3, 4, 5) only with classes in axis 1,
    but they must be last: pass jnp.moveaxis(logits, 1, -1)
nn.normal_log_likelihood(jnp.ones((3, 1)), jnp.ones(3))
    ValueError: targets has shape (3,), but (3, 1) is needed: reshape it
nn.normal_log_likelihood(jnp.zeros((4, 1)), jnp.zeros((4, 1)), jnp.zeros(4))
    ValueError: log_sigma2 of shape (4,) does not broadcast to mean's (4, 1): pass one number, or
    the shape of mean
nn.bernoulli_log_likelihood(jnp.zeros((2, 1)), jnp.array([[-1.0], [1.0]]))
    ValueError: targets hold numbers from -1 to 1, not from 0 to 1: pass (targets + 1)/2 for labels
    of -1 and 1
nn.bernoulli_log_likelihood(jnp.zeros(2), jnp.array([1.0, jnp.nan]))
    ValueError: targets hold NaN: leave out the examples without a target
nn.bernoulli_log_likelihood(jnp.array(0.0), jnp.array(0.0))
    ValueError: targets has shape (), but (minibatch,) is needed: reshape it
nn.elbo(jnp.ones(11), jnp.array(-1.0), 10)
    ValueError: the minibatch has 11 examples, more than dataset_size=10: pass the size of the whole
    data set
nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.array([0, 2, 1]))
    ValueError: labels must be from 0 to 1, but 2 was given: pass the numbers of classes
nn.cyclical_warm_up(1, 0.0)
    ValueError: period must be positive, but 0.0 was given: pass a number of steps
nn.to_variational({"weight": MEAN}, "bias")
    TypeError: where must be a function of path and leaf, but 'bias' was given: pass None for all
    matrices
nn.to_variational({"bias": MEAN})
    ValueError: tree is of type dict and holds no array to make Gaussian: pass the parameters of a
    model, or another function as where
nn.sample(nn.Weight.from_mean(MEAN, nn.Correlated(), groups=2), KEY)
    ValueError: weights with random scales cannot be drawn in groups, but groups=2 was given: use
    another posterior, such as Additive
nn.density_threshold(WEIGHT, 1.5)
    ValueError: density must be from 0 to 1, but 1.5 was given: pass 0.05
nn.density_threshold(nn.Weight(jnp.full(3, jnp.nan), jnp.zeros(3)), 0.5)
    ValueError: log alpha of 3 weights is NaN, so no threshold can say whether to keep them: look
    for NaN and inf in the parameters
nn.predict(3, KEY)
    TypeError: function must take a key and return outputs, but 3 was given: pass lambda key:
    model(params, x, key)
nn.predict(lambda key: X, KEY, 1)
    ValueError: samples must be at least 2, but 1 was given: pass a larger one
nn.predict(lambda key: jnp.ones(3), KEY)
    ValueError: the model returned shape (3,), not (M, ..., classes): pass likelihood='bernoulli' or
    'normal'
nn.predict(lambda key: [1.0], KEY)
    TypeError: the model returned list: pass a function that returns one array
nn.predict(lambda key: (1.0,), KEY, likelihood="normal")
    ValueError: the model returned a tuple of 1: have it return one array, or a tuple of the mean
    and log_sigma2
nn.predict(lambda key: (X, X), KEY, likelihood="normal", log_sigma2=0.0)
    ValueError: log_sigma2 was given, but the model returns its own: leave out the argument
nn.predict(lambda key: X, KEY, link="probit")
    ValueError: link='probit' was given with likelihood='categorical': pass likelihood='bernoulli'
nn.kl(nn.Weight.from_mean(MEAN, nn.Grouped()), penalty="molchanov")
    ValueError: penalty='molchanov' approximates the KL of single weights, but the posterior
    Grouped() has groups: pass 'exact' or a prior
nn.kl(replace(SCALED, scale=jnp.ones(3)))
    ValueError: the scales of the inputs must have shape (3, 1) for means of shape (3, 2), but have
    (3,) and (3, 1): use Weight.from_mean
nn.embedding(jnp.array([0]), SCALED)
    ValueError: an embedding cannot have the posterior Scaled(): use Additive, Grouped,
    Multiplicative or Correlated
nn.dense(MOMENTS, SCALES)
    ValueError: moments need independent weights, but the posterior Correlated() was given: use
    Additive, Grouped or Multiplicative
nn.dense(MOMENTS, WEIGHT, key=KEY)
    ValueError: x is Moments, for which no noise is drawn, but a key was given: omit key
nn.embedding(nn.Moments(jnp.array([0]), jnp.ones(1)), WEIGHT)
    ValueError: ids have no variance, but one was given: pass Moments(ids)
nn.relu(nn.Moments(X, MEAN))
    ValueError: variance of shape (3, 2) was given with a mean of shape (4, 3): pass a variance of
    the same shape
nn.relu(nn.Moments(X, steepness=0.0))
    ValueError: steepness must be positive, but 0.0 was given: pass math.inf
nn.max_pool(X, (2,))
    ValueError: window_dimensions=(2,) was given for 2 axes: pass 2 integers
jax.jit(lambda x: nn.categorical_log_likelihood(x, LABELS))(jnp.ones((1, 2)))
    ValueError: labels must be from 0 to 1, but -100 was given: pass the numbers of classes
"""


@pytest.mark.parametrize(
    ("calls", "error"), re.findall(r"^((?:\S.*\n)+)((?: .*\n)+)", REFUSALS, re.M)
)
def test_refusals(calls, error):
    kind, _, sentence = " ".join(error.split()).partition(": ")
    for call in calls.splitlines():
        with pytest.raises(getattr(builtins, kind)) as caught:
            eval(call)
        text = str(caught.value)
        assert re.fullmatch(re.escape(sentence).replace(r"\*", r"\w*"), text)
        assert len(text) < 230
        assert ": " in text
