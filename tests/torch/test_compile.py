"""What torch.compile and torch.export make of the functions: one graph, and the right rules."""

import numpy as np
import pytest

from tests.child import output

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
import logunif_kl.torch as lt  # noqa: E402
import logunif_kl.torch.isotropic  # noqa: E402
from logunif_kl import _arguments  # noqa: E402
from tests.torch.cases import by_name, main  # noqa: E402
from tests.torch.rows import TRANSFORMS, value  # noqa: E402
from tests.torch.test_transforms import compare  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_compiler")


ROWS = {"value": value, **TRANSFORMS}
# Compiling these takes more than half of the time; eager mode has them by default.
SLOW = [row for row in ROWS if "(" in row or row in ("hessian", "jvp")]


def compiled(function, backend="aot_eager", **options):
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def slopes(function, arguments):
    """Value and backward of the sum, the forward in the compiler's hands."""
    leaves = [a.requires_grad_() for a in arguments]
    value = function(*leaves)
    orders = [(0,), (1,)] if len(leaves) == 1 else [(0, 0), (1, 0), (0, 1)]
    found = value, *torch.autograd.grad(value.sum(), leaves)
    return dict(zip(orders, found, strict=True))


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("shape", [(3,), ()], ids=str)
@pytest.mark.parametrize("other", [torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_two_types(other, shape, autocast):
    given = torch.full((3,), 0.5), torch.ones(shape, dtype=other)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        got, truth = compiled(lk.kl_normal)(*given), lk.kl_normal(*given)
    # assert_close compares the types too.
    torch.testing.assert_close(got, truth, rtol=1e-6, atol=0.0)
    assert got.dtype == (torch.float64 if other is torch.float64 and shape else torch.float32)


class TestRules:
    """With a wrong derivative in every forward."""

    @by_name
    def test_value_and_backward(self, case, capability, wrong_arithmetic):
        """Of the function of `logunif_kl`, which finds that of `logunif_kl.torch`."""
        capability(case.name, "compile(value + backward)")
        found = slopes(compiled(lambda *x: getattr(lk, case.name)(*x)), case.arguments())
        compare(case, found, torch.float64)

    @main
    @pytest.mark.parametrize(
        "row", [pytest.param(r, marks=[pytest.mark.slow] if r in SLOW else []) for r in ROWS]
    )
    def test_transforms(self, case, row, capability, wrong_arithmetic):
        capability(case.name, f"compile({row})")
        found = compiled(lambda *x: ROWS[row](case.function, list(x)))(*case.arguments())
        compare(case, found, torch.float64)


class TestInductor:
    @pytest.mark.slow
    @main
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
    def test_value_and_backward(self, case, dtype, capability):
        for row in ("value", "value + backward"):
            capability(case.name, f"compile({row}), inductor")
        function = compiled(lambda *x: case.function(*x), "inductor")
        compare(case, value(function, case.arguments(dtype)), dtype)
        compare(case, slopes(function, case.arguments(dtype)), dtype)

    def test_integers_under_vmap(self):
        """The compiler rounds them to float32 there, which the arithmetic must not notice."""
        mu = torch.linspace(-3.0, 3.0, 1000)
        log_sigma2 = torch.linspace(-25.0, 10.0, 1000).flip(0)
        found = torch.compile(torch.func.vmap(lt.kl_normal), backend="inductor")(mu, log_sigma2)
        expected = lt.kl_normal(mu, log_sigma2)
        ulp = torch.from_numpy(np.spacing(expected.numpy()))
        assert bool(((found - expected).abs() <= 4 * ulp).all())


class TestGraphs:
    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    @main
    def test_reductions(self, case, reduction, capability):
        capability(case.name, f"compile, reduction={reduction}")

        def function(*x):
            return case.function(*x, zero_at=1.0, reduction=reduction)

        expected, got = function(*case.arguments()), compiled(function)(*case.arguments())
        torch.testing.assert_close(got, expected, rtol=1e-14, atol=0)

    @main
    def test_dynamic_shapes(self, case, capability, wrong_arithmetic):
        capability(case.name, "compile(dynamic=True)")
        made = []

        def backend(graph, inputs):
            made.append(graph)
            return graph.forward

        function = compiled(lambda *x: case.function(*x), backend, dynamic=True)
        full = slopes(case.function, case.arguments())
        for n in (7, 5, 3):
            found = slopes(function, [a[:n].clone() for a in case.arguments()])
            for orders, tensor in found.items():
                assert torch.equal(tensor, full[orders][:n])
        assert len(made) == 1

    @main
    def test_export(self, case, capability):
        capability(case.name, "export")

        class Module(torch.nn.Module):
            def forward(self, *x):
                return case.function(*x)

        arguments = tuple(case.arguments())
        size = torch.export.Dim("size", min=2, max=100)
        shapes = (tuple({0: size} for _ in arguments),)
        program = torch.export.export(Module(), arguments, dynamic_shapes=shapes)
        shorter = [a[:4] for a in arguments]
        got, expected = program.module()(*shorter), case.function(*shorter)
        torch.testing.assert_close(got, expected, rtol=1e-14, atol=0)
        operators = {str(node.target) for node in program.graph.nodes}
        assert any("aten.exp" in name for name in operators)
        assert not any("logunif" in name for name in operators)


CHECK = """
import sys, torch, logunif_kl, logunif_kl.torch
w = torch.randn(5, requires_grad=True)
for module in (logunif_kl, logunif_kl.torch):
    module.neg_kl_normal(w, torch.full((5,), -8.0)).sum().backward()
print("torch._dynamo" in sys.modules)
torch.compile(lambda x: module.neg_kl(x), fullgraph=True, backend="eager")(w)
print("torch._dynamo" in sys.modules)
"""


def test_the_compiler_is_not_imported():
    assert output(CHECK).split() == ["False", "True"]


def test_parameters_that_are_compiled_before_anything_else(monkeypatch):
    """The search for the kind of an argument cannot be traced, and its finds are kept."""
    monkeypatch.setattr(_arguments, "_kinds", {})
    w = torch.nn.Parameter(torch.linspace(-1.0, 1.0, 5))
    for function in (lt.kl_normal, lt.isotropic.kl_complex_normal):
        compiled = torch.compile(lambda f=function: f(w, w), fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(), function(w, w))
