"""Training steps of whole layers in PyTorch with their KL, compared with other packages.

A multilayer perceptron is timed with two sizes of the minibatch, and a convolution as inside a
network. A transformer has linear layers of each package, and torch's own one is converted as a
whole. The last part times only the KL, of as many weights as a ResNet-50 has. Every round takes
one step of each implementation, so that the drift of the machine cancels.
"""

import argparse
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch.nn import functional as F

from logunif_kl.cli.bench import _torch
from logunif_kl.cli.timing import rounds, spread, spreads
from logunif_kl.torch import kl_normal, nn
from validation.benchmarks import peers
from validation.benchmarks.in_torch import cpu_peak_bytes, cuda_peak_bytes, shares
from validation.benchmarks.peers import OURS, OURS_ALONE, OURS_PER_BATCH, TORCH, Made
from validation.benchmarks.training import timed
from validation.output import Record, track

EXAMPLES = 60_000  # in the data set; the KL is divided by it
COMPILED = ", compiled"
OF_MODEL = "nn.kl(model)"

Seconds = dict[str, float]
Network = Callable[[Made], tuple[Any, Callable[[Any], Any]]]


def resnet50_shapes() -> list[tuple[int, ...]]:
    """List the shapes of the weights of a ResNet-50: 25.5 million in 54 tensors."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7)]
    before = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            shapes += [(width, before, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            if block == 0:
                shapes.append((4 * width, before, 1, 1))
            before = 4 * width
    return [*shapes, (1000, before)]


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The sizes, the number of rounds, and the device."""

    widths: tuple[int, ...] = (784, 1024, 1024, 1024, 10)
    batches: tuple[int, ...] = (128, 1000)
    # Channels, image size and minibatch of the convolution.
    images: tuple[int, int, int] = (64, 32, 64)
    # Blocks, width, heads, sequences and tokens of a sequence of the transformers.
    texts: tuple[int, int, int, int, int] = (2, 128, 4, 32, 128)
    shapes: Sequence[tuple[int, ...]] = tuple(resnet50_shapes())
    rounds: int = 9
    seed: int = 0
    compiled: bool = True
    device: str = "cpu"

    def wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


class Way:
    """A model that is trained step by step on one minibatch."""

    def __init__(self, plan: Plan, kind: Made, network: Network, compiled: bool) -> None:
        torch.manual_seed(plan.seed)
        self.model, of_data = network(kind)
        self.model.to(plan.device).train()
        self.kl = partial(kind.kl, self.model) if kind.kl else None
        self.loss: Callable[[], Any] = partial(of_data, self.model)
        if compiled:
            torch._dynamo.reset()
            self.loss = torch.compile(self._whole(), fullgraph=kind.whole, dynamic=False)
            self.kl = None
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self._wait = plan.wait
        for _ in range(2):
            self.step()

    def _whole(self) -> Callable[[], Any]:
        """Return the loss including the KL."""
        loss, kl = self.loss, self.kl
        return loss if kl is None else lambda: loss() + kl() / EXAMPLES

    def step(self) -> Seconds:
        """Take a step, and return the seconds of its parts."""
        self.optimizer.zero_grad(set_to_none=True)
        value: Any = None

        def forward() -> None:
            nonlocal value
            value = self.loss()

        def kl() -> None:
            nonlocal value
            if self.kl is not None:
                value = value + self.kl() / EXAMPLES

        parts = {"forward": forward, "KL": kl, "backward": lambda: value.backward()}
        return timed({**parts, "optimizer": self.optimizer.step}, self._wait)

    def gradients(self) -> Any:
        """Compute only the gradients, to measure their memory."""
        wanted = [p for p in self.model.parameters() if p.requires_grad]
        return torch.autograd.grad(self._whole()(), wanted, allow_unused=True)


def perceptron(plan: Plan, batch: int, kind: Made) -> tuple[Any, Callable[[Any], Any]]:
    """Make a multilayer perceptron, and its loss."""
    modules: list[Any] = []
    for pair in pairwise(plan.widths):
        modules += [kind.linear(*pair), torch.nn.ReLU()]
    generator = torch.Generator().manual_seed(plan.seed)
    x = torch.randn(batch, plan.widths[0], generator=generator).to(plan.device)
    y = torch.randint(plan.widths[-1], (batch,), generator=generator).to(plan.device)
    return torch.nn.Sequential(*modules[:-1]), lambda model: F.cross_entropy(model(x), y)


def convolution(plan: Plan, kind: Made) -> tuple[Any, Callable[[Any], Any]]:
    """Make a convolution, and a loss that also needs the gradient of the input."""
    channels, side, batch = plan.images
    model = torch.nn.Sequential(kind.conv(channels, channels, (3, 3), padding=1))
    generator = torch.Generator().manual_seed(plan.seed)
    x = torch.randn(batch, channels, side, side, generator=generator).to(plan.device)
    x.requires_grad_()
    return model, lambda model: model(x).square().mean()


class Block(torch.nn.Module):
    """A block of a transformer whose matrices are all linear layers of one kind."""

    def __init__(self, width: int, heads: int, linear: peers.Layer) -> None:
        super().__init__()
        self.heads = heads
        self.read, self.out = linear(width, 3 * width), linear(width, width)
        self.widen, self.narrow = linear(width, 4 * width), linear(4 * width, width)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.read(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(*parts)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.second(x))))


def transformer(plan: Plan, kind: Made) -> tuple[Any, Callable[[Any], Any]]:
    """Make a transformer, and its loss."""
    blocks, width, heads, *_ = plan.texts
    model = torch.nn.Sequential(*(Block(width, heads, kind.linear) for _ in range(blocks)))
    return model, partial(_of_texts, *_texts(plan))


def encoder(plan: Plan, kind: Made) -> tuple[Any, Callable[[Any], Any]]:
    """Make torch's own transformer, converted as a whole where the weights are ours."""
    blocks, width, heads, *_ = plan.texts
    layer = torch.nn.TransformerEncoderLayer(
        *(width, heads, 4 * width, 0.0), batch_first=True, norm_first=True
    )
    model: Any = torch.nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
    if kind.name != TORCH:
        estimator = "per_batch" if kind.name == OURS_PER_BATCH else "local"
        model = nn.to_variational(model, estimator=estimator)
    return model, partial(_of_texts, *_texts(plan))


def _texts(plan: Plan) -> tuple[torch.Tensor, torch.Tensor]:
    _, width, _, batch, tokens = plan.texts
    generator = torch.Generator().manual_seed(plan.seed)
    x, y = torch.randn(2, batch, tokens, width, generator=generator).to(plan.device)
    return x, y


def _of_texts(x: torch.Tensor, y: torch.Tensor, model: Any) -> torch.Tensor:
    return F.mse_loss(model(x), y)


def ways(
    plan: Plan, kinds: Sequence[Made], network: Network
) -> tuple[dict[str, Way], dict[str, str]]:
    """Make every implementation that runs, and say why others do not."""
    found: dict[str, Way] = {}
    failed: dict[str, str] = {}
    for compiled in (False, True) if plan.compiled else (False,):
        for kind in kinds:
            name = kind.name + COMPILED * compiled
            try:
                found[name] = Way(plan, kind, network, compiled)
            except Exception as error:  # a package or the compiler may raise anything
                if kind.whole:
                    raise
                failed[name] = peers.why(error)
    return found, failed


def kl_alone(plan: Plan, kinds: Sequence[Made]) -> dict[str, tuple[Callable[[], Any], list[Any]]]:
    """Return the implementations of the KL of many tensors, each with its parameters."""

    def model_of(linear: peers.Layer, conv: peers.Layer) -> Any:
        """Make layers whose weights have the shapes, without biases."""
        layers = [
            conv(n, m, tuple(window), bias=False) if window else linear(n, m, bias=False)
            for m, n, *window in plan.shapes
        ]
        return torch.nn.ModuleList(layers).to(plan.device)

    model = model_of(nn.VariationalLinear, nn.VariationalConv2d)
    layers = list(model)
    pairs = [(layer.weight, layer.log_sigma2) for layer in layers]

    def joined() -> Any:
        each = [torch.cat([x.reshape(-1) for x in tensors]) for tensors in zip(*pairs, strict=True)]
        return kl_normal(*each, reduction="sum")

    functions: dict[str, Callable[[], Any]] = {
        OF_MODEL: partial(nn.kl, model),
        "layer by layer": lambda: sum(layer.kl() for layer in layers),
        "joined by torch.cat": joined,
        "Molchanov's formula, layer by layer": lambda: -sum(_torch.peers(*x) for x in pairs),
    }
    found = {name: (function, list(model.parameters())) for name, function in functions.items()}
    for kind in kinds:
        if kind.name == "cplxmodule" and kind.kl is not None:
            other = model_of(kind.linear, kind.conv)
            found[kind.name] = partial(kind.kl, other), list(other.parameters())
    return found


def both_passes(plan: Plan, function: Callable[[], Any], parameters: list[Any]) -> Seconds:
    """Compute a function and its gradients, and return the seconds of each pass."""
    value: Any = None

    def forward() -> None:
        nonlocal value
        value = function()

    parts = {"forward": forward, "backward": lambda: torch.autograd.grad(value, parameters)}
    return timed(parts, plan.wait)


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    plan = Plan(rounds=options.rounds, seed=options.seed, device="cuda" if options.cuda else "cpu")
    with _torch.threads(options.threads):
        return [*_torch.PACKAGES, *peers.PEERS], networks(plan)


def networks(plan: Plan) -> Record:
    """Time every network of a plan."""
    kinds, skipped = peers.made()
    widths = "-".join(map(str, plan.widths))
    channels, side, batch = plan.images
    title = f"convolution {channels} to {channels}, 3x3 on {side}x{side}, minibatch {batch}"
    trained: dict[str, Network] = {
        f"{widths}, minibatch {size}": partial(perceptron, plan, size) for size in plan.batches
    } | {title: partial(convolution, plan)}
    blocks, width, _, examples, tokens = plan.texts
    size = f"{blocks} blocks of width {width}, {examples * tokens:,} tokens"
    trained[f"transformer, {size}"] = partial(transformer, plan)
    return {
        "device": torch.cuda.get_device_name() if plan.device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "rounds": plan.rounds,
        "seed": plan.seed,
        "dtype": "float32",
        "optimizer": "Adam",
        "skipped": skipped,
        "networks": [
            *(_network(plan, title, kinds, network) for title, network in trained.items()),
            _network(
                plan,
                f"torch.nn.TransformerEncoder, {size}",
                [kind for kind in kinds if kind.whole],
                partial(encoder, plan),
            ),
            _kl_alone(plan, kinds),
        ],
    }


def _network(plan: Plan, title: str, kinds: list[Made], network: Network) -> Record:
    of, failed = ways(plan, kinds, network)
    rows, ratio = _timed(plan, title, {name: way.step for name, way in of.items()})
    peak = cuda_peak_bytes if plan.device == "cuda" else cpu_peak_bytes
    noise = {kind.name + suffix: kind.noise for kind in kinds for suffix in ("", COMPILED)}
    for row in rows:
        row["noise"] = noise[row["name"]]
        row["peak_megabytes"] = peak(of[row["name"]].gradients) / 1e6
        row["shares"] = shares(of[row["name"]].step, plan.device)
    # Our time over torch's and over our own, and the others' over ours.
    pairs = []
    for suffix in ("", COMPILED):
        pairs += [(OURS + suffix, TORCH + suffix), (OURS + suffix, OURS_ALONE + suffix)]
        for kind in kinds:
            if kind.name not in (TORCH, OURS, OURS_ALONE, OURS_PER_BATCH):
                unders = [OURS_PER_BATCH] if kind.noise == peers.ONE_SAMPLE else []
                pairs += [(kind.name + suffix, under + suffix) for under in [*unders, OURS]]
    ratios = [ratio(over, under) for over, under in pairs if over in of and under in of]
    return {"network": title, "failed": failed, "ways": rows, "ratios": ratios}


def _kl_alone(plan: Plan, kinds: list[Made]) -> Record:
    weights = sum(map(math.prod, plan.shapes))
    title = f"the KL alone, {weights:,} weights in {len(plan.shapes)} tensors"
    jobs = {name: partial(both_passes, plan, *job) for name, job in kl_alone(plan, kinds).items()}
    for job in jobs.values():
        job()
    rows, ratio = _timed(plan, title, jobs)
    ratios = [ratio(name, OF_MODEL) for name in jobs if name != OF_MODEL]
    return {"network": title, "failed": {}, "ways": rows, "ratios": ratios}


def _timed(
    plan: Plan, title: str, jobs: Mapping[str, Callable[[], Seconds]]
) -> tuple[list[Record], Callable[[str, str], Record]]:
    """Time steps in rounds; return the times of their parts, and a function for ratios."""
    turns = rounds(jobs, dict.fromkeys(jobs, 1), plan.rounds, lambda job, _: job())
    samples = list(track(turns, title, plan.rounds))
    rows = [
        {"name": name, "milliseconds": spreads([sample[name] for sample in samples], 1e3)}
        for name in jobs
    ]

    def ratio(over: str, under: str) -> Record:
        of_steps = [sample[over]["step"] / sample[under]["step"] for sample in samples]
        return {"what": f"{over} / {under}", **spread(of_steps)}

    return rows, ratio


def notes(found: Record) -> list[str]:
    """Say which packages were skipped, and which of their networks did not run."""
    said = [
        f"{name} did not run ({network['network']}): {reason}"
        for network in found["networks"]
        for name, reason in network["failed"].items()
    ]
    return [*peers.notes(found), *said]
