"""Networks whose forward reads more than the next layer: the outputs stay the same."""

import copy
import enum
import functools
import gc
import itertools
import threading
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from torch.nn import functional as F  # noqa: E402

from logunif_kl.torch import nn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:to_compact kept")


class Model(torch.nn.Module):
    """Two linear layers, and a convolutional network, with a forward of its own."""

    def __init__(self, run):
        super().__init__()
        self.a, self.b = torch.nn.Linear(5, 8), torch.nn.Linear(8, 6)
        self.c1, self.c2 = torch.nn.Conv2d(1, 6, 3), torch.nn.Conv2d(6, 8, 3)
        self.f1, self.f2 = torch.nn.Linear(72, 12), torch.nn.Linear(12, 4)
        self.frames = torch.nn.Linear(108, 3)
        self.act, self.pool, self.drop = torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Dropout()
        self.slope = torch.nn.Parameter(torch.tensor(0.1))
        self.bias = torch.nn.Parameter(torch.ones(8))
        self.register_buffer("average", torch.tensor(1.0))
        self.run = run
        pairs = (self.a, self.b), (self.c1, self.c2), (self.c2, self.f1), (self.f1, self.f2)
        with torch.no_grad():
            for first, second in pairs:  # unit 1 is constant, and unit 2 is not read
                first.weight[1] = 0.0
                second.weight.view(len(second.weight), len(first.weight), -1)[:, 2] = 0.0
            self.a.bias[1] = 1.0  # The constant that a removed unit adds to the next bias.

    def forward(self, x):
        return self.run(self, x)


@torch.fx.wrap
def gelu(x):
    return F.gelu(x) + x.mean(1, keepdim=True)


def in_units(self, x):
    return self.b(F.relu(self.a(x))) / self.b.in_features


def in_a_shape(self, x):
    return self.b(F.relu(self.a(x))) / self.b.weight.shape[1]


def in_a_tensor(self, x):
    return self.b(F.relu(self.a(x))) / torch.tensor(float(self.b.in_features)).sqrt()


def in_a_range(self, x):
    return self.b(F.relu(self.a(x))) * torch.arange(self.b.in_features).sum()


def with_its_weights(self, x):
    return self.b(F.relu(self.a(x))) + self.a.weight.pow(2).sum()


def with_its_bias(self, x):
    return self.b(F.relu(self.a(x))) - self.b.bias


def tied(self, x):
    z = self.b(F.relu(self.a(x)))
    return F.linear(F.relu(F.linear(z, self.b.weight.t(), self.bias)), self.a.weight.t())


def by_a_mean(self, x):
    hidden = F.relu(self.a(x))
    return self.b(hidden) / hidden.shape[0]


def by_another_function(self, x):
    return self.b(gelu(self.a(x)))


def by_a_parameter(self, x):
    return self.b(F.leaky_relu(self.a(x), self.slope.item()))


def by_frames(self, x):
    batch = x.size(0)
    hidden = F.relu(self.c1(x.flatten(0, 1)))
    return self.frames(hidden.view(batch, -1))


def changing_a_buffer(self, x):
    self.average.mul_(0.9).add_(0.1 * x.mean())
    return self.b(F.relu(self.a(x))) * self.average


def over_channels(self, x):
    return self.c2(F.max_pool3d(self.c1(x), (3, 1, 1), 1, (1, 0, 0)))


def functional(self, x):
    x = F.relu(F.max_pool2d(self.c1(x), 2))
    x = F.dropout(F.relu(self.c2(x)), training=self.training)
    x = torch.flatten(x, 1)
    return self.f2(torch.tanh(self.f1(x)))


def methods(self, x):
    x = F.gelu(F.adaptive_avg_pool2d(self.c1(x), 5), approximate="tanh")
    x = self.c2(x).sigmoid()
    x = x.view(x.size(0), -1)
    return self.f2(F.leaky_relu(self.f1(x), 0.1))


def modules(self, x):
    y = self.pool(self.act(self.c1(x)))
    y = F.avg_pool2d(self.act(self.c2(y)), 1)
    y = y.reshape(y.shape[0], -1)
    return self.f2(F.softplus(self.f1(self.drop(y)), beta=2.0))


def added(self, x):
    count = x.size(0)
    x = F.relu(F.max_pool2d(self.c1(x), 2))
    x = self.c2(x)
    x = x + torch.tanh(x)
    return self.f2(self.f1(x.view(count, -1)))


def returned(self, x):
    hidden = F.relu(F.max_pool2d(self.c1(x), 2))
    return self.f2(self.f1(self.c2(hidden).flatten(1)) + hidden.sum((1, 2, 3))[:, None])


def shape_used(self, x):
    hidden = F.max_pool2d(self.c1(x), 2)
    return self.f2(self.f1(self.c2(hidden).flatten(1)) * hidden.shape[1])


def fixed_size(self, x):
    hidden = F.max_pool2d(self.c1(x), 2).view(-1, 6, 5, 5)
    return self.f2(self.f1(self.c2(hidden).flatten(1)))


def twice(self, x):
    x = F.max_pool2d(self.c1(x), 2)
    return self.f2(self.f1(torch.flatten(self.c2(x) + self.c2(x.neg()), 1)))


def in_place(self, x):
    x = F.max_pool2d(self.c1(x), 2)
    x.add_(1.0)
    return self.f2(self.f1(torch.flatten(self.c2(x), 1)))


def of_a_condition(self, x):
    x = F.max_pool2d(self.c1(x), 2)
    if x.sum() > 0.0:
        x = 2.0 * x
    return self.f2(self.f1(torch.flatten(self.c2(x), 1)))


def with_noise(self, x):
    x = F.dropout(F.max_pool2d(self.c1(x), 2), 0.0)
    return self.f2(self.f1(torch.flatten(self.c2(x), 1)))


VECTORS = (in_units, in_a_shape, in_a_tensor, in_a_range, with_its_weights, with_its_bias, tied)
VECTORS += (by_another_function, by_a_parameter, changing_a_buffer)
DROPPED = (functional, methods, modules, added)
KEPT = (returned, shape_used, fixed_size, twice, in_place, of_a_condition, with_noise)
SHAPES = {
    **dict.fromkeys(VECTORS, (3, 5)),
    by_a_mean: (5,),
    by_frames: (5, 2, 1, 5, 5),
    over_channels: (2, 1, 9, 9),
    **dict.fromkeys(DROPPED + KEPT, (3, 1, 12, 12)),
}


@pytest.mark.parametrize("run", SHAPES, ids=lambda each: each.__name__)
def test_the_outputs_are_the_same(run):
    torch.manual_seed(0)
    # In float64 the loss of a small weight is seen too.
    model, x = Model(run).double().eval(), torch.randn(SHAPES[run], dtype=torch.float64)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        compact = nn.to_compact(model)
    sparse = nn.to_sparse(model, max_density=1.0)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    expected = model(x)
    for network in (compact, sparse):
        torch.testing.assert_close(network(x), expected, rtol=1e-12, atol=1e-12)
    loaded = nn.load_sparse(Model(run).double(), compact.state_dict())
    if run is not changing_a_buffer:
        torch.testing.assert_close(loaded.eval()(x), expected, rtol=1e-12, atol=1e-12)
    if run in DROPPED:
        layers = compact.c1, compact.c2, compact.f1
        shapes = [tuple(each.weight.shape) for each in layers]
        assert shapes == [(4, 1, 3, 3), (6, 4, 3, 3), (10, 54)]
        torch.export.export(compact, (x,))
    if run in KEPT:
        assert any("kept the dead units of module 'a'" in str(each.message) for each in told)
        assert any("module 'c1'" in str(each.message) for each in told)
        assert compact.c1.weight.shape[0] == 6


class Parts(torch.nn.Module):
    """A network with an optional argument and a part, with a forward of its own."""

    def __init__(self, run, hook=False):
        super().__init__()
        linear = torch.nn.Linear
        self.net = torch.nn.Sequential(linear(5, 8), torch.nn.ReLU(), linear(8, 5))
        self.own, self.run, self.seen = torch.nn.Parameter(torch.ones(())), run, []
        with torch.no_grad():
            self.net[0].weight[1], self.net[0].bias[1] = 0.0, 1.0
            self.net[2].weight[:, 2] = 0.0
        self.weights = [self.net[0].weight]
        if hook:
            self.net.register_forward_hook(lambda *arguments: None)

    def forward(self, x, extra=None, flag=False, scale=1.0):
        return self.run(self, x, extra, flag, scale)


def sliced(self, x, extra, flag, scale):
    return self.net[2:](torch.tanh(self.net[:1](x)))


def hidden(self, x, extra, flag, scale):
    return self.net(x) + self.net[:2](x).sum()


def iterated(self, x, extra, flag, scale):
    for layer in self.net:
        x = layer(x)
        if flag:
            x = x + x.mean(1, keepdim=True)
    return x


def none(self, x, extra, flag, scale):
    return self.net(x) if extra is None else self.net[0](x).sum() + extra


def scaled(self, x, extra, flag, scale):
    return self.net(x) if scale == 1.0 else self.net[0](scale * x)


def remembered(self, x, extra, flag, scale):
    hidden = self.net[1](self.net[0](x))
    self.seen.append(hidden)
    return self.net[2](hidden) + self.seen.pop().sum()


def remembers(self, x, extra, flag, scale):
    hidden = self.net[1](self.net[0](x))
    self.seen[:] = [hidden]
    return self.net[2](hidden)


def weights_in_a_list(self, x, extra, flag, scale):
    return self.net(x) + self.weights[0].pow(2).sum()


def weights_of_a_part(self, x, extra, flag, scale):
    return self.net(x) + self.net[0].weight.pow(2).sum()


def layers_of_a_part(self, x, extra, flag, scale):
    return self.net(x) + self.net[0](x).sum()


def branching(self, x, extra, flag, scale):
    return self.net[2](self.net[1](self.net[0](x))) if x.sum() > 0 else self.net[0](x).sum()


def hiding_its_branch(self, x, extra, flag, scale):
    try:
        return self.net(x) if x.sum() > 0 else self.net[0](x).sum()
    except Exception:
        return self.net(x)


def by_type(self, x, extra, flag, scale):
    y = self.net(x) if torch.is_tensor(x) and isinstance(self.own, torch.nn.Parameter) else x
    return y + self.net[0](x).sum() if isinstance(x, torch.Tensor) else y


def whole(self, x, extra, flag, scale):
    y = self.net(x) * scale
    y = y if extra is None else y + extra
    return y.relu() if flag else y


PARTS = (sliced, hidden, iterated, none, scaled, remembered, remembers, weights_in_a_list)
PARTS += (weights_of_a_part, layers_of_a_part, branching, hiding_its_branch, by_type, whole)


@pytest.mark.parametrize("hook", [False, True])
@pytest.mark.parametrize("run", PARTS, ids=lambda each: each.__name__)
def test_optional_arguments_and_what_a_forward_does_with_its_parts(run, hook):
    torch.manual_seed(0)
    model, x = Parts(run, hook).eval(), torch.randn(3, 5)
    compact = nn.to_compact(model)
    assert not model.seen
    for options in ({}, {"extra": x}, {"flag": True}, {"scale": 2.0}, {"extra": x, "flag": True}):
        for given in (x, -x):
            torch.testing.assert_close(compact(given, **options), model(given, **options))
    assert len(compact.seen) == len(model.seen)
    if model.seen:
        torch.testing.assert_close(compact.seen[0], model.seen[0])
    if run is whole:
        assert len(compact.net[0].weight) == 6


def in_a_list(model):
    model.held = [model.a.weight]


def in_a_namespace(model):
    model.held = types.SimpleNamespace(weight=model.a.weight)


def registered_twice(model):
    model.held = model.a.weight


@pytest.mark.parametrize("density", [0.0, 1.0])
@pytest.mark.parametrize("hold", [in_a_list, in_a_namespace, registered_twice])
def test_others_that_hold_a_weight_get_the_pruned_one(hold, density):
    class Decodes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.VariationalLinear(4, 4)
            hold(self)

        def forward(self, x):
            own = self.held
            own = own[0] if isinstance(own, list) else getattr(own, "weight", own)
            return F.linear(self.a(x).tanh(), own.T)

    torch.manual_seed(0)
    model, x = Decodes().eval(), torch.randn(3, 4)
    torch.nn.init.normal_(model.a.log_sigma2, std=4.0)
    expected = nn.to_deterministic(model, 3.0)(x)
    assert (nn.log_alpha(model)["a"] > 3.0).any()
    for units in (True, False):
        made = nn.to_sparse(model, 3.0, max_density=density, drop_units=units)
        torch.testing.assert_close(made(x), expected)
        loaded = nn.load_sparse(Decodes(), made.state_dict())
        torch.testing.assert_close(loaded(x), expected)


def test_others_that_hold_the_weight_of_a_masked_layer_keep_it():
    class Decodes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(4, 4)
            self.held = [self.a.weight]

        def forward(self, x):
            return F.linear(self.a(x).tanh(), self.held[0].T)

    model, x = Decodes(), torch.randn(3, 4)
    torch.nn.utils.prune.l1_unstructured(model.a, "weight", 0.5)
    for density in (0.0, 1.0):
        torch.testing.assert_close(nn.to_sparse(model, max_density=density)(x), model(x))


@pytest.mark.parametrize("own", ["weight", "log_sigma2", "weight_orig"])
def test_held_parameters_that_are_not_saved_are_refused(own):
    class Decodes(torch.nn.Module):
        def __init__(self, hold):
            super().__init__()
            if own == "weight_orig":
                self.a = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(4, 4), "weight", 0.5)
            else:
                posterior = nn.Scaled() if own == "weight" else nn.Additive()
                self.a = nn.VariationalLinear(4, 4, posterior=posterior)
            self.held = hold(getattr(self.a, own))

        def forward(self, x):
            (held,) = self.held if isinstance(self.held, list) else (self.held,)
            return F.linear(self.a(x).tanh(), held.T)

    x = torch.randn(3, 4)
    for hold in (lambda tensor: tensor, lambda tensor: [tensor]):
        model = Decodes(hold).eval()
        made, expected = nn.to_sparse(model), model(x)
        torch.testing.assert_close(made(x), expected)
        if "held" in made.state_dict():
            loaded = nn.load_sparse(Decodes(hold), made.state_dict())
            torch.testing.assert_close(loaded(x), expected)
        else:
            with pytest.raises(
                ValueError, match=f"a list or an attribute holds {own} of module 'a'"
            ):
                nn.load_sparse(Decodes(hold), made.state_dict())


class Tagged(torch.nn.Module):
    """Layers to which a user gave attributes, a buffer, a parameter and a module."""

    def __init__(self, make):
        super().__init__()
        self.net = torch.nn.ModuleList([make(4, 6), make(6, 6), make(6, 3)])
        first, second, third = self.net
        first.act, first.gain = torch.tanh, 3.0
        second.register_buffer("gain", torch.tensor(0.5))
        second.register_buffer("other", torch.tensor(2.0), persistent=False)
        second.act = torch.nn.PReLU(init=0.3)
        third.gain = torch.nn.Parameter(torch.tensor(1.5))
        third.inner = first
        third.register_forward_hook(lambda module, args, output: output * module.inner.gain)
        with torch.no_grad():
            third.weight[:, :4] = second.weight[:2] = first.weight[1] = 0.0

    def forward(self, x):
        for layer in self.net:
            x = layer(x) * getattr(layer, "gain", 1.0) * getattr(layer, "other", 1.0)
            x = layer.act(x) if hasattr(layer, "act") else x
        return x


class Untraced(Tagged):
    def forward(self, x):
        return super().forward(x) if x.sum() < 1e9 else x


@pytest.mark.parametrize("kind", [Tagged, Untraced])
@pytest.mark.parametrize("make", [torch.nn.Linear, nn.VariationalLinear])
def test_what_a_user_gave_a_layer(kind, make):
    torch.manual_seed(0)
    model, x = kind(make).eval(), torch.randn(5, 4)
    for made in (nn.to_compact(model), nn.to_sparse(model, max_density=1.0)):
        torch.testing.assert_close(made(x), model(x))
        assert [name for name, _ in made.named_buffers() if "other" in name] == ["net.1.other"]
        assert {"net.1.gain", "net.2.gain", "net.1.act.weight"} <= {*made.state_dict()}
        assert "net.1.other" not in made.state_dict()
        assert made.net[2].inner is made.net[0]
        with torch.no_grad():
            made.net[2].gain.mul_(2.0)
            loaded = nn.load_sparse(kind(make), made.state_dict())
            torch.testing.assert_close(loaded(x), 2.0 * model(x))
        assert model.net[2].gain == 1.5


class Additions(torch.nn.Module):
    def __init__(self, add):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 6), torch.nn.Linear(6, 4)
        with torch.no_grad():
            self.a.weight[:2] = 0.0
            self.b.weight[:, 3] = 0.0
        add(self)

    def forward(self, x):
        return self.b(self.a(x).relu()) * getattr(self.b, "gain", 1.0)


def dropout_within(model):
    model.b.drop = torch.nn.Dropout(0.5)
    model.b.register_forward_hook(lambda module, args, output: module.drop(output))


def removable(model):
    model.handle = model.b.register_forward_hook(lambda module, args, output: output * 10.0)
    model.b.own = model.a.register_full_backward_hook(lambda module, given, output: None)


def reads_another(model):
    model.b.other = [model.a.weight]
    model.b.register_forward_hook(lambda module, args, output: output + module.other[0].sum())


def scaled(model):
    model.a.scale, model.held = torch.nn.Parameter(torch.tensor(2.0)), [model.a.weight]
    hook = lambda module, args, output: output + model.held[0].sum()  # noqa: E731
    model.register_forward_hook(hook)


def masked_gain(model):
    model.b.gain = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    torch.nn.utils.prune.l1_unstructured(model.b, "gain", 2)


def own_mask(model):
    model.b.register_buffer("weight_mask", torch.tensor(2.0))
    model.b.register_forward_hook(
        lambda module, args, output: output * getattr(module, "weight_mask", 1.0)
    )


def a_name_of_sparse_layers(model):
    model.b.shape = 2.0
    model.b.register_forward_hook(lambda module, args, output: output * module.shape)


def quantised(model):
    def hook(module, args):
        with torch.no_grad():
            module.weight.copy_((module.weight * 4.0).round() / 4.0)

    model.b.register_forward_pre_hook(hook)


@pytest.mark.filterwarnings("ignore:'_forward_hooks' of", "ignore:the model .* keeps the weight")
@pytest.mark.filterwarnings("ignore:to_compact kept")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "add",
    [
        *(dropout_within, removable, reads_another, scaled, masked_gain, own_mask),
        *(a_name_of_sparse_layers, quantised),
    ],
)
def test_each_kind_of_addition(add, training):
    torch.manual_seed(0)
    model, x = nn.to_variational(Additions(add)).train(training), torch.randn(3, 4)
    with torch.no_grad():
        model.a.log_sigma2[4] = 9.0
    whole = nn.to_deterministic(model, 3.0).eval()
    expected = whole(x)
    for made in (nn.to_compact(model, 3.0), nn.to_sparse(model, 3.0, max_density=1.0)):
        assert not any(module.training for module in made.modules())
        found = [made]
        if add not in (reads_another, scaled):
            found.append(nn.load_sparse(Additions(add), made.state_dict()))
        for each in found:
            torch.testing.assert_close(each(x), expected)
            if add is removable:
                each.handle.remove()
                torch.testing.assert_close(each(x) * 10.0, expected)


def assigned_forward(module, x):
    return x.flip(1)


@pytest.mark.parametrize(
    "between", [torch.nn.Identity(), torch.nn.Dropout(), torch.nn.BatchNorm1d(6), torch.nn.ReLU()]
)
def test_a_forward_that_was_assigned_to_a_module(between):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), between, torch.nn.Linear(6, 3)).eval()
    torch.nn.init.zeros_(model[0].weight[:3])
    torch.nn.init.zeros_(model[2].weight[:, 4])
    between.forward = types.MethodType(assigned_forward, between)
    x = torch.randn(5, 4)
    with pytest.warns(UserWarning, match="a hook or an own mode changes '1'"):
        torch.testing.assert_close(nn.to_compact(model)(x), model(x))
    torch.testing.assert_close(nn.to_sparse(model, max_density=1.0)(x), model(x))


@pytest.mark.parametrize("between", [torch.nn.Dropout(), torch.nn.BatchNorm1d(6)])
def test_a_module_that_stays_in_training_mode(between):
    """As in Monte Carlo dropout and in adaptation to test data."""

    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            inner = torch.nn.Linear(4, 6), between, torch.nn.ReLU()
            self.net, self.out = torch.nn.Sequential(*inner), torch.nn.Linear(6, 3)
            torch.nn.init.zeros_(self.net[0].weight[:3])

        def train(self, mode=True):
            super().train(mode)
            self.net[1].train()
            return self

        def forward(self, x):
            return self.out(self.net(x))

    torch.manual_seed(0)
    model, x = Keeps().eval(), torch.randn(5, 4)
    with pytest.warns(UserWarning, match="mode"):
        compact = nn.to_compact(model)
    for made in (compact, nn.to_sparse(model, max_density=1.0)):
        assert made.net[1].training
        torch.manual_seed(1)
        found = made(x)
        torch.manual_seed(1)
        torch.testing.assert_close(found, model(x))


class Swaps(torch.nn.Module):
    """Computes with other weights in evaluation mode: those of an average."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)
        self.register_buffer("average", torch.randn(6, 4))
        torch.nn.init.zeros_(self.average[:3])

    def train(self, mode=True):
        if mode != self.training:
            with torch.no_grad():
                kept = self.a.weight.clone()
                self.a.weight.copy_(self.average)
                self.average.copy_(kept)
        return super().train(mode)

    def forward(self, x):
        return self.b(self.a(x).relu())


def test_a_mode_that_changes_weights():
    torch.manual_seed(0)
    model, x = Swaps(), torch.randn(3, 4)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    for make in (nn.to_compact, lambda model: nn.to_sparse(model, max_density=1.0)):
        for mode in (True, False):
            expected = copy.deepcopy(model.train(mode)).eval()(x)
            made = make(model)
            torch.testing.assert_close(made(x), expected)
            assert len(made.b.weight.T) == 3
    for name, each in model.train().state_dict().items():
        assert torch.equal(each, before[name])


class Uncopied:
    """Code that cannot be copied, and holds a layer."""

    def __init__(self, layer):
        self.lock, self.layer = threading.Lock(), layer


def test_what_cannot_be_copied_and_holds_a_layer_is_refused():
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    model[0].other = Uncopied(model[2])
    for make in (nn.to_compact, nn.to_sparse):
        with pytest.raises(TypeError, match="pickle"):
            make(model)


@pytest.mark.parametrize("kind", ["Linear", "Conv1d"])
def test_a_maximal_norm_that_is_no_option_of_torch(kind):
    """As a constraint of the user's own."""
    torch.manual_seed(0)
    sizes = (4, 6) if kind == "Linear" else (4, 6, 1)
    model = torch.nn.Sequential(getattr(nn, f"Variational{kind}")(*sizes), torch.nn.ReLU()).eval()
    model[0].max_norm, x = 2.0, torch.randn(3, *(4, 1)[: len(sizes) - 1])
    with torch.no_grad():
        model[0].log_sigma2[:, 1] = 9.0
    expected = nn.to_deterministic(model, 3.0)(x)
    for made in (nn.to_compact(model, 3.0), nn.to_sparse(model, 3.0, max_density=1.0)):
        torch.testing.assert_close(made(x), expected)
        torch.testing.assert_close(nn.load_sparse(model, made.state_dict())(x), expected)
        assert not isinstance(made[0], nn.VariationalLayer)


def test_an_attribute_that_has_the_name_of_a_parameter_of_ours():
    """The scales of the posterior `Scaled` tell tied weights apart, and no scale of a user."""

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(6, 4, padding_idx=0)
            self.out = torch.nn.Linear(4, 6, bias=False)
            self.out.weight, self.out.scale = self.table.weight, 2.0
            torch.nn.init.constant_(self.table.weight, 0.3)

        def forward(self, x):
            return self.out(self.table(x)) * self.out.scale

    model, x = nn.to_variational(Tied()).eval(), torch.tensor([[0, 2, 3]])
    with torch.no_grad():
        model.table.log_sigma2[0] = 9.0
    expected = nn.to_deterministic(model, 3.0)(x)
    assert nn.sparsity(model, 3.0).kept == 20
    for made in (nn.to_compact(model, 3.0), nn.to_sparse(model, 3.0, max_density=1.0)):
        torch.testing.assert_close(made(x), expected)


def test_a_hook_of_a_layer_that_reads_another():
    def hook(module, args, output, other):
        return output * other.in_features

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    model[2].register_forward_hook(functools.partial(hook, other=model[2]))
    model.append(torch.nn.Linear(3, 3))
    model[3].register_forward_hook(functools.partial(hook, other=model[2]))
    torch.nn.init.zeros_(model.eval()[0].weight[:3])
    x = torch.randn(5, 4)
    with pytest.warns(UserWarning, match="kept the dead units"):
        torch.testing.assert_close(nn.to_compact(model)(x), model(x))


@pytest.mark.filterwarnings("ignore:to_compact kept")
@pytest.mark.parametrize("where", ["net", ""])
def test_a_hook_of_a_block_that_reads_a_size(where):
    def hook(module, args, output):
        return output / module.get_submodule("0" if where else "net.0").out_features

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            inner = torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
            self.net = torch.nn.Sequential(*inner)
            torch.nn.init.zeros_(inner[0].weight[:3])
            self.get_submodule(where).register_forward_hook(hook)

        def forward(self, x):
            return self.net(x)

    torch.manual_seed(0)
    model, x = Block(), torch.randn(5, 4)
    for made in (nn.to_compact(model), nn.to_sparse(model, max_density=1.0)):
        torch.testing.assert_close(made(x), model(x))


class Helper:
    """An object of a user whose method is a hook."""

    def __init__(self, part):
        self.part = part

    def hook(self, module, args, output):
        return output / sum(each.numel() for each in getattr(self.part, "parameters", list)())

    def hook_of_a_parameter(self, module, args, output):
        return output / self.part.shape[1]


@pytest.mark.filterwarnings("ignore:to_compact kept")
@pytest.mark.parametrize("hooked", ["", "1"])
@pytest.mark.parametrize("held", ["", "2", "2.weight", "2.weight within"])
def test_a_hook_that_is_a_method_of_an_object(held, hooked):
    torch.manual_seed(0)
    linear = torch.nn.Linear
    model, x = torch.nn.Sequential(linear(4, 6), torch.nn.ReLU(), linear(6, 3)), torch.randn(5, 4)
    torch.nn.init.zeros_(model.eval()[0].weight[:3])
    path, weight, _ = held.partition(".weight")
    part = model.get_submodule(path)
    if weight:
        reads = Helper(part.weight)
        hook = reads.hook_of_a_parameter
        if "within" in held:
            outer = Helper(reads)
            hook = lambda *given: outer.part.hook_of_a_parameter(*given)  # noqa: E731
    else:
        hook = Helper(part).hook
    model.get_submodule(hooked).register_forward_hook(hook)
    with torch.no_grad():
        for convert in (nn.to_compact, functools.partial(nn.to_sparse, max_density=0.0)):
            torch.testing.assert_close(convert(model)(x), model(x))


def in_training(self):
    self.net[1].train()
    return 0.0


def with_a_slope(self):
    self.net[2].negative_slope = 0.7
    return 0.0


def counted(self):
    self.calls += 1
    return self.calls


def first(self):
    seen, self.seen = hasattr(self, "seen"), True
    return float(seen)


def listed(self):
    self.kept["numbers"].append(self.kept["numbers"][-1] + 1)
    return self.kept["numbers"][-1]


def mapped(self):
    self.kept["scale"] *= 1.5
    return self.kept["scale"]


def in_an_array(self):
    self.kept["array"][1] += 1
    return float(self.kept["array"][1])


def in_an_object(self):
    self.keeper.weight += 1
    return self.keeper.weight


def in_a_new_tuple(self):
    self.pair = (0, self.pair[1] + 1)
    return self.pair[1]


def in_a_tensor(self):
    self.kept["tensor"] += 1
    return float(self.kept["tensor"])


def in_an_iterator(self):
    return next(self.kept["iterator"])


def in_bytes(self):
    self.kept["bytes"][0] += 1
    return self.kept["bytes"][0]


STATES = in_training, with_a_slope, counted, first, listed, mapped, in_an_array, in_an_object


@pytest.mark.filterwarnings("ignore:to_compact kept")
@pytest.mark.parametrize("change", [*STATES, in_a_new_tuple, in_a_tensor, in_an_iterator, in_bytes])
def test_a_forward_that_changes_a_part_or_its_state(change):
    class Changes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            inner = torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.LeakyReLU()
            self.net, self.out = torch.nn.Sequential(*inner), torch.nn.Linear(6, 3)
            torch.nn.init.zeros_(self.net[0].weight[:3])
            self.calls, self.pair, self.keeper = 0, (0, 0), Keeper(0)
            self.kept = {"scale": 1.0, "numbers": [0], "array": np.zeros(2)}
            self.kept |= {"tensor": torch.tensor(0), "bytes": bytearray(1)}
            self.kept["iterator"] = itertools.count()

        def forward(self, x):
            return self.out(torch.relu(self.net(x)) + change(self))

    torch.manual_seed(0)
    model, x = Changes().eval(), torch.randn(5, 4)
    found = nn.to_compact(model), nn.to_sparse(model, max_density=1.0)
    model = copy.deepcopy(model)
    for _ in range(3):
        expected = model(x)
        for made in found:
            torch.testing.assert_close(made(x), expected)


def test_a_block_that_was_assigned_to_a_transformer():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    layer._sa_block = lambda x, *args, **kwargs: x * layer.linear1(x).sum(-1, keepdim=True)
    torch.nn.init.zeros_(layer.linear2.weight[:, 4:12])
    model = torch.nn.Sequential(layer).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the closure
        assert nn.to_compact(model)[0].linear1.out_features == 16


class Mode(enum.Enum):
    LOGITS, FEATURES, SUM = range(3)


def by_identity(model, h, mode):
    return h.sum(-1) if mode is Mode.SUM else model.b(h)


def by_a_dict(model, h, mode):
    of = {Mode.SUM: lambda: h.sum(-1)}
    return of.get(mode, lambda: model.b(h))()


def by_truth(model, h, mode):
    return h.sum(-1) if mode is True else model.b(h)


def by_a_name(model, h, mode):
    return h.sum(-1) if isinstance(mode, str) and mode == "sum" else model.b(h)


def asked_within(model, h, mode):
    def inner():
        return h.sum(-1) if mode is Mode.SUM else model.b(h)

    return inner()


@pytest.mark.parametrize("default", [Mode.LOGITS, None, "required"])
@pytest.mark.parametrize("run", [by_identity, by_a_dict, by_truth, by_a_name, asked_within])
def test_what_asks_which_mode_an_argument_names(run, default):
    """In one of the modes all units are read."""

    class Modes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)
            torch.nn.init.zeros_(self.a.weight[:3])

    def required(self, x, mode):
        return run(self, self.a(x).tanh(), mode)

    def optional(self, x, mode=default):
        return run(self, self.a(x).tanh(), mode)

    Modes.forward = required if default == "required" else optional
    torch.manual_seed(0)
    model, x = Modes(), torch.randn(2, 4)
    compact, sparse = nn.to_compact(model), nn.to_sparse(model, max_density=1.0)
    for mode in Mode if default is Mode.LOGITS else (*Mode, None, True, "sum"):
        for made in (compact, sparse):
            torch.testing.assert_close(made(x, mode=mode), model(x, mode=mode))


def test_what_asks_whether_two_arguments_are_one():
    """In the attention of a tensor to itself all units are read."""

    class Attends(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)
            torch.nn.init.zeros_(self.a.weight[:3])

        def forward(self, q, k):
            hidden = self.a(q).tanh()
            return hidden.sum(-1) if q is k else self.b(hidden) + k.sum()

    torch.manual_seed(0)
    model, x, y = Attends(), torch.randn(2, 4), torch.randn(2, 4)
    for made in (nn.to_compact(model), nn.to_sparse(model, max_density=1.0)):
        for given in ((x, x), (x, y)):
            torch.testing.assert_close(made(*given), model(*given))


def test_a_trace_changes_nothing_for_other_threads():
    """Networks called, and others converted, meanwhile."""
    torch.manual_seed(0)
    other, x = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.ReLU()), torch.randn(2, 5)
    expected, call = other(x), torch.nn.Module.__call__
    within, done = threading.Event(), threading.Event()

    def waits(self, x):
        within.set()
        assert done.wait(60.0)
        return self.b(F.relu(self.a(x)))

    with ThreadPoolExecutor(2) as pool:
        made = pool.submit(nn.to_compact, Model(waits))
        assert within.wait(60.0)
        try:
            drawn = torch.rand(3)
            assert torch.nn.Module.__call__ is call
            assert torch.equal(other(x), expected)
            assert len(nn.to_compact(Model(in_units)).a.weight) == 8
        finally:
            done.set()
        assert len(made.result().a.weight) == 6
    assert not torch.equal(torch.rand(3), drawn)


def test_a_forward_that_draws_by_rejection():
    def run(self, x):
        noise = torch.nn.init.trunc_normal_(torch.empty(64), a=-1.0, b=1.0)
        return self.b(F.relu(self.a(x))) + 0.0 * noise.sum()

    model, state = Model(run), torch.get_rng_state()
    assert len(nn.to_compact(model).a.weight) == 6
    assert torch.equal(torch.get_rng_state(), state)


def test_layers_keep_their_hooks():
    def twice(module, args, kwargs, output):
        return 2.0 * output

    def keep_whole(module, args):
        return (args[0] + 1.0,)

    torch.manual_seed(0)
    model, x = Model(in_units).eval(), torch.randn(3, 5)
    model.a.register_forward_hook(twice, with_kwargs=True)
    model.b.register_forward_pre_hook(keep_whole)
    compact, sparse = nn.to_compact(model), nn.to_sparse(model, max_density=1.0)
    loaded = nn.load_sparse(model, sparse.state_dict())
    for each in (compact, sparse, loaded):
        torch.testing.assert_close(each(x), model(x))


class Shared(torch.nn.Module):
    """An encoder that is called by itself, or within a network."""

    def __init__(self):
        super().__init__()
        linear = torch.nn.Linear
        self.enc = torch.nn.Sequential(linear(5, 8), torch.nn.ReLU(), linear(8, 8))
        self.net = torch.nn.Sequential(self.enc, torch.nn.ReLU(), linear(8, 3))
        with torch.no_grad():
            self.enc[2].weight[1] = self.enc[0].weight[1] = 0.0

    def forward(self, x, features=False):
        return self.enc(x) if features else self.net(x)


def test_a_part_with_two_names_is_left_alone():
    torch.manual_seed(0)
    model, x = Shared().eval(), torch.randn(3, 5)
    compact = nn.to_compact(model)
    for features in (False, True):
        torch.testing.assert_close(compact(x, features), model(x, features))


class Keeps(torch.nn.Module):
    """Keep an activation, which another module reads."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(5, 8), torch.nn.Linear(8, 3)
        with torch.no_grad():
            self.first.weight[1], self.first.bias[1] = 0.0, 1.0

    def forward(self, x):
        self.last = F.relu(self.first(x))
        return self.second(self.last)


class Reads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Keeps()

    def forward(self, x, scale=1.0):
        return self.net(x) + scale * self.net.last.sum()


def test_an_activation_that_is_kept_stays_whole():
    torch.manual_seed(0)
    model, x = Reads().eval(), torch.randn(3, 5)
    compact = nn.to_compact(model)
    assert not hasattr(model.net, "last")
    torch.testing.assert_close(compact(x), model(x))


class Looks(torch.nn.Module):
    """Computes with the parameters, the state or the kinds of its parts."""

    def __init__(self, look):
        super().__init__()
        self.look = look
        self.hidden, self.out = torch.nn.Linear(6, 20), torch.nn.Linear(20, 4)

    def forward(self, x):
        return self.out(self.hidden(x).relu()) * self.look(self)


@pytest.mark.parametrize("drop_units", [True, False])
@pytest.mark.parametrize(
    "look",
    [
        lambda model: sum(p.square().sum() for p in model.parameters()),
        lambda model: sum(p.numel() for p in model.parameters()),
        lambda model: model.state_dict()["out.weight"].norm(),
        lambda model: len([m for m in model.modules() if isinstance(m, torch.nn.Linear)]),
    ],
    ids=["parameters", "sizes", "state", "kinds"],
)
def test_layers_that_the_forward_looks_at_are_dense(look, drop_units):
    model, x = Looks(look), torch.randn(3, 6)
    with torch.no_grad():
        for layer in (model.hidden, model.out):
            layer.weight[layer.weight.abs() < layer.weight.abs().quantile(0.95)] = 0.0
    torch.testing.assert_close(nn.to_sparse(model, drop_units=drop_units)(x), model(x))


class Block(torch.nn.Module):
    def __init__(self, lock=None):
        super().__init__()
        linear = torch.nn.Linear
        self.net = torch.nn.Sequential(linear(5, 8), torch.nn.ReLU(), linear(8, 5))
        self.act, self.lock = torch.jit.script(torch.nn.ReLU()), lock
        with torch.no_grad():
            self.net[0].weight[1] = 0.0

    def forward(self, x, scale=None):
        return x + self.net(x)


@pytest.mark.parametrize("hook", [False, True])
def test_parts_of_what_cannot_be_traced(hook):
    """Blocks in a Sequential, with a scripted module and a default argument."""
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(Block(), Block()).eval(), torch.randn(3, 5)
    if hook:
        model[0].register_forward_hook(lambda *arguments: None)
    compact = nn.to_compact(model)
    assert [len(block.net[0].weight) for block in compact] == [7, 7]
    torch.testing.assert_close(compact(x), model(x))


def test_a_module_that_cannot_be_copied_is_not_traced():
    model = Model(lambda self, x: self.b(F.relu(self.a(x))))
    model.a.lock = threading.Lock()
    compact = nn.to_compact(model)
    assert len(compact.a.weight) == 8
    assert compact.a.lock is model.a.lock


def test_torch_does_not_read_the_memory_of_a_proxy():
    """Code in C asks for the type as `map` does, and reads what says that it is a tensor."""
    found = []

    def run(self, x):
        found.extend(map(isinstance, [x], [torch.Tensor]))
        assert isinstance(x, torch.Tensor)
        return self.b(torch.where(self.a(x) > 0.0, self.a(x), 0.5))

    nn.to_compact(Model(run))
    assert found
    assert not any(found)


def test_an_embedding_is_not_warned_of(recwarn):
    embedding = torch.nn.Embedding(10, 4, padding_idx=0)
    nn.to_compact(torch.nn.Sequential(embedding, torch.nn.Linear(4, 3)))
    assert not recwarn.list


def test_an_output_is_not_warned_of():
    def heads(self, x):
        return self.b(self.a(x).softmax(1)).softmax(1)

    model = Model(heads)
    model.b.weight.data[0] = 0.0
    with pytest.warns(UserWarning, match="module 'a': softmax .*; of module 'c1'") as told:
        nn.to_compact(model)
    assert "module 'b'" not in str(told[0].message)


STATES = {
    "attribute": lambda out, h: h.shape[-1],
    "method": lambda out, h: h.size(2),
    "unpacked": lambda out, h: [h.size(i) for i in range(3)][2],
    "output": lambda out, h: out.shape[-1],
}


@pytest.mark.parametrize("size", STATES.values(), ids=STATES)
@pytest.mark.parametrize("kind", [torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM])
def test_a_size_of_the_state_of_a_recurrent_module(kind, size):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = kind(3, 8, batch_first=True), torch.nn.Linear(8, 2)

        def forward(self, x):
            out, h = self.rnn(x)
            h = h[0] if isinstance(h, tuple) else h
            return self.out(h[-1]) * size(out, h) ** -0.5

    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(4, 5, 3)
    with torch.no_grad():
        net.out.weight[:, :6] = net.rnn.weight_hh_l0[:, :6] = 0.0
        for convert in (nn.to_compact, nn.to_sparse):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of units that stay
                torch.testing.assert_close(convert(net)(x), net(x))


class Remade(torch.nn.Module):
    """A block whose copies have layers that `copy.deepcopy` makes without its memo."""

    def __init__(self, layer=None):
        super().__init__()
        self.layers = torch.nn.Sequential(layer or torch.nn.Linear(4, 4), torch.nn.ReLU())

    def forward(self, x):
        return self.layers(x)

    def __deepcopy__(self, memo):
        made = type(self)()
        made._modules = {name: copy.deepcopy(each) for name, each in self._modules.items()}
        return made


class Itself(Remade):
    def __deepcopy__(self, memo):
        return self


def test_blocks_that_copy_themselves_in_their_own_way():
    words = (
        r"module '0\.layers\.0' was not replaced in a copy, because a module around it has a __d"
    )
    plain = torch.nn.Sequential(Remade(), torch.nn.Linear(4, 2))
    model = nn.to_variational(plain)
    for convert in (nn.to_compact, nn.to_sparse, lambda m: nn.load_sparse(m, plain.state_dict())):
        with pytest.raises(TypeError, match=words):
            convert(model)
    norm = torch.nn.Sequential(torch.nn.Linear(4, 4), Remade(torch.nn.BatchNorm1d(4)))
    for convert in (nn.to_compact, nn.to_sparse, lambda m: nn.load_sparse(m, m.state_dict())):
        with pytest.raises(TypeError, match=words.replace("0", "1", 1)):
            convert(norm)
    x = torch.randn(3, 4)
    torch.testing.assert_close(nn.to_deterministic(model, None).eval()(x), model.eval()(x))
    words = r"module '0\.layers\.0' is the same in a copy, because a module has a __deepcopy__ that"
    plain = torch.nn.Sequential(Itself(), torch.nn.Linear(4, 2))
    with pytest.raises(TypeError, match=words):
        nn.to_variational(plain)
    nn.to_variational(plain, modules=lambda name, _: name == "1")
    model = nn.to_variational(plain, inplace=True)
    with pytest.raises(TypeError, match=words):
        nn.to_deterministic(model)
    with pytest.raises(TypeError, match="was not replaced in a copy"):
        nn.to_compact(model)
    assert isinstance(model[0].layers[0], nn.VariationalLinear)
    assert "forward" not in vars(model[0].layers[0])


class TiedCoder(torch.nn.Module):
    """A convolutional autoencoder with tied weights; the next layer takes any number of them."""

    def __init__(self):
        super().__init__()
        conv, transposed = torch.nn.Conv2d, torch.nn.ConvTranspose2d
        self.e1, self.e2 = conv(3, 8, 3, bias=False), conv(8, 6, 3)
        self.d2, self.d1 = transposed(6, 8, 3, bias=False), transposed(8, 3, 3)
        self.d1.weight, self.d2.weight = self.e1.weight, self.e2.weight

    def prune(self):
        self.e1.weight[:3] = 0.0

    def forward(self, x):
        h = self.d2(
            torch.relu(self.e2(torch.relu(self.e1(x[:, :3, None, None].expand(-1, 3, 6, 6)))))
        )
        return self.d1(h * (h.pow(2).mean(1, keepdim=True) + 1e-8).rsqrt())


class TiedBag(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.mid = torch.nn.EmbeddingBag(7, 6, mode="mean"), torch.nn.Linear(6, 6)
        self.out = torch.nn.Linear(6, 7)
        self.out.weight = self.bag.weight

    def prune(self):
        self.mid.weight[:3] = 0.0

    def forward(self, x):
        bag = self.bag(torch.arange(12).reshape(4, 3) % 7)
        return self.out(torch.tanh(self.mid(x))).sum(1) + bag.norm(dim=-1)


class Keeper:
    """An object of a user that is no module."""

    def __init__(self, weight):
        self.weight = weight

    def __iter__(self):
        return iter([self.weight])


class Holder(torch.nn.Module):
    """It branches on an activation, so no trace shows what it does with what it holds."""

    def __init__(self, held):
        super().__init__()
        self.held = held

    def forward(self, x):
        if x.isnan().any():
            raise ValueError
        return sum(getattr(each, "weight", each).pow(2).mean() for each in self.held)


class Unregistered(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        vars(self)["layer"] = layer

    @property
    def weight(self):
        return self.layer.weight


def _shared(layer):
    layer.registry = Keeper(layer)
    return layer.registry


def _held(what, rows):
    class Held(torch.nn.Module):
        def __init__(self):
            super().__init__()
            linear = torch.nn.Linear
            self.a, self.b, self.o = linear(6, 8), linear(8, 8), linear(8, 3)
            self.holder = Holder(what(self.b))

        def prune(self):
            if rows:
                self.o.weight[:, :4] = 0.0
            else:
                self.a.weight[:4] = 0.0
                self.a.bias[:4] = 1.0

        def forward(self, x):
            return self.o(torch.relu(self.b(torch.relu(self.a(x))))) + self.holder(x)

    return Held


class Features(torch.nn.Module):
    """A part that no trace follows, whose layers the network also calls itself."""

    def __init__(self):
        super().__init__()
        linear = torch.nn.Linear
        self.part = Confident(torch.nn.Sequential(linear(6, 8), torch.nn.ReLU(), linear(8, 8)))
        self.out = torch.nn.Linear(8, 3)

    def prune(self):
        self.part.net[2].weight[2:5] = self.part.net[0].weight[:3] = 0.0
        self.out.weight[:, 7] = 0.0

    def forward(self, x):
        return self.out(self.part.net(x)) + self.part(x)


class Confident(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        if x.isnan().any():
            raise ValueError
        return self.net(x).softmax(-1).amax(-1, keepdim=True)


HOLDERS = {
    "parent": Features,
    "convolution": TiedCoder,
    "bag": TiedBag,
    **{
        f"{name} {'rows' if rows else 'columns'}": _held(what, rows)
        for rows in (True, False)
        for name, what in {
            "parameters": lambda layer: torch.nn.ParameterList([layer.weight, layer.bias]),
            "weight": lambda layer: [layer.weight],
            "bias": lambda layer: [layer.bias],
            "object": lambda layer: Keeper(layer.weight),
            "layer": lambda layer: [layer],
            "object that holds the layer": Keeper,
            "list in a module that is not registered": lambda layer: [Unregistered(layer)],
            "keys": lambda layer: {layer: 1.0},
            "object that the layer has, too": lambda layer: _shared(layer),
        }.items()
    },
}


@pytest.mark.filterwarnings("ignore:to_compact kept")
@pytest.mark.parametrize("convert", [nn.to_compact, nn.to_sparse])
@pytest.mark.parametrize("kind", HOLDERS.values(), ids=HOLDERS)
def test_other_modules_that_have_the_tensors_of_a_layer(kind, convert):
    torch.manual_seed(0)
    net, x = kind().eval(), torch.randn(4, 6)
    with torch.no_grad():
        net.prune()
        torch.testing.assert_close(convert(net)(x), net(x))


class TwoGRUs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.o = torch.nn.Linear(5, 6), torch.nn.Linear(5, 6), torch.nn.Linear(8, 3)
        self.g, self.h = (torch.nn.GRU(6, 8, batch_first=True) for _ in "12")
        for name, parameter in [*self.g.named_parameters()]:
            setattr(self.h, name, parameter)

    def forward(self, x):
        return self.o(self.g(self.a(x))[0].mean(1) - self.h(self.b(x))[0].mean(1))


def test_tied_parameters_that_constants_were_added_to_are_loaded_apart():
    torch.manual_seed(0)
    net, x = TwoGRUs().eval(), torch.randn(4, 7, 5)
    with torch.no_grad():
        net.a.weight[:3] = net.b.weight[:3] = 0.0
        small = nn.to_compact(net)
        loaded = nn.load_sparse(TwoGRUs(), small.state_dict())
        torch.testing.assert_close(small(x), net(x))
        torch.testing.assert_close(loaded(x), small(x), rtol=0.0, atol=0.0)
        assert loaded.g.weight_hh_l0 is loaded.h.weight_hh_l0


@pytest.mark.filterwarnings("ignore:to_compact kept")
def test_a_network_with_its_own_call():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.c = torch.nn.Linear(5, 8), torch.nn.Linear(8, 3)

        def forward(self, x):
            return self.c(torch.relu(self.a(x)))

        def __call__(self, x):
            return super().__call__(x) / self.c.in_features

    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(4, 5)
    with torch.no_grad():
        net.c.weight[:, :6] = 0.0
        torch.testing.assert_close(nn.to_compact(net)(x), net(x))


def test_a_network_that_was_traced():
    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    torch.nn.init.zeros_(net[2].weight[:, :6])
    compact = nn.to_compact(torch.fx.symbolic_trace(net))
    assert compact.get_submodule("0").weight.shape == (2, 5)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_a_layer_without_outputs():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 0)).eval()
    assert nn.to_compact(net)(torch.ones(2, 3)).shape == (2, 0)


def test_values_that_were_assigned_to_another_network():
    """`load_state_dict(assign=True)` marks the values for all later loads."""
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    values = nn.to_sparse(plain, max_density=0.0).state_dict()
    torch.nn.Module.load_state_dict(
        copy.deepcopy(nn.load_sparse(plain, values)), values, assign=True
    )
    loaded = nn.load_sparse(plain, values)
    held = {x.data_ptr() for x in values.values()}
    assert held.isdisjoint(x.data_ptr() for x in loaded.state_dict().values())


def lists_made_anew(self, h):
    self.skips, self.log = [h], {"width": 6, "names": ["a", "b"]}
    return self.skips.pop()


def only_in_training(self, h):
    self.penalty = h.sum() if self.training else None
    return h


def filled_once(self, h):
    if not hasattr(self, "scale"):
        self.scale = 2.0
    return h * self.scale


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("function", [lists_made_anew, only_in_training, filled_once])
def test_a_state_that_the_next_call_finds_again(function, trained):
    torch.manual_seed(0)
    model = Model(lambda self, x: self.b(function(self, torch.relu(self.a(x)))))
    x = torch.randn(3, 5)
    if trained:
        model(x)
        vars(model).pop("scale", None)
        model.penalty = torch.ones(())
    compact = nn.to_compact(model.eval())
    assert len(compact.a.weight) == 6
    for _ in range(2):
        torch.testing.assert_close(compact(x), model(x))


def test_a_shape_that_is_unpacked():
    """Without the garbage collector, a frame that is kept would keep the activations."""

    def run(self, x):
        rows, _ = x.shape
        return self.b(torch.relu(self.a(x))).reshape(rows, -1)

    model, x = Model(run), torch.randn(3, 5)
    gc.disable()
    try:
        compact = nn.to_compact(model)
    finally:
        gc.enable()
    assert len(compact.a.weight) == 6
    torch.testing.assert_close(compact(x), model(x))


def test_a_module_that_no_forward_calls_and_that_holds_the_network():
    model = Model(lambda self, x: self.b(torch.relu(self.a(x))))
    model.loss = Holder([model])
    assert len(nn.to_compact(model).a.weight) == 6


@pytest.mark.parametrize("whole", [False, True])
def test_units_of_a_compiled_network(whole):
    torch.manual_seed(0)
    model, x = Model(lambda self, x: self.b(torch.relu(self.a(x)))), torch.randn(3, 5)
    if whole:
        given: torch.nn.Module = torch.compile(model, backend="eager")
    else:
        given = torch.nn.Sequential(torch.compile(model, backend="eager"), torch.nn.Linear(6, 2))
    compact = nn.to_compact(given)
    layers = [each for each in compact.modules() if isinstance(each, torch.nn.Linear)]
    assert len(layers[0].weight) == 6
    torch.testing.assert_close(compact(x), given(x))


def test_a_part_that_a_user_calls_like_that_of_a_compiled_network():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self._orig_mod = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Linear(8, 6))
            torch.nn.init.zeros_(self._orig_mod[1].weight)

        def forward(self, x):
            return self._orig_mod[1](self._orig_mod[0](x).sigmoid()) + self._orig_mod[0](x).sum()

    model, x = Scaled(), torch.randn(3, 5)
    compact = nn.to_compact(model)
    torch.testing.assert_close(compact(x), model(x))


def test_a_sparse_tensor_of_the_network():
    model, x = (
        Model(lambda self, x: self.b(torch.relu(self.a(self.adjacency @ x)))),
        torch.randn(3, 5),
    )
    model.adjacency = torch.eye(3).to_sparse()
    compact = nn.to_compact(model)
    assert len(compact.a.weight) == 6
    torch.testing.assert_close(compact(x), model(x))


def test_a_dtype_or_a_device_that_the_forward_reads():
    def run(self, x):
        x = x.to(next(self.parameters()).device).to(self.b.weight.dtype)
        return self.b(torch.relu(self.a(x)))

    torch.manual_seed(0)
    model, x = Model(run), torch.randn(3, 5)
    model.a.register_full_backward_hook(lambda *given: None)
    compact = nn.to_compact(model)
    assert len(compact.a.weight) == 6
    torch.testing.assert_close(compact(x), model(x))
