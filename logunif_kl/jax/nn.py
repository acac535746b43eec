"""Layers with Gaussian posteriors over weights, as pure functions, and the KL of the posteriors.

A `Weight` is a pytree node with the parameters of the posterior over one array of weights. The
posterior is one of `Additive`, `Grouped`, `Multiplicative`, `Correlated` and `Scaled`. `dense`,
`conv` and `embedding` take such a node in place of weights, and a key for the noise; without a key
they compute the mean, and for `Moments` the moments of their outputs. `neg_kl` and `kl` find the
nodes in a tree of parameters. The functions work under ``jit``, ``grad``,
``vmap``, ``jax.checkpoint``, ``scan`` and sharding, in float16, bfloat16, float32 and float64, with
any library that keeps parameters in pytrees.

Notes
-----
In Flax NNX the leaves of a `Weight` must be parameters, because `flax.nnx.grad` and
`flax.nnx.Optimizer` with ``wrt=nnx.Param`` skip bare arrays::

    class Layer(nnx.Module):
        def __init__(self, rngs):
            kernel = nnx.initializers.he_normal()(rngs.params(), (4, 3))
            self.weight = nnx.data(jax.tree.map(nnx.Param, nn.Weight.from_mean(kernel)))
            self.bias = nnx.Param(jnp.zeros(3))

        def __call__(self, x, key=None):
            return nn.dense(x, self.weight, self.bias, key=key)

`flax.serialization` must know the type `Weight`. Register it before the program writes or reads a
tree::

    from dataclasses import replace

    def arrays(node):
        return {name: getattr(node, name) for name in ("mean", *node.posterior.parameters)}

    serialization.register_serialization_state(
        nn.Weight,
        lambda node: serialization.to_state_dict(arrays(node)),
        lambda node, state: replace(node, **serialization.from_state_dict(arrays(node), state)),
    )

The file has the names of the arrays, so that it cannot be read into a `Weight` with others.

References
----------
Haussmann, Hamprecht, Kandemir, "Sampling-Free Variational Inference of Bayesian Neural Networks by
Variance Backpropagation" (2018).
Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).
Kingma, Salimans, Welling, "Variational Dropout and the Local Reparameterization Trick" (2015).
Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).

Examples
--------
>>> import jax
>>> import jax.numpy as jnp
>>> from logunif_kl.jax import nn
>>> params = {"weight": nn.Weight.from_mean(0.1 * jnp.ones((4, 3))), "bias": jnp.zeros(3)}
>>> x, labels = jnp.ones((8, 4)), jnp.zeros(8, int)
>>> @jax.jit
... def loss(params, key):
...     logits = nn.dense(x, params["weight"], params["bias"], key=key)
...     likelihood = nn.categorical_log_likelihood(logits, labels)
...     return nn.elbo(likelihood, nn.neg_kl(params), dataset_size=1000).loss
>>> gradient = jax.grad(loss)(params, jax.random.key(0))
>>> gradient["weight"].log_sigma2.shape
(4, 3)
"""

from typing import TYPE_CHECKING, Any

from ..nn.jax.convert import sample, to_deterministic, to_variational, zero_means
from ..nn.jax.deploy import density_threshold, log_alpha, prune, sparsity, threshold_curve
from ..nn.jax.layers.conv import conv
from ..nn.jax.layers.dense import dense
from ..nn.jax.layers.embedding import embedding
from ..nn.jax.moments import Moments, avg_pool, max_pool, relu
from ..nn.jax.predict.expected_log_likelihood import (
    expected_bernoulli_log_likelihood,
    expected_categorical_log_likelihood,
    expected_normal_log_likelihood,
)
from ..nn.jax.predict.likelihoods import (
    bernoulli_log_likelihood,
    categorical_log_likelihood,
    normal_log_likelihood,
)
from ..nn.jax.predict.predict import predict
from ..nn.jax.priors.proper import (
    HorseshoePrior,
    NormalPrior,
    PowerPrior,
    ScaleMixturePrior,
    StudentTPrior,
)
from ..nn.jax.shrink.to_compact import to_compact
from ..nn.jax.train import Bound, cosine_warm_up, cyclical_warm_up, elbo, linear_warm_up
from ..nn.jax.weights.trees import kl, named_kl, neg_kl
from ..nn.jax.weights.weight import Weight
from ..nn.posteriors import Additive, Correlated, Grouped, Multiplicative, Scaled
from ..nn.prediction import Prediction
from ..nn.priors import Prior
from ..nn.sparsity import Sparsity
from ..nn.threshold_curve import ThresholdCurve

__all__ = [
    "Additive",
    "Bound",
    "Correlated",
    "Grouped",
    "HorseshoePrior",
    "Moments",
    "Multiplicative",
    "NormalPrior",
    "PowerPrior",
    "Prediction",
    "Prior",
    "ScaleMixturePrior",
    "Scaled",
    "Sparsity",
    "StudentTPrior",
    "ThresholdCurve",
    "Weight",
    "avg_pool",
    "bernoulli_log_likelihood",
    "categorical_log_likelihood",
    "conv",
    "cosine_warm_up",
    "cyclical_warm_up",
    "dense",
    "density_threshold",
    "elbo",
    "embedding",
    "expected_bernoulli_log_likelihood",
    "expected_categorical_log_likelihood",
    "expected_normal_log_likelihood",
    "kl",
    "linear_warm_up",
    "log_alpha",
    "max_pool",
    "named_kl",
    "neg_kl",
    "normal_log_likelihood",
    "predict",
    "prune",
    "relu",
    "sample",
    "sparsity",
    "threshold_curve",
    "to_compact",
    "to_deterministic",
    "to_variational",
    "zero_means",
]

_BEFORE = {
    "Normal": "nn.Weight.from_mean(mean), or nn.Weight(mean, log_sigma2)",
    "Dropout": "nn.Weight.from_mean(mean, nn.Multiplicative(...)), or nn.Correlated(...)",
    "Groups": "nn.Weight.from_mean(mean, nn.Grouped(...))",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Name the call that takes the place of a class of before."""
        instead = f": use {_BEFORE[name]}" if name in _BEFORE else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
