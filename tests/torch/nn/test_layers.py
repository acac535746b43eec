"""The layers are drop-in for torch's, and both forms of the local estimator are the same."""

import copy
import itertools
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from logunif_kl.nn.torch.noise import local  # noqa: E402
from logunif_kl.nn.torch.noise.normal import normals  # noqa: E402
from logunif_kl.torch import kl, kl_normal, nn  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    ESTIMATORS,
    EVERY,
    OF_UNITS,
    POSTERIORS,
    every_case,
    every_estimator,
    every_layer,
    every_pair,
    every_posterior,
    filled,
    finite,
    generator,
    inputs,
    kl_of,
    layer_and_input,
    made,
    sampled,
    seeded,
    twin,
    variances,
)

LINEAR = CASES["linear"]


class TestDropIn:
    @every_case
    def test_the_same_parameters_from_a_seed(self, case):
        case = CASES[case]
        torch.manual_seed(1)
        layer = case.layer(*case.arguments, **case.options)
        torch.manual_seed(1)
        plain = case.twin(*case.arguments, **case.options)
        assert isinstance(layer, case.twin)
        assert isinstance(layer, nn.VariationalLayer)
        for name, value in plain.state_dict().items():
            assert torch.equal(layer.state_dict()[name], value)
        assert set(layer.state_dict()) == {*plain.state_dict(), "log_sigma2"}
        assert (layer.log_sigma2 == -10).all()

    @every_layer
    def test_the_mean_in_eval_mode(self, case, posterior):
        layer, x = layer_and_input(case, posterior)
        layer.eval()
        assert torch.equal(layer(x), layer(x))
        assert torch.equal(layer(x), twin(CASES[case], layer)(x))
        layer._lk_sampling = True
        assert not torch.equal(layer(x), layer(x))

    @every_pair
    def test_shapes_and_gradients(self, case, posterior, estimator):
        """With a batch, without one, of no examples, and without memory."""
        layer, x = layer_and_input(case, posterior, 6, estimator=estimator)
        plain = twin(CASES[case], layer)
        pairs = x.unflatten(0, (2, 3))
        for given in (x, x[0], pairs) if case in ("linear", "embedding") else (x, x[0]):
            output = layer(given)
            assert output.shape == plain(given).shape
            assert output.dtype == torch.float32
            assert not torch.equal(output, plain(given))
        (layer(x).square().sum() + layer.kl()).backward()
        for name, parameter in layer.named_parameters():
            assert finite(parameter.grad), name
            assert case == "embedding" or (parameter.grad != 0.0).all(), name
        layer.zero_grad()
        if case != "embedding":
            one, alone = (each.clone().requires_grad_() for each in (x[:1], x[0]))
            for each in (one, alone):
                seeded(layer, each).square().sum().backward()
            torch.testing.assert_close(one.grad[0], alone.grad)
            layer.zero_grad()
        output = layer(x[:0])
        assert output.shape == (0, *plain(x).shape[1:])
        output.sum().backward()
        for name, parameter in layer.named_parameters():
            assert parameter.grad is not None, name
            assert not parameter.grad.any(), name
        output = copy.deepcopy(layer).to("meta")(x.to("meta"))
        assert (output.is_meta, output.shape) == (True, plain(x).shape)

    @pytest.mark.parametrize(
        ("posterior", "shape", "conv", "embedding"),
        [
            ("additive", (2, 3), (4, 2, 2), (4, 2)),
            ("weight", (2, 3), (4, 2, 2), (4, 2)),
            ("output", (2, 1), (4, 1, 1), (1, 2)),
            ("input", (1, 3), (1, 2, 1), (4, 1)),
            ("layer", (1, 1), (1, 1, 1), (1, 1)),
        ],
    )
    def test_shapes_of_the_second_parameter(self, posterior, shape, conv, embedding):
        options = {"posterior": POSTERIORS[posterior]}
        assert nn.VariationalLinear(3, 2, **options)._log_variance.shape == shape
        assert nn.VariationalConv1d(4, 4, 2, groups=2, **options)._log_variance.shape == conv
        assert nn.VariationalEmbedding(4, 2, **options)._log_variance.shape == embedding

    def test_extra_repr(self):
        assert repr(nn.VariationalLinear(3, 2)) == (
            "VariationalLinear(in_features=3, out_features=2, bias=True)"
        )
        options = {"posterior": nn.Correlated("layer", 0), "estimator": "per_batch"}
        assert repr(nn.VariationalConv2d(4, 6, 3, bias=False, **options)) == (
            "VariationalConv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), bias=False, "
            "posterior=Correlated(sharing='layer', max_log_alpha=0.0), estimator='per_batch')"
        )

    @pytest.mark.parametrize("posterior", EVERY.values(), ids=EVERY)
    def test_initial(self, posterior):
        default = -3 if posterior.relative else -10
        for each, initial in ((posterior, default), (replace(posterior, initial=-5), -5)):
            layer = nn.VariationalLinear(3, 2, posterior=each)
            assert (layer._log_variance == initial).all()
            if posterior == nn.Scaled():
                assert (layer.scale == 1).all()
                assert (layer.scale_log_sigma2 == initial).all()


class TestTheTwoForms:
    """The fused local estimator, and the composite one."""

    @staticmethod
    def results(layer, x, fused, monkeypatch, second=False):
        monkeypatch.setattr(local, "_fusible", lambda *given: fused)
        x = x.clone().requires_grad_()
        leaves = [x, *layer.parameters()]
        torch.manual_seed(3)
        output = layer(x)
        by = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
        first = torch.autograd.grad((by * output.sin()).sum(), leaves, create_graph=second)
        if not second:
            return output, *first
        return torch.autograd.grad(sum((g**2).sum() for g in first), leaves)

    @pytest.mark.parametrize(
        ("case", "estimator"),
        [
            *((case, "local") for case in ("linear", "conv1d", "conv2d", "conv3d")),
            *(("linear", estimator) for estimator in ESTIMATORS[1:]),
        ],
    )
    @pytest.mark.parametrize("posterior", ["additive", "weight", "output"])
    @pytest.mark.parametrize("second", [False, True])
    def test_are_the_same(self, case, estimator, posterior, second, monkeypatch):
        layer, x = layer_and_input(case, posterior, dtype=torch.float64, estimator=estimator)
        for given in (x, x[0]):
            one, other = (self.results(layer, given, f, monkeypatch, second) for f in (True, False))
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)

    def test_which_runs(self, monkeypatch):
        """The fused one for plain tensors, and only for those."""
        seen = []
        apply = local._Fused.apply
        monkeypatch.setattr(local._Fused, "apply", lambda *a: seen.append(1) or apply(*a))
        layer, x = made(LINEAR), inputs(LINEAR, 2)
        layer(x)
        with torch.autocast("cpu"):
            layer(x)
        layer.half()(x.half())
        assert seen == [1, 1, 1]
        torch.vmap(layer, randomness="different")(x.half())
        torch.compile(layer, backend="eager")(x.half())
        layer.to("meta")(torch.empty(2, 3, device="meta", dtype=torch.float16))
        assert seen == [1, 1, 1]

    @pytest.mark.parametrize("case", ["linear", "conv2d"])
    @pytest.mark.parametrize("posterior", ["additive", "weight", "input"])
    @pytest.mark.parametrize(
        ("dtype", "autocast"),
        [
            (torch.bfloat16, False),
            (torch.float16, False),
            (torch.float32, True),
            (torch.bfloat16, True),
        ],
    )
    def test_are_the_same_in_half_types(self, case, posterior, dtype, autocast, monkeypatch):
        layer, x = layer_and_input(case, posterior)
        layer, x = layer if autocast else layer.to(dtype), x.to(dtype)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            size = layer(x).nbytes
            # A deterministic layer also keeps the weight in the type of the product.
            assert kept(layer, x) == (size // layer(x).numel()) * x.numel() + size
            one, other = (self.results(layer, x, f, monkeypatch) for f in (True, False))
        for a, b in zip(one, other, strict=True):
            assert a.dtype == b.dtype
            error = (a.double() - b.double()).norm() / b.double().norm()
            assert error < 0.02

    @pytest.mark.parametrize("posterior", ["additive", "weight", "output", "input", "layer"])
    @pytest.mark.parametrize("case", ["linear", "conv2d"])
    def test_what_is_kept_for_the_backward_pass(self, case, posterior, monkeypatch):
        """The input and one tensor of the output's size; the noise of explicit weights."""
        layer, x = layer_and_input(case, posterior)
        assert kept(layer, x) == 2 * x.nbytes + layer(x).nbytes + layer.weight.nbytes  # few
        monkeypatch.setattr(local, "_FEW", 0)
        assert kept(layer, x) == x.nbytes + layer(x).nbytes
        layer.estimator = "per_batch"
        # The means are a view of the parameter that torch's layer keeps.
        assert kept(layer, x) == x.nbytes + 2 * layer.weight.nbytes
        if case == "linear":
            attention = nn.to_variational(torch.nn.MultiheadAttention(4, 2))
            plain = torch.nn.MultiheadAttention(4, 2)
            more = kept(attention, x := torch.ones(2, 3, 4), x, x) - kept(plain, x, x, x)
            assert more <= 2 * 4 * 4 * 4 * x.itemsize

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3)])
    def test_the_output_can_be_changed_in_place(self, shape, bias):
        layer, x = nn.VariationalLinear(3, 2, bias=bias), torch.ones(shape)
        slopes = torch.autograd.grad(layer(x).sin().sum(), layer.parameters())
        assert [g.shape for g in slopes] == [p.shape for p in layer.parameters()]
        changed = torch.nn.ReLU(inplace=True)(seeded(layer, x))
        assert torch.equal(changed, seeded(layer, x).relu())

    def test_no_variance_beside_a_large_one(self, fused, monkeypatch):
        """Where the variance is zero, its derivative times a variance of 1e30 is no NaN."""
        layer = nn.VariationalLinear(2, 1, bias=False)
        filled(layer, log_sigma2=torch.tensor([70.0, -10.0]))
        x = torch.tensor([[0.0, 0.0], [0.0, 1.0]])
        found = self.results(layer, x, fused, monkeypatch)
        assert finite(*found)
        assert (found[3] == 0.0).tolist() == [[True, False]]

    @pytest.mark.parametrize("case", ["linear", "conv2d"])
    @pytest.mark.parametrize("posterior", ["additive", "weight"])
    def test_gradients_of_some_tensors(self, case, posterior, fused):
        """Each is the same, whichever others are wanted."""
        layer, x = layer_and_input(case, posterior, 4)
        tensors = {"input": x.detach(), **dict(layer.named_parameters())}

        def gradients(names):
            for name, each in tensors.items():
                each.requires_grad_(name in names)
            loss = seeded(layer, tensors["input"]).sin().sum()
            return torch.autograd.grad(loss, [tensors[name] for name in names])

        every = dict(zip(tensors, gradients(tensors), strict=True))
        for count in range(1, len(tensors)):
            for names in itertools.combinations(tensors, count):
                for name, found in zip(names, gradients(names), strict=True):
                    torch.testing.assert_close(found, every[name])

    @pytest.mark.parametrize(
        ("case", "posterior", "estimator"),
        [
            *((case, "additive", "local") for case in ("linear", "conv1d", "conv2d", "conv3d")),
            *(("linear", name, "local") for name in ("weight", "correlated, input", *OF_UNITS)),
            *(("linear", "scaled", estimator) for estimator in ESTIMATORS[1:]),
            *(("conv1d", "weight", estimator) for estimator in ESTIMATORS[1:]),
        ],
    )
    def test_gradcheck(self, case, posterior, estimator, fused):
        options = {"dtype": torch.float64, "estimator": estimator}
        layer, x = layer_and_input(case, posterior, 2, **options)
        names = list(dict(layer.named_parameters()))

        def output(x, *parameters):
            named = dict(zip(names, parameters, strict=True))
            return seeded(torch.func.functional_call, layer, named, (x,))

        given = [x.detach().requires_grad_() for x in (x, *layer.parameters())]
        assert torch.autograd.gradcheck(output, given, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(output, given)


def kept(module, *given):
    """Count the bytes that a call keeps for the backward pass, besides the parameters."""
    found = {}

    def pack(x):
        found[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    given = [x.clone().requires_grad_() for x in given]
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        output = module(*given)
    for parameter in module.parameters():
        found.pop(parameter.untyped_storage().data_ptr(), None)
    del output
    return sum(storage.nbytes() for storage in found.values())


class TestExplicitWeights:
    """The explicit estimators are torch's layer with the weights that are drawn."""

    @every_case
    @every_posterior
    @pytest.mark.parametrize("estimator", ESTIMATORS[1:])
    def test_by_each_example(self, case, posterior, estimator):
        case, examples = CASES[case], 5
        options = {"posterior": POSTERIORS[posterior], "estimator": estimator}
        layer = made(case, dtype=torch.float64, **options)
        x = inputs(case, examples, dtype=torch.float64)
        weight, weights = layer.weight.detach(), sampled(layer, examples)
        if estimator == "per_batch":
            weights = weights[:1].expand_as(weights).clone()
        if isinstance(layer, torch.nn.Embedding):
            weights[:, layer.padding_idx] = weight[layer.padding_idx]
        # What the layer is to draw so that its weights are these.
        noise = (weights - weight) / variances(layer).sqrt()
        if not layer.posterior.independent:
            noise = scales(layer, weights)
        elif posterior != "additive":
            noise *= weight.sign()
        noise = noise if estimator == "per_example" else noise[0]
        layer._lk_normals = lambda shape, like: noise.nan_to_num().reshape(shape)
        plain, found = twin(case, layer), layer(x)
        for i in range(examples):
            expected = filled(plain, weight=weights[i])(x[i])
            torch.testing.assert_close(found[i], expected, rtol=1e-12, atol=1e-13)


def scales(layer, weights):
    """The normals of the scales that give these weights."""
    root = layer.log_alpha.detach().exp().sqrt()
    normals = (weights / layer.weight.detach() - 1) / root
    if isinstance(layer, torch.nn.Embedding):
        return normals[..., :1]
    groups = getattr(layer, "groups", 1)
    # The first output of each group reads each of its channels.
    first = normals.unflatten(1, (groups, -1))[:, :, 0]
    return first.reshape(*first.shape[:3], -1)[..., 0].flatten(1)


class TestEmpty:
    """No inputs or no outputs."""

    @pytest.mark.parametrize("lengths", [(3, 0), (0, 3), (0, 0)])
    @pytest.mark.parametrize("shape", [(), (2,), (2, 4)])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    @pytest.mark.filterwarnings("ignore:Initializing zero-element")
    def test_no_inputs_or_outputs(self, lengths, shape, estimator):
        layer = nn.VariationalLinear(*lengths, estimator=estimator)
        x = torch.ones(*shape, lengths[0], requires_grad=True)
        output = layer(x)
        assert output.shape == (*shape, lengths[1])
        output.sum().backward()
        assert x.grad.shape == x.shape
        assert layer.weight.grad.shape == layer.weight.shape


class TestConvolution:
    @pytest.mark.parametrize(
        ("options", "kernel"),
        [
            ({}, 3),
            ({"padding": 2, "stride": 2}, 3),
            ({"padding": "same"}, 3),
            ({"padding": "same", "dilation": 2}, 3),
            ({"padding": "valid"}, 2),
            ({"groups": 2, "padding": 1}, 3),
            ({"groups": 4}, 2),
            ({"dilation": 2, "bias": False}, 2),
            ({"padding": 1, "padding_mode": "circular"}, 3),
            ({"padding": 1, "padding_mode": "reflect", "groups": 2}, 3),
            ({"padding": "same", "padding_mode": "replicate"}, 3),
        ],
    )
    @pytest.mark.parametrize("dimensions", [1, 2, 3])
    @pytest.mark.parametrize("posterior", ["additive", "input", "correlated, input"])
    def test_outputs_have_the_moments_of_torchs_convolution(
        self, dimensions, options, kernel, posterior
    ):
        """Each output has noise of its own, with the variance of a sum over the inputs it sees."""
        kind = ("Conv1d", "Conv2d", "Conv3d")[dimensions - 1]
        make = getattr(nn, f"Variational{kind}")
        layer = make(4, 4, kernel, **options, posterior=POSTERIORS[posterior])
        with torch.no_grad():
            layer.double()._log_variance.uniform_(-3, 0, generator=generator(1))
        shape = (2, 4, 5, 4, 6)[: 2 + dimensions]
        x = torch.randn(shape, generator=generator(2), dtype=torch.float64)
        noise = []

        def normals(shape, like):
            noise.append(torch.randn(shape, generator=generator(3), dtype=like.dtype))
            return noise[-1].clone()

        layer._lk_normals = normals
        found = layer(x)
        plain = getattr(torch.nn, kind)(4, 4, kernel, **options).double()
        plain.load_state_dict(layer.state_dict(), strict=False)
        if not layer.posterior.independent:
            root = layer.log_alpha.detach().exp().sqrt()
            root = root.expand(1, 4 // layer.groups, *root.shape[2:])
            root = root.repeat(1, layer.groups, *[1] * dimensions)
            expected = plain(x * (1 + root * noise[0]))
        else:
            # The squared inputs are padded as the inputs are.
            expected = plain(x)
            plain.bias = None
            expected = expected + filled(plain, weight=variances(layer))(x**2).sqrt() * noise[0]
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)

    def test_channels_last_is_kept(self):
        layer, x = made(CASES["conv2d"]), inputs(CASES["conv2d"], 2)
        plain = twin(CASES["conv2d"], layer)
        layer, plain, x = (each.to(memory_format=torch.channels_last) for each in (layer, plain, x))
        assert layer(x).stride() == plain(x).stride()
        layer(x).sum().backward()
        assert finite(layer.weight.grad)

    @pytest.mark.parametrize("seed", [None, 3])
    def test_normals_of_another_format_are_those_of_their_memory(self, seed):
        # PyTorch draws one at a time for such a tensor, which takes longer and gives others.
        like = torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last)
        found = seeded(normals, like.shape, like, seed and generator(seed))
        assert found.stride() == like.stride()
        torch.manual_seed(1)
        expected = torch.randn(2, 4, 5, 3, generator=seed and generator(seed))
        assert torch.equal(found.permute(0, 2, 3, 1), expected)


class TestEmbedding:
    @every_posterior
    @every_estimator
    def test_the_padding_is_a_constant(self, posterior, estimator):
        layer = made(CASES["embedding"], estimator=estimator, posterior=POSTERIORS[posterior])
        layer.weight.data[1] = 7.0
        output = layer(torch.tensor([[1, 0], [2, 1]]))
        assert (output[[0, 1], [0, 1]] == 7).all()
        (output.sum() + layer.kl()).backward()
        assert (layer.weight.grad[1] == 0).all()
        if layer._log_variance.shape[0] > 1:
            assert (layer._log_variance.grad[1] == 0).all()
            assert (layer._log_variance.grad[0] != 0).all()

    def test_one_sample_serves_the_example(self):
        same = made(CASES["embedding"], estimator="per_example")(torch.tensor([[3, 3], [3, 0]]))
        assert torch.equal(same[0, 0], same[0, 1])
        assert not torch.equal(same[0, 0], same[1, 0])
        same = made(CASES["embedding"], estimator="per_batch")(torch.tensor([[3, 0], [2, 3]]))
        assert torch.equal(same[0, 0], same[1, 1])
        same = made(CASES["embedding"])(torch.tensor([[3, 3]]))
        assert not torch.equal(same[0, 0], same[0, 1])

    @pytest.mark.parametrize("kind", [torch.nn.Embedding, torch.nn.EmbeddingBag])
    def test_a_padding_from_the_end(self, kind):
        """Which was assigned, because the constructor counts from the start."""
        torch.manual_seed(0)
        table, other = kind(5, 3), kind(5, 3, padding_idx=3)
        table.padding_idx = -2
        other.load_state_dict(table.state_dict())
        found, expected = map(nn.to_variational, (table, other))
        assert nn.kl(found) == nn.kl(expected)
        x = torch.arange(5).view(5, 1)
        with nn.sampled(found, generator=generator(1)):
            first = found(x)
        with nn.sampled(expected, generator=generator(1)):
            assert torch.equal(first, expected(x))
        nn.prune(found, -100.0)
        assert nn.sparsity(found) == nn.sparsity(nn.prune(expected, -100.0) or expected)

    def test_only_a_padding(self):
        assert nn.VariationalEmbedding(1, 2, padding_idx=0).kl() == 0

    @pytest.mark.parametrize("freeze", [True, False])
    def test_from_pretrained(self, freeze):
        means = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        posterior = nn.Multiplicative("input", initial=-1.0)
        layer = nn.VariationalEmbedding.from_pretrained(means, freeze, 0, posterior=posterior)
        assert torch.equal(layer.eval()(torch.tensor([2, 0])), means[[2, 0]])
        assert layer.weight.requires_grad is not freeze
        assert layer.log_alpha.requires_grad
        assert layer.log_alpha.tolist() == [[-1.0], [-1.0], [-1.0]]
        assert layer.padding_idx == 0
        default = nn.VariationalEmbedding.from_pretrained(means)
        assert not default.weight.requires_grad
        assert default.log_sigma2.requires_grad


class TestKl:
    @every_case
    @every_posterior
    def test_counts_every_weight_or_scale(self, case, posterior):
        layer = made(CASES[case], dtype=torch.float64, posterior=POSTERIORS[posterior])
        rows = torch.ones(layer.weight.shape[:1], dtype=torch.bool)
        if case == "embedding":
            rows[layer.padding_idx] = False
        if posterior == "additive":
            each = kl_normal(layer.weight, layer.log_sigma2)
        elif layer.posterior.independent:
            each = kl(layer.log_alpha.expand(layer.weight.shape))
        else:
            alpha = layer.log_alpha.reshape(layer.log_alpha.shape[:2])
            each = kl(alpha.expand((4, 1) if case == "embedding" else (1, layer.weight.shape[1])))
            each = each.repeat(1, getattr(layer, "groups", 1))
        each = each[rows] if len(each) == len(rows) else each
        torch.testing.assert_close(layer.kl(), each.sum(), rtol=1e-13, atol=0)
        torch.testing.assert_close(layer.neg_kl(), -each.sum(), rtol=1e-13, atol=0)
        of = "weights" if layer.posterior.independent else "scales"
        assert layer.kl(of=of) == nn.kl(layer, of=of) == layer.kl()

    @pytest.mark.parametrize("posterior", EVERY)
    def test_gradcheck(self, posterior):
        layer = made(CASES["conv1d"], dtype=torch.float64, posterior=EVERY[posterior])
        names = list(dict(layer.named_parameters()))

        def divergence(*parameters):
            return kl_of(layer, dict(zip(names, parameters, strict=True)))

        given = [p.detach().requires_grad_() for p in layer.parameters()]
        assert torch.autograd.gradcheck(divergence, given)
        assert torch.autograd.gradgradcheck(divergence, given)


def test_the_local_estimator_by_hand():
    """With a noise of ones: the mean plus the root of the variance, of Eq. 6."""
    layer, x = made(LINEAR), inputs(LINEAR, 4)
    layer._lk_normals = lambda shape, like: torch.ones(shape)
    mean = F.linear(x, layer.weight, layer.bias)
    expected = mean + F.linear(x**2, layer.log_sigma2.exp()).sqrt()
    torch.testing.assert_close(layer(x), expected)
