"""-KL of complex weights and of groups of weights, of tensors."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

import logunif_kl as lk  # noqa: E402
from logunif_kl.torch import _isotropic, isotropic  # noqa: E402
from tests.isotropic.frameworks import Framework  # noqa: E402

OF_LOG_ALPHA = {
    "complex": lk.neg_kl_complex,
    "grad": lk.neg_kl_complex_grad,
    "hess": lk.neg_kl_complex_hess,
    "vector": lambda x: lk.neg_kl_vector(x, 3.5),
    "vector_grad": lambda x: lk.neg_kl_vector_grad(x, 3.5),
}


def normal(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", OF_LOG_ALPHA)
def test_values_are_those_of_numpy(name, dtype):
    x = torch.linspace(-6.0, 6.0, 25).to(getattr(torch, dtype))
    found = OF_LOG_ALPHA[name](x)
    assert found.dtype == x.dtype
    expected = OF_LOG_ALPHA[name](x.double().numpy())
    if dtype == "float64":
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-15)
    else:
        assert torch.equal(found, torch.tensor(expected).to(x.dtype))


def test_moduli_and_numbers():
    mu, s = torch.tensor([0.6 + 0.8j, 3.0]), torch.tensor([0.3, -0.2])
    expected = lk.neg_kl_complex_normal(mu, s)
    torch.testing.assert_close(lk.neg_kl_complex_normal(mu.abs(), s), expected)
    assert lk.neg_kl_complex_normal(mu, 0.0).dtype == torch.float32
    assert lk.neg_kl_complex_normal(1j, s).shape == (2,)
    assert lk.neg_kl_complex_normal(mu[:, None], s).shape == (2, 2)
    assert lk.neg_kl_complex_normal(mu, s.double()).dtype == torch.float64
    both = lk.neg_kl_complex_normal(mu, s, reduction="sum", zero_at=2.0)
    torch.testing.assert_close(both, (expected + lk.kl_complex(np.log(2.0))).sum())
    assert torch.equal(lk.kl_complex_normal(mu, s), -expected)
    half = lk.neg_kl_complex(s.half(), log_c=0.5, reduction="mean")
    assert half.dtype == torch.float16
    found = lk.neg_kl_vector(s.double(), 3, log_c=0.5)
    np.testing.assert_allclose(found.numpy(), lk.neg_kl_vector(s.double().numpy(), 3, log_c=0.5))


@pytest.mark.parametrize("name", OF_LOG_ALPHA)
def test_derivatives_in_log_alpha(name):
    x = (normal(4, 3) * 3).requires_grad_()
    assert gradcheck(OF_LOG_ALPHA[name], x, check_forward_ad=True)
    assert gradgradcheck(OF_LOG_ALPHA[name], x, check_fwd_over_rev=True)


def test_the_rule_is_the_function_of_the_next_order():
    """Not the derivative of the arithmetic, which loses digits."""
    x = torch.linspace(-6.0, 30.0, 20, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(lk.neg_kl_complex(x).sum(), x, create_graph=True)
    assert torch.equal(grad, lk.neg_kl_complex_grad(x))
    (hess,) = torch.autograd.grad(grad.sum(), x)
    assert torch.equal(hess, lk.neg_kl_complex_hess(x))


def test_derivatives_from_mean_and_variance():
    mu = torch.complex(normal(5, 5), normal(6, 5)).requires_grad_()
    s = normal(7, 5).requires_grad_()
    assert gradcheck(lk.neg_kl_complex_normal, (mu, s), check_forward_ad=True)
    assert gradgradcheck(lk.neg_kl_complex_normal, (mu, s), check_fwd_over_rev=True)

    def gradient(*arguments):
        value = _isotropic._normal(*arguments)
        return torch.autograd.grad(value.sum(), arguments, create_graph=True)

    arguments = tuple(normal(seed, 2).requires_grad_() for seed in (8, 9, 10))
    assert gradgradcheck(gradient, arguments)


class TestFramework(Framework):
    kernel = "torch"
    array = staticmethod(torch.tensor)

    def most_ulps(self, dtype):
        return 2.0 if dtype == "float64" else 1.0

    def derivatives(self, *parts):
        re, im, s = (torch.tensor(part, requires_grad=True) for part in parts)
        value = lk.neg_kl_complex_normal(torch.complex(re, im), s)
        found = torch.autograd.grad(value.sum(), (re, im, s))
        return [each.detach().numpy() for each in (value, *found)]

    def hessians(self, point):
        point = torch.tensor(point)
        rows = _isotropic._OfNormal().slopes(_isotropic._SLOPES, point, (True, True, True))
        found = np.array([[float(x) for x in row] for row in rows])
        yield found
        if not np.isinf(found).any():
            yield torch.func.hessian(of_complex_mean)(point).numpy()


def of_complex_mean(point):
    return isotropic.neg_kl_complex_normal(torch.complex(point[0], point[1]), point[2])


def test_the_third_derivatives_of_a_silent_weight():
    mu, s = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.0, -600.0))
    for order in range(1, 4):
        value = isotropic.neg_kl_complex_normal(mu, s)
        for _ in range(order):
            (value,) = torch.autograd.grad(value, mu, create_graph=True)
        expected = 0.0 if order % 2 else -2.0 * math.exp(600.0)
        assert value.item() == pytest.approx(expected, rel=2.0**-51)  # a few factors


def test_transforms():
    x, m, s = normal(11, 6), normal(12, 6), normal(13, 6)
    leaf = m.clone().requires_grad_()
    (slope,) = torch.autograd.grad(lk.neg_kl_complex_normal(leaf, s).sum(), leaf)
    for function, given, expected in (
        (lk.neg_kl_complex, (x,), lk.neg_kl_complex_grad(x)),
        (lambda x: lk.neg_kl_vector(x, 3), (x,), lk.neg_kl_vector_grad(x, 3)),
        (isotropic.neg_kl_complex_normal, (m, s), slope),
    ):
        mapped = torch.func.vmap(torch.func.grad(function))(*given)
        torch.testing.assert_close(mapped, expected)


def test_compiled():
    """Traced as a whole, forward and backward; a compiler of C++ takes a minute."""

    def loss(log_alpha, mu, s):
        first = lk.neg_kl_complex(log_alpha, zero_at=1.0).sum()
        return first + lk.neg_kl_vector(log_alpha, 3).sum() + lk.neg_kl_complex_normal(mu, s).sum()

    arguments = [normal(14, 6), torch.complex(normal(15, 6), normal(16, 6)), normal(17, 6)]
    found = []
    for function in (loss, torch.compile(loss, backend="aot_eager", fullgraph=True)):
        leaves = [a.clone().requires_grad_() for a in arguments]
        value = function(*leaves)
        found.append((value, *torch.autograd.grad(value, leaves)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
