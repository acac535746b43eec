"""Layers of JAX and of PyTorch with the same parameters have the same KL."""

import math
from dataclasses import replace

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
    posterior = replace(POSTERIORS[name], initial=-1.5)
    layer = torch_nn.VariationalLinear(5, 3, posterior=posterior)
    weight = nn.Weight.from_mean(jnp.asarray(layer.weight.detach().numpy().T), posterior)
    assert math.isclose(nn.neg_kl(weight), layer.neg_kl().item(), rel_tol=1e-6)
