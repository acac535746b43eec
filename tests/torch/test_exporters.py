"""What ONNX, torch.jit and torch.fx make of the functions and layers."""

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
import logunif_kl.torch as lt  # noqa: E402
from logunif_kl.torch import _namespace, isotropic, nn  # noqa: E402
from tests.torch.cases import by_name  # noqa: E402

OF_LOG_ALPHA = ["kl", "neg_kl", "neg_kl_grad", "neg_kl_hess"]
OF_NORMAL = ["kl_normal", "neg_kl_normal"]
EXTREMES = [0.0, -0.0, 5e-324, -1e-310, 1e-40, 1e300, -1e300, np.inf, -np.inf, np.nan]
# These add terms of opposite signs, and onnxruntime's exp and log differ from PyTorch's.
CANCELLING = ("from_normal", "to_log_sigma2", "constant", "sum", "mean", "cauchy")


class Functions(torch.nn.Module):
    """All functions of one kind, of their arguments in one type."""

    def forward(self, x, mu, log_sigma2, rate):
        found = {name: getattr(lt, name)(x) for name in OF_LOG_ALPHA}
        found |= {name: getattr(lt, name)(mu, log_sigma2) for name in OF_NORMAL}
        found["constant"] = lt.kl(x, zero_at=1.0)
        found["sum"] = lt.kl_normal(mu[:20], log_sigma2[:20], reduction="sum")
        found["mean"] = lt.kl(x[:20], log_c=0.3, reduction="mean")
        return found


class Others(torch.nn.Module):
    """The functions of other modules."""

    def forward(self, x, mu, log_sigma2, rate):
        found = {}
        for name in isotropic.__all__:
            function = getattr(isotropic, name)
            if "normal" in name:
                found[name] = function(mu, log_sigma2)
            else:
                found[name] = function(x, k=3) if "vector" in name else function(x)
        for name in lk.log_alpha.__all__:
            given = {"from_dropout_rate": (rate,), "from_normal": (mu, log_sigma2)}
            given |= {"to_log_sigma2": (log_sigma2, mu), "from_u": (mu,), "from_alpha": (mu,)}
            found[name] = getattr(lk.log_alpha, name)(*given.get(name, (x,)))
        cauchy = torch.distributions.Cauchy(x[:20], rate[:20], validate_args=False)
        prior = lt.ImproperLogUniform()
        found["cauchy"] = torch.distributions.kl_divergence(cauchy, prior)
        return found


def arguments(dtype):
    rng = np.random.default_rng(7)
    wide = 700 if dtype is torch.float64 else 80
    grid = np.concatenate([rng.normal(size=150) * 10, rng.uniform(-2 * wide, 2 * wide, 150)])
    extremes = np.array(np.meshgrid(EXTREMES, EXTREMES)).reshape(2, -1)
    mu = np.concatenate([rng.normal(size=100), np.exp(rng.uniform(-wide, wide, 100)), extremes[0]])
    log_sigma2 = np.concatenate([grid[100:], extremes[1]])
    rate = np.concatenate([rng.uniform(size=200), [0.5 + 1e-9, 0.0, 1.0], np.full(97, 1e-9)])
    x = np.concatenate([grid[:290], EXTREMES])
    return tuple(torch.tensor(values).to(dtype) for values in (x, mu, log_sigma2, rate))


def in_onnxruntime(module, given, opset, **options):
    """The results of a program that was exported with a variable number of elements."""
    runtime = pytest.importorskip("onnxruntime")
    size = torch.export.Dim("size", min=25)
    shapes = tuple({0: size} for _ in given)
    program = torch.onnx.export(
        module,
        given,
        dynamo=True,
        opset_version=opset,
        dynamic_shapes=shapes,
        optimize=False,  # which takes longer than the rest
        verbose=False,
    )
    assert program.model.opset_imports[""] == opset
    session = runtime.InferenceSession(
        program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    shorter = [x[: len(x) - 1] for x in given]
    names = [each.name for each in session.get_inputs()]
    feed = {name: x.numpy() for name, x in zip(names, shorter, strict=True)}
    expected = module(*shorter)
    return zip(expected, session.run(None, feed), expected.values(), strict=True)


def test_an_exported_program_of_float32_needs_no_float64():
    """OpenVINO would compute float64 in float32, where large constants are infinite."""

    class Normal(torch.nn.Module):
        def forward(self, mu, log_sigma2):
            return lt.kl_normal(mu, log_sigma2)

    rng = np.random.default_rng(0)
    mu = np.concatenate([rng.normal(size=500), np.exp(rng.uniform(-80.0, 80.0, 500)), [0, np.inf]])
    log_sigma2 = np.concatenate([rng.uniform(-12.0, 12.0, 500), rng.uniform(-170.0, 170.0, 502)])
    given = [torch.tensor(values).float() for values in (mu, log_sigma2)]
    program = torch.export.export(Normal(), tuple(given))
    values = [node.meta.get("val") for node in program.graph.nodes]
    assert torch.float64 not in {x.dtype for x in values if isinstance(x, torch.Tensor)}
    assert len(values) < 180
    found = program.module()(*given).double().numpy()
    truth = lt.kl_normal(*[x.double() for x in given]).numpy()
    limit = 8 * np.spacing(np.maximum(np.abs(truth), np.finfo("float32").tiny).astype("float32"))
    with np.errstate(invalid="ignore"):
        near = (np.abs(found - truth) <= limit) | (found == truth)
    assert near.all(), (mu[~near], log_sigma2[~near])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("grad", [False, True])
def test_the_old_exporter_of_onnx(grad):
    """It keeps the last output of an autograd Function that has several."""
    runtime = pytest.importorskip("onnxruntime")

    class Several(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.VariationalLinear(3, 2).requires_grad_(grad)

        def forward(self, mu, log_sigma2):
            posterior = torch.distributions.Normal(mu, log_sigma2.exp(), validate_args=False)
            return (
                lt.kl_normal(mu, log_sigma2),
                lt.neg_kl_normal(mu, log_sigma2, reduction="sum"),
                lt.kl(log_sigma2),
                nn.kl(self.layer) + 0.0 * mu.sum(),
                torch.distributions.kl_divergence(posterior, lt.ImproperLogUniform()),
            )

    given = torch.tensor([1.0, -0.5, 2.0]), torch.tensor([-4.0, -1.0, 0.5])
    program = io.BytesIO()
    model = Several().eval()
    torch.onnx.export(model, given, program, dynamo=False, input_names=["mu", "log_sigma2"])
    session = runtime.InferenceSession(program.getvalue(), providers=["CPUExecutionProvider"])
    found = session.run(None, {"mu": given[0].numpy(), "log_sigma2": given[1].numpy()})
    for one, expected in zip(found, model(*given), strict=True):
        np.testing.assert_allclose(one, expected.detach().numpy(), rtol=2e-6)


def test_an_exported_program_holds_no_generator():
    layer = nn.VariationalLinear(3, 2, generator=torch.Generator())
    x = torch.ones(1, 3)
    with pytest.raises(ValueError, match=r"^generator= was given to a layer, but an exported pro"):
        torch.export.export(layer, (x,))
    torch.testing.assert_close(torch.export.export(layer.eval(), (x,)).module()(x), layer(x))


@pytest.mark.parametrize("name", ["log1p", "expm1"])
def test_functions_that_the_exporter_would_write_with_few_digits(name):
    x = np.concatenate([[0.0, 1e-300, 1e-17], np.logspace(-16.0, 2.5, 500), [800.0, np.inf]])
    x = -x if name == "expm1" else x
    with _namespace._Constants():
        found = getattr(torch, name)(torch.tensor(x)).numpy()
    np.testing.assert_allclose(found, getattr(np, name)(x), rtol=1e-15)


@pytest.mark.filterwarnings("ignore")  # of the exporter
class TestOnnx:
    @pytest.mark.slow
    @pytest.mark.parametrize("module", [Functions, Others])
    @pytest.mark.parametrize(
        ("dtype", "opset"),
        [(torch.float64, 25), (torch.float32, 18), (torch.float16, 18)],
        ids=str,
    )
    def test_values(self, module, dtype, opset, capability):
        pytest.importorskip("onnxscript")
        if module is Functions and dtype is torch.float64:
            for name in OF_LOG_ALPHA + OF_NORMAL:
                capability(name, "onnx")
        for name, got, truth in in_onnxruntime(module(), arguments(dtype), opset):
            truth = truth.numpy()
            assert got.dtype == truth.dtype
            limit = 8 * np.spacing(np.abs(truth))
            if name in CANCELLING or dtype is torch.float16:
                limit = np.maximum(limit, np.spacing(truth.dtype.type(1000.0)))
            with np.errstate(invalid="ignore"):
                near = np.abs(got - truth) <= limit
            near |= (got == truth) | (np.isnan(got) & np.isnan(truth))
            assert near.all(), (name, got[~near][:5], truth[~near][:5])

    def test_layers_in_evaluation_mode(self):
        pytest.importorskip("onnxscript")
        plain = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        model = nn.to_variational(plain, posterior=nn.Additive(initial=-4.0)).eval()
        torch.nn.init.constant_(model[2].log_sigma2[:, 3:], 9.0)
        compact = nn.to_compact(model)
        assert compact[0].out_features < 8

        class Whole(torch.nn.Module):
            def forward(self, x):
                return {"mean": model(x), "kl": nn.kl(model) + 0 * x.sum(), "compact": compact(x)}

        for name, got, truth in in_onnxruntime(Whole(), (torch.randn(30, 6),), 18):
            rtol = 1e-5 if name == "compact" else 1e-6
            np.testing.assert_allclose(got, truth.detach().numpy(), rtol=rtol, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Converting a tensor to a Python boolean")  # of shapes
class TestTorchScript:
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
    @by_name
    def test_trace(self, case, dtype):
        given = case.arguments(dtype)
        with pytest.warns(UserWarning, match=r"so torch\.jit\.save cannot save the program"):
            traced = torch.jit.trace(case.function, tuple(given))
        leaves = [x[:4].clone().requires_grad_() for x in given]
        values = traced(*leaves), case.function(*leaves)
        both = [(y, *torch.autograd.grad(y.sum(), leaves)) for y in values]
        for got, truth in zip(*both, strict=True):
            # In float32 a program has no operations on bits, and larger errors.
            rtol = 1e-6 if dtype is torch.float32 else 0
            torch.testing.assert_close(got, truth, rtol=rtol, atol=0)

    @pytest.mark.parametrize(
        "options",
        [{}, {"posterior": nn.Multiplicative()}, {"penalty": nn.HorseshoePrior()}],
        ids=str,
    )
    def test_save_without_gradients(self, options):
        class Loss(torch.nn.Sequential):
            def forward(self, x):
                return super().forward(x).sum() + nn.kl(self)

        loss = Loss(nn.to_variational(torch.nn.Linear(3, 2), **options)).eval()
        x, file = torch.ones(2, 3), io.BytesIO()
        with torch.inference_mode():
            torch.jit.save(torch.jit.trace(loss, (x,)), file)
        file.seek(0)
        torch.testing.assert_close(torch.jit.load(file)(x), loss(x))

    def test_script_of_a_layer(self):
        with pytest.raises(RuntimeError) as error:
            torch.jit.script(torch.nn.Sequential(nn.VariationalLinear(3, 2)))
        assert str(error.value) == (
            "torch.jit.script cannot compile VariationalLinear: use torch.export, torch.compile "
            "or torch.jit.trace"
        )


class TestFx:
    LAYER = nn.VariationalLinear(3, 2)

    @pytest.mark.parametrize(
        ("function", "argument"),
        [
            (lt.neg_kl, "log_alpha"),
            (lt.neg_kl_grad, "log_alpha"),
            (isotropic.neg_kl_complex, "log_alpha"),
            (lambda s: lk.kl_normal(torch.ones(3), s), "log_sigma2"),
            (LAYER, "input"),
        ],
    )
    def test_of_a_proxy(self, function, argument):
        with pytest.raises(TypeError) as error:
            torch.fx.symbolic_trace(function)
        assert str(error.value) == (
            f"{argument} must be a torch.Tensor, but torch.fx.Proxy was given: "
            "torch.fx.symbolic_trace cannot look into this package: use torch.export, or make the "
            "call a leaf with torch.fx.wrap or Tracer.is_leaf_module"
        )
