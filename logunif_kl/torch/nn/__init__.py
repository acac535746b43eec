"""Layers with a Gaussian posterior over their weights, trained with the exact KL.

Layers such as `VariationalLinear` replace those of `torch.nn`, and `to_variational` converts a
network. Their `posterior` is an `Additive`, `Grouped`, `Multiplicative`, `Correlated` or `Scaled`.
`ELBO` computes the training objective. Train `log_sigma2` and `log_alpha` without weight
decay. After training, weights with a large alpha = sigma^2/mu^2 are mostly noise: `sparsity` counts
them, `prune` masks them, and `to_sparse` and `to_deterministic` remove them.

Examples
--------
>>> import torch
>>> from logunif_kl.torch import nn
>>> model = nn.to_variational(torch.nn.Sequential(torch.nn.Linear(4, 3)))
>>> elbo = nn.ELBO(model, nn.categorical_log_likelihood, dataset_size=1000)
>>> optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
>>> x, target = torch.randn(10, 4), torch.arange(10) % 3
>>> elbo(x, target).loss.backward()
>>> optimizer.step()
>>> model.eval()(x).shape  # the mean; noise under nn.sampling(model)
torch.Size([10, 3])
>>> nn.to_deterministic(model, threshold=3.0)  # without the weights of large alpha
Sequential(
  (0): Linear(in_features=4, out_features=3, bias=True)
)
"""

from ..._layers import Prediction, Prior, Sparsity, ThresholdCurve
from ...nn.posteriors import Additive, Correlated, Grouped, Multiplicative, Scaled
from ._checkpoint import checkpoint_contexts
from ._conv import VariationalConv1d, VariationalConv2d, VariationalConv3d
from ._conversion import Conversion, conversion
from ._convert import to_deterministic, to_variational
from ._dropout import GaussianDropoutA, GaussianDropoutLinear
from ._elbo import ELBO, Bound
from ._embedding import VariationalEmbedding
from ._expected_log_likelihood import (
    expected_bernoulli_log_likelihood,
    expected_categorical_log_likelihood,
    expected_normal_log_likelihood,
)
from ._hold import sampled, to_sample
from ._layer import VariationalLayer
from ._lazy import (
    LazyVariationalConv1d,
    LazyVariationalConv2d,
    LazyVariationalConv3d,
    LazyVariationalLinear,
)
from ._likelihoods import (
    bernoulli_log_likelihood,
    categorical_log_likelihood,
    normal_log_likelihood,
)
from ._linear import VariationalLinear
from ._load_sparse import load_sparse
from ._models import kl, named_kl, neg_kl, parameter_groups
from ._moments import Moments
from ._pole_priors import HorseshoePrior, PowerPrior
from ._predict import predict
from ._priors import NormalPrior, ScaleMixturePrior, StudentTPrior
from ._prune import prune, zero_means
from ._sampled import SampledModule
from ._sampling import sampling
from ._schedules import cosine_warm_up, cyclical_warm_up, linear_warm_up
from ._sparse import SparseConv, SparseEmbedding, SparseLayer, SparseLinear
from ._sparsity import density_threshold, log_alpha, sparsity, threshold_curve
from ._to_sparse import to_compact, to_sparse
from ._vbp import VBP, moments

__all__ = [
    "ELBO",
    "VBP",
    "Additive",
    "Bound",
    "Conversion",
    "Correlated",
    "GaussianDropoutA",
    "GaussianDropoutLinear",
    "Grouped",
    "HorseshoePrior",
    "LazyVariationalConv1d",
    "LazyVariationalConv2d",
    "LazyVariationalConv3d",
    "LazyVariationalLinear",
    "Moments",
    "Multiplicative",
    "NormalPrior",
    "PowerPrior",
    "Prediction",
    "Prior",
    "SampledModule",
    "ScaleMixturePrior",
    "Scaled",
    "SparseConv",
    "SparseEmbedding",
    "SparseLayer",
    "SparseLinear",
    "Sparsity",
    "StudentTPrior",
    "ThresholdCurve",
    "VariationalConv1d",
    "VariationalConv2d",
    "VariationalConv3d",
    "VariationalEmbedding",
    "VariationalLayer",
    "VariationalLinear",
    "bernoulli_log_likelihood",
    "categorical_log_likelihood",
    "checkpoint_contexts",
    "conversion",
    "cosine_warm_up",
    "cyclical_warm_up",
    "density_threshold",
    "expected_bernoulli_log_likelihood",
    "expected_categorical_log_likelihood",
    "expected_normal_log_likelihood",
    "kl",
    "linear_warm_up",
    "load_sparse",
    "log_alpha",
    "moments",
    "named_kl",
    "neg_kl",
    "normal_log_likelihood",
    "parameter_groups",
    "predict",
    "prune",
    "sampled",
    "sampling",
    "sparsity",
    "threshold_curve",
    "to_compact",
    "to_deterministic",
    "to_sample",
    "to_sparse",
    "to_variational",
    "zero_means",
]
