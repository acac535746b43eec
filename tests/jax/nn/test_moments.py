"""Means, variances and covariances of the outputs, against weights sampled one by one."""

from functools import cache

import numpy as np
import pytest

pytest.importorskip("jax")

from logunif_kl.jax.nn import _embedding, _layer, _noise
from tests.jax.nn import layers
from tests.jax.nn.layers import ESTIMATORS, KINDS, POSTERIORS, weight_of

SAMPLES = 1_000_000
FEWER = 50_000  # where weights are drawn too

# In standard errors of a difference: 1 in 2 million at each of a few thousand comparisons.
MOST = 5.0


def moments(outputs):
    """The mean and the covariance, and the standard error of each."""
    outputs = outputs.astype("float64")
    mean = outputs.mean(0)
    centred = outputs - mean
    n = len(outputs)
    covariance = centred.T @ centred / n
    squares = centred * centred
    error = np.sqrt(np.maximum(squares.T @ squares / n - covariance**2, 0.0) / n)
    return mean, np.sqrt(np.diag(covariance) / n), covariance, error


@cache
def explicit(kind, name):
    return moments(layers.sampled_outputs(kind, weight_of(name, KINDS[kind]), SAMPLES))


def distance(kind, name, estimator):
    """The largest difference, in standard errors."""
    samples = SAMPLES if estimator == "local" else FEWER
    got = moments(layers.drawn_outputs(kind, weight_of(name, KINDS[kind]), estimator, samples))
    wanted = explicit(kind, name)
    off = [
        np.abs(got[i] - wanted[i]) / np.maximum(np.hypot(got[i + 1], wanted[i + 1]), 1e-6)
        for i in (0, 2)
    ]
    if estimator == "local":
        off[1] = off[1][together(kind, name)]
    return max(float(each.max()) for each in off)


def together(kind, name):
    """Which outputs have the covariance of one draw of the weights, if the outputs are drawn."""
    outputs = explicit(kind, name)[0].size
    if kind == "dense" or (kind == "conv" and name.startswith("correlated")):
        return np.ones((outputs, outputs), bool)
    if kind == "embedding" and name.startswith("correlated"):
        # The columns of one place have one scale. Another place has another, for the same row too.
        columns = KINDS[kind].shape[1]
        return np.kron(np.eye(outputs // columns), np.ones((columns, columns))).astype(bool)
    return np.eye(outputs, dtype=bool)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_moments(kind, name, estimator):
    assert distance(kind, name, estimator) < MOST


@pytest.mark.slow
@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_two_percent_are_seen(kind, name, monkeypatch):
    """The variance times 1.02."""
    normals = _noise.normals
    for module in (_noise, _layer, _embedding):
        monkeypatch.setattr(module, "normals", lambda *given: 1.02**0.5 * normals(*given))
    assert distance(kind, name, "local") > MOST
