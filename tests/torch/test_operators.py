"""The operators: which graphs hold them, what they compute, and when they are registered."""

import math
import os
from functools import partial

import pytest

from tests.child import output

torch = pytest.importorskip("torch")

import logunif_kl.torch as lt  # noqa: E402
from logunif_kl.torch import _backends, _kernels, _operators  # noqa: E402
from tests.torch.cases import weights  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("fresh_compiler"),
    pytest.mark.skipif(_kernels.library() is None, reason=str(_kernels.why_not())),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning"),
]
N = 40_000
OPERATORS = ["value", "value_sum", "gradient", "log_alpha_gradient"]


def leaves(n=N):
    return [x.requires_grad_() for x in weights(n)]


def total(mu, log_sigma2):
    return lt.kl_normal(mu, log_sigma2, reduction="sum")


class Graphs:
    """A backend that keeps the graphs of AOTAutograd."""

    def __init__(self, **options):
        self.found, self.options = [], options

    def __call__(self, graph, inputs):
        from torch._dynamo.backends.common import aot_autograd

        made = aot_autograd(fw_compiler=self.keep, bw_compiler=self.keep, **self.options)
        return made(graph, inputs)

    def keep(self, graph, inputs):
        from functorch.compile import make_boxed_func

        self.found.append(graph)
        return make_boxed_func(graph.forward)

    def operators(self):
        """The operators of this package in each graph."""
        named = [[str(node.target) for node in graph.graph.nodes] for graph in self.found]
        return [[n.split(".")[1] for n in names if "logunif_kl" in n] for names in named]


def both(function, arguments):
    value = function(*arguments)
    return [value, *torch.autograd.grad(value.sum(), arguments)]


def compare(got, expected):
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=8 * 2.0**-23, atol=1e-30)


def operators(function, *calls, **options):
    """Compile a function, compare its results, and return the operators in its graphs."""
    torch.compiler.reset()
    graphs = Graphs()
    compiled = torch.compile(function, fullgraph=True, backend=graphs, **options)
    for arguments in calls:
        compare(both(compiled, arguments), both(function, arguments))
    return graphs.operators()


class TestRecomputed:
    """On a GPU, the forward keeps nothing but its arguments: compiled here as if it were there."""

    @pytest.fixture(autouse=True)
    def as_on_a_gpu(self, monkeypatch):
        def limited(*tensors):
            return all(x.dtype is not torch.float64 for x in tensors)

        monkeypatch.setattr(_backends, "_limited_by_bandwidth", limited)
        monkeypatch.setattr(_operators, "takes", lambda *tensors: False)

    def kept(self, function, arguments, **options):
        """Compile as Inductor does, compare, and count the arrays that the forward computes."""
        from functorch.compile import min_cut_rematerialization_partition

        torch.compiler.reset()
        graphs = Graphs(partition_fn=min_cut_rematerialization_partition)
        compiled = torch.compile(function, fullgraph=True, backend=graphs, **options)
        got, expected = both(compiled, arguments), both(function, arguments)
        for a, b in zip(got, expected, strict=True):
            units = 8.0 if a.dtype is torch.float32 else 1.0
            eps = torch.finfo(a.dtype).eps
            torch.testing.assert_close(a, b, rtol=units * eps, atol=1e-30)
        forward, _ = graphs.found
        (outputs,) = forward.graph.output_node().args
        return sum(x.op != "placeholder" and x.meta["val"].ndim > 0 for x in outputs[1:])

    @pytest.mark.parametrize(
        ("name", "reduction", "dtype"),
        [
            ("kl", "sum", torch.float32),
            ("kl", "none", torch.bfloat16),
            ("neg_kl_normal", "sum", torch.float32),
            ("kl_normal", "none", torch.float32),
            ("kl_normal", "mean", torch.float16),
        ],
    )
    def test_nothing_is_kept(self, name, reduction, dtype):
        arguments = [x.requires_grad_() for x in weights(1000, dtype)]
        arguments = arguments if "normal" in name else arguments[1:]
        function = partial(getattr(lt, name), reduction=reduction)
        assert self.kept(function, arguments) == 0

    def test_dynamic_shapes(self):
        assert self.kept(lambda *x: 2.0 * total(*x), leaves(1000), dynamic=True) == 0

    def test_float64_is_computed_once(self):
        assert self.kept(total, [x.requires_grad_() for x in weights(1000, torch.float64)]) > 0

    def test_a_number_for_an_argument(self):
        mu, log_sigma2 = leaves(1000)
        assert self.kept(lambda m: total(m, -7.0), [mu]) == 0
        assert self.kept(total, [mu, torch.tensor(-7.0, requires_grad=True)]) == 0
        matrix = mu.detach().reshape(10, 100).requires_grad_()
        assert self.kept(total, [matrix, log_sigma2.detach()[:100].requires_grad_()]) == 0

    def test_within_a_checkpoint(self):
        from torch.utils.checkpoint import checkpoint

        def function(mu, log_sigma2):
            def inner(m, s):
                return total(torch.tanh(m), s)

            return checkpoint(inner, mu, log_sigma2, use_reentrant=False)

        assert self.kept(function, leaves(1000)) == 0


class TestGraphs:
    @pytest.mark.parametrize("name", ["kl", "neg_kl", "kl_normal", "neg_kl_normal"])
    @pytest.mark.parametrize("reduction", ["sum", "none", "mean"])
    def test_one_operator_each(self, name, reduction, capability):
        arguments, gradient = leaves(), "gradient"
        forward = ["value" if reduction == "none" else "value_sum"]
        if "normal" in name:
            capability(name, f"compile, float32, by operators of C, reduction={reduction}")
        else:
            arguments, gradient = arguments[1:], "log_alpha_gradient"
            forward = [] if reduction == "none" else forward
        function = partial(getattr(lt, name), reduction=reduction)
        assert operators(function, arguments) == [forward, [gradient]]

    @pytest.mark.parametrize(
        ("n", "dtype", "row"),
        [
            (_operators._LEAST - 1, torch.float32, "few elements"),
            (N, torch.float64, "float64"),
            (N, torch.bfloat16, "bfloat16"),
        ],
    )
    def test_fewer_elements_and_other_types_are_fused(self, n, dtype, row, capability):
        capability("kl_normal", f"compile, {row}, by the composite")
        graphs = Graphs()
        arguments = [x.requires_grad_() for x in weights(n, dtype)]
        both(torch.compile(total, fullgraph=True, backend=graphs), arguments)
        assert graphs.operators() == [[], []]

    def test_the_kind_of_each_argument(self):
        """A number, an expanded number, a row, a transposed matrix, a slice."""
        mu, log_sigma2 = (x.reshape(200, 200) for x in weights(N))
        number = torch.tensor(-7.0)
        cases = {
            "a float": (lambda m: total(m, -7.0), (mu,), True),
            "a number": (total, (mu, number), True),
            "an expanded number": (total, (mu, number.expand(200, 200)), True),
            "a number for mu": (total, (number, log_sigma2), True),
            "a row": (total, (mu, log_sigma2[:1]), False),
            "transposed": (total, (mu.T, log_sigma2.T), False),
            "a slice": (total, (mu[:, :199], log_sigma2[:, :199]), False),
        }
        for name, (function, arguments, taken) in cases.items():
            used = [x.detach().requires_grad_() for x in arguments]
            assert any(operators(function, used)) is taken, name

    def test_dynamic_shapes(self, capability):
        capability("kl_normal", "compile(dynamic=True), float32, by operators of C")
        calls = [leaves(n) for n in (N, N + 7, 3 * N, 100)]
        assert operators(total, *calls, dynamic=True) == [["value_sum"], ["gradient"]]

    @pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "hessian"])
    def test_transforms_inside(self, transform, capability):
        capability("kl_normal", f"compile({transform}), float32, many elements")
        from torch import func

        functions = {
            "grad": lambda m, s: func.grad(total)(m, s),
            "vmap": lambda m, s: func.vmap(lt.kl_normal)(m, s),
            "jvp": lambda m, s: func.jvp(total, (m, s), (m, s))[1],
            "hessian": lambda m, s: func.vmap(func.hessian(lt.kl_normal))(m, s),
        }
        graphs = Graphs()
        got = torch.compile(functions[transform], fullgraph=True, backend=graphs)(*weights(N))
        expected = functions[transform](*weights(N))
        error = (got - expected).abs().max()
        assert error <= 64 * 2.0**-23 * expected.abs().max()
        assert graphs.found

    def test_checkpointing(self, capability):
        capability("kl_normal", "compile(checkpoint), by operators of C")
        from torch.utils.checkpoint import checkpoint

        def function(mu, log_sigma2):
            return checkpoint(total, mu * 1.5, log_sigma2, use_reentrant=False)

        assert any(operators(function, leaves()))


class Module(torch.nn.Module):
    def forward(self, mu, log_sigma2):
        return total(mu, log_sigma2)


@pytest.mark.parametrize("strict", [True, False])
def test_an_export_holds_plain_operations(strict, capability):
    capability("kl_normal", f"export(strict={strict}), float32, by the composite")
    arguments = weights(N)
    program = torch.export.export(Module(), arguments, strict=strict)
    for each in (program, program.run_decompositions()):
        targets = {str(node.target) for node in each.graph.nodes if node.op == "call_function"}
        assert all(name.startswith("aten.") for name in targets)
    torch.testing.assert_close(program.module()(*arguments), total(*arguments), rtol=1e-6, atol=0)


@pytest.mark.slow
class TestInductor:
    @pytest.mark.parametrize("dynamic", [False, True])
    @pytest.mark.parametrize("wrapper", ["python", "cpp"])
    def test_value_and_backward(self, wrapper, dynamic, capability):
        capability("kl_normal", f"compile, inductor, {wrapper} wrapper, by operators of C")
        from torch._inductor import config

        arguments = leaves()
        with config.patch(cpp_wrapper=wrapper == "cpp"):
            compiled = torch.compile(total, fullgraph=True, dynamic=dynamic)
            compare(both(compiled, arguments), both(total, arguments))

    def test_ahead_of_time(self, tmp_path, capability):
        capability("kl_normal", "export, AOTInductor, by the composite")
        arguments = weights(N)
        program = torch.export.export(Module(), arguments)
        path = torch._inductor.aoti_compile_and_package(
            program, package_path=str(tmp_path / "model.pt2")
        )
        got = torch._inductor.aoti_load_package(path)(*arguments)
        torch.testing.assert_close(got, total(*arguments), rtol=1e-6, atol=0)

    def test_the_cache_of_another_process(self, tmp_path, capability):
        capability("kl_normal", "compile, inductor, the cache of another process")
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
        first, first_hits = output(CACHED, env=environment).split()
        second, second_hits = output(CACHED, env=environment).split()
        assert first == second
        assert int(first_hits) == 0
        assert int(second_hits) > 0


CACHED = """
import torch
import logunif_kl.torch as lt
from torch._dynamo.utils import counters
mu = torch.linspace(-1, 1, 40_000, requires_grad=True)
log_sigma2 = torch.linspace(-9, 1, 40_000)
function = torch.compile(lambda m, s: lt.kl_normal(m, s, reduction="sum"), fullgraph=True)
(slope,) = torch.autograd.grad(function(mu, log_sigma2), [mu])
print(slope.double().sum().item().hex(), counters["inductor"]["fxgraph_cache_hit"])
"""


class TestOperators:
    def arguments(self, name, n=100):
        return [torch.linspace(-1, 1, n), *weights(n)][0 if name == "gradient" else 1 :]

    @pytest.mark.parametrize("name", OPERATORS)
    def test_opcheck(self, name):
        operator = getattr(_operators.registered(), name).default
        plain = self.arguments(name)
        torch.library.opcheck(operator, tuple(plain))
        for i in range(len(plain)):
            with_a_number = [torch.tensor(0.5) if i == j else x for j, x in enumerate(plain)]
            torch.library.opcheck(operator, tuple(with_a_number))


LATE = """
import sys
import logunif_kl as lk
assert "torch" not in sys.modules and "logunif_kl.torch._library" not in sys.modules
lk.neg_kl(0.0), lk.show_config("dict")
assert "torch" not in sys.modules
import torch
import logunif_kl.torch as lt
assert "logunif_kl.torch._library" not in sys.modules

def there():
    return "logunif_kl::value" in torch._C._dispatch_get_all_op_names()

mu = torch.ones(3, requires_grad=True)
lt.neg_kl_normal(mu, -8.0, reduction="sum").backward()
assert not there()
torch.compile(lambda x: lt.neg_kl_normal(x, -8.0), backend="eager")(mu)
assert there()
print("done")
"""


def test_nothing_is_registered_early():
    assert output(LATE) == "done\n"


WITHOUT = """
import sys, torch
import logunif_kl as lk
import logunif_kl.torch as lt
from logunif_kl.torch import _kernels

class Refused:
    def __getattr__(self, name):
        return getattr(extension, name)
    def register_operators(self):
        raise RuntimeError("another interface")

missing = sys.argv[1]
if missing == "extension":
    sys.modules["logunif_kl.torch._library"] = None
elif missing == "name":
    _kernels._addresses = lambda names: ((), ["torch_parallel_for"])
else:
    extension, why = _kernels._connected()
    _kernels._connected = lambda: (Refused(), why)

def function(m, s):
    return lt.kl_normal(m, s, reduction="sum")

compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
for dtype in (torch.float64, torch.float32):
    mu = torch.linspace(-1, 1, 40_000).to(dtype).requires_grad_()
    log_sigma2 = torch.linspace(-9, 1, 40_000).to(dtype)
    slopes = [torch.autograd.grad(f(mu, log_sigma2), mu)[0] for f in (function, compiled)]
    torch.testing.assert_close(*slopes, rtol=1e-6, atol=0)
assert _kernels.library() is None and not hasattr(torch.ops.logunif_kl, "value")
print(slopes[0].double().sum().item(), lk.show_config("dict")["frameworks"]["torch"], sep="|")
"""


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("extension", "cannot be loaded"),
        pytest.param("name", "lacks torch_parallel_for", marks=pytest.mark.slow),
        pytest.param(
            "registration", "refused the operators: another interface)", marks=pytest.mark.slow
        ),
    ],
)
def test_without_them(missing, said, capability):
    """What is absent costs speed only, and `show_config` says why."""
    if missing != "registration":
        row = f"compile and eager, float32, without the {missing} of the operators"
        capability("kl_normal", row)
    found, why = output(WITHOUT, missing).strip().split("|")
    assert "plain operations (" in why
    assert said in why
    mu = torch.linspace(-1, 1, 40_000, requires_grad=True)
    (slope,) = torch.autograd.grad(total(mu, torch.linspace(-9, 1, 40_000)), [mu])
    assert math.isclose(float(found), slope.double().sum().item(), rel_tol=1e-6)


def test_the_fused_operation_is_for_the_cpu():
    """In the graphs of other devices there are plain operations alone."""
    for device, fused in (("cpu", True), ("meta", False)):
        torch.compiler.reset()
        graphs = Graphs()
        arguments = [torch.ones(100, device=device) for _ in range(2)]
        torch.compile(lt.kl_normal, fullgraph=True, backend=graphs)(*arguments)
        names = [str(node.target) for graph in graphs.found for node in graph.graph.nodes]
        assert any("prims.fma" in name for name in names) is fused, device
