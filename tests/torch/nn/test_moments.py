"""The moments of each layer's output are those of explicit samples of the weights."""

import functools

import pytest

torch = pytest.importorskip("torch")

from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    ESTIMATORS,
    EVERY,
    OF_UNITS,
    every_layer,
    inputs,
    made,
    matrix,
    sampled,
)

SAMPLES = 500_000
SIGMAS = 5.0


def moments(outputs):
    """Means, and variances, each with its standard error, of rows of independent samples."""
    outputs = outputs.double()
    n = len(outputs)
    mean = outputs.mean(0)
    squares = (outputs - mean) ** 2
    variance = squares.mean(0)
    return mean, (variance / n).sqrt(), variance, (squares.var(0) / n).sqrt()


def worst(ours, theirs):
    """How many standard errors apart the moments are at most."""
    found = []
    for at in (0, 2):
        error = (ours[at + 1] ** 2 + theirs[at + 1] ** 2).sqrt()
        apart = (ours[at] - theirs[at]).abs()
        # The padding of an embedding has no noise, and no error.
        found.append(torch.where(error > 0, apart / error, apart * torch.inf).nan_to_num(0.0).max())
    return float(max(found))


def explicit(case, layer, n=SAMPLES):
    x = inputs(case)
    weights = sampled(layer, n)
    if isinstance(layer, torch.nn.Embedding):
        weights[:, layer.padding_idx] = layer.weight[layer.padding_idx].detach()
    outputs = weights.flatten(1) @ matrix(case, layer, x).flatten(0, -2).T
    if getattr(layer, "bias", None) is not None:
        shape = layer(x).shape
        bias = layer.bias.detach().view(-1, *[1] * (len(shape) - 2))
        outputs = outputs + bias.expand(shape[1:]).flatten()
    return outputs


def drawn(case, layer, n=SAMPLES, seed=4):
    torch.manual_seed(seed)
    x = inputs(case)
    with torch.no_grad():
        if layer.estimator == "per_batch":
            one = torch.vmap(lambda _: layer(x), randomness="different")
            return one(torch.empty(n, 0)).flatten(1)
        return layer(x.expand(n, *x.shape[1:])).flatten(1)


def covariances(outputs):
    """The covariance of each pair of outputs, with its standard error for normal outputs."""
    outputs = outputs.double()
    found = torch.cov(outputs.T)
    return found, ((found.diag().outer(found.diag()) + found**2) / len(outputs)).sqrt()


@functools.cache
def truth(case, posterior):
    """The moments of the explicit samples, and the covariances of the outputs."""
    outputs = explicit(CASES[case], made(CASES[case], posterior=EVERY[posterior]))
    return moments(outputs), covariances(outputs)


@pytest.mark.parametrize(
    ("posterior", "estimator"),
    [(posterior, estimator) for posterior in OF_UNITS for estimator in ESTIMATORS[1:]],
)
def test_of_explicit_weights(posterior, estimator):
    """test_layers.py has those of the other posteriors, for given noise."""
    layer = made(CASES["linear"], estimator=estimator, posterior=EVERY[posterior])
    ours = moments(drawn(CASES["linear"], layer))
    assert worst(ours, truth("linear", posterior)[0]) < SIGMAS


@every_layer
def test_of_the_local_estimator(case, posterior):
    layer = made(CASES[case], posterior=EVERY[posterior])
    ours, (theirs, (b, b_error)) = drawn(CASES[case], layer), truth(case, posterior)
    assert worst(moments(ours), theirs) < SIGMAS
    # A variance 2 % larger would be seen.
    assert worst(moments(1.01 * ours - 0.01 * theirs[0].float()), theirs) > SIGMAS
    if case == "linear" or (not layer.posterior.independent and case != "embedding"):
        # Local noise is independent at each place of a convolution, and at each look-up; elsewhere
        # the outputs are as dependent as those of one sample of the weights.
        a, a_error = covariances(ours)
        assert ((a - b).abs() <= SIGMAS * (a_error**2 + b_error**2).sqrt()).all()
