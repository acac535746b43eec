"""The penalties of a layer: the exact one, the methods of the papers, and fits."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
from logunif_kl.nn.terms import Term  # noqa: E402
from logunif_kl.torch import kl_normal, nn  # noqa: E402
from logunif_kl.torch.nn import _penalty  # noqa: E402
from tests.torch.nn.cases import filled, finite  # noqa: E402

CLOSED = ("kingma", "molchanov", "lower_bound")
FITS = {"a sigmoid": lk.fit_sigmoid(2), "a polynomial": lk.fit_polynomial(3)}
METHODS = [name for name, method in lk.methods.METHODS.items() if method.gradient]
NAMES = ("exact", *METHODS, *FITS)


def penalty(name):
    return FITS.get(name, name)


def expected(name, log_alpha):
    """Value and derivative by NumPy, in float64."""
    if name == "exact":
        return lk.neg_kl(log_alpha), lk.neg_kl_grad(log_alpha)
    if name in FITS:
        return FITS[name].neg_kl(log_alpha), FITS[name].neg_kl_grad(log_alpha)
    method = lk.methods.METHODS[name]
    return method.function(log_alpha), method.gradient(log_alpha)


def spread_over(low, high, dtype=torch.float64, **options):
    """A layer whose log alpha goes from `low` to `high`."""
    layer = nn.VariationalLinear(20, 10, dtype=dtype, posterior=nn.Multiplicative(), **options)
    with torch.no_grad():
        layer.log_alpha.copy_(torch.linspace(low, high, 200, dtype=dtype).reshape(10, 20))
    return layer


@pytest.mark.parametrize("name", NAMES)
class TestAsByNumpy:
    @pytest.mark.parametrize(
        ("dtype", "of_value", "of_slope"),
        [(torch.float64, 2e-15, 4e-15), (torch.float32, 1e-6, 2e-6)],
    )
    def test_each_element(self, name, dtype, of_value, of_slope):
        layer = spread_over(-12.0, 2.0, dtype, penalty=penalty(name))
        value, slope = expected(name, layer.log_alpha.detach().double().numpy())
        found = layer.neg_kl()
        found.backward()
        assert found.item() == pytest.approx(np.sum(value), rel=of_value)
        np.testing.assert_allclose(layer.log_alpha.grad.numpy(), slope, rtol=of_slope)
        # A shared alpha counts once for each weight.
        options = {"posterior": nn.Multiplicative("output"), "dtype": dtype}
        shared = nn.VariationalLinear(3, 200, penalty=penalty(name), **options)
        filled(shared, log_alpha=layer.log_alpha.detach().reshape(200, 1))
        shared.neg_kl().backward()
        assert shared.neg_kl().item() == pytest.approx(3 * np.sum(value), rel=of_value)
        found = shared.log_alpha.grad.numpy().reshape(slope.shape)
        np.testing.assert_allclose(found, 3 * slope, rtol=of_slope)

    def test_from_means_and_variances(self, name):
        torch.manual_seed(0)
        layer = nn.VariationalLinear(9, 7, dtype=torch.float64, penalty=penalty(name))
        value, slope = expected(name, layer.log_alpha_of_weights().detach().numpy())
        found = nn.neg_kl(layer)
        found.backward()
        assert found.item() == pytest.approx(np.sum(value), rel=1e-14)
        np.testing.assert_allclose(layer.log_sigma2.grad.numpy(), slope, rtol=1e-13)
        mu = layer.weight.detach().numpy()
        np.testing.assert_allclose(layer.weight.grad.numpy(), -2.0 * slope / mu, rtol=1e-13)

    def test_at_a_mean_of_zero(self, name):
        """The limit of the method, and no gradient."""
        layer = nn.VariationalLinear(2, 1, dtype=torch.float64, penalty=penalty(name))
        filled(layer, weight=torch.tensor([[0.0, 0.01]], dtype=torch.float64))
        found = layer.neg_kl()
        found.backward()
        with np.errstate(over="ignore"):
            both = expected(name, np.array([math.inf, -10.0 - 2.0 * math.log(0.01)]))[0]
        assert found.item() == pytest.approx(np.sum(both), rel=1e-14)
        for p in (layer.weight, layer.log_sigma2):
            assert finite(p.grad)
            assert (p.grad == 0.0).tolist() == [[True, False]]

    def test_far_out(self, name):
        """No NaN where an exponential overflows in float32, nor where alpha is nearly 0."""
        layer = spread_over(-200.0, 200.0, torch.float32, penalty=penalty(name))
        layer.neg_kl().backward()
        assert not torch.isnan(layer.log_alpha.grad).any()
        assert not torch.isnan(layer.neg_kl())

    def test_in_an_ensemble(self, name):
        layer = spread_over(-5.0, 1.0, penalty=penalty(name))

        def of(log_alpha):
            return _penalty.total([(layer.penalty, [Term((log_alpha,))])])

        stacked = torch.stack([layer.log_alpha.detach(), layer.log_alpha.detach() + 0.5])
        found = torch.vmap(torch.func.grad(of))(stacked)
        for x, slope in zip(stacked, found, strict=True):
            np.testing.assert_allclose(slope, expected(name, x.numpy())[1], rtol=1e-14)


@pytest.mark.parametrize("name", [*CLOSED, *FITS])
def test_gradcheck(name):
    layer = nn.VariationalLinear(2, 2, dtype=torch.float64, penalty=penalty(name))
    values = layer.weight, layer.log_sigma2
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(lambda *_: layer.neg_kl(), values, fast_mode=True)


def test_layers_of_several_penalties():
    model = torch.nn.Sequential(
        nn.VariationalLinear(3, 2),
        nn.VariationalLinear(3, 2, penalty="molchanov"),
        nn.VariationalLinear(3, 2, penalty=FITS["a sigmoid"]),
    )
    parts = [layer.neg_kl().item() for layer in model]
    assert len(set(parts)) == 3
    assert nn.neg_kl(model).item() == pytest.approx(sum(parts), rel=1e-6)


def test_no_second_derivative_of_a_numerical_method():
    layer = nn.VariationalLinear(1, 1, posterior=nn.Multiplicative(), penalty="series")
    (slope,) = torch.autograd.grad(layer.neg_kl(), layer.log_alpha, create_graph=True)
    words = "^penalty='series' has only a first derivative: pass 'exact' for higher ones$"
    with pytest.raises(NotImplementedError, match=words):
        slope.backward()


def snippet(mu, log_sigma2):
    """What docs/guide/migrate.md replaces: Molchanov's formula, with an epsilon and a clip."""
    log_alpha = (log_sigma2 - torch.log(mu * mu + 1e-8)).clamp(-8, 8)
    k1, k2, k3 = 0.63576, 1.87320, 1.48695
    return -(
        k1 * torch.sigmoid(k2 + k3 * log_alpha) - 0.5 * torch.log1p(torch.exp(-log_alpha)) - k1
    )


def test_three_constants():
    """The snippet has this sign and constant; beyond its clip, and at 0, it has no gradient."""
    log_sigma2 = torch.linspace(-7.9, 7.9, 2001, dtype=torch.float64)
    one = torch.ones_like(log_sigma2)
    worst = lk.methods.METHODS["molchanov"].claims[0].value
    assert (snippet(one, log_sigma2) - kl_normal(one, log_sigma2)).abs().max() <= worst
    for mu, dtype in ((1.0, torch.float64), (0.0, torch.float16)):
        x = torch.full((), mu, dtype=dtype, requires_grad=True)
        snippet(x, torch.tensor(-9.0, dtype=dtype)).backward()
        assert x.grad == 0.0 if mu else x.grad.isnan()
        found = torch.autograd.grad(kl_normal(x, torch.tensor(-9.0, dtype=dtype)), x)[0]
        assert found > 0.0 if mu else found == 0.0
