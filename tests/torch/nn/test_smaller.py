"""Networks without their dead units compute what `to_deterministic` computes, and are smaller."""

import copy
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


def depthwise():
    def run(self, x):
        x = F.hardswish(self.n0(self.stem(x)))
        x = F.relu(self.n1(self.deep(x)))
        x = x * torch.sigmoid(self.up(F.relu(self.down(x.mean([-2, -1], keepdim=True)))))
        x = self.prelu(self.n2(self.wide(x)))
        return self.head(x.mean(dim=(2, 3)))

    return Net(
        run,
        stem=plain.Conv2d(1, 8, 3),
        deep=plain.Conv2d(8, 8, 3, padding=1, groups=8),
        down=plain.Conv2d(8, 5, 1),
        up=plain.Conv2d(5, 8, 1),
        wide=plain.Conv2d(8, 10, 1),
        prelu=plain.PReLU(10),
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
        return self.out(torch.cat([x, self.d(x)], 1) - 1.0)

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
    "depthwise": depthwise,
    "U-Net": u_net,
    "vectors": vectors,
    "volumes": volumes,
    "LSTM": lambda: recurrent(LSTM, "all", bidirectional=True, num_layers=2),
    "LSTM, state": lambda: recurrent(LSTM, "state", num_layers=2),
    "GRU": lambda: recurrent(GRU, "step", num_layers=2),
    "GRU, state": lambda: recurrent(GRU, "state", bidirectional=True),
    "RNN": lambda: recurrent(RNN, "all", num_layers=2),
    "RNN, relu": lambda: recurrent(RNN, "step", nonlinearity="relu", bias=False, bidirectional=True),
    "sequences": sequences,
    "encoder": encoder,
    "encoder-decoder": encoder_decoder,
}


def size(model):
    return sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("what", ["rows", "columns", "rows and columns"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_with_dead_units(name, what):
    for seed in range(2):
        torch.manual_seed(seed)
        model = nn.to_variational(NETWORKS[name]()).double()
        model = dead(model, what, seed)
        x = torch.randn(3, 1, 10, 10, dtype=torch.float64)
        plain_model = nn.to_deterministic(model, 3.0)
        expected = plain_model(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compact = nn.to_compact(model)
        sparse = nn.to_sparse(model, max_density=1.0)
        again = nn.to_variational(NETWORKS[name]()).double()
        loaded = [nn.load_sparse(again, each.state_dict()) for each in (compact, sparse)]
        for each in (compact, sparse, *loaded):
            torch.testing.assert_close(each(x), expected, rtol=1e-9, atol=1e-9)
        print(name, what, size(plain_model), size(compact))
        assert size(compact) < size(plain_model)
