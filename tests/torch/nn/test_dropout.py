"""Gaussian dropout of types A and B: the moments of the outputs, the rates, the modes."""

import math

import pytest

torch = pytest.importorskip("torch")

from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import filled, finite, generator  # noqa: E402

DRAWS = 400_000
# Of a mean and of a variance, in their own standard errors.
WITHIN = 4.5


def moments_agree(drawn, mean, variance):
    """Whether samples along the first dimension have these moments, by their standard errors."""
    n = drawn.shape[0]
    off = (drawn.mean(0) - mean).abs() / (variance / n).sqrt()
    spread = (drawn.var(0) / variance - 1.0).abs() * math.sqrt(n / 2)
    return bool((off < WITHIN).all() and (spread < WITHIN).all())


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
class TestMoments:
    def test_of_type_a(self, p):
        """Each input times N(1, p/(1-p)), which has the variance of binary dropout."""
        x = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
        drawn = nn.GaussianDropoutA(p, generator=generator())(x.expand(DRAWS, 3))
        assert moments_agree(drawn, x, p / (1 - p) * x**2)
        assert not moments_agree(drawn, x, 1.02 * p / (1 - p) * x**2)

    def test_of_type_b(self, p):
        """Kingma et al. 2015, Eq. 10, with a bias beside the noise."""
        layer = nn.GaussianDropoutLinear(3, 2, p, dtype=torch.float64, generator=generator())
        x = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
        with torch.no_grad():
            layer.bias.copy_(torch.tensor([5.0, -100.0]))
            drawn = layer(x.expand(DRAWS, 3))
            variance = p / (1 - p) * (layer.weight**2 @ x**2)
        mean = layer.weight @ x + layer.bias
        assert moments_agree(drawn, mean.detach(), variance)
        assert not moments_agree(drawn, mean.detach(), 1.02 * variance)
        # The noise of the outputs is independent, as that of type A is not.
        correlation = torch.corrcoef(drawn.T)[0, 1]
        assert abs(correlation) < WITHIN / math.sqrt(DRAWS)


class TestUse:
    @pytest.mark.parametrize(
        "make", [nn.GaussianDropoutA, lambda p, **k: nn.GaussianDropoutLinear(3, 3, p, **k)]
    )
    def test_no_noise_in_evaluation_nor_at_a_rate_of_zero(self, make):
        x = torch.randn(4, 3)
        for layer, noisy in ((make(0.5).eval(), False), (make(0.0), False), (make(0.5), True)):
            assert torch.equal(layer(x), layer(x)) is not noisy

    def test_type_b_is_a_linear_layer(self):
        layer = nn.GaussianDropoutLinear(3, 2, 0.2, bias=False)
        assert isinstance(layer, torch.nn.Linear)
        assert list(layer.state_dict()) == ["weight"]
        x = torch.randn(4, 3)
        assert torch.equal(layer.eval()(x), torch.nn.functional.linear(x, layer.weight))
        assert repr(layer) == (
            "GaussianDropoutLinear(in_features=3, out_features=2, bias=False, p=0.2)"
        )
        assert repr(nn.GaussianDropoutA(0.2)) == "GaussianDropoutA(p=0.2)"

    def test_the_generator_decides(self):
        x = torch.ones(4, 3)
        first, second = (nn.GaussianDropoutA(generator=generator(3)) for _ in range(2))
        assert torch.equal(first(x), second(x))
        assert not torch.equal(first(x), nn.GaussianDropoutA(generator=generator(4))(x))

    def test_gradients_are_those_of_the_samples(self):
        """d/d theta of theta a + sqrt(alpha sum a^2 theta^2) z, from the drawn z."""
        layer = nn.GaussianDropoutLinear(
            3, 1, 0.5, bias=False, dtype=torch.float64, generator=generator()
        )
        x = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
        drawn = layer(x)
        drawn.sum().backward()
        w = layer.weight.detach()
        deviation = (w**2 @ x[0] ** 2).sqrt()
        z = (drawn.detach() - w @ x[0]) / deviation
        expected = x + z * x**2 * w / deviation
        torch.testing.assert_close(layer.weight.grad, expected)

    def test_finite_at_zero(self):
        for value, weight in ((0.0, 1.0), (1.0, 0.0)):
            layer = filled(nn.GaussianDropoutLinear(3, 2, 0.5), weight=weight)
            x = torch.full((2, 3), value, requires_grad=True)
            layer(x).sum().backward()
            assert finite(layer.weight.grad, x.grad)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_types(self, dtype):
        """Squares of inputs of 300 overflow float16, and those of weights of 1e-4 vanish there."""
        layer = nn.GaussianDropoutLinear(64, 4, 0.5, bias=False, dtype=dtype, generator=generator())
        filled(layer, weight=1e-4)
        with torch.no_grad():
            drawn = layer(torch.full((4000, 64), 300.0, dtype=dtype))
        assert drawn.dtype == dtype
        # sqrt(64) * 300 * 1e-4
        assert drawn.double().std().item() == pytest.approx(0.24, rel=0.05)
        layer(torch.ones(2, 64, dtype=dtype)).sum().backward()
        assert finite(layer.weight.grad)
