"""The layers inside what PyTorch offers: compilers, transforms, checkpoints, copies and files."""

import contextlib
import copy
import math
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

torch = pytest.importorskip("torch")

from torch.autograd.forward_ad import dual_level  # noqa: E402
from torch.distributed import _composable as composable  # noqa: E402
from torch.utils.checkpoint import (  # noqa: E402
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from logunif_kl.nn.torch import variances  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    ESTIMATORS,
    EVERY,
    compiled,
    copies,
    every_backend,
    every_case,
    every_estimator,
    every_layer,
    every_pair,
    finite,
    generator,
    inputs,
    layer_and_input,
    made,
    read,
    seeded,
)

LINEAR = CASES["linear"]
close = partial(torch.testing.assert_close, rtol=2e-5, atol=2e-6)
exactly = partial(torch.testing.assert_close, rtol=0.0, atol=0.0)


def slopes(model, loss, **options):
    return torch.autograd.grad(loss, list(model.parameters()), **options)


class TestCompile:
    @staticmethod
    def check(case, posterior="additive", backend="aot_eager", **options):
        """Value and gradients, for the same noise."""
        layer, x = layer_and_input(case, posterior, **options)

        def normals(shape, like):
            return torch.linspace(-2, 2, math.prod(shape), dtype=like.dtype).view(tuple(shape))

        def step(x):
            output = layer(x)
            return output, output.sin().sum() + layer.kl()

        layer._lk_normals = normals
        (expected, loss), (found, compiled_loss) = step(x), compiled(step, backend)(x)
        close((found, *slopes(layer, compiled_loss)), (expected, *slopes(layer, loss)))

    @pytest.mark.parametrize(
        ("case", "posterior", "options"),
        [
            *(("linear", posterior, {}) for posterior in EVERY),
            *((case, "additive", {}) for case in CASES if case != "linear"),
            *((case, "correlated, input", {}) for case in ("conv2d", "embedding")),
            *(
                (case, "additive", {"estimator": estimator})
                for case, estimator in product(["linear", "conv1d", "embedding"], ESTIMATORS[1:])
            ),
            ("linear", nn.Multiplicative("output", -1.0), {}),
        ],
    )
    def test_in_one_graph(self, case, posterior, options):
        self.check(case, posterior, **options)

    @pytest.mark.slow
    @pytest.mark.parametrize("case", ["linear", "conv2d", "embedding"])
    def test_by_inductor(self, case):
        self.check(case, backend="inductor")

    def test_a_transform_of_a_bound(self):
        slope = torch.func.grad(lambda x: variances.bounded(x, 0.0).sum())
        found = compiled(lambda x: slope(x))(torch.tensor([-1.0, 0.0, 2.0]))
        assert found.tolist() == [1.0, 1.0, 1.0]

    @pytest.mark.parametrize("generator", [None, torch.Generator()], ids=["plain", "generator"])
    @every_estimator
    def test_two_draws_in_one_graph_differ(self, estimator, generator):
        """The compiler makes one of two equal computations, but draws are none."""
        layer, x = layer_and_input("linear", estimator=estimator, generator=generator)
        difference = compiled(lambda x: layer(x) - layer(x))(x)
        assert difference.requires_grad
        assert difference.abs().min() > 0

    @pytest.mark.parametrize("randomness", ["different", "same"])
    def test_vmap_in_a_graph(self, randomness):
        layer, x = layer_and_input("linear")
        batched = torch.func.vmap(layer, randomness=randomness)
        one, other = compiled(batched)(x[None].expand(2, -1, -1))
        assert torch.equal(one, other) == (randomness == "same")

    @every_estimator
    @pytest.mark.parametrize("compile", [False, True])
    def test_vmap_refuses_a_generator(self, estimator, compile):
        """Which would give all elements one noise, or each its own, whatever randomness= says."""
        layer, x = layer_and_input("linear", estimator=estimator)
        layer.generator = torch.Generator()
        batched = torch.func.vmap(layer, randomness="same")
        with pytest.raises(Exception, match="a layer with a generator was called under"):
            (compiled(batched) if compile else batched)(x[None].expand(2, -1, -1))
        assert layer(x).shape == layer.eval()(x).shape

    @every_estimator
    @pytest.mark.parametrize("case", ["linear", "conv2d", "embedding"])
    def test_the_noise_is_that_of_the_eager_layer(self, case, estimator):
        """By the operator of PyTorch, which takes a tenth of the time of the compiler's randn."""
        layer, x = layer_and_input(case, estimator=estimator)
        graphs = []

        def keep(graph, _):
            graphs.append(graph)
            return graph

        close(seeded(compiled(layer, keep), x), seeded(layer, x))
        (graph,) = graphs
        called = {str(getattr(node.target, "__name__", node.target)) for node in graph.graph.nodes}
        assert "normal_" in called
        assert not {"randn", "randn_like"} & called

    @every_backend
    def test_noise_differs_from_call_to_call(self, backend):
        layer, x = layer_and_input("linear")
        call = compiled(layer, backend)
        assert not torch.equal(call(x), call(x))
        assert torch.equal(seeded(call, x), seeded(call, x))
        layer.eval()
        assert torch.allclose(call(x), layer(x))

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
        call = compiled(layer, dynamic=True)
        for examples in (3, 5, 8):
            x = inputs(CASES[case], examples)
            output = call(x)
            assert output.shape == layer(x).shape
            output.sum().backward()

    def test_autocast(self):
        layer, x = layer_and_input("linear")
        with torch.autocast("cpu", torch.float16):
            found = compiled(layer)(x)

        def inside(x):
            with torch.autocast("cpu", torch.float16):
                return layer(x)

        assert compiled(inside)(x).dtype == torch.float16
        assert found.dtype == torch.float16
        assert finite(found)

    @pytest.mark.parametrize("backend", ["eager", "aot_eager"])
    def test_a_generator(self, backend):
        layer, x = layer_and_input("linear", generator=generator(4))
        expected = layer(x), layer(x)
        call = compiled(layer, backend)
        layer.generator.manual_seed(4)
        close((call(x), call(x)), expected)
        layer.generator = generator(4)
        close(call(x), expected[0])
        call(x).sum().backward()
        assert finite(layer.weight.grad)


class TestTransforms:
    @every_pair
    def test_an_ensemble(self, case, posterior, estimator):
        """Stacked parameters under vmap, each with noise of its own."""
        case, options = CASES[case], {"estimator": estimator, "posterior": EVERY[posterior]}
        layers = [made(case, seed, **options) for seed in (1, 2)]
        parameters, buffers = torch.func.stack_module_state(layers)
        base = copy.deepcopy(layers[0]).to("meta")
        x = inputs(case, 3)

        def loss(parameters, buffers, x):
            output = torch.func.functional_call(base, (parameters, buffers), (x,))
            return output.square().sum(), output

        def run(randomness):
            step = torch.vmap(
                torch.func.grad(loss, has_aux=True), (0, 0, None), randomness=randomness
            )
            return seeded(step, parameters, buffers, x)

        gradients, outputs = run("different")
        assert outputs.shape[0] == 2
        for name, gradient in gradients.items():
            assert gradient.shape == parameters[name].shape
            assert finite(gradient)
        # The same parameters twice do not give the same output.
        parameters = {k: v[:1].expand_as(v) for k, v in parameters.items()}
        (_, a), (_, b) = run("different"), run("same")
        assert not torch.equal(a[0], a[1])
        assert torch.equal(b[0], b[1])

    @every_case
    def test_forward_mode(self, case):
        """Agrees with the backward."""
        layer, x = layer_and_input(case, n=2, dtype=torch.float64)
        parameters = {k: v.detach() for k, v in layer.named_parameters()}
        tangents = {k: torch.cos(v) for k, v in parameters.items()}
        if case == "embedding":
            # torch's backward leaves the padding out, and its forward mode does not.
            tangents["weight"][layer.padding_idx] = 0.0

        def output(parameters):
            return seeded(torch.func.functional_call, layer, parameters, (x,)).sin().sum()

        _, forward = torch.func.jvp(output, (parameters,), (tangents,))
        gradient = torch.func.grad(output)(parameters)
        backward = sum((gradient[k] * tangents[k]).sum() for k in parameters)
        torch.testing.assert_close(forward, backward)

    def test_gradients_of_each_example(self):
        layer, x = layer_and_input("linear", n=4)
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
    @every_estimator
    def test_the_same_noise_twice(self, case, estimator, reentrant):
        layer, x = layer_and_input(case, estimator=estimator)
        expected = seeded(layer, x)
        expected = expected, *slopes(layer, expected.sin().sum() + layer.kl())
        x = x.requires_grad_() if x.is_floating_point() else x
        output = seeded(partial(checkpoint, use_reentrant=reentrant), layer, x)
        (output.sin().sum() + layer.kl()).backward()
        close((output, *[p.grad for p in layer.parameters()]), expected)

    @pytest.mark.parametrize("shared", [True, False])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_a_generator(self, estimator, shared):
        """PyTorch does not restore it: without its contexts, the second run is refused."""
        layer, x = layer_and_input("linear", generator=generator(5), estimator=estimator)
        other = nn.VariationalLinear(2, 2, generator=layer.generator if shared else None)
        model = torch.nn.Sequential(layer, torch.nn.ReLU(), other, nn.GaussianDropoutA(0.1))
        model[3].generator = generator(6)

        def run(**options):
            layer.generator.manual_seed(5)
            model[3].generator.manual_seed(6)
            torch.manual_seed(7)
            return checkpoint(model, x, **options) if options else model(x)

        expected = slopes(model, run().sin().sum())
        contexts = nn.checkpoint_contexts(model)
        output = run(use_reentrant=False, context_fn=contexts)
        after = layer.generator.get_state()
        close(slopes(model, output.sin().sum()), expected)
        assert torch.equal(layer.generator.get_state(), after)
        x.requires_grad_()
        for reentrant in (True, False):
            output = run(use_reentrant=reentrant)
            with pytest.raises(RuntimeError, match="PyTorch does not restore that generator"):
                output.sin().sum().backward()

    def test_a_second_backward(self):
        """Each backward through a checkpoint computes it again."""
        model, x = layer_and_input("linear", generator=generator(5))
        contexts = nn.checkpoint_contexts(model)
        output = checkpoint(model, x, use_reentrant=False, context_fn=contexts)
        after = model.generator.get_state()
        loss = output.sin().sum()
        close(slopes(model, loss, retain_graph=True), slopes(model, loss))
        assert torch.equal(model.generator.get_state(), after)

    @every_pair
    @pytest.mark.parametrize("mode", [partial(FlopCounterMode, display=False), dual_level])
    def test_a_mode_that_sees_only_one_run(self, case, posterior, estimator, mode):
        layer, x = layer_and_input(case, posterior, estimator=estimator)
        if x.ndim == 4:
            x = x.to(memory_format=torch.channels_last)
        expected = slopes(layer, seeded(layer, x).sin().sum())
        again = partial(checkpoint, layer, x, use_reentrant=False)
        with mode():
            output = seeded(again)
        close(slopes(layer, output.sin().sum()), expected)
        for run in (partial(layer, x), again):
            around = partial(checkpoint, run, use_reentrant=False, context_fn=selective)
            close(slopes(layer, seeded(around).sin().sum()), expected)


class Tied(torch.nn.Module):
    """A method that a checkpoint runs reads a weight that is drawn within it."""

    def __init__(self, reentrant):
        super().__init__()
        self.layer, self.reentrant = torch.nn.Conv1d(2, 3, 2), reentrant

    def method(self, x):
        return torch.nn.functional.conv_transpose1d(self.layer(x).tanh(), self.layer.weight)

    def forward(self, x):
        if self.reentrant is None:
            return self.method(x)
        return checkpoint(self.method, x, use_reentrant=self.reentrant)


class Force(Tied):
    """The backward pass runs within the call."""

    def forward(self, x):
        energy = super().forward(x).square().sum()
        return torch.autograd.grad(energy, x, create_graph=True)[0]


CONTEXTS = {
    "training": contextlib.nullcontext,
    "sampling": nn.sampling,
    "sampled": lambda model: nn.sampled(model, generator(2)),
    "mask_from": contextlib.nullcontext,
}


@pytest.mark.parametrize(("kind", "reentrant"), [(Tied, False), (Tied, True), (Force, False)])
@pytest.mark.parametrize("context", CONTEXTS)
def test_a_checkpointed_method_reads_the_sample(context, kind, reentrant):
    """The operation that reads the weight is the last one that the second run repeats."""
    options = {"posterior": nn.Additive(initial=-1.0), "parameters": ["layer.weight"]}
    torch.manual_seed(0)
    model = nn.to_variational(kind(None).double(), modules=(), **options)
    model.train(context != "sampling")
    x = torch.randn(4, 2, 6, dtype=torch.float64, requires_grad=True)
    options = {"mask_from": 0.0} if context == "mask_from" else {}
    elbo, found = nn.ELBO(model, lambda y, _: -y.sin().sum((1, 2)), 10, **options), []
    for model.reentrant in (None, reentrant):
        model.zero_grad()
        with CONTEXTS[context](model):
            seeded(elbo, x, None).loss.backward()
        found.append([parameter.grad for parameter in model.parameters()])
    close(*found)


@pytest.mark.parametrize("reentrant", [None, False, True])
def test_a_hook_sees_no_sample(reentrant):
    """It runs in a backward pass of the checkpoint, after the second run."""

    def hook(grad):
        with torch.no_grad():
            seen.append(model.layer.weight.sum().item())

    class Hooked(Tied):
        def method(self, x):
            found = super().method(x)
            if found.requires_grad:
                found.register_hook(hook)
            return found

    seen = []
    model = nn.to_variational(Hooked(None), parameters=["layer.weight"], modules=())
    model.reentrant = reentrant
    loss = model(torch.randn(2, 2, 6, requires_grad=True)).sum()
    if reentrant:
        with pytest.raises(RuntimeError, match="has noise, but it was read outside"):
            loss.backward()
        return
    loss.backward()
    assert seen == [model.get_parameter("layer.weight").sum().item()]


def selective():
    """Keep what layers could change in place. PyTorch itself changes outputs in other padding."""
    names = {"convolution", "addmm", "mm", "clamp", "sqrt", "div", "threshold"}

    def policy(context, operator, *args, **kwargs):
        kept = operator.overloadpacket.__name__ in names
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


NOISY = nn.Additive(initial=0.0)
KINDS = {
    "local": lambda: nn.VariationalLinear(4, 4, posterior=NOISY),
    "per_batch": lambda: nn.VariationalLinear(4, 4, posterior=NOISY, estimator="per_batch"),
    "scaled": lambda: nn.VariationalLinear(4, 4, posterior=nn.Scaled()),
    "sampled": lambda: nn.to_variational(torch.nn.Bilinear(4, 4, 4), posterior=NOISY),
}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("kind", KINDS)
class TestCheckpointWithinContexts:
    """The gradient is that of the noise that was drawn, or the backward is refused."""

    def both(self, kind, reentrant):
        torch.manual_seed(1)
        model, x = KINDS[kind](), torch.randn(6, 4, requires_grad=True)
        args = (x, x) if kind == "sampled" else (x,)
        return model, model, args, partial(checkpoint, model, *args, use_reentrant=reentrant)

    def test_sampled(self, kind, reentrant):
        model, plain, args, again = self.both(kind, reentrant)
        with nn.sampled(model, generator(2)):
            expected = slopes(model, plain(*args).sin().sum())
            again().sin().sum().backward()
            output = again().sum()
        close([p.grad for p in model.parameters()], expected)
        with pytest.raises(RuntimeError, match="began or ended meanwhile"):
            output.backward()
        seeded(again).sum().backward()
        with nn.sampled(model):
            output = again().sum()
            with nn.sampled(model), pytest.raises(RuntimeError, match="began or ended meanwhile"):
                output.backward()

    def test_sampling(self, kind, reentrant):
        model, _, _, again = self.both(kind, reentrant)
        output = again().sum()
        with nn.sampling(model):  # without effect, in training mode
            output.backward()
        model.eval()
        output = again().sum()
        with nn.sampling(model):
            drawn = again().sum()
            with pytest.raises(RuntimeError, match="began or ended meanwhile"):
                output.backward()
        with pytest.raises(RuntimeError, match="began or ended meanwhile"):
            drawn.backward()

    @pytest.mark.parametrize("warm", [torch.no_grad, contextlib.nullcontext])
    def test_a_graph_compiled_before(self, warm, kind, reentrant):
        """It is used again without a trace, and checks itself."""
        torch.compiler.reset()
        model, _, args, _ = self.both(kind, reentrant)
        part = torch.compile(model, backend="eager")
        again = partial(checkpoint, part, *args, use_reentrant=reentrant)
        with nn.sampled(model):
            with warm():
                part(*args)
            if reentrant:
                with pytest.raises(RuntimeError, match=r"^a compiled part of the model was called"):
                    again()
                return
            expected = slopes(model, part(*args).sin().sum())
            again().sin().sum().backward()
            close([p.grad for p in model.parameters()], expected)
            output = again().sum()
            with nn.sampled(model), pytest.raises(RuntimeError, match="began or ended meanwhile"):
                output.backward()

    def test_a_context_within_a_checkpoint(self, kind, reentrant):
        """The second run opens the context again, and draws the same noise."""
        model, plain, args, _ = self.both(kind, reentrant)

        def run(*args):
            with nn.sampled(model):
                return plain(*args)

        expected = slopes(model, seeded(run, *args).sin().sum())
        seeded(partial(checkpoint, run, *args, use_reentrant=reentrant)).sin().sum().backward()
        close([p.grad for p in model.parameters()], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_composable_checkpoint_within_contexts(kind):
    """It has no function of its own around the first run."""
    model, x = KINDS[kind](), torch.randn(6, 4)
    args = (x, x) if kind == "sampled" else (x,)
    again = composable.checkpoint(copy.deepcopy(model))
    with nn.sampled(model, generator(2)), nn.sampled(again, generator(2)):
        expected = slopes(model, model(*args).sin().sum())
        close(slopes(again, again(*args).sin().sum()), expected)
        output = again(*args).sum()
    with pytest.raises(RuntimeError, match="began or ended meanwhile"):
        output.backward()


class TestGenerator:
    @every_pair
    def test_draws_all_noise(self, case, posterior, estimator):
        options = {"estimator": estimator, "generator": generator(4)}
        layer, x = layer_and_input(case, posterior, **options)
        state = torch.get_rng_state()
        first = layer(x)
        assert torch.equal(torch.get_rng_state(), state)
        layer.generator.manual_seed(4)
        assert torch.equal(layer(x), first)
        assert not torch.equal(layer(x), first)
        assert "generator" not in " ".join(layer.state_dict())

    def test_one_for_many_layers(self):
        drawn_by = generator(4)
        layers = [made(LINEAR, generator=drawn_by) for _ in range(2)]
        x = inputs(LINEAR, 3)
        assert not torch.equal(layers[0](x), layers[1](x))
        copied = copy.deepcopy(torch.nn.ModuleList(layers))
        assert copied[0].generator is copied[1].generator is not drawn_by

    def test_on_meta(self):
        layer = made(LINEAR, generator=torch.Generator()).to("meta")
        assert layer(torch.empty(2, 3, device="meta")).shape == (2, 2)


class TestCopiesAndFiles:
    @staticmethod
    def equal(layer, other, x):
        outputs = [each(x) if each.generator else seeded(each, x) for each in (layer, other)]
        assert torch.equal(*outputs)
        assert repr(layer) == repr(other)
        assert torch.equal(layer.kl(), other.kl())

    @every_layer
    def test_are_equal(self, case, posterior):
        """The generator of a copy goes on from where that of the layer is."""
        for drawn_by in (generator(9), None):
            layer, x = layer_and_input(case, posterior, generator=drawn_by)
            layer(x)
            for copied in copies(layer):
                self.equal(layer, copied, x)
                assert copied.generator is not drawn_by or drawn_by is None
        other = made(CASES[case], seed=7, posterior=EVERY[posterior])
        other.load_state_dict(read(layer.state_dict(), weights_only=True))
        self.equal(layer, other, x)


class TestMeta:
    @every_layer
    def test_materialised(self, case, posterior):
        case = CASES[case]
        options = {**case.options, "posterior": EVERY[posterior]}
        layer = case.layer(*case.arguments, device="meta", **options)
        assert (layer.kl().is_meta, layer.kl().shape) == (True, ())
        layer.to_empty(device="cpu")
        seeded(layer.reset_parameters)
        expected = seeded(partial(case.layer, *case.arguments, **options))
        exactly(layer.state_dict(), expected.state_dict())

    def test_skip_init(self):
        layer = torch.nn.utils.skip_init(nn.VariationalLinear, 3, 2)
        assert layer.log_sigma2.shape == (2, 3)

    def test_dtype(self):
        posterior = nn.Multiplicative("output")
        layer = nn.VariationalConv1d(2, 3, 1, dtype=torch.float64, posterior=posterior)
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
    @pytest.mark.parametrize("posterior", EVERY)
    def test_becomes_the_layer(self, lazy, full, arguments, shape, posterior):
        groups = {} if full is nn.VariationalLinear else {"groups": 2}
        options = {"posterior": replace(EVERY[posterior], initial=-4.0), **groups}
        layer = lazy(*arguments, **options)
        assert layer.has_uninitialized_params()
        assert isinstance(layer, getattr(torch.nn, lazy.__name__.replace("Variational", "")))
        seeded(layer, torch.randn(shape, generator=generator(2)))
        expected = full(shape[1], *arguments, **options)
        assert type(layer) is full
        assert repr(layer) == repr(expected)
        seeded(expected.reset_parameters)
        exactly(layer.state_dict(), expected.state_dict())

    @CASES
    @pytest.mark.parametrize("posterior", [nn.Multiplicative("input"), nn.Correlated()])
    def test_of_a_state(self, lazy, full, arguments, shape, posterior):
        made = full(shape[1], *arguments, posterior=posterior)
        layer = lazy(*arguments, posterior=posterior)
        layer.load_state_dict(made.state_dict())
        assert torch.equal(layer.kl(), made.kl())
        assert torch.equal(nn.kl(layer), made.kl())
        x = torch.randn(shape)
        assert torch.equal(seeded(layer, x), seeded(made, x))
        assert torch.equal(layer.eval()(x), made.eval()(x))

    @CASES
    @pytest.mark.parametrize("posterior", EVERY)
    def test_of_a_state_without_variances(self, lazy, full, arguments, shape, posterior):
        made = full(shape[1], *arguments, posterior=EVERY[posterior])
        state = {name: made.state_dict()[name] for name in ("weight", "bias")}
        layer = lazy(*arguments, posterior=EVERY[posterior])
        layer.load_state_dict(state, strict=False)
        layer(torch.randn(shape))
        exactly(layer.state_dict(), made.state_dict())

    def test_the_device_and_type(self):
        layer = nn.LazyVariationalLinear(2, dtype=torch.float64)
        layer(torch.ones(1, 3, dtype=torch.float64))
        assert layer.log_sigma2.dtype == torch.float64
