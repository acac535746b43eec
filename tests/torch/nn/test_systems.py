"""The layers inside what PyTorch offers: compilers, transforms, checkpoints, copies and files."""

import copy
import io
import math
import pickle

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from logunif_kl.torch import nn  # noqa: E402
from logunif_kl.torch.nn import _noise, _posterior  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    ESTIMATORS,
    POSTERIORS,
    every_case,
    every_layer,
    every_posterior,
    inputs,
    made,
)

LINEAR = CASES["linear"]


def slopes(layer, output):
    """The gradients of a function of the output and of the KL."""
    leaves = list(layer.parameters())
    return torch.autograd.grad(output.sin().sum() + layer.kl(), leaves)


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-6)


class TestCompile:
    @staticmethod
    def same(layer, x, backend="aot_eager"):
        """Value and gradients, for the same noise."""

        def normals(shape, like):
            return torch.linspace(-2, 2, math.prod(shape), dtype=like.dtype).view(tuple(shape))

        layer._normals = normals
        expected = layer(x)
        expected = expected, *slopes(layer, expected)

        def step(x):
            output = layer(x)
            return output, output.sin().sum() + layer.kl()

        torch._dynamo.reset()
        output, loss = torch.compile(step, fullgraph=True, backend=backend)(x)
        found = output, *torch.autograd.grad(loss, list(layer.parameters()))
        close(found, expected)

    @pytest.mark.parametrize(
        ("case", "posterior"),
        [
            *(("linear", posterior) for posterior in POSTERIORS),
            *((case, "additive") for case in CASES if case != "linear"),
            *((case, "correlated, input") for case in ("conv2d", "embedding")),
        ],
    )
    def test_in_one_graph(self, case, posterior):
        layer = made(CASES[case], **POSTERIORS[posterior])
        self.same(layer, inputs(CASES[case], 3))

    @pytest.mark.parametrize("case", ["linear", "conv1d", "embedding"])
    @pytest.mark.parametrize("estimator", ESTIMATORS[1:])
    def test_the_other_estimators(self, case, estimator):
        layer = made(CASES[case], estimator=estimator)
        self.same(layer, inputs(CASES[case], 3))

    def test_with_a_bound(self):
        layer = made(LINEAR, max_log_alpha=-1.0, **POSTERIORS["output"])
        self.same(layer, inputs(LINEAR, 3))

    def test_a_transform_of_a_bound(self):
        x = torch.tensor([-1.0, 0.0, 2.0])

        def slope(x):
            return torch.func.grad(lambda x: _posterior.bounded(x, 0.0).sum())(x)

        torch._dynamo.reset()
        found = torch.compile(slope, fullgraph=True, backend="aot_eager")(x)
        assert found.tolist() == [1.0, 1.0, 1.0]

    @pytest.mark.slow
    @pytest.mark.parametrize("case", ["linear", "conv2d", "embedding"])
    def test_by_inductor(self, case):
        self.same(made(CASES[case]), inputs(CASES[case], 3), "inductor")

    @pytest.mark.parametrize("generator", [None, torch.Generator()], ids=["plain", "generator"])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_two_draws_in_one_graph_differ(self, estimator, generator):
        """The compiler makes one of two equal computations, but draws are none."""
        layer, x = made(LINEAR, estimator=estimator, generator=generator), inputs(LINEAR, 3)
        torch._dynamo.reset()
        difference = torch.compile(
            lambda x: layer(x) - layer(x), fullgraph=True, backend="aot_eager"
        )(x)
        assert difference.requires_grad
        assert difference.abs().min() > 0

    @pytest.mark.parametrize("randomness", ["different", "same"])
    def test_vmap_in_a_graph(self, randomness):
        layer = made(LINEAR)
        x = inputs(LINEAR, 3)[None].expand(2, -1, -1)
        torch._dynamo.reset()
        batched = torch.func.vmap(layer, randomness=randomness)
        one, other = torch.compile(batched, fullgraph=True, backend="aot_eager")(x)
        assert torch.equal(one, other) == (randomness == "same")

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    @pytest.mark.parametrize("case", ["linear", "conv2d", "embedding"])
    def test_the_noise_is_that_of_the_eager_layer(self, case, estimator):
        """By the operator of PyTorch, which takes a tenth of the time of the compiler's randn."""
        layer, x = made(CASES[case], estimator=estimator), inputs(CASES[case], 3)
        torch.manual_seed(1)
        expected = layer(x)
        torch._dynamo.reset()
        graphs = []

        def keep(graph, _):
            graphs.append(graph)
            return graph

        compiled = torch.compile(layer, fullgraph=True, backend=keep)
        torch.manual_seed(1)
        close((compiled(x),), (expected,))
        (graph,) = graphs
        called = {str(getattr(node.target, "__name__", node.target)) for node in graph.graph.nodes}
        assert "normal_" in called
        assert not {"randn", "randn_like"} & called

    @pytest.mark.parametrize(
        "backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
    )
    def test_noise_differs_from_call_to_call(self, backend):
        layer, x = made(LINEAR), inputs(LINEAR, 3)
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, backend=backend)
        assert not torch.equal(compiled(x), compiled(x))
        torch.manual_seed(1)
        first = compiled(x)
        torch.manual_seed(1)
        assert torch.equal(compiled(x), first)
        layer.eval()
        assert torch.allclose(compiled(x), layer(x))

    @pytest.mark.parametrize(
        ("case", "estimator"),
        [
            *(("linear", estimator) for estimator in ESTIMATORS),
            ("conv1d", "per_example"),
            ("embedding", "per_example"),
        ],
    )
    def test_any_number_of_examples(self, case, estimator):
        layer = made(CASES[case], estimator=estimator)
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
        for examples in (3, 5, 8):
            x = inputs(CASES[case], examples)
            output = compiled(x)
            assert output.shape == layer(x).shape
            output.sum().backward()

    def test_autocast(self):
        layer, x = made(LINEAR), inputs(LINEAR, 3)
        torch._dynamo.reset()

        def output(x):
            with torch.autocast("cpu", torch.float16):
                return layer(x)

        found = torch.compile(output, fullgraph=True, backend="aot_eager")(x)
        assert found.dtype == torch.float16
        assert torch.isfinite(found).all()

    @pytest.mark.parametrize("backend", ["eager", "aot_eager"])
    def test_a_generator(self, backend):
        layer = made(LINEAR, generator=torch.Generator().manual_seed(4))
        x = inputs(LINEAR, 3)
        expected = layer(x), layer(x)
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, backend=backend)
        layer.generator.manual_seed(4)
        close((compiled(x), compiled(x)), expected)
        layer.generator = torch.Generator().manual_seed(4)
        close((compiled(x),), expected[:1])
        compiled(x).sum().backward()
        assert torch.isfinite(layer.weight.grad).all()


class TestTransforms:
    @every_case
    @every_posterior
    def test_functional_call(self, case, posterior):
        layer, other = (made(CASES[case], seed, **POSTERIORS[posterior]) for seed in (1, 2))
        x = inputs(CASES[case], 3)
        torch.manual_seed(1)
        expected = other(x)
        torch.manual_seed(1)
        found = torch.func.functional_call(layer, dict(other.named_parameters()), (x,))
        assert torch.equal(found, expected)

    @every_layer
    def test_an_ensemble(self, case, posterior, estimator):
        """Stacked parameters under vmap, each with noise of its own."""
        case = CASES[case]
        layers = [made(case, seed, estimator=estimator, **POSTERIORS[posterior]) for seed in (1, 2)]
        parameters, buffers = torch.func.stack_module_state(layers)
        base = copy.deepcopy(layers[0]).to("meta")
        x = inputs(case, 3)

        def loss(parameters, buffers, x):
            output = torch.func.functional_call(base, (parameters, buffers), (x,))
            return output.square().sum(), output

        def run(randomness):
            torch.manual_seed(1)
            step = torch.func.grad(loss, has_aux=True)
            return torch.vmap(step, (0, 0, None), randomness=randomness)(parameters, buffers, x)

        gradients, outputs = run("different")
        assert outputs.shape[0] == 2
        for name, gradient in gradients.items():
            assert gradient.shape == parameters[name].shape
            assert torch.isfinite(gradient).all()
        # The same parameters twice do not give the same output.
        parameters = {k: v[:1].expand_as(v) for k, v in parameters.items()}
        (_, a), (_, b) = run("different"), run("same")
        assert not torch.equal(a[0], a[1])
        assert torch.equal(b[0], b[1])

    @every_case
    def test_forward_mode(self, case):
        """Agrees with the backward."""
        layer = made(CASES[case], dtype=torch.float64)
        x = inputs(CASES[case], 2, dtype=torch.float64)
        parameters = {k: v.detach() for k, v in layer.named_parameters()}
        tangents = {k: torch.cos(v) for k, v in parameters.items()}
        if case == "embedding":
            # torch's backward leaves the padding out, and its forward mode does not.
            tangents["weight"][layer.padding_idx] = 0.0

        def output(parameters):
            torch.manual_seed(1)
            return torch.func.functional_call(layer, parameters, (x,)).sin().sum()

        _, forward = torch.func.jvp(output, (parameters,), (tangents,))
        gradient = torch.func.grad(output)(parameters)
        backward = sum((gradient[k] * tangents[k]).sum() for k in parameters)
        torch.testing.assert_close(forward, backward)

    def test_gradients_of_each_example(self):
        layer, x = made(LINEAR), inputs(LINEAR, 4)
        parameters = dict(layer.named_parameters())

        def loss(parameters, x):
            return torch.func.functional_call(layer, parameters, (x,)).sum()

        found = torch.vmap(torch.func.grad(loss), (None, 0), randomness="different")(parameters, x)
        assert torch.equal(found["weight"], x[:, None, :].expand(4, 2, 3))
        assert len(found["log_sigma2"].unique(dim=0)) == 4


class TestCheckpoint:
    @pytest.mark.parametrize(
        ("case", "reentrant"),
        # A reentrant checkpoint needs an input that requires a gradient, which no index can.
        [(case, False) for case in CASES] + [(case, True) for case in CASES if case != "embedding"],
    )
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_the_same_noise_twice(self, case, estimator, reentrant):
        layer = made(CASES[case], estimator=estimator)
        x = inputs(CASES[case], 3)
        torch.manual_seed(1)
        expected = layer(x)
        expected = expected, *slopes(layer, expected)
        x = x.requires_grad_() if x.is_floating_point() else x
        torch.manual_seed(1)
        output = checkpoint(layer, x, use_reentrant=reentrant)
        (output.sin().sum() + layer.kl()).backward()
        found = output, *[p.grad for p in layer.parameters()]
        close(found, expected)

    @pytest.mark.parametrize("contexts", [True, False])
    def test_a_generator(self, contexts):
        """With its contexts; without them, the noise of the recomputation is other noise."""
        model = torch.nn.Sequential(
            *[made(case, generator=torch.Generator().manual_seed(5)) for case in (LINEAR,)],
            torch.nn.ReLU(),
        )
        x = inputs(LINEAR, 3)
        expected = slopes_of(model, model(x))
        model[0].generator.manual_seed(5)
        options = {"context_fn": nn.checkpoint_contexts(model)} if contexts else {}
        output = checkpoint(model, x, use_reentrant=False, **options)
        after = model[0].generator.get_state()
        found = slopes_of(model, output)
        same = all(torch.allclose(a, b) for a, b in zip(found, expected, strict=True))
        assert same == contexts
        assert torch.equal(model[0].generator.get_state(), after) == contexts

    def test_a_second_backward(self):
        """Each backward through a checkpoint computes it again."""
        model = made(LINEAR, generator=torch.Generator().manual_seed(5))
        contexts = nn.checkpoint_contexts(model)
        output = checkpoint(model, inputs(LINEAR, 3), use_reentrant=False, context_fn=contexts)
        after = model.generator.get_state()
        parameters = list(model.parameters())
        first, second = (
            torch.autograd.grad(output.sin().sum(), parameters, retain_graph=True) for _ in range(2)
        )
        close(first, second)
        assert torch.equal(model.generator.get_state(), after)


def slopes_of(model, output):
    """The gradients of a function of the output."""
    return torch.autograd.grad(output.sin().sum(), list(model.parameters()))


class TestGenerator:
    @every_layer
    def test_draws_all_noise(self, case, posterior, estimator):
        options = {"estimator": estimator, **POSTERIORS[posterior]}
        layer = made(CASES[case], generator=torch.Generator().manual_seed(4), **options)
        x, state = inputs(CASES[case], 3), torch.get_rng_state()
        first = layer(x)
        assert torch.equal(torch.get_rng_state(), state)
        layer.generator.manual_seed(4)
        assert torch.equal(layer(x), first)
        assert not torch.equal(layer(x), first)
        assert "generator" not in " ".join(layer.state_dict())

    def test_one_for_many_layers(self):
        generator = torch.Generator().manual_seed(4)
        layers = [made(LINEAR, generator=generator) for _ in range(2)]
        x = inputs(LINEAR, 3)
        assert not torch.equal(layers[0](x), layers[1](x))
        copied = copy.deepcopy(torch.nn.ModuleList(layers))
        assert copied[0].generator is copied[1].generator is not generator

    def test_on_meta(self):
        layer = made(LINEAR, generator=torch.Generator()).to("meta")
        assert layer(torch.empty(2, 3, device="meta")).shape == (2, 2)


class TestCopiesAndFiles:
    @staticmethod
    def equal(layer, other, x):
        outputs = []
        for each in (layer, other):
            if each.generator is None:
                torch.manual_seed(1)
            outputs.append(each(x))
        assert torch.equal(*outputs)
        assert repr(layer) == repr(other)
        assert torch.equal(layer.kl(), other.kl())

    @every_case
    @every_posterior
    @pytest.mark.parametrize("generator", [True, False])
    def test_deepcopy_and_pickle(self, case, posterior, generator):
        generator = torch.Generator().manual_seed(9) if generator else None
        layer = made(CASES[case], generator=generator, **POSTERIORS[posterior])
        x = inputs(CASES[case], 3)
        for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            if generator is not None:
                layer.generator.manual_seed(9)
                copied.generator.manual_seed(9)
            self.equal(layer, copied, x)
            assert copied.generator is not layer.generator or generator is None

    def test_a_pickled_generator_goes_on(self):
        layer = made(LINEAR, generator=torch.Generator().manual_seed(9))
        x = inputs(LINEAR, 3)
        layer(x)
        self.equal(pickle.loads(pickle.dumps(layer)), layer, x)

    @every_case
    @every_posterior
    def test_files(self, case, posterior):
        layer = made(CASES[case], **POSTERIORS[posterior])
        other = made(CASES[case], seed=7, **POSTERIORS[posterior])
        loaded = []
        for what, weights_only in ((layer.state_dict(), True), (layer, False)):
            file = io.BytesIO()
            torch.save(what, file)
            file.seek(0)
            loaded.append(torch.load(file, weights_only=weights_only))
        other.load_state_dict(loaded[0])
        self.equal(layer, other, inputs(CASES[case], 3))
        self.equal(layer, loaded[1], inputs(CASES[case], 3))


class TestMeta:
    @every_layer
    def test_shapes(self, case, posterior, estimator):
        case = CASES[case]
        options = {"estimator": estimator, **case.options, **POSTERIORS[posterior]}
        layer = case.layer(*case.arguments, device="meta", **options)
        x = inputs(case, 3).to("meta")
        output = layer(x)
        assert output.is_meta
        assert output.shape == made(case)(inputs(case, 3)).shape
        assert layer.kl().shape == ()

    @every_case
    @every_posterior
    def test_materialised(self, case, posterior):
        case = CASES[case]
        make = case.layer(*case.arguments, device="meta", **case.options, **POSTERIORS[posterior])
        layer = make.to_empty(device="cpu")
        torch.manual_seed(1)
        layer.reset_parameters()
        torch.manual_seed(1)
        expected = case.layer(*case.arguments, **case.options, **POSTERIORS[posterior])
        for name, value in expected.state_dict().items():
            assert torch.equal(layer.state_dict()[name], value)

    def test_skip_init(self):
        layer = torch.nn.utils.skip_init(nn.VariationalLinear, 3, 2)
        assert layer.log_sigma2.shape == (2, 3)

    def test_dtype(self):
        layer = nn.VariationalConv1d(2, 3, 1, dtype=torch.float64, **POSTERIORS["output"])
        assert {p.dtype for p in layer.parameters()} == {torch.float64}


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
class TestLazy:
    CASES = pytest.mark.parametrize(
        ("lazy", "full", "arguments", "shape"),
        [
            (nn.LazyVariationalLinear, nn.VariationalLinear, (2,), (5, 3)),
            (nn.LazyVariationalConv1d, nn.VariationalConv1d, (2, 3), (5, 4, 6)),
            (nn.LazyVariationalConv2d, nn.VariationalConv2d, (2, 3), (5, 4, 6, 6)),
            (nn.LazyVariationalConv3d, nn.VariationalConv3d, (2, 2), (5, 4, 3, 3, 3)),
        ],
    )

    @CASES
    @every_posterior
    def test_becomes_the_layer(self, lazy, full, arguments, shape, posterior):
        groups = {} if full is nn.VariationalLinear else {"groups": 2}
        options = {"initial": -4.0, **POSTERIORS[posterior], **groups}
        layer = lazy(*arguments, **options)
        assert layer.has_uninitialized_params()
        assert isinstance(layer, getattr(torch.nn, lazy.__name__.replace("Variational", "")))
        torch.manual_seed(1)
        layer(torch.randn(shape, generator=torch.Generator().manual_seed(2)))
        expected = full(shape[1], *arguments, **options)
        assert type(layer) is full
        assert repr(layer) == repr(expected)
        torch.manual_seed(1)
        expected.reset_parameters()
        for name, value in expected.state_dict().items():
            assert torch.equal(layer.state_dict()[name], value)

    @CASES
    @pytest.mark.parametrize("noise", ["independent", "correlated"])
    def test_of_a_state(self, lazy, full, arguments, shape, noise):
        options = {**POSTERIORS["input"], "noise": noise}
        made = full(shape[1], *arguments, **options)
        layer = lazy(*arguments, **options)
        layer.load_state_dict(made.state_dict())
        assert torch.equal(layer.kl(), made.kl())
        assert torch.equal(nn.kl(layer), made.kl())
        x = torch.randn(shape)
        torch.manual_seed(1)
        found = layer(x)
        torch.manual_seed(1)
        assert torch.equal(found, made(x))
        assert torch.equal(layer.eval()(x), made.eval()(x))

    def test_the_device_and_type(self):
        layer = nn.LazyVariationalLinear(2, dtype=torch.float64)
        layer(torch.ones(1, 3, dtype=torch.float64))
        assert layer.log_sigma2.dtype == torch.float64


def test_the_operator_is_registered_once():
    assert _noise._operator() is _noise._operator()
    number, call = _noise._number(torch.default_generator)
    like = torch.empty(0, dtype=torch.float64)
    state = torch.get_rng_state()
    found = torch.ops.logunif_kl_nn.normals(like, [2, 3], number, call)
    torch.set_rng_state(state)
    assert torch.equal(found, torch.randn(2, 3, dtype=torch.float64))
