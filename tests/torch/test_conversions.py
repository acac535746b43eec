"""`logunif_kl.log_alpha` on tensors of PyTorch."""

import numpy as np
import pytest

import logunif_kl as lk
from tests.conversions import CASES, Conversions, function

torch = pytest.importorskip("torch")
la = lk.log_alpha


class TestConversions(Conversions):
    def evaluate(self, f, x):
        t = torch.tensor(x, requires_grad=True)
        y = f(t)
        (slope,) = torch.autograd.grad(y.sum(), t)
        return y.detach().numpy(), slope.numpy()

    def cast(self, x, dtype):
        return torch.as_tensor(x).to(getattr(torch, dtype))

    @pytest.mark.parametrize("name", CASES)
    def test_transforms(self, name):
        f = function(name)
        x = torch.tensor([0.1, 0.3, 0.7])
        slope = torch.func.vmap(torch.func.grad(f))(x)
        assert torch.equal(slope, torch.tensor(self.evaluate(f, x.numpy())[1]))
        assert torch.autograd.gradgradcheck(f, x.double().requires_grad_())


def test_compiles_whole():
    def rate(mu, log_sigma2):
        return la.to_dropout_rate(la.from_normal(mu, log_sigma2))

    given = torch.randn(100), torch.randn(100)
    compiled = torch.compile(rate, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*given), rate(*given))


def test_arguments_are_named():
    with pytest.raises(TypeError, match=r"^p must hold real numbers of 16 to 64 bits, but a "):
        la.from_dropout_rate(torch.tensor([True]))
    with pytest.raises(TypeError, match=r"^log_alpha of type torch.Tensor and mu of type numpy"):
        la.to_log_sigma2(torch.zeros(2), np.zeros(2))
    with pytest.raises(TypeError, match=r"^mu must be a torch.Tensor or a real number, but None"):
        la.to_log_sigma2(torch.zeros(2), None)
