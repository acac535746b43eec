"""Who reads a weight, and when: its noise is drawn, or the reader is refused in one sentence.

What is drawn is compared with `to_sample`, which makes a plain network of an explicit sample.
"""

import contextlib
import copy
import math
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MethodType, SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (  # noqa: E402
    checkpoint_wrapper,
)
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrize, prune  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from logunif_kl.nn.torch.noise.undrawn import UndrawnWeight  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import generator, seeded  # noqa: E402

KINDS = {"additive": nn.Additive, "multiplicative": nn.Multiplicative, "scaled": nn.Scaled}
KINDS["sampled"] = nn.Additive
REFUSED = r"^(the weight of a \w+|weight of a \w+) has noise, but it was read outside the call"


class Reads(torch.nn.Module):
    """A network whose weight is read by the layer, by the network, or in a method."""

    def __init__(self, reader):
        super().__init__()
        self.inner, self.reader = torch.nn.Linear(4, 3), reader

    def encode(self, x):
        return F.linear(x, self.inner.weight, self.inner.bias)

    def weight(self):
        return self.inner.weight

    def numbers(self):
        return self.inner.weight.tolist()

    def number(self):
        return float(self.inner.weight[0, 0])

    def add_to(self, total):
        total += self.inner.weight

    def copied(self):
        return copy.copy(self.inner.weight)

    @torch.no_grad()
    def constrain(self):
        self.inner.weight.clamp_(-1.0, 1.0)
        self.inner.weight[1].fill_(0.5)

    def forward(self, x):
        return self.encode(x) if self.reader == "network" else self.inner(x)


class Doubled(torch.nn.Module):
    def forward(self, x):
        return 2.0 * x


def called(model, x):
    return model(x)


# How the output is computed, and which weight is read.
READERS = {
    "layer": ("layer", called),
    "network": ("network", called),
    "method": ("layer", lambda model, x: model.encode(x)),
    "forward": ("network", lambda model, x: model.forward(x)),
    "functional_call": (
        "layer",
        lambda model, x: torch.func.functional_call(model, dict(model.named_parameters()), (x,)),
    ),
    "vmap": ("layer", lambda model, x: torch.func.vmap(model, randomness="different")(x)),
}


def made(kind, reader):
    torch.manual_seed(1)
    options = {"posterior": KINDS[kind](initial=-1.0)}
    if kind == "sampled":
        options |= {"modules": (), "parameters": ["inner.weight"]}
    return nn.to_variational(Reads(reader), **options)


def differs(compute):
    return not torch.equal(compute(), compute())


def log_variances(model):
    return [p for name, p in model.named_parameters() if "log_" in name]


def check_drawn(model, compute, x):
    """Two calls differ, and the likelihood trains the variances."""
    assert differs(lambda: compute(model, x))
    model.zero_grad()
    compute(model, x).square().sum().backward()
    for each in log_variances(model):
        assert each.grad is not None
        assert each.grad.abs().max() > 0


def outside(reader):
    """Whether the weight is read in no call of a module at all."""
    return reader in ("method", "forward")


def refused(kind, reader):
    """Which readers are refused while noise is drawn."""
    return outside(reader) or (reader == "network" and kind != "sampled")


WHEN = {
    "training": lambda compute: compute,
    "checkpointed": lambda compute: (
        lambda model, x: checkpoint(lambda x: compute(model, x), x, use_reentrant=False)
    ),
    "compiled": lambda compute: lambda model, x: torch.compile(compute, backend="eager")(model, x),
    "in a thread": lambda compute: (
        lambda model, x: ThreadPoolExecutor(1).submit(compute, model, x).result()
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
class TestReaders:
    @pytest.mark.filterwarnings("ignore:The .grad attribute")  # by the compiler, before the error
    @pytest.mark.parametrize("when", WHEN)
    def test_noise_is_drawn_or_missed_aloud(self, when, reader, kind):
        torch.compiler.reset()
        network, compute = READERS[reader]
        model, x = made(kind, network), torch.randn(5, 4)
        if reader == "vmap" and when in ("checkpointed", "compiled"):
            pytest.skip("a transform within a checkpoint is PyTorch's own matter")
        compute = WHEN[when](compute)
        if not refused(kind, reader):
            check_drawn(model, compute, x)
            return
        match = REFUSED.removeprefix("^") if when == "compiled" else REFUSED
        with pytest.raises(RuntimeError, match=match):
            compute(model, x)

    def test_within_sampling(self, reader, kind):
        network, compute = READERS[reader]
        model, x = made(kind, network).eval(), torch.randn(5, 4)
        with nn.sampling(model), torch.no_grad():
            if not refused(kind, reader):
                assert differs(lambda: compute(model, x))
                return
            with pytest.raises(RuntimeError, match=REFUSED):
                compute(model, x)

    def test_within_sampled(self, reader, kind):
        """Every reader gets the sample, which is that of `to_sample`."""
        network, compute = READERS[reader]
        model, x = made(kind, network), torch.randn(5, 4)
        plain = nn.to_sample(model, torch.Generator().manual_seed(3))
        with nn.sampled(model, torch.Generator().manual_seed(3)):
            found = compute(model, x)
            again = compute(model, x)
        assert torch.equal(found, again)
        torch.testing.assert_close(found, compute(plain, x))

    def test_in_evaluation_mode(self, reader, kind):
        network, compute = READERS[reader]
        model, x = made(kind, network).eval(), torch.randn(5, 4)
        torch.testing.assert_close(compute(model, x), nn.to_deterministic(model)(x))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # by the compiler
@pytest.mark.parametrize("kind", KINDS)
def test_one_graph_reads_the_sample(kind):
    torch.compiler.reset()
    network, compute = READERS["network"]
    model, x = made(kind, network), torch.randn(5, 4)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with nn.sampled(model):
        torch.testing.assert_close(compute(compiled, x), compute(model, x))


def product(self, x):
    return F.linear(x, self.inner.weight)


class Methods(torch.nn.Module):
    """A network that reads its weight in all forms of methods."""

    x = torch.ones(2, 4)

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 3)

    @torch.enable_grad()
    def decorated(self, x):
        return F.linear(x, self.inner.weight)

    @property
    def table(self):
        return F.linear(self.x, self.inner.weight)

    @staticmethod
    def static(model, x):
        return F.linear(x, model.inner.weight)

    def encode_entities(self, x):
        return F.linear(x, self.inner.weight)

    def in_a_thread(self, x):
        work = ThreadPoolExecutor(1).submit(lambda: F.linear(x, self.inner.weight))
        return work.result()

    def forward(self, x):
        return self.in_a_thread(x)


def of_the_instance(model, x):
    model.own = MethodType(product, model)
    return model.own(x)


@pytest.mark.parametrize("kind", ["additive", "sampled"])
@pytest.mark.parametrize(
    "compute",
    [
        *(of_the_instance, lambda model, x: model.table, lambda model, x: model.static(model, x)),
        *(lambda model, x: model.decorated(x), lambda model, x: model.encode_entities(x)),
        *(lambda model, x: model.in_a_thread(x), called),
    ],
)
def test_each_form_of_a_method(compute, kind):
    options = {"modules": (), "parameters": ["inner.weight"]} if kind == "sampled" else {}
    model = nn.to_variational(Methods(), **options, posterior=nn.Additive(initial=-1.0))
    for mode in (torch.enable_grad(), torch.no_grad()):
        with mode, pytest.raises(RuntimeError, match=REFUSED):
            compute(model, model.x)
    plain = nn.to_sample(model, torch.Generator().manual_seed(3))
    with nn.sampled(model, torch.Generator().manual_seed(3)):
        torch.testing.assert_close(compute(model, model.x), compute(plain, model.x))


CHANGES = [
    lambda x, weight: x.__iadd__(weight),
    lambda x, weight: x.lerp_(weight, 0.1),
    lambda x, weight: x.addcmul_(weight, weight.T.contiguous().T),
    lambda x, weight: x.__setitem__(slice(1), weight[:1]),
    lambda x, weight: x[0].copy_(weight[0]),
    lambda x, weight: torch.add(x, weight, out=x),
    lambda x, weight: torch._foreach_add_([x], [weight], alpha=0.5),
    lambda x, weight: F.relu(x.sub_(weight), inplace=True),
]


@pytest.mark.parametrize("kind", KINDS)
class TestAllowed:
    def test_what_needs_no_numbers(self, kind):
        """Networks of transformers read the dtype of a layer in their forward."""
        model = made(kind, "layer")
        model.register_forward_pre_hook(lambda module, x: x[0].to(module.inner.weight.dtype))
        assert model(torch.randn(2, 4)).shape == (2, 3)
        weight = model.inner.weight
        for read in (model.numbers, model.number, model.copied):
            with pytest.raises(RuntimeError, match=REFUSED):
                read()
        assert (weight.shape, weight.dtype, weight.device.type) == ((3, 4), torch.float32, "cpu")

    def test_initialisation(self, kind):
        model = made(kind, "layer")
        torch.nn.init.constant_(model.inner.weight, 2.0)
        assert (dict(model.named_parameters())["inner.weight"] == 2.0).all()
        model.inner.weight.data.fill_(3.0)
        assert (dict(model.named_parameters())["inner.weight"] == 3.0).all()
        model.constrain()
        means = dict(model.named_parameters())["inner.weight"]
        assert means[:, 0].tolist() == [1.0, 0.5, 1.0]

    @pytest.mark.parametrize("within", [nn.sampled, lambda model: contextlib.nullcontext()])
    @pytest.mark.parametrize("read", [lambda m: m.inner.weight, lambda m: m.weight()])
    def test_changes_are_those_of_the_parameter(self, kind, within, read):
        model = made(kind, "layer")
        own = dict(model.named_parameters())["inner.weight"]
        with within(model):
            weight = read(model)
            if isinstance(weight, (torch.nn.Parameter, UndrawnWeight)):  # or the sample itself
                weight.data = torch.full((3, 4), 2.0)
                assert (own == 2.0).all()
                own.grad = torch.ones(3, 4)
                read(model).grad = None
                assert own.grad is None
                read(model).requires_grad = False
                assert not own.requires_grad

    def test_code_outside_of_modules_within_sampled(self, kind):
        model, x = made(kind, "layer"), torch.randn(5, 4)
        with nn.sampled(model):
            found = F.linear(x, model.inner.weight, model.inner.bias)
            torch.testing.assert_close(found, model(x))

    @pytest.mark.parametrize("change", CHANGES)
    def test_another_tensor_is_changed_once(self, kind, change):
        model = made(kind, "layer")
        plain = nn.to_sample(model, generator(3)).inner.weight
        expected, found = torch.ones(3, 4), torch.ones(3, 4)
        with torch.no_grad():
            change(expected, plain)
            with nn.sampled(model, generator(3)):
                change(found, model.inner.weight)
                assert torch.equal(model.inner.weight, plain)
                assert f"{model.inner.weight[0, 0]:.6f}" == f"{plain[0, 0]:.6f}"
        torch.testing.assert_close(found, expected)

    def test_numbers_are_drawn_once(self, kind):
        model = made(kind, "layer")
        plain = nn.to_sample(model, generator(3)).inner.weight
        with torch.no_grad(), nn.sampled(model, generator(3)):
            weight = model.inner.weight
            found = seeded(lambda: F.dropout(F.dropout(weight)))
        assert torch.equal(found, seeded(lambda: F.dropout(F.dropout(plain))))

    @pytest.mark.parametrize("foreach", [False, True])
    def test_an_optimizer_of_what_was_read(self, kind, foreach):
        model, x = made(kind, "layer"), torch.ones(2, 4)
        own = [dict(model.named_parameters())[f"inner.{name}"] for name in ("weight", "bias")]
        with nn.sampled(model, generator(3)):
            given = [model.inner.weight, model.inner.bias]
            slow = torch.optim.SGD(given, lr=0.1, weight_decay=0.5, foreach=foreach)
            model(x).sum().backward()
            expected = [(p - 0.1 * (p.grad + 0.5 * p)).detach() for p in own]
            slow.step()
        torch.testing.assert_close([p.detach() for p in own], expected)

    def test_a_refusal_changes_nothing(self, kind):
        model, total = made(kind, "layer"), torch.zeros(3, 4)
        with pytest.raises(RuntimeError, match=REFUSED):
            model.add_to(total)
        assert (total == 0.0).all()

    def test_the_mean_itself(self, kind):
        """A penalty of the user's own, within the forward."""
        model = made(kind, "network")
        mean = dict(model.named_parameters())["inner.weight"]

        def penalty(module, args, output):
            assert torch.equal(module.inner.weight.detach(), mean) or kind == "sampled"

        model.register_forward_hook(penalty)
        with contextlib.suppress(RuntimeError):
            model(torch.randn(2, 4))


@pytest.mark.filterwarnings("ignore:.torch.nn.utils.weight_norm:FutureWarning")
@pytest.mark.parametrize("posterior", [nn.Additive(), nn.Multiplicative(), nn.Scaled()])
@pytest.mark.parametrize(
    ("compute", "remove"),
    [
        (lambda layer: nn.prune(layer, math.inf), lambda layer: prune.remove(layer, "weight")),
        (torch.nn.utils.weight_norm, torch.nn.utils.remove_weight_norm),
        (torch.nn.utils.spectral_norm, torch.nn.utils.remove_spectral_norm),
    ],
)
def test_a_weight_that_hooks_compute(compute, remove, posterior):
    """They assign it, so it is no parameter that the layer could watch."""
    model, x = nn.to_variational(Reads("network"), posterior=posterior), torch.randn(5, 4)
    compute(model.inner)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=REFUSED):
            model(x)
        model.inner(x).sum().backward()
    model.eval()
    with nn.sampled(model, generator(3)):
        torch.testing.assert_close(model(x), model.inner(x))
    torch.testing.assert_close(model(x), model.inner(x))
    remove(model.inner)
    assert isinstance(model.inner.weight, torch.nn.Parameter)
    torch.testing.assert_close(model(x), model.inner(x))


def test_a_parametrized_weight():
    """The layer draws the noise around what the parametrization computes."""
    layer = nn.VariationalLinear(4, 3, posterior=nn.Additive(initial=-1.0))
    parametrize.register_parametrization(layer, "weight", Doubled())
    check_drawn(layer, called, torch.randn(5, 4))
    layer.eval()
    x = torch.randn(5, 4)
    torch.testing.assert_close(
        layer(x), F.linear(x, 2.0 * layer.parametrizations.weight.original, layer.bias)
    )


@pytest.mark.filterwarnings("ignore:.torch.nn.utils.weight_norm:FutureWarning")
@pytest.mark.parametrize(
    "computed",
    [
        lambda m: parametrize.register_parametrization(m, "weight", Doubled()),
        lambda m: parametrize.register_parametrization(m, "weight_log_sigma2", Doubled()),
        torch.nn.utils.parametrizations.weight_norm,
        torch.nn.utils.spectral_norm,
        torch.nn.utils.weight_norm,
    ],
)
def test_a_sampled_weight_that_is_computed(computed):
    """Its noise would be lost, because the module no longer reads the parameter."""
    model = made("sampled", "layer")
    computed(model.inner)
    for use in (lambda: model(torch.ones(2, 4)), lambda: nn.kl(model), lambda: nn.sparsity(model)):
        with pytest.raises(RuntimeError, match=r"^weight\w* of a \w+ is not a parameter any more"):
            use()


@dataclass(slots=True)
class Slotted:
    weight: object


class Borrows(torch.nn.Module):
    """Reads the weight of a child."""

    def __init__(self, child):
        super().__init__()
        self.child = child

    def forward(self, x):
        return F.linear(x, self.child.weight)


def encode(self, x):
    return F.linear(x, self.child.weight)


@pytest.mark.parametrize("wrap", [checkpoint_wrapper, partial(torch.compile, backend="eager")])
def test_the_weight_of_a_wrapped_layer(wrap):
    model = Borrows(wrap(nn.VariationalEmbedding(5, 3)))
    with pytest.raises(RuntimeError, match=REFUSED):
        model(torch.eye(3))
    with nn.sampled(model):
        assert torch.equal(model(torch.eye(3)).T, model.child(torch.arange(5)))


def test_a_method_that_is_assigned_to_the_class(monkeypatch):
    monkeypatch.setattr(Borrows, "encode", encode, raising=False)
    model = Borrows(nn.VariationalLinear(4, 3))
    with pytest.raises(RuntimeError, match=REFUSED):
        model.encode(torch.eye(4))


@pytest.mark.parametrize(
    "keep",
    [
        lambda w: SimpleNamespace(w=w),
        lambda w: deque([w]),
        lambda w: {1, w},
        Slotted,
        lambda w: lambda x, w=w: x @ w.T,
    ],
    ids=["namespace", "deque", "set", "dataclass", "default"],
)
def test_a_weight_that_a_module_keeps_is_warned_of(keep):
    model = Borrows(torch.nn.Linear(4, 3))
    model.kept = keep(model.child.weight)
    words = r"keeps the weight of a variational layer|closure or default arguments hold a part"
    with pytest.warns(UserWarning, match=words):
        nn.to_variational(model)


@pytest.mark.parametrize("within", [contextlib.nullcontext, torch.no_grad, torch.inference_mode])
def test_the_weight_of_a_layer_with_scales_is_read_with_them(within):
    """Also by the fast path of a transformer's layer."""
    borrows = Borrows(torch.nn.Linear(8, 8, bias=False))
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    for plain in (borrows, layer):
        model = nn.to_variational(plain, modules=torch.nn.Linear, posterior=nn.Scaled()).eval()
        for each in model.modules():
            if isinstance(each, nn.VariationalLinear):
                torch.nn.init.uniform_(each.scale.data, 0.5, 2.5)
        x = torch.randn(3, 4, 8)
        expected = nn.to_deterministic(model)(x)
        with within():
            torch.testing.assert_close(model(x), expected)


def test_a_subclass_with_its_own_forward():
    class Own(nn.VariationalLinear):
        def forward(self, input):
            return F.linear(input, self.weight)

    layer = Own(4, 3)
    with pytest.raises(RuntimeError, match=REFUSED):
        layer(torch.ones(2, 4))
    assert layer.eval()(torch.ones(2, 4)).shape == (2, 3)


def test_a_recurrent_module_whose_forward_is_called():
    lstm = nn.to_variational(torch.nn.LSTM(4, 3))
    with pytest.raises(RuntimeError, match=r"^weight_ih_l0 of a SampledLSTM has noise"):
        lstm.forward(torch.randn(2, 1, 4))


class Loop(torch.nn.Module):
    """A cell that a network calls in each time step, also once more within the first call."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 4)

    def forward(self, x, more=True):
        if more:
            self(x, more=False)
        return self.cell(x, self.cell(x))


def test_a_network_whose_forward_is_called():
    """Its cell would have other weights in each time step."""
    loop, x = nn.to_variational(Loop(), posterior=nn.Additive(initial=0.0)), torch.randn(3, 4)
    loop(x)
    with pytest.raises(RuntimeError, match=r"^forward of a Loop was called itself"):
        loop.forward(x)
    with nn.sampled(loop):
        assert torch.equal(loop.forward(x), loop(x))
    assert torch.equal(loop.eval().forward(x), loop(x))


def test_a_tied_output():
    """As in language models that multiply by the table: one sample, within `sampled` alone."""

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(10, 8)

        def forward(self, ids):
            return F.linear(self.table(ids), self.table.weight)

    ids = torch.tensor([[1, 2]])
    noisy = nn.Additive(initial=0.0)
    model = nn.to_variational(Tied(), posterior=noisy)
    with pytest.raises(RuntimeError, match=REFUSED):
        model(ids)
    with nn.sampled(model, torch.Generator().manual_seed(0)):
        found = model(ids)
    plain = nn.to_sample(model, torch.Generator().manual_seed(0))
    torch.testing.assert_close(found, plain(ids))
    once = nn.to_variational(Tied(), modules=(), parameters=["table.weight"], posterior=noisy)
    check_drawn(once, called, ids)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_that_is_tied_later(kind):
    """By an assignment, as users and Hugging Face write it."""
    first, second = made(kind, "layer"), made(kind, "layer")

    class Pair(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        def tie_weights(self):
            self.second.inner.weight = self.first.inner.weight

    pair = Pair()
    pair.tie_weights()
    weights = [each.inner._parameters["weight"] for each in (first, second)]
    assert weights[0] is weights[1]
    second.inner.weight = made(kind, "layer").inner.weight
    assert isinstance(second.inner._parameters["weight"], torch.nn.Parameter)
    assert second.inner._parameters["weight"] is not weights[0]


@pytest.mark.parametrize(
    "keep",
    [
        *(lambda w: [w], lambda w: {"w": w}, lambda w: torch.nn.ParameterList([w])),
        lambda w: partial(F.linear, weight=w),
    ],
)
def test_a_second_reference_to_a_weight(keep):
    """It gives the parameter itself, and no code of a layer runs that could refuse."""

    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 3)
            self.kept = keep(self.inner.weight)

    with pytest.warns(UserWarning, match=r"keeps the weight of a variational layer in an attrib"):
        nn.to_variational(Keeps())


def test_a_closure_over_a_layer():
    """`copy.deepcopy` copies no closure, so a copy would call the layer of the original."""

    class Closes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 3)
            self.run = lambda x: self.inner(x)

        def forward(self, x):
            return self.run(x)

    words = "'run' of the model is a function whose closure or default arguments hold a part"
    with pytest.warns(UserWarning, match=words):
        nn.to_variational(Closes())
    model = nn.to_variational(Closes(), inplace=True)
    assert differs(lambda: model(torch.ones(2, 4)))
    for copied in (nn.to_deterministic, nn.to_sparse, nn.to_compact):
        with pytest.warns(UserWarning, match=words):
            copied(model)


@pytest.mark.parametrize(
    "refer",
    [
        lambda layer: [weakref.ref(layer)],
        lambda layer: weakref.ref(layer.bias),
        lambda layer: weakref.WeakSet([layer]),
        lambda layer: weakref.WeakValueDictionary({"inner": layer}),
    ],
)
def test_a_weak_reference_to_a_layer(refer):
    """`copy.deepcopy` copies the reference, which then is to the layer of the original."""

    def made():
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.GRU(3, 3))
        model[1].other = refer(model[0])
        return model

    words = "'other' of module '1' is a weak reference to a part of the model, which a copy keeps"
    with pytest.warns(UserWarning, match=words):
        nn.to_variational(made())
    model = nn.to_variational(made(), inplace=True)
    for copied in (nn.to_deterministic, nn.to_sparse, nn.to_compact):
        with pytest.warns(UserWarning, match=words):
            copied(model)


class Transformed(torch.nn.Module):
    """Calls a transform, which takes no subclass of tensors, with the weight of another module."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return x @ torch.func.vmap(lambda row: 2.0 * row)(self.inner.weight)


def test_a_transform_of_the_weight_of_another_module():
    model, x = nn.to_variational(Transformed()), torch.randn(5, 4)
    assert model(x).isnan().all()
    plain = nn.to_sample(model, torch.Generator().manual_seed(3))
    with nn.sampled(model, torch.Generator().manual_seed(3)):
        torch.testing.assert_close(model(x), plain(x))
    torch.testing.assert_close(model.eval()(x), nn.to_deterministic(model)(x))


def test_a_module_of_another_package_whose_name_begins_with_copy():
    names = {"__name__": "copynet", "linear": torch.nn.functional.linear}
    exec("def forward(self, x): return linear(x, self.inner.weight)", names)
    model = type("Net", (torch.nn.Module,), {"forward": names["forward"]})()
    model.inner = torch.nn.Linear(4, 3)
    with pytest.raises(RuntimeError, match="has noise, but it was read"):
        nn.to_variational(model)(torch.ones(1, 4))


class Linear(torch.autograd.Function):
    """Reads the weight in the backward pass too, when the call that drew it has ended."""

    @staticmethod
    def forward(x, module):
        return F.linear(x, module.weight)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.module = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad @ ctx.module.weight, None


def test_a_weight_that_an_autograd_function_reads():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4, 4))

        def forward(self, x):
            return Linear.apply(x, self)

    model = nn.to_variational(Net(), parameters=["weight"])
    x = torch.randn(5, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match=REFUSED):
        model(x).sum().backward()
    with pytest.raises(RuntimeError, match=REFUSED):
        Linear.apply(x, model)
    plain = nn.to_sample(model, torch.Generator().manual_seed(3))
    with nn.sampled(model, torch.Generator().manual_seed(3)):
        (found,) = torch.autograd.grad(model(x).sum(), x)
    torch.testing.assert_close(found, torch.autograd.grad(plain(x).sum(), x)[0])
    (found,) = torch.autograd.grad(model.eval()(x).sum(), x)
    torch.testing.assert_close(found, model.weight.detach().sum(0).expand(5, 4))
