"""Layers of JAX and of PyTorch with the same parameters have the same KL."""

import math

import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")
pytest.importorskip("logunif_kl.torch.nn")

import jax.numpy as jnp

from logunif_kl.jax import nn
from logunif_kl.torch import nn as torch_nn
from tests.jax.nn.layers import POSTERIORS


@pytest.mark.parametrize("name", POSTERIORS)
def test_kl(name):
    """JAX stores the transposed matrix."""
    sharing, noise = POSTERIORS[name] or (None, None)
    if sharing is None:
        posterior = torch_nn.Additive(initial=-1.5)
    else:
        kind = torch_nn.Correlated if noise == "correlated" else torch_nn.Multiplicative
        posterior = kind(sharing, initial=-1.5)
    layer = torch_nn.VariationalLinear(5, 3, posterior=posterior)
    kernel = jnp.asarray(layer.weight.detach().numpy().T)
    if sharing is None:
        weight = nn.Normal.from_mean(kernel, -1.5)
    else:
        weight = nn.Dropout.from_mean(kernel, -1.5, sharing=sharing, noise=noise)
    assert math.isclose(nn.neg_kl(weight), layer.neg_kl().item(), rel_tol=1e-6)
