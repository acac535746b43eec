"""The training steps that ``logunif-kl bench --layers`` times, and their parts."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from ...torch import kl_normal, nn
from . import _layers_made as made
from .peers import molchanov_sum

ROUNDS_OF_LAYERS = 9
PARTS = ("forward", "KL", "backward", "optimizer")
EXAMPLES = 60_000  # of the data set: the KL is divided by it
COMPILED = ", compiled"

Steps = Mapping[str, Callable[[], dict[str, float]]]


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """How large, how often, and where."""

    widths: tuple[int, ...] = (784, 1024, 1024, 1024, 10)
    batches: tuple[int, ...] = (128, 1000)
    # Channels, side and minibatch of the convolution.
    images: tuple[int, int, int] = (64, 32, 64)
    shapes: tuple[tuple[int, ...], ...] = tuple(made.resnet50_shapes())
    rounds: int = ROUNDS_OF_LAYERS
    seed: int = 0
    compiled: bool = True
    device: str = "cpu"


@dataclasses.dataclass(slots=True)
class Way:
    """A model that is trained, step by step, on one minibatch."""

    model: Any
    loss: Callable[[], Any]
    kl: Callable[[], Any] | None
    optimizer: Any
    wait: Callable[[], None]

    def step(self) -> dict[str, float]:
        """Take a step, and return the seconds of its parts."""
        self.optimizer.zero_grad(set_to_none=True)
        self.wait()
        times = [time.perf_counter()]
        loss = self.loss()
        self.wait()
        times.append(time.perf_counter())
        if self.kl is not None:
            loss = loss + self.kl() / EXAMPLES
            self.wait()
        times.append(time.perf_counter())
        loss.backward()
        self.wait()
        times.append(time.perf_counter())
        self.optimizer.step()
        self.wait()
        times.append(time.perf_counter())
        parts = {part: times[i + 1] - times[i] for i, part in enumerate(PARTS)}
        return {**parts, "step": times[-1] - times[0]}

    def gradients(self) -> Any:
        """Compute the gradients alone, for the memory that they take."""
        loss = self.loss()
        if self.kl is not None:
            loss = loss + self.kl() / EXAMPLES
        wanted = [p for p in self.model.parameters() if p.requires_grad]
        return torch.autograd.grad(loss, wanted, allow_unused=True)


def _waiting(device: str) -> Callable[[], None]:
    return torch.cuda.synchronize if device == "cuda" else lambda: None


def perceptron(plan: Plan, batch: int, kind: made.Made) -> tuple[Any, Callable[[Any], Any]]:
    """Make a multilayer perceptron, and its loss."""
    pairs = list(zip(plan.widths, plan.widths[1:], strict=False))
    modules: list[Any] = []
    for index, (width, following) in enumerate(pairs):
        modules.append(kind.linear(width, following))
        if index < len(pairs) - 1:
            modules.append(torch.nn.ReLU())
    generator = torch.Generator().manual_seed(plan.seed)
    x = torch.randn(batch, plan.widths[0], generator=generator).to(plan.device)
    y = torch.randint(plan.widths[-1], (batch,), generator=generator).to(plan.device)
    return torch.nn.Sequential(*modules), lambda model: F.cross_entropy(model(x), y)


def convolution(plan: Plan, kind: made.Made) -> tuple[Any, Callable[[Any], Any]]:
    """Make a convolution, and a loss whose gradient needs that of the input too."""
    channels, side, batch = plan.images
    model = torch.nn.Sequential(kind.conv(channels, channels, (3, 3), padding=1))
    generator = torch.Generator().manual_seed(plan.seed)
    x = torch.randn(batch, channels, side, side, generator=generator).to(plan.device)
    x.requires_grad_()
    return model, lambda model: model(x).square().mean()


def _way(plan: Plan, kind: made.Made, network: Any, compiled: bool) -> Way:
    torch.manual_seed(plan.seed)
    model, loss = network(kind)
    model.to(plan.device).train()

    def kl() -> Any:
        return kind.kl(model) if kind.kl is not None else None

    def whole() -> Any:
        value = loss(model)
        return value if kind.kl is None else value + kl() / EXAMPLES

    if compiled:
        torch._dynamo.reset()
        whole = torch.compile(whole, fullgraph=kind.whole, dynamic=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    apart = None if compiled or kind.kl is None else kl
    found = Way(
        model, whole if compiled else lambda: loss(model), apart, optimizer, _waiting(plan.device)
    )
    for _ in range(2):
        found.step()
    return found


def ways(
    plan: Plan, kinds: Sequence[made.Made], network: Any
) -> tuple[dict[str, Way], dict[str, str]]:
    """Make every way that runs, and say why another does not."""
    found: dict[str, Way] = {}
    failed: dict[str, str] = {}
    for compiled in (False, True) if plan.compiled else (False,):
        for kind in kinds:
            name = kind.name + COMPILED * compiled
            try:
                found[name] = _way(plan, kind, network, compiled)
            except Exception as error:  # whatever a package or the compiler raises
                if kind.whole:
                    raise
                failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return found, failed


def rounds(jobs: Steps, number: int) -> Iterator[dict[str, dict[str, float]]]:
    """Yield, for each round, the seconds of the parts of one step of every way."""
    names = list(jobs)
    for index in range(number):
        turn = index % len(names)
        took = {name: jobs[name]() for name in names[turn:] + names[:turn]}
        yield {name: took[name] for name in names}


def kl_alone(plan: Plan, kinds: Sequence[made.Made]) -> Steps:
    """Return the ways to compute the KL of many tensors, and its gradient."""
    model = _of_shapes(plan, nn.VariationalLinear, nn.VariationalConv2d)
    layers = list(model)
    pairs = [(layer.weight, layer.log_sigma2) for layer in layers]
    ours = list(model.parameters())

    def joined() -> Any:
        each = [torch.cat([x.reshape(-1) for x in tensors]) for tensors in zip(*pairs, strict=True)]
        return kl_normal(*each, reduction="sum")

    def molchanov() -> Any:
        return -sum(molchanov_sum(torch, torch.sigmoid, *pair) for pair in pairs)

    functions: dict[str, tuple[Callable[[], Any], list[Any]]] = {
        OF_MODEL: (partial(nn.kl, model), ours),
        "layer by layer": (lambda: sum(layer.kl() for layer in layers), ours),
        "joined by torch.cat": (joined, ours),
        "Molchanov's formula, layer by layer": (molchanov, ours),
    }
    for kind in kinds:
        if kind.name == "cplxmodule" and kind.kl is not None:
            other = _of_shapes(plan, kind.linear, kind.conv)
            functions[kind.name] = partial(kind.kl, other), list(other.parameters())
    wait = _waiting(plan.device)
    return {name: partial(_both_passes, *job, wait) for name, job in functions.items()}


OF_MODEL = "nn.kl(model)"


def _of_shapes(plan: Plan, linear: made.Layer, conv: made.Layer) -> Any:
    """Make layers whose weights have the shapes, without biases."""
    layers = [
        linear(shape[1], shape[0], bias=False)
        if len(shape) == 2
        else conv(shape[1], shape[0], shape[2:], bias=False)
        for shape in plan.shapes
    ]
    return torch.nn.ModuleList(layers).to(plan.device)


def _both_passes(
    function: Callable[[], Any], parameters: list[Any], wait: Callable[[], None]
) -> dict[str, float]:
    wait()
    began = time.perf_counter()
    value = function()
    wait()
    between = time.perf_counter()
    torch.autograd.grad(value, parameters)
    wait()
    ended = time.perf_counter()
    return {"forward": between - began, "backward": ended - between, "step": ended - began}
