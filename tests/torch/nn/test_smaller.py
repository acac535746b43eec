"""Networks without their dead units compute what `to_deterministic` computes, and are smaller."""

import copy
import functools
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from logunif_kl.torch import nn  # noqa: E402

plain = torch.nn


class Net(torch.nn.Module):
    """Modules by name, and a function of them and the input."""

    def __init__(self, run, **modules):
        super().__init__()
        self.run = run
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x):
        return self.run(self, x)


def residual():
    def run(self, x):
        x = F.relu(self.n0(self.stem(x)))
        x = self.relu(x + self.n2(self.c2(self.relu(self.n1(self.c1(x))))))
        x = self.relu(self.n4(self.c4(F.relu(self.n3(self.c3(x))))) + self.short(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))

    convolution = plain.Conv2d
    return Net(
        run,
        stem=convolution(1, 10, 3, bias=False),
        **{f"n{i}": plain.BatchNorm2d(n) for i, n in enumerate((10, 6, 10, 8, 12))},
        c1=convolution(10, 6, 3, padding=1, bias=False),
        c2=convolution(6, 10, 1),
        c3=convolution(10, 8, 3, stride=2, bias=False),
        c4=convolution(8, 12, 1),
        short=convolution(10, 12, 3, stride=2),
        relu=plain.ReLU(inplace=True),
        head=plain.Linear(12, 3),
    )


def dense_blocks():
    def run(self, x):
        x = F.relu(self.a(x))
        x = torch.cat([x, torch.tanh(self.b(x))], 1)
        x = torch.cat((x, self.c(x)), dim=-3)
        return self.head(self.norm(x).mean((2, 3)))

    return Net(
        run,
        a=plain.Conv2d(1, 6, 3),
        b=plain.Conv2d(6, 8, 3, padding="same", padding_mode="circular"),
        c=plain.Conv2d(14, 4, 1),
        norm=plain.BatchNorm2d(18),
        head=plain.Linear(18, 3),
    )


def in_groups():
    def run(self, x):
        x = F.hardswish(self.n0(self.stem(x)))
        x = self.groups(F.relu(self.n1(self.deep(x))))
        x = x * torch.sigmoid(self.up(F.relu(self.down(x.mean([-2, -1], keepdim=True)))))
        x = self.prelu(self.n2(self.wide(x)))
        x = x * self.gate(x.mean((2, 3))).sigmoid().unsqueeze(-1)[:, :, None]
        return self.head(F.adaptive_avg_pool2d(x, 1).squeeze(-1).squeeze(2))

    return Net(
        run,
        stem=plain.Conv2d(1, 8, 3),
        deep=plain.Conv2d(8, 8, 3, padding=1, groups=8),
        groups=plain.Conv2d(8, 8, 1, groups=2),
        down=plain.Conv2d(8, 5, 1),
        up=plain.Conv2d(5, 8, 1),
        wide=plain.Conv2d(8, 10, 1),
        prelu=plain.PReLU(10),
        gate=plain.Linear(10, 10),
        head=plain.Linear(10, 3),
        **{f"n{i}": plain.BatchNorm2d(n) for i, n in enumerate((8, 8, 10))},
    )


def u_net():
    def run(self, x):
        first = F.relu(self.down(x))
        second = F.relu(self.n(self.deep(F.max_pool2d(first, 2))))
        back = F.relu(self.up(second))
        wide = F.interpolate(second, size=first.shape[2:], mode="bilinear")
        return self.out(torch.cat([back, first, wide], 1))

    return Net(
        run,
        down=plain.Conv2d(1, 6, 3),
        deep=plain.Conv2d(6, 8, 1),
        n=plain.BatchNorm2d(8),
        up=plain.ConvTranspose2d(8, 6, 2, stride=2),
        out=plain.Conv2d(20, 2, 1),
    )


def vectors():
    def run(self, x):
        x = x.flatten(1)
        x = F.elu(self.n0(self.a(x)))
        x = 0.5 * x + self.scale * torch.tanh(self.c(self.n1(self.b(x))))
        return self.out(torch.cat([x.flatten(1), self.d(x)], 1) - 1.0)

    net = Net(
        run,
        a=plain.Linear(100, 12),
        b=plain.Linear(12, 9),
        c=plain.Linear(9, 12),
        d=plain.Linear(12, 5, bias=False),
        out=plain.Linear(17, 3),
        n0=plain.BatchNorm1d(12),
        n1=plain.BatchNorm1d(9, affine=False),
    )
    net.scale = plain.Parameter(torch.tensor([0.3]))
    return net


def volumes():
    return plain.Sequential(
        *(plain.Unflatten(1, (1, 1)), plain.Conv3d(1, 6, (1, 3, 3)), plain.BatchNorm3d(6)),
        *(plain.ReLU(inplace=True), plain.MaxPool3d((1, 2, 2)), plain.ConstantPad3d(1, 0.5)),
        *(plain.Conv3d(6, 5, 1), plain.Flatten(), plain.Linear(540, 8), plain.BatchNorm1d(8)),
        *(plain.Sigmoid(), plain.Linear(8, 3)),
    )


def recurrent(kind, last, **options):
    def run(self, x):
        out, state = self.net(self.words(x.flatten(1).abs().mul(9).long() % 10))
        state = state[0] if kind is plain.LSTM else state
        if last == "state":
            return self.head(torch.cat([state[-2], state[-1]], 1))
        return self.head(out[:, -1] if last == "step" else out)

    ways = 2 if options.get("bidirectional") or last == "state" else 1
    return Net(
        run,
        words=plain.Embedding(10, 7),
        net=kind(7, 8, batch_first=True, **options),
        head=plain.Linear(8 * ways, 3),
    )


def sequences():
    def run(self, x):
        x, _ = self.net(x.squeeze(1))
        x = F.relu(self.n(self.c(x.transpose(1, 2))))
        return self.head(x.permute(0, 2, 1).amax(1))

    return Net(
        run,
        net=plain.GRU(10, 8, batch_first=True),
        c=plain.Conv1d(8, 6, 3),
        n=plain.BatchNorm1d(6),
        head=plain.Linear(6, 3),
    )


def translation(kind):
    def run(self, x):
        x = x.squeeze(1)
        _, state = self.reader(x)
        if kind is plain.LSTM:
            state = (state[0], state[1])
        return self.head(self.writer(x.flip(1), state)[0])

    modules = {name: kind(10, 8, 2, batch_first=True) for name in ("reader", "writer")}
    return Net(run, **modules, head=plain.Linear(8, 3))


def encoder():
    options = {"batch_first": True, "dropout": 0.0}
    layer = plain.TransformerEncoderLayer(8, 2, 16, activation=F.gelu, **options)
    return Net(
        lambda self, x: self.head(self.net(self.first(x.squeeze(1)))),
        first=plain.Linear(10, 8),
        net=plain.TransformerEncoder(layer, 2),
        head=plain.Linear(8, 3),
    )


def encoder_decoder():
    return Net(
        lambda self, x: self.head(self.net(self.first(x.squeeze(1)), self.first(x.squeeze(1)))),
        first=plain.Linear(10, 8),
        net=plain.Transformer(8, 2, 1, 2, 16, batch_first=True),
        head=plain.Linear(8, 3),
    )


def dead(model, what, seed):
    """Give log alpha above 3 to the rows or the columns of units, chosen by the number of units.

    Layers of one number of units have the same dead units, as a sum of their outputs needs.
    """
    draws = torch.Generator().manual_seed(seed)
    chosen = {n: torch.rand(n, generator=draws) < 0.5 for n in (*range(3, 101), 540)}
    for each in chosen.values():
        each[:2] = torch.tensor([True, False])
    with torch.no_grad():
        for name, each in model.named_parameters():
            if each.ndim == 1 and each.dtype.is_floating_point and "log_sigma2" not in name:
                each.normal_(generator=draws)
            if not name.endswith("log_sigma2"):
                continue
            each.fill_(-30.0)
            each[torch.rand(each.shape, generator=draws) < 0.3] = 30.0
            size = model.get_submodule(name.rpartition(".")[0])
            rows, columns = each.shape[0], each.shape[1]
            hidden = getattr(size, "hidden_size", rows)
            first = isinstance(size, (plain.Embedding, plain.ConvTranspose2d))
            if first:
                rows, columns, hidden = columns, rows, columns
            whole = each.transpose(0, 1) if first else each
            if "rows" in what and name.rpartition(".")[0] not in ("head", "out"):
                whole.view(-1, hidden, *whole.shape[1:])[:, chosen[hidden]] = 30.0
            if "columns" in what and columns > 2 and name.rpartition(".")[0] != "stem":
                whole[:, chosen[columns]] = 30.0
        for module in model.modules():
            if isinstance(module, plain.RNNBase):
                for name, each in module.named_parameters():
                    if "bias" in name:
                        each.view(-1, module.hidden_size)[:, chosen[module.hidden_size]] = 0.0
            if getattr(module, "running_mean", None) is not None:
                module.running_mean.normal_(generator=draws)
                module.running_var.uniform_(0.5, 2.0, generator=draws)
    return model.eval()


LSTM, GRU, RNN = plain.LSTM, plain.GRU, plain.RNN
NETWORKS = {
    "residual": residual,
    "concatenation": dense_blocks,
    "groups": in_groups,
    "U-Net": u_net,
    "vectors": vectors,
    "volumes": volumes,
    "LSTM": lambda: recurrent(LSTM, "all", bidirectional=True, num_layers=2),
    "LSTM, state": lambda: recurrent(LSTM, "state", num_layers=2),
    "GRU": lambda: recurrent(GRU, "step", num_layers=2),
    "GRU, state": lambda: recurrent(GRU, "state", bidirectional=True),
    "RNN": lambda: recurrent(RNN, "all", num_layers=2),
    "RNN, relu": lambda: recurrent(
        RNN, "step", nonlinearity="relu", bias=False, bidirectional=True
    ),
    "sequences": sequences,
    "translation, LSTM": lambda: translation(LSTM),
    "translation, GRU": lambda: translation(GRU),
    "encoder": encoder,
    "encoder-decoder": encoder_decoder,
}


def size(model):
    return sum(each.numel() for each in model.parameters())


@torch.no_grad()
@pytest.mark.parametrize("what", ["rows", "columns"])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.filterwarnings("ignore:to_compact kept")
def test_networks_with_dead_units(name, what):
    torch.manual_seed(0)
    model = dead(nn.to_variational(NETWORKS[name]()).double(), what, 0)
    x = torch.randn(3, 1, 10, 10, dtype=torch.float64)
    whole = nn.to_deterministic(model, 3.0)
    expected = whole(x)
    compact, sparse = nn.to_compact(model), nn.to_sparse(model, max_density=1.0)
    fours = nn.to_compact(model, multiple_of=4)
    again = nn.to_variational(NETWORKS[name]()).double()
    loaded = [nn.load_sparse(again, each.state_dict()) for each in (compact, sparse)]
    for each in (compact, sparse, fours, *loaded):
        torch.testing.assert_close(each(x), expected, rtol=1e-9, atol=1e-9)
    most = {"vectors": 0.92, "encoder": 0.8, "encoder-decoder": 0.8}.get(name, 0.7)
    assert size(compact) < most * size(whole)
    before = dict(whole.named_parameters())
    for key, each in fours.named_parameters():
        assert len(each) in (len(before.get(key, each)), len(each) // 4 * 4)


def test_a_residual_network_is_smaller_as_its_sparsity_says():
    torch.manual_seed(0)
    model = nn.to_variational(residual())
    for name, each in model.named_parameters():
        if name.endswith("log_sigma2"):
            each.data.fill_(30.0)[:2, :2] = -30.0
    assert nn.sparsity(model.eval(), 3.0).compression > 8.5
    compact, whole = nn.to_compact(model), nn.to_deterministic(model)
    assert size(compact) < size(whole) / 8.5


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN])
def test_a_recurrent_module_without_weights(kind):
    """If the head reads no unit, or biases are 0. Otherwise the states still change."""
    torch.manual_seed(0)
    x = torch.randn(2, 1, 10, 10)
    for head, biases, hidden in ((0.0, 1.0, 1), (1.0, 0.0, 1), (1.0, 1.0, 1 if kind is RNN else 8)):
        model = recurrent(kind, "all", num_layers=2, bidirectional=True).eval()
        for name, each in model.net.named_parameters():
            each.data *= biases if "bias" in name else 0.0
        model.head.weight.data *= head
        kept = pytest.warns(UserWarning, match="units of module 'net': biases change their states")
        with kept if hidden == 8 else warnings.catch_warnings():
            compact = nn.to_compact(model)
        assert compact.net.hidden_size == hidden
        assert compact.words.embedding_dim == compact.net.input_size == 1
        torch.testing.assert_close(compact(x), model(x))


def test_masks_of_a_recurrent_module():
    torch.manual_seed(0)
    model = recurrent(GRU, "step").eval()
    for name in ("weight_ih_l0", "weight_hh_l0"):
        mask = torch.ones_like(getattr(model.net, name)).view(3, 8, -1)
        mask[:, 2:] = 0.0
        plain.utils.prune.custom_from_mask(model.net, name, mask.view(24, -1))
    for name in ("bias_ih_l0", "bias_hh_l0"):
        getattr(model.net, name).data.view(3, 8)[:, 2:] = 0.0
    compact, x = nn.to_compact(model), torch.randn(2, 1, 10, 10)
    assert compact.net.hidden_size == 2
    torch.testing.assert_close(compact(x), model(x))
    torch.testing.assert_close(nn.load_sparse(model, compact.state_dict())(x), model(x))


def halves(self, x):
    first, second = self.a(x).chunk(2, 1)
    return self.b(torch.cat([second, first], 1))


def with_state(self, x):
    state = x.new_zeros(1, x.shape[1], 4)
    return self.b(self.a(x, (state, state))[0])


ATTENTION = plain.MultiheadAttention
STAY = [
    (plain.Linear(3, 4), plain.LayerNorm(4), "'0': '1' \\(LayerNorm\\) reads them together"),
    (plain.Linear(3, 4), plain.Softmax(-1), "'0': '1' \\(Softmax\\) reads them together"),
    (plain.Conv1d(3, 4, 1), plain.Conv1d(4, 4, 1, groups=2), "'1': the groups of a conv"),
]


@pytest.mark.parametrize(("first", "second", "why"), STAY)
def test_what_keeps_dead_units_is_named(first, second, why):
    last = plain.Conv1d(4, 2, 1) if isinstance(first, plain.Conv1d) else plain.Linear(4, 2)
    model = plain.Sequential(copy.deepcopy(first), second, last)
    model[0].weight.data[1] = 0.0
    with pytest.warns(UserWarning, match=f"kept the dead units of module {why}"):
        compact = nn.to_compact(model)
    assert len(compact[0].weight) == 4


@pytest.mark.parametrize(
    ("run", "module", "why"),
    [
        (halves, plain.Linear(3, 4), "chunk is not followed"),
        (with_state, LSTM(3, 4), "they are called in a way that is not followed"),
        (lambda self, x: self.b(self.a(x)[0]), LSTM(3, 4, proj_size=2), "projections of an LSTM"),
        (lambda self, x: self.b(self.a(x, x, x)[0]), ATTENTION(4, 2), "the heads of attention"),
        (
            lambda self, x: self.b(self.a(x) + self.a(-x)),
            plain.Linear(3, 4),
            "called several times",
        ),
        (lambda self, x: self.b(self.a(x[:, 0])[0]), plain.LSTMCell(3, 4), "units of LSTMCell"),
        (lambda self, x: self.b(self.a(x) + self.c(x)), plain.Linear(3, 4), "they are added to"),
    ],
)
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_what_keeps_dead_units_of_a_forward_is_named(run, module, why):
    torch.manual_seed(0)
    model = Net(run, a=module, b=plain.Linear(getattr(module, "proj_size", 0) or 4, 2))
    model.c = plain.Linear(3, 4)
    for each in module.parameters():
        (each.data if each.ndim > 1 else each.data[:0]).view(len(each.data), -1)[-1] = 0.0
        if each.ndim > 1 and not isinstance(module, plain.Linear):
            each.data.zero_()
    with pytest.warns(UserWarning, match=f"kept the dead units of module 'a': .*{why}"):
        compact = nn.to_compact(model)
    x = torch.randn(2, 5, 4 if isinstance(module, ATTENTION) else 3)
    x = x[:, 0] if isinstance(module, plain.Linear) else x
    torch.testing.assert_close(compact(x), model(x))
    assert size(compact) == size(model)


@pytest.mark.parametrize(
    "factor",
    [
        lambda h: 2.0 if h.dtype is torch.float32 else 3.0,
        lambda h: {torch.float32: 2.0}.get(h.dtype, 3.0),
        lambda h: 2.0 if h.grad_fn is None else 3.0,
        lambda h: 3.0 if hasattr(h, "placements") else 2.0,
        lambda h: 2.0 if f"{h.dtype}" == "torch.float32" else 3.0,
        lambda h: torch.tensor(2.0),
    ],
    ids=["is", "dict", "grad_fn", "hasattr", "text", "tensor"],
)
@pytest.mark.filterwarnings("ignore:to_compact kept")
@torch.no_grad()
def test_what_a_trace_would_answer_otherwise(factor):
    def run(self, x):
        h = self.a(x)
        return self.b(h * factor(h))

    torch.manual_seed(0)
    model = Net(run, a=plain.Linear(3, 4), b=plain.Linear(4, 2))
    model.a.weight[1] = 0.0
    x = torch.randn(5, 3)
    for converted in (nn.to_compact, nn.to_sparse):
        torch.testing.assert_close(converted(model)(x), model(x))


def after_a_change(self, x):
    y = self.a(x)
    z = self.b(y)
    y += 0.5
    return z + self.c(y)


def after_a_relu(self, x):
    y = self.a(x)
    z = y.flatten(1)
    F.relu(y, True)
    return self.b(y) + self.c(z)


@pytest.mark.parametrize("run", [after_a_change, after_a_relu])
@pytest.mark.filterwarnings("ignore:to_compact kept")
def test_constants_that_change_in_place(run):
    torch.manual_seed(0)
    linear = plain.Linear
    model, x = Net(run, a=linear(3, 4), b=linear(4, 2), c=linear(4, 2)), torch.randn(2, 3)
    model.a.weight.data[1:], model.a.bias.data[1:] = 0.0, torch.tensor([-1.0, 2.0, -3.0])
    with torch.no_grad():
        expected = model(x)
        torch.testing.assert_close(nn.to_compact(model)(x), expected)


def fused(model):
    model = model.eval()
    fuse = plain.utils.fusion.fuse_conv_bn_eval
    return plain.Sequential(fuse(model[0], model[1]), *model[2:])


def test_a_fused_network():
    def made():
        return plain.Sequential(
            *(plain.Conv2d(1, 6, 3, bias=False), plain.BatchNorm2d(6), plain.ReLU()),
            *(plain.Flatten(), plain.Linear(384, 3)),
        )

    torch.manual_seed(0)
    model = dead(nn.to_variational(made()), "rows", 0)
    x = torch.randn(2, 1, 10, 10)
    expected = nn.to_deterministic(model, 3.0)(x)
    compact = nn.to_compact(fused(nn.to_deterministic(model, 3.0)))
    assert len(compact[0].weight) == len(nn.to_compact(model)[0].weight) < 6
    state = compact.state_dict()
    for each in (compact, nn.load_sparse(fused(made()), state)):
        torch.testing.assert_close(each(x), expected)
    message = "pass .* and a model with the same layers, fused if the model was fused before"
    with pytest.raises(ValueError, match=rf"^state_dict has no weights of module '4': {message}"):
        nn.load_sparse(made(), state)
    shifted = {{"1": "2", "3": "4"}.get(key[0], key[0]) + key[1:]: state[key] for key in state}
    with pytest.raises(ValueError, match=rf"^state_dict has no weights of module '1': {message}"):
        nn.load_sparse(made(), shifted)
    del state["0.bias"]
    with pytest.raises(ValueError, match=rf"^state_dict has no bias of module '0': {message}"):
        nn.load_sparse(fused(made()), state)


ASSIGNED = {
    "padded": {"padding": (1, 1)},
    "padded less": {"padding": (0, 0)},
    "dilated": {"padding": (2, 2), "dilation": (2, 2), "stride": (2, 2)},
    "same": {"padding": "same", "dilation": (2, 2)},
    "valid": {"padding": "valid"},
    "one number": {"padding": 1},
    "one of a tuple": {"padding": (1,)},
}


@pytest.mark.parametrize("before", [0, 1, 2, "same"])
@pytest.mark.parametrize("name", ASSIGNED)
@pytest.mark.parametrize("mode", ["zeros", "circular"])
@pytest.mark.filterwarnings("ignore:to_compact kept")
def test_options_of_a_convolution_that_were_assigned(before, name, mode):
    """As in dilated backbones. Torch ignores the padding of other modes than zeros."""

    def made(options=ASSIGNED[name]):
        torch.manual_seed(0)
        model = plain.Sequential(
            *(plain.Conv2d(3, 6, 3), plain.ReLU()),
            *(plain.Conv2d(6, 4, 3, padding=before, padding_mode=mode), plain.AdaptiveAvgPool2d(1)),
        )
        for option, value in options.items():
            setattr(model[2], option, value)
        plain.init.ones_(model[0].bias)
        return model

    model, x = made().eval(), torch.randn(2, 3, 12, 12)
    model[0].weight.data[:3] = 0.0
    model[2].weight.data[:, 4] = 0.0
    expected = model(x)
    posterior = nn.Additive(initial=-40.0)
    variational = nn.to_variational(model, posterior=posterior)
    sparse = nn.to_sparse(model, max_density=1.0, drop_units=False)
    found = [
        nn.to_compact(model),
        nn.to_sparse(model, max_density=1.0),
        sparse,
        variational.train(),
    ]
    found += [nn.to_variational(model, posterior=posterior, estimator="per_example")]
    found.append(nn.load_sparse(made(), sparse.state_dict()))
    earlier = made(options={})
    earlier.load_state_dict(model.state_dict())
    found.append(nn.to_sparse(earlier, max_density=1.0, drop_units=False))
    found[-1](x)
    for option, value in ASSIGNED[name].items():
        setattr(found[-1][2], option, value)
    for each in found:
        torch.testing.assert_close(each(x), expected)


@pytest.mark.parametrize("mode", ["RNN_TANH", "RNN_RELU"])
def test_the_mode_of_a_recurrent_module_that_was_assigned(mode):
    """Torch reads `mode` alone."""
    torch.manual_seed(0)
    model = recurrent(RNN, "all").eval()
    model.net.mode, model.net.nonlinearity = mode, "relu" if mode == "RNN_TANH" else "tanh"
    x = torch.randn(2, 1, 10, 10)
    for name, each in model.net.named_parameters():
        if "weight" in name:
            each.data[:4] = 0.0
        if name == "weight_hh_l0":
            each.data[:, :4] = 0.0
    compact = nn.to_compact(model)
    assert compact.net.hidden_size == 4
    torch.testing.assert_close(compact(x), model(x))


@pytest.mark.parametrize("tracks", [True, False])
@pytest.mark.filterwarnings("ignore:to_compact kept")
def test_instance_normalisation_that_no_longer_tracks(tracks):
    torch.manual_seed(0)
    norm = plain.InstanceNorm2d(6, affine=True, track_running_stats=True)
    model = plain.Sequential(plain.Conv2d(3, 6, 3), norm, plain.ReLU(), plain.Conv2d(6, 4, 1))
    model.eval()[0].weight.data[:3] = 0.0
    norm.running_mean.fill_(-2.0)
    norm.track_running_stats = tracks
    x, compact = torch.randn(2, 3, 8, 8), nn.to_compact(model)
    torch.testing.assert_close(compact(x), model(x))
    assert len(compact[0].weight) == (3 if tracks else 6)


def test_hooks_of_the_backward_pass():
    torch.manual_seed(0)
    model = plain.Sequential(plain.Linear(4, 6), plain.ReLU(), plain.Linear(6, 2)).eval()
    model[0].register_full_backward_hook(lambda module, given, output: (given[0] * 0.5,))
    model[2].register_full_backward_pre_hook(lambda module, output: (output[0] * 3.0,))
    x = torch.randn(3, 4, requires_grad=True)
    (expected,) = torch.autograd.grad(model(x).sum(), x)
    for made in (nn.to_compact(model), nn.to_sparse(model, max_density=1.0)):
        (found,) = torch.autograd.grad(made(x).sum(), x)
        torch.testing.assert_close(found, expected)


def test_dropout_of_ours_is_left_out():
    model = plain.Sequential(plain.Linear(4, 6), nn.GaussianDropoutA(0.5), plain.Linear(6, 2))
    for made in (nn.to_compact(model), nn.to_sparse(model, max_density=1.0)):
        assert type(made[1]) is plain.Identity
    assert type(model[1]) is nn.GaussianDropoutA


@pytest.mark.parametrize("convert", [nn.to_variational, nn.to_compact, nn.to_sparse])
def test_a_convolution_that_was_assigned_is_refused(convert, monkeypatch):
    """As for images that continue at their sides."""
    model = plain.Sequential(plain.Conv2d(3, 2, 3))
    own = model[0]._conv_forward
    model[0]._conv_forward = lambda x, weight, bias: own(x.flip(-1), weight, bias)
    with pytest.raises(TypeError, match=r"^module '0' has a _conv_forward that was assigned"):
        convert(model)

    def patched(self, x):
        return F.linear(x, self.weight) + 1.0

    for forward in (patched, functools.wraps(plain.Linear.forward)(patched)):
        monkeypatch.setattr(plain.Linear, "forward", forward)
        with pytest.raises(TypeError, match=r"^module '0' has a forward that was assigned"):
            convert(plain.Sequential(plain.Linear(3, 2)))


@pytest.mark.parametrize("convert", [nn.to_variational, nn.to_compact, nn.to_sparse])
def test_a_forward_that_was_assigned_is_refused(convert):
    """A copy would lose it, or call the layer that the function has closed over."""
    model = plain.Sequential(plain.Linear(3, 2))
    old = model[0].forward
    model[0].forward = lambda x: old(x) + 1.0
    with pytest.raises(TypeError, match=r"^module '0' has a forward that was assigned"):
        convert(model)
