"""Formulas of papers and fits over tensors: values, and their derivatives in every transform."""

import numpy as np
import pytest

import logunif_kl as lk
from tests.methods import formulas

torch = pytest.importorskip("torch")

WAYS = {
    "eager": lambda f, x: torch.autograd.grad(f(x).sum(), x)[0],
    "compiled": lambda f, x: torch.autograd.grad(
        torch.compile(f, backend="aot_eager", fullgraph=True)(x).sum(), x
    )[0],
    "vmapped": lambda f, x: torch.func.vmap(torch.func.grad(f))(x),
    "forward": lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1],
}


@pytest.mark.parametrize("name", formulas.NAMES)
def test_values_and_derivatives(name):
    value, slope, x = formulas.of(name)
    at = torch.tensor(x, requires_grad=True)
    formulas.check(value(at).detach(), value(x), 1.0)
    assert value(at.float()).dtype == torch.float32
    for way, derivative in WAYS.items():
        if name in formulas.CLOSED or way == "eager":
            formulas.check(
                derivative(value, at).detach(), slope(x), 6.0 if "cubic" in name else 4.0
            )


@pytest.mark.parametrize("name", formulas.CLOSED)
def test_second_derivatives(name):
    _, slope, _ = formulas.of(name)
    value, x = formulas.of(name)[0], torch.tensor([-3.0, -1.0], dtype=torch.float64)
    got = torch.func.vmap(torch.func.hessian(value))(x)
    h = 1e-5
    np.testing.assert_allclose(got, (slope(x + h) - slope(x - h)).numpy() / (2 * h), atol=1e-8)


def test_those_on_the_host_say_so():
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    words = "this method computes on the CPU with NumPy"
    with pytest.raises(
        NotImplementedError, match=f"^{words}: call it outside of torch.compile and"
    ):
        torch.func.vmap(lk.methods.series)(x)
    first = torch.func.grad(lk.methods.quadrature)
    with pytest.raises(NotImplementedError, match=f"^{words}, and has a first derivative only"):
        torch.func.grad(first)(x[0])
    for function in (lk.methods.monte_carlo, lambda x: lk.methods.quadrature(x, return_error=True)):
        with pytest.raises(
            TypeError, match=r"^log_alpha is of type .* does not support torch: pas"
        ):
            function(x)
