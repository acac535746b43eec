"""Networks made variational and plain again: what they compute, share, keep and refuse."""

import copy
import math
import pickle
from dataclasses import dataclass, replace

import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils import fusion  # noqa: E402

from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import POSTERIORS, filled, generator  # noqa: E402


class Tied(torch.nn.Module):
    """A language model whose last layer has the table of the first."""

    def __init__(self, vocabulary=7, width=3):
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)
        self.cell = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, vocabulary, bias=False)
        self.out.weight = self.table.weight

    def forward(self, ids):
        state = self.table(ids)
        for _ in range(3):
            state = torch.tanh(self.cell(state))
        return self.out(state)


def convolutional():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1, padding_mode="reflect"),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Conv2d(4, 4, 3, groups=2, stride=2, bias=False),
        torch.nn.Flatten(),
        torch.nn.Linear(36, 5),
    )


IMAGES = torch.linspace(-1.0, 1.0, 2 * 64).reshape(2, 1, 8, 8)
KINDS = [
    (torch.nn.Linear(3, 2), nn.VariationalLinear, torch.ones(4, 3)),
    (torch.nn.Conv1d(2, 3, 2, dilation=2), nn.VariationalConv1d, torch.ones(4, 2, 9)),
    (torch.nn.Conv2d(2, 3, 2), nn.VariationalConv2d, torch.ones(4, 2, 5, 5)),
    (torch.nn.Conv3d(2, 3, 2), nn.VariationalConv3d, torch.ones(4, 2, 3, 3, 3)),
    (torch.nn.Embedding(5, 2, padding_idx=0), nn.VariationalEmbedding, torch.tensor([0, 4])),
]


class Conv1D(torch.nn.Module):
    """A linear layer whose weight is transposed, as in Hugging Face's transformers."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(inputs, outputs))
        self.bias = torch.nn.Parameter(torch.zeros(outputs))


class Transformer(torch.nn.Module):
    """Modules that have a variational form, and such that have none."""

    def __init__(self):
        super().__init__()
        self.token = torch.nn.Parameter(torch.zeros(1, 1, 4))
        self.first = torch.nn.Linear(4, 4)
        self.attention = torch.nn.MultiheadAttention(4, 2)
        self.norm = torch.nn.LayerNorm(4)
        self.project = Conv1D(8, 4)
        self.weighed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 4))
        self.cell = torch.nn.LSTM(4, 1)


LEFT = (
    "to_variational left module 'project' (Conv1D), module 'weighed' (ParametrizedLinear) without "
    "noise. logunif_kl.torch.nn.conversion(model) says why; choose with modules= and parameters=."
)


class TestWhatIsLeft:
    def test_is_told_once(self):
        model = Transformer()
        with pytest.warns(UserWarning, match="to_variational left") as told:
            made = nn.to_variational(model)
        assert [str(warning.message) for warning in told] == [LEFT]
        assert told[0].filename == __file__
        assert type(made.first) is nn.VariationalLinear
        made.first = torch.nn.Linear(4, 4)
        for name in "abcd":
            made.add_module(name, Conv1D(2, 2))
        with pytest.warns(UserWarning, match=r"module 'c' \(Conv1D\) and 1 more without noise"):
            nn.to_variational(made)

    @pytest.mark.parametrize(
        "modules", [torch.nn.Linear, lambda name, module: True], ids=["type", "function"]
    )
    def test_is_not_told_where_it_was_chosen(self, modules):
        nn.to_variational(Transformer(), modules=modules)

    def test_the_table(self):
        model = nn.to_variational(Transformer(), modules=torch.nn.Linear)
        model.head = torch.nn.Linear(4, 2)
        model.head.weight = torch.nn.Parameter(model.project.weight[:, :2].T.clone())
        found = nn.conversion(model)
        assert found.variational == {"first": 36}
        assert found.left == {
            "": (4, "Transformer has no weight matrix"),
            "attention": (60, "MultiheadAttention is plain, and to_variational can convert it"),
            "attention.out_proj": (
                20,
                "NonDynamicallyQuantizableLinear is plain, and to_variational can convert it",
            ),
            "norm": (8, "LayerNorm has no weight matrix"),
            "project": (40, "Conv1D is converted if modules= names it"),
            "weighed": (
                24,
                "Linear has parametrizations: remove them first, by "
                "torch.nn.utils.parametrize.remove_parametrizations",
            ),
            "cell": (28, "LSTM is plain, and to_variational can convert it"),
            "head": (10, "Linear is plain, and to_variational can convert it"),
        }
        counts = [*found.variational.values(), *(count for count, _ in found.left.values())]
        assert sum(counts) == sum(p.numel() for p in model.parameters())
        lines = str(found).splitlines()
        assert lines[0] == "module              parameters  conversion"
        assert lines[1] == "first                       36  variational"

    def test_sparsity_counts_it(self):
        model = nn.to_variational(Transformer(), modules=torch.nn.Linear)
        filled(model.first, weight=1.0).log_sigma2.data[0] = 9.0
        found = nn.sparsity(model)
        assert found.layers == {
            "first": nn.Sparsity(12, 16),
            "attention.in_proj_weight": nn.Sparsity(48, 48),
            "attention.out_proj.weight": nn.Sparsity(16, 16),
            "weighed": nn.Sparsity(16, 16),
            "cell.weight_ih_l0": nn.Sparsity(16, 16),
            "cell.weight_hh_l0": nn.Sparsity(4, 4),
            "not converted": nn.Sparsity(52, 52),
        }
        assert (found.kept, found.weights) == (164, 168)


class TestComputedTensors:
    """Tensors with a graph, which `copy.deepcopy` refuses, beside what is converted."""

    @pytest.mark.parametrize("hook", ["prune", "weight_norm", "spectral_norm"])
    def test_of_hooks(self, hook):
        other = torch.nn.ConvTranspose1d(2, 2, 1)
        if hook == "prune":
            torch.nn.utils.prune.random_unstructured(other, "weight", 0.5)
        else:
            getattr(torch.nn.utils, hook)(other)
        model = torch.nn.Sequential(torch.nn.Conv1d(2, 2, 1), other)
        x = torch.ones(1, 2, 3)
        model(x).sum().backward()
        made = nn.to_variational(model, modules=torch.nn.Conv1d).eval()
        torch.testing.assert_close(made(x), model.eval()(x))
        made.train()(x).sum().backward()

    def test_that_a_module_keeps(self):
        class Keeps(torch.nn.Linear):
            def forward(self, x):
                self.last = super().forward(x)
                return self.last

        model = torch.nn.Sequential(Keeps(2, 2), torch.nn.Linear(2, 2))
        model(torch.ones(1, 2)).sum().backward()
        made = nn.to_variational(model, modules=torch.nn.Linear)
        assert (made[0].last == model[0].last).all()
        assert made[0].last.grad_fn is None
        model[0].all = [model[0].last * 2.0]
        with pytest.raises(TypeError, match="because it holds a tensor that was computed"):
            nn.to_variational(model, modules=torch.nn.Linear)

    def test_a_view_of_a_weight(self):
        """A copy of the view would not follow the weight of the copy."""
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        model.turned = model[0].weight.t()
        for convert in (nn.to_variational, nn.to_compact, nn.to_sparse):
            with pytest.raises(TypeError, match="turned of the model is a view of a parameter"):
                convert(model)
        with pytest.warns(UserWarning, match="keeps the weight of a variational layer"):
            nn.to_variational(model, inplace=True)


class TestFusion:
    """With batch normalisation. refusals.txt has that of additive layers."""

    @pytest.mark.parametrize(
        ("fuse", "kind", "sizes", "norm"),
        [
            (fusion.fuse_conv_bn_eval, nn.VariationalConv2d, (2, 3, 1), torch.nn.BatchNorm2d),
            (fusion.fuse_linear_bn_eval, nn.VariationalLinear, (2, 3), torch.nn.BatchNorm1d),
        ],
    )
    def test_of_multiplicative_layers_scales_the_variances(self, fuse, kind, sizes, norm):
        additive = kind(*sizes).eval()
        fuse(nn.to_deterministic(additive), norm(3).eval())
        additive.weight = torch.nn.Parameter(additive.weight.detach())
        layer, batch_norm = kind(*sizes, posterior=nn.Multiplicative()).eval(), norm(3).eval()
        batch_norm.running_var.fill_(1e-2)
        x = torch.ones(1, *([2] if norm is torch.nn.BatchNorm1d else [2, 1, 1]))
        _, before = nn.moments(layer, x)
        _, after = nn.moments(fuse(layer, batch_norm), x)
        torch.testing.assert_close(after, before / (1e-2 + batch_norm.eps))


class TestToVariational:
    @pytest.mark.parametrize(("layer", "kind", "x"), KINDS)
    def test_each_layer(self, layer, kind, x):
        made = nn.to_variational(layer, posterior=nn.Additive(initial=-3.0))
        assert type(made) is kind
        assert type(layer) is not kind
        assert torch.equal(made.weight, layer.weight)
        assert made.weight is not layer.weight
        assert (made.log_sigma2 == -3.0).all()
        assert torch.equal(made.eval()(x), layer(x))
        assert not torch.equal(made.train()(x), layer(x))
        missing, unexpected = made.load_state_dict(layer.state_dict(), strict=False)
        assert (missing, unexpected) == (["log_sigma2"], [])

    def test_hooks_modes_and_types_are_kept(self):
        layer = torch.nn.Linear(2, 2, dtype=torch.bfloat16)
        layer.requires_grad_(False)
        called = []
        layer.register_forward_hook(lambda *a: called.append(1))
        made = nn.to_variational(layer.eval())
        assert not made.training
        made(torch.ones(1, 2, dtype=torch.bfloat16))
        assert called == [1]
        assert made.log_sigma2.dtype == torch.bfloat16
        # The means are frozen, and the variances learn.
        assert not made.weight.requires_grad
        assert made.log_sigma2.requires_grad
        assert nn.to_variational(torch.nn.Linear(2, 2, device="meta")).log_sigma2.is_meta

    @pytest.mark.parametrize(
        ("plain", "name", "options"),
        [
            (torch.nn.Linear(3, 2), "estimator", {}),
            (torch.nn.Linear(3, 2), "log_sigma2", {}),
            (torch.nn.Linear(3, 2), "scale", {"posterior": nn.Scaled()}),
            (torch.nn.GRUCell(3, 2), "weight_hh_log_sigma2", {}),
        ],
    )
    @pytest.mark.parametrize("kind", ["attribute", "buffer", "parameter"])
    def test_a_name_that_the_user_has_taken(self, kind, plain, name, options):
        model = torch.nn.Sequential(copy.deepcopy(plain))
        if kind == "attribute":
            setattr(model[0], name, 0.5)
        elif kind == "buffer":
            model[0].register_buffer(name, torch.ones(2))
        else:
            model[0].register_parameter(name, torch.nn.Parameter(torch.ones(2)))
        match = rf"^module '0' has an attribute '{name}', a name that"
        with pytest.raises(ValueError, match=match):
            nn.to_variational(model, inplace=True, **options)
        assert type(model[0]) is type(plain)

    def test_other_names_are_the_users(self):
        layer = torch.nn.Linear(3, 2)
        layer.p, layer.scale, layer.q = 0.3, torch.nn.Parameter(torch.ones(2)), torch.ones(1)
        layer.noise = 0.1  # an option of layers before posteriors were objects
        made = nn.to_variational(layer)
        made.noise = 0.2
        made = nn.to_deterministic(pickle.loads(pickle.dumps(made)))
        assert (made.p, made.noise) == (0.3, 0.2)
        assert (made.scale.tolist(), made.q.tolist()) == ([1.0, 1.0], [1.0])
        assert vars(made).keys() == vars(layer).keys()

    def test_no_random_number_is_taken(self):
        torch.manual_seed(0)
        model = convolutional()
        before = torch.get_rng_state()
        nn.to_variational(model)
        assert torch.equal(torch.get_rng_state(), before)

    def test_options(self):
        options = {"posterior": nn.Correlated("layer", 0.0, initial=-2.0), "penalty": "molchanov"}
        options |= {"estimator": "per_batch", "generator": generator()}
        made = nn.to_variational(torch.nn.Linear(3, 2), **options)
        assert {name: getattr(made, name) for name in options} == options
        direct = nn.VariationalLinear(3, 2, **options)
        assert repr(made) == repr(direct)
        assert vars(made).keys() == vars(direct).keys()

    @pytest.mark.parametrize(
        ("modules", "converted"),
        [
            (None, [0, 3, 5]),
            (torch.nn.Linear, [5]),
            ((torch.nn.Linear, torch.nn.Conv2d), [0, 3, 5]),
            (lambda name, module: name != "5", [0, 3]),
            (lambda name, module: module.bias is None, [3]),
        ],
    )
    def test_filters(self, modules, converted):
        made = nn.to_variational(convolutional(), modules=modules)
        assert [i for i, m in enumerate(made) if isinstance(m, nn.VariationalLayer)] == converted

    def test_in_place(self):
        model = convolutional()
        weight, first = model[5].weight, model[0]
        assert nn.to_variational(model, inplace=True) is model
        assert model[5].weight is weight
        assert model[0] is first
        assert type(first) is nn.VariationalConv2d

    def test_what_is_variational_stays(self):
        layer = nn.VariationalLinear(2, 2, posterior=nn.Additive(initial=-1.0))
        made = nn.to_variational(torch.nn.Sequential(layer, torch.nn.Linear(2, 2)))
        assert (made[0].log_sigma2 == -1.0).all()
        assert (made[1].log_sigma2 == -10.0).all()


class TestShared:
    @pytest.mark.parametrize("posterior", ["additive", "layer"])
    def test_tied_weights(self, posterior):
        model = Tied()
        made = nn.to_variational(model, posterior=POSTERIORS[posterior])
        assert made.out.weight is made.table.weight
        assert made.out._log_variance is made.table._log_variance
        assert nn.kl(made).item() == pytest.approx((made.table.kl() + made.cell.kl()).item())
        ids = torch.tensor([[1, 2]])
        assert torch.equal(made.eval()(ids), model(ids))
        back = nn.to_deterministic(made)
        assert back.out.weight is back.table.weight
        assert torch.equal(back(ids), model(ids))

    @pytest.mark.parametrize("first", ["table", "out"])
    def test_tied_weights_that_are_converted_one_by_one(self, first):
        model = Tied()
        one = nn.to_variational(model)
        with pytest.warns(UserWarning, match="convert it too"):
            part = nn.to_variational(model, modules=lambda name, _: name == first)
        two = nn.to_variational(part, modules=lambda name, _: name in ("table", "out", "cell"))
        assert two.out._log_variance is two.table._log_variance
        assert nn.kl(two).item() == nn.kl(one).item()
        with pytest.raises(ValueError, match="converted before, with another posterior: convert"):
            nn.to_variational(part, posterior=nn.Multiplicative())

    @pytest.mark.parametrize(
        ("name", "value"),
        [("penalty", "molchanov"), ("posterior", nn.Multiplicative("layer", max_log_alpha=0.0))],
    )
    def test_one_weight_with_two_divergences(self, name, value):
        made = nn.to_variational(Tied(), posterior=nn.Multiplicative("layer", initial=-1.0))
        made.out.posterior = replace(made.out.posterior, initial=-2.0)
        count = nn.sparsity(made).weights
        setattr(made.out, name, value)
        with pytest.raises(ValueError, match=rf"its KL counts once, but the {name}"):
            nn.kl(made)
        setattr(made.table, name, value)
        assert nn.sparsity(made).weights == count

    def test_one_weight_with_two_copies_of_a_prior(self):
        """Priors that cannot be compared are taken for equal, unless they may be trained."""

        class Plain:
            def neg_kl(self, mu, log_sigma2):
                return -0.5 * (mu.square() + log_sigma2.exp() - log_sigma2 - 1.0)

        @dataclass
        class WithTensor(Plain):
            scale: torch.Tensor

        class Trained(Plain, torch.nn.Module):
            pass

        scale = torch.ones(2)
        for first, second in ((Plain(), Plain()), (WithTensor(scale), WithTensor(scale.clone()))):
            made = nn.to_variational(Tied(), penalty=first)
            expected = nn.kl(made)
            made.out.penalty = second
            assert nn.kl(made) == expected
        made.out.penalty = Trained()
        with pytest.raises(ValueError, match="its KL counts once, but the penalty"):
            nn.kl(made)

    def test_a_module_is_chosen_by_any_of_its_names(self):
        model = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3), "b": torch.nn.Linear(3, 3)})
        model["c"] = model["a"]
        found = nn.to_variational(model, modules=lambda name, _: name == "c")
        assert list(nn.named_kl(found)) == ["a"]

    def test_the_padding_of_a_tied_weight(self):
        """The other layer draws noise in its row, so all functions count it."""
        model = torch.nn.ModuleDict({"table": torch.nn.Embedding(6, 4, padding_idx=0)})
        model["out"] = torch.nn.Linear(4, 6, bias=False)
        model["out"].weight = model["table"].weight
        made = nn.to_variational(model, posterior=nn.Additive(initial=0.0))
        with torch.no_grad():
            made["table"].weight[0] = 0.1
        assert torch.equal(nn.log_alpha(made)["table"], made["out"].log_alpha_of_weights())
        threshold = nn.density_threshold(made, 0.25)
        assert nn.sparsity(made, threshold).kept == 6
        nn.zero_means(made, threshold)
        assert int((made["out"].weight != 0).sum()) == 6


class TestToDeterministic:
    @pytest.mark.parametrize(
        ("layer", "kind", "x", "posterior"),
        [
            (*each, posterior)
            for each in KINDS
            for posterior in (nn.Additive(), nn.Multiplicative(), nn.Scaled())
            if (each[1], posterior) != (nn.VariationalEmbedding, nn.Scaled())
        ],
    )
    def test_there_and_back(self, layer, kind, x, posterior):
        made = nn.to_variational(layer, posterior=posterior, generator=generator())
        if posterior == nn.Scaled():
            assert (made.scale == 1).all()
            assert (made.scale_log_sigma2 == -10).all()
        back = nn.to_deterministic(made)
        assert type(back) is type(layer)
        assert vars(back).keys() == vars(layer).keys()
        assert repr(back) == repr(layer)
        assert list(back.state_dict()) == list(layer.state_dict())
        assert torch.equal(back(x), layer(x))
        assert type(made) is kind
        assert back.weight is not made.weight

    @pytest.mark.parametrize("threshold", [3.0, 0.0, -math.inf, math.inf])
    def test_pruning(self, threshold):
        layer = nn.VariationalLinear(40, 30, posterior=nn.Additive(initial=-5.0))
        back = nn.to_deterministic(layer, threshold)
        kept = layer.log_alpha_of_weights() <= threshold
        assert torch.equal(back.weight, layer.weight * kept)
        if threshold == 0.0:
            assert 0.1 < kept.float().mean() < 0.9

    def test_in_place_and_a_copy(self):
        model = nn.to_variational(convolutional())
        before = copy.deepcopy(model.state_dict())
        nn.to_deterministic(model, 3.0)
        assert all(torch.equal(a, before[k]) for k, a in model.state_dict().items())
        assert nn.to_deterministic(model, inplace=True) is model
        assert type(model[0]) is torch.nn.Conv2d

    def test_of_gaussian_dropout(self):
        model = torch.nn.Sequential(nn.GaussianDropoutA(0.2), nn.GaussianDropoutLinear(3, 2, 0.5))
        back = nn.to_deterministic(model)
        assert [type(m) for m in back] == [torch.nn.Identity, torch.nn.Linear]
        x = torch.randn(4, 3)
        assert torch.equal(back(x), model.eval()(x))
        assert repr(back[1]) == "Linear(in_features=3, out_features=2, bias=True)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimator": "global"}, "estimator must be"),
        ({"posterior": nn.Multiplicative("input")}, "share a weight"),
    ],
)
def test_a_refused_option_changes_nothing(options, words):
    model = Tied()
    with pytest.raises(ValueError, match=words):
        nn.to_variational(model, **options, inplace=True)
    assert type(model.table) is torch.nn.Embedding
    assert type(model.cell) is torch.nn.Linear


class Agent(torch.nn.Module):
    """A network that holds a scheduler of an optimizer."""

    def __init__(self, names):
        super().__init__()
        self.layer, self.temperature = torch.nn.Linear(3, 2), torch.nn.Parameter(torch.ones(()))
        trained = [p for name, p in self.named_parameters() if name in names]
        self.schedulers = [torch.optim.lr_scheduler.StepLR(torch.optim.SGD(trained, 0.1), 10)]


@pytest.mark.parametrize("inplace", [False, True])
def test_a_network_that_holds_its_optimizer(inplace):
    model = torch.nn.Sequential(Agent(["temperature", "layer.weight"]))
    words = "^'schedulers' of module '0' holds an optimizer that was made before the conversion"
    with pytest.warns(UserWarning, match=words):
        nn.to_variational(model, inplace=inplace)
    nn.to_variational(torch.nn.Sequential(Agent(["temperature", "layer.bias"])), inplace=inplace)
