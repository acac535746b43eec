"""The moments of each layer's output are those of explicit samples of the weights."""

import functools

import pytest

torch = pytest.importorskip("torch")

from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    ESTIMATORS,
    OF_UNITS,
    POSTERIORS,
    every_layer,
    inputs,
    made,
    matrix,
    options_of,
    sampled,
    seeded,
    twin,
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
    outputs = explicit(CASES[case], made(CASES[case], **options_of(posterior)))
    return moments(outputs), covariances(outputs)


@every_layer
def test_of_the_local_estimator(case, posterior):
    layer = made(CASES[case], **options_of(posterior))
    ours, (theirs, (b, b_error)) = drawn(CASES[case], layer), truth(case, posterior)
    assert worst(moments(ours), theirs) < SIGMAS
    # A variance 2 % larger would be seen.
    assert worst(moments(1.01 * ours - 0.01 * theirs[0].float()), theirs) > SIGMAS
    if case == "linear" or (layer.noise == "correlated" and case != "embedding"):
        # Local noise is independent at each place of a convolution, and at each look-up; elsewhere
        # the outputs are as dependent as those of one sample of the weights.
        a, a_error = covariances(ours)
        assert ((a - b).abs() <= SIGMAS * (a_error**2 + b_error**2).sqrt()).all()


@pytest.mark.parametrize("posterior", POSTERIORS | OF_UNITS)
@pytest.mark.parametrize("estimator", ESTIMATORS[1:])
def test_of_the_other_estimators(estimator, posterior):
    case = CASES["linear"]
    layer = made(case, estimator=estimator, **options_of(posterior))
    assert worst(moments(drawn(case, layer)), truth("linear", posterior)[0]) < SIGMAS


def quadratic(output):
    """A loss whose expected gradients are known."""
    return 0.5 * (output**2).sum() + output.sum()


def expected_gradients(case, layer, x):
    """The gradients of the mean of `quadratic`, from the moments of the output (Eq. 6)."""
    x = x.clone().requires_grad_()
    leaves = [p.detach().requires_grad_() for p in layer.parameters()]
    named = dict(zip(dict(layer.named_parameters()), leaves, strict=True))
    plain, weight = twin(case, layer), named["weight"]
    spread = named[layer._log_variance_name].exp().expand(weight.shape)
    if layer.posterior == "multiplicative":
        spread = spread * weight**2
    elif layer.posterior == "scaled":
        scale, of_scale = named["scale"], named["scale_log_sigma2"].exp()
        spread = (scale**2 + of_scale) * (weight**2 + spread) - (scale * weight) ** 2
        weight = scale * weight
    mean = torch.func.functional_call(plain, {"weight": weight, "bias": named["bias"]}, (x,))
    plain.bias = None
    variance = torch.func.functional_call(plain, {"weight": spread}, (x**2,))
    loss = 0.5 * (mean**2 + variance).sum() + mean.sum()
    return torch.autograd.grad(loss, [x, *leaves])


# Correlated noise makes the variance of a convolution's output another sum.
@pytest.mark.parametrize(
    ("case", "posterior"),
    [
        *(("linear", p) for p in ("additive", "input", "correlated, input", "scaled")),
        *(("conv1d", p) for p in ("additive", "input")),
    ],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_that_gradients_agree_in_expectation(case, estimator, posterior):
    """Of every estimator with the gradient of the expectation, hence with each other."""
    case = CASES[case]
    layer = made(case, estimator=estimator, dtype=torch.float64, **options_of(posterior))
    x = inputs(case, 1, dtype=torch.float64)
    named = dict(layer.named_parameters())

    def loss(x, parameters):
        return quadratic(torch.func.functional_call(layer, parameters, (x,)))

    def gradients(_):
        at_x, at_parameters = torch.func.grad(loss, (0, 1))(x, named)
        return at_x, *at_parameters.values()

    found = seeded(torch.vmap(gradients, randomness="different"), torch.empty(20_000, 0), seed=6)
    for one, expected in zip(found, expected_gradients(case, layer, x), strict=True):
        error = one.std(0) / len(one) ** 0.5
        assert ((one.mean(0) - expected).abs() <= SIGMAS * error + 1e-9).all()
        assert (error < 0.1 * expected.abs() + 0.1).all()
