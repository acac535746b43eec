"""What docs/guide/migrate.md says of other packages, which are the extra ``peers``."""

import math

import pytest

torch = pytest.importorskip("torch")

from logunif_kl import methods  # noqa: E402
from logunif_kl.torch import kl_normal, nn  # noqa: E402
from tests.torch.nn.cases import filled  # noqa: E402

# The packages warn of what they import.
pytestmark = pytest.mark.filterwarnings("ignore")
OUTPUTS = 40_000


def softplus(rho):
    return 2.0 * math.log(math.log1p(math.exp(rho)))


def of_bayesian_torch():
    layers = pytest.importorskip("bayesian_torch.layers")
    layer = layers.LinearReparameterization(1, OUTPUTS, bias=False)
    filled(layer, mu_weight=0.7, rho_weight=-1.2)
    out, kl = layer(torch.ones(1, 1))
    half = filled(layers.LinearReparameterization(1, 7, bias=False), mu_weight=0.7, rho_weight=-1.2)
    assert math.isclose(kl, half.kl_loss(), rel_tol=1e-5)  # a mean over the weights
    return out, softplus(-1.2)


def of_blitz():
    modules = pytest.importorskip("blitz.modules")
    layer = modules.BayesianLinear(1, OUTPUTS, bias=False)
    filled(layer, weight_mu=0.7, weight_rho=-1.2)
    return layer(torch.ones(1, 1)), softplus(-1.2)


def of_torchbnn():
    torchbnn = pytest.importorskip("torchbnn")
    layer = torchbnn.BayesLinear(0.0, 0.1, 1, OUTPUTS, bias=False)
    filled(layer, weight_mu=0.7, weight_log_sigma=-1.2)
    kl = torchbnn.functional.bayesian_kl_loss
    assert math.isclose(kl(layer) * OUTPUTS, kl(layer, reduction="sum"), rel_tol=1e-5)
    return layer(torch.ones(1, 1)), 2.0 * -1.2


def of_cplxmodule():
    of = pytest.importorskip("cplxmodule.nn.relevance")
    layer = filled(of.LinearVD(1, OUTPUTS, bias=False), weight=0.7, log_sigma2=-2.4)
    ours = nn.VariationalLinear(1, OUTPUTS, bias=False)
    filled(ours, weight=0.7, log_sigma2=-2.4)
    theirs = sum(of.penalties(layer))
    ((name, _),) = of.named_penalties(torch.nn.Sequential(layer))
    assert name == next(iter(nn.named_kl(torch.nn.Sequential(ours))))
    worst = methods.METHODS["molchanov"].claims[0].value
    assert abs(theirs - nn.kl(ours)) <= worst * OUTPUTS
    return layer(torch.ones(1, 1)), -2.4


@pytest.mark.parametrize("package", [of_bayesian_torch, of_blitz, of_torchbnn, of_cplxmodule])
def test_variance(package):
    """That of the weights which the package draws, from the parameter that it stores."""
    torch.manual_seed(0)
    out, log_sigma2 = package()
    assert abs(out.mean().item() - 0.7) < 0.01
    # The standard error is 0.7 %.
    assert abs(out.var().item() / math.exp(log_sigma2) - 1.0) < 0.03


def snippet(mu, log_sigma2):
    log_alpha = (log_sigma2 - torch.log(mu * mu + 1e-8)).clamp(-8, 8)
    k1, k2, k3 = 0.63576, 1.87320, 1.48695
    return -(
        k1 * torch.sigmoid(k2 + k3 * log_alpha) - 0.5 * torch.log1p(torch.exp(-log_alpha)) - k1
    )


def test_three_constants():
    """The snippet has this sign and constant; beyond its clip, and at 0, it has no gradient."""
    log_sigma2 = torch.linspace(-7.9, 7.9, 2001, dtype=torch.float64)
    one = torch.ones_like(log_sigma2)
    worst = methods.METHODS["molchanov"].claims[0].value
    assert (snippet(one, log_sigma2) - kl_normal(one, log_sigma2)).abs().max() <= worst
    for mu, dtype in ((1.0, torch.float64), (0.0, torch.float16)):
        x = torch.full((), mu, dtype=dtype, requires_grad=True)
        snippet(x, torch.tensor(-9.0, dtype=dtype)).backward()
        assert x.grad == 0.0 if mu else x.grad.isnan()
        found = torch.autograd.grad(kl_normal(x, torch.tensor(-9.0, dtype=dtype)), x)[0]
        assert found > 0.0 if mu else found == 0.0
