"""The operators: which graphs hold them, what they compute, and when they are registered."""

import math
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import logunif_kl.torch as lt  # noqa: E402
from logunif_kl.torch import _kernels, _operators  # noqa: E402
from tests.torch.test_cpu import weights  # noqa: E402

pytestmark = [
    pytest.mark.skipif(_kernels.library() is None, reason=str(_kernels.why_not())),
    # torch's own, from the decompositions that its forward mode imports, and in its compiler.
    pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning"),
]
N = 40_000
NAMES = ("value", "value_sum", "gradient")


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def leaves(n=N):
    return [x.requires_grad_() for x in weights(n)]


def total(mu, log_sigma2):
    return lt.kl_normal(mu, log_sigma2, reduction="sum")


class Graphs:
    """A backend that keeps the graphs of AOTAutograd."""

    def __init__(self):
        self.found = []

    def __call__(self, graph, inputs):
        from torch._dynamo.backends.common import aot_autograd

        return aot_autograd(fw_compiler=self.keep, bw_compiler=self.keep)(graph, inputs)

    def keep(self, graph, inputs):
        from functorch.compile import make_boxed_func

        self.found.append(graph)
        return make_boxed_func(graph.forward)

    def operators(self):
        """The operators of this package in each graph."""
        return [
            [
                node.target.name().partition("::")[2]
                for node in graph.graph.nodes
                if "logunif_kl" in str(node.target)
            ]
            for graph in self.found
        ]


def both(function, arguments):
    value = function(*arguments)
    return [value, *torch.autograd.grad(value.sum(), arguments)]


def compare(got, expected):
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=8 * 2.0**-23, atol=1e-30)


class TestGraphs:
    @pytest.mark.parametrize(
        ("reduction", "forward"), [("sum", "value_sum"), ("none", "value"), ("mean", "value_sum")]
    )
    @pytest.mark.parametrize("name", ["kl_normal", "neg_kl_normal"])
    def test_one_operator_each(self, name, reduction, forward, capability):
        capability(name, f"compile, float32, by operators of C, reduction={reduction}")
        graphs = Graphs()

        def function(mu, log_sigma2):
            return getattr(lt, name)(mu, log_sigma2, reduction=reduction)

        arguments = leaves()
        found = both(torch.compile(function, fullgraph=True, backend=graphs), arguments)
        assert graphs.operators() == [[forward], ["gradient"]]
        compare(found, both(function, arguments))

    def test_fewer_elements_are_fused(self, capability):
        capability("kl_normal", "compile, few elements, by the composite")
        graphs = Graphs()
        arguments = leaves(_operators._LEAST - 1)
        both(torch.compile(total, fullgraph=True, backend=graphs), arguments)
        assert graphs.operators() == [[], []]

    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
    def test_other_types_are_fused(self, dtype, capability):
        capability("kl_normal", f"compile, {str(dtype).removeprefix('torch.')}, by the composite")
        graphs = Graphs()
        arguments = [x.detach().to(dtype).requires_grad_() for x in leaves()]
        both(torch.compile(total, fullgraph=True, backend=graphs), arguments)
        assert graphs.operators() == [[], []]

    def test_the_kind_of_each_argument(self):
        """A number, an expanded number, a row, a transposed matrix, a slice."""
        mu, log_sigma2 = (x.detach().reshape(200, 200) for x in leaves())
        number = torch.tensor(-7.0)
        cases = {
            "a float": (lambda m, s: total(m, -7.0), (mu, log_sigma2), True),
            "a number": (total, (mu, number), True),
            "an expanded number": (total, (mu, number.expand(200, 200)), True),
            "a number for mu": (total, (number, log_sigma2), True),
            "a row": (total, (mu, log_sigma2[:1]), False),
            "transposed": (total, (mu.T, log_sigma2.T), False),
            "a slice": (total, (mu[:, :199], log_sigma2[:, :199]), False),
        }
        for name, (function, arguments, taken) in cases.items():
            torch.compiler.reset()
            graphs = Graphs()
            used = [x.detach().requires_grad_() for x in arguments]
            compiled = torch.compile(function, fullgraph=True, backend=graphs)
            wanted = used[:1] if name == "a float" else used
            value = compiled(*used)
            got = [value, *torch.autograd.grad(value, wanted)]
            value = function(*used)
            compare(got, [value, *torch.autograd.grad(value, wanted)])
            assert any(graphs.operators()) is taken, name

    def test_dynamic_shapes(self, capability):
        capability("kl_normal", "compile(dynamic=True), float32, by operators of C")
        graphs = Graphs()
        compiled = torch.compile(total, fullgraph=True, dynamic=True, backend=graphs)
        for n in (N, N + 7, 3 * N, 100):
            arguments = leaves(n)
            compare(both(compiled, arguments), both(total, arguments))
        assert graphs.operators() == [["value_sum"], ["gradient"]]

    @pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "hessian"])
    def test_transforms_inside(self, transform, capability):
        capability("kl_normal", f"compile({transform}), float32, many elements")
        from torch import func

        mu, log_sigma2 = (x.detach() for x in leaves())
        functions = {
            "grad": lambda m, s: func.grad(total)(m, s),
            "vmap": lambda m, s: func.vmap(lt.kl_normal)(m, s),
            "jvp": lambda m, s: func.jvp(total, (m, s), (m, s))[1],
            "hessian": lambda m, s: func.vmap(func.hessian(lt.kl_normal))(m, s),
        }
        function = functions[transform]
        graphs = Graphs()
        got = torch.compile(function, fullgraph=True, backend=graphs)(mu, log_sigma2)
        expected = function(mu, log_sigma2)
        error = (got - expected).abs().max()
        assert error <= 64 * 2.0**-23 * expected.abs().max()
        assert graphs.found

    def test_checkpointing(self, capability):
        capability("kl_normal", "compile(checkpoint), by operators of C")
        from torch.utils.checkpoint import checkpoint

        def function(mu, log_sigma2):
            return checkpoint(total, mu * 1.5, log_sigma2, use_reentrant=False)

        arguments = leaves()
        graphs = Graphs()
        compiled = torch.compile(function, fullgraph=True, backend=graphs)
        compare(both(compiled, arguments), both(function, arguments))
        assert any(graphs.operators())


class Module(torch.nn.Module):
    def forward(self, mu, log_sigma2):
        return total(mu, log_sigma2)


@pytest.mark.parametrize("strict", [True, False])
def test_an_export_holds_plain_operations(strict, capability):
    capability("kl_normal", f"export(strict={strict}), float32, by the composite")
    arguments = tuple(x.detach() for x in leaves())
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
        arguments = tuple(x.detach() for x in leaves())
        program = torch.export.export(Module(), arguments)
        path = torch._inductor.aoti_compile_and_package(
            program, package_path=str(tmp_path / "model.pt2")
        )
        got = torch._inductor.aoti_load_package(path)(*arguments)
        torch.testing.assert_close(got, total(*arguments), rtol=1e-6, atol=0)

    def test_the_cache_of_another_process(self, tmp_path, capability):
        capability("kl_normal", "compile, inductor, the cache of another process")
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
        found = [
            subprocess.run(
                [sys.executable, "-c", CACHED],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            for _ in range(2)
        ]
        (first, first_hits), (second, second_hits) = found
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
    def arguments(self, n=100):
        mu, log_sigma2 = weights(n)
        return {
            "value": (mu, log_sigma2),
            "value_sum": (mu, log_sigma2),
            "gradient": (torch.linspace(-1, 1, n), mu, log_sigma2),
        }

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("number", ["", "mu", "log_sigma2", "factor"])
    def test_opcheck(self, name, number):
        arguments = list(self.arguments()[name])
        places = {"mu": -2, "log_sigma2": -1, "factor": 0}
        if number:
            arguments[places[number]] = torch.tensor(0.5)
        if number == "factor" and name != "gradient":
            return
        operator = getattr(_operators.registered(), name).default
        torch.library.opcheck(operator, tuple(arguments))

    @pytest.mark.parametrize("n", [0, 1, 5, 1023, 1024, 1025, 100_001])
    def test_it_is_the_eager_kernel(self, n):
        from logunif_kl.torch._cpu_float32 import CpuFloat32

        for name, arguments in self.arguments(n).items():
            got = getattr(_operators.registered(), name)(*arguments)
            expected = getattr(CpuFloat32(), name)(*arguments)
            for a, b in zip(
                got if name == "gradient" else [got],
                expected if name == "gradient" else [expected],
                strict=True,
            ):
                assert torch.equal(a, b)

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (lambda mu: mu.double(), "contiguous CPU tensors of float32"),
            (lambda mu: mu[::2], "contiguous CPU tensors of float32"),
            (lambda mu: mu[:50], "of one shape"),
        ],
    )
    def test_what_is_refused(self, wrong, said):
        mu, log_sigma2 = weights(100)
        with pytest.raises(RuntimeError, match=said):
            _operators.registered().value(wrong(mu), log_sigma2)


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
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


WITHOUT = """
import ctypes, sys, torch
import logunif_kl.torch as lt
from logunif_kl.torch import _kernels
if sys.argv[1] == "extension":
    sys.modules["logunif_kl.torch._library"] = None
else:
    found = _kernels._addresses
    _kernels._addresses = lambda names: ((), ["torch_parallel_for"])
mu = torch.linspace(-1, 1, 40_000, requires_grad=True)
log_sigma2 = torch.linspace(-9, 1, 40_000)
def function(m, s):
    return lt.kl_normal(m, s, reduction="sum")
(slope,) = torch.autograd.grad(function(mu, log_sigma2), [mu])
assert _kernels.library() is None and _kernels.why_not(), _kernels.why_not()
compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
(other,) = torch.autograd.grad(compiled(mu, log_sigma2), [mu])
torch.testing.assert_close(slope, other, rtol=1e-6, atol=0)
print(slope.double().sum().item(), _kernels.why_not(), sep="|")
"""


@pytest.mark.parametrize(
    ("missing", "said"), [("extension", "cannot be loaded"), ("name", "lacks torch_parallel_for")]
)
def test_without_them(missing, said, capability):
    """What is absent costs speed only."""
    capability("kl_normal", f"compile and eager, float32, without the {missing} of the operators")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, missing], capture_output=True, text=True, check=False
    )
    found, why = done.stdout.strip().split("|")
    assert said in why
    mu = torch.linspace(-1, 1, 40_000, requires_grad=True)
    (slope,) = torch.autograd.grad(total(mu, torch.linspace(-9, 1, 40_000)), [mu])
    assert math.isclose(float(found), slope.double().sum().item(), rel_tol=1e-6)


@pytest.mark.parametrize("number", [None, "mu", "log_sigma2"])
def test_results_do_not_depend_on_the_threads(number):
    arguments = dict(zip(("mu", "log_sigma2"), weights(7 * 32768 + 5), strict=True))
    if number:
        arguments[number] = torch.tensor(0.75)
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            # Not the gradient in the number, which PyTorch adds up.
            used = [x.clone().requires_grad_(x.ndim > 0) for x in arguments.values()]
            wanted = [x for x in used if x.requires_grad]
            value = total(*used)
            slopes = torch.autograd.grad(value, wanted)
            found.append([value, *slopes, lt.kl_normal(*used).detach()])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


REFUSED = """
import torch
import logunif_kl as lk
import logunif_kl.torch as lt
from logunif_kl.torch import _kernels

class Extension:
    def __init__(self, of):
        self._of = of
    def __getattr__(self, name):
        return getattr(self._of, name)
    def register_operators(self):
        raise RuntimeError("another interface")

extension, why = _kernels._connected()
_kernels._connected = lambda: (Extension(extension), why)
mu = torch.linspace(-3, 3, 40_000)
for dtype in (torch.float32, torch.float64):
    compiled = torch.compile(lambda x: lt.kl_normal(x, x, reduction="sum"), backend="aot_eager")
    x = mu.to(dtype)
    torch.testing.assert_close(compiled(x), lt.kl_normal(x, x, reduction="sum"), rtol=1e-6, atol=0)
assert not hasattr(torch.ops.logunif_kl, "value")
print(lk.show_config("dict")["frameworks"]["torch"])
"""


def test_refused_by_pytorch():
    """Every function still compiles, and `show_config` says what was refused."""
    done = subprocess.run(
        [sys.executable, "-c", REFUSED], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "plain operations (PyTorch " in done.stdout
    assert "refused the operators: another interface)" in done.stdout


def test_the_fused_operation_is_for_the_cpu():
    """In the graphs of other devices there are plain operations alone."""
    for device, fused in (("cpu", True), ("meta", False)):
        torch.compiler.reset()
        graphs = Graphs()
        arguments = [torch.ones(100, device=device) for _ in range(2)]
        torch.compile(lt.kl_normal, fullgraph=True, backend=graphs)(*arguments)
        names = [str(node.target) for graph in graphs.found for node in graph.graph.nodes]
        assert any("prims.fma" in name for name in names) is fused, device
