"""Training steps of networks of one shape in PyTorch: all at once by vmap, or one after another.

The networks are those of Kingma et al. 2015, Figure 1a. `torch.func.stack_module_state` joins their
weights, and one Adam trains them. Each network has its own minibatch.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn import functional as F

from logunif_kl.cli.bench import _torch
from logunif_kl.cli.timing import ratio, sample, spreads
from logunif_kl.torch import nn
from validation.output import Record
from validation.training import networks

EXAMPLES, PIXELS, BATCH = 50_000, 784, 100
METHODS = ("none", "variational_a", "variational_b")
SHAPES = ((100, 3), (100, 10), (400, 3), (800, 3))  # hidden units, and how many networks
LOOP, STACKED = "one after another", "by vmap"


class Likelihood(torch.nn.Module):
    """The loss of a network without a posterior."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.network(x), y)


class Bound(torch.nn.Module):
    """The loss of a network with a posterior."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.elbo = nn.ELBO(network, nn.categorical_log_likelihood, EXAMPLES)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.elbo(x, y).loss
        return loss


def losses(method: str, width: int, count: int, seed: int) -> list[torch.nn.Module]:
    kind: Any = Likelihood if networks.METHODS[method].posterior is None else Bound
    return [
        kind(networks.network(method, PIXELS, [width] * 3, seed=seed + each, generator=None))
        for each in range(count)
    ]


def gradients_of(stack: list[torch.nn.Module]) -> tuple[dict[str, Any], Callable[..., Any]]:
    """Return the joined parameters, and the function of minibatches that gives them gradients."""
    parameters, buffers = stack_module_state(stack)

    def loss(own: Any, others: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional_call(stack[0], (own, others), (x, y))  # type: ignore[no-any-return]

    of_each = vmap(grad(loss), randomness="different")

    def put(x: torch.Tensor, y: torch.Tensor) -> None:
        for name, found in of_each(parameters, buffers, x, y).items():
            parameters[name].grad = found

    return parameters, put


def jobs(method: str, width: int, count: int, seed: int) -> dict[str, Callable[[], None]]:
    stack = losses(method, width, count, seed)
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(count, BATCH, PIXELS, generator=generator)
    y = torch.randint(10, (count, BATCH), generator=generator)
    parameters, put = gradients_of(stack)
    joined = torch.optim.Adam(parameters.values(), lr=1e-4)
    own = [torch.optim.Adam(loss.parameters(), lr=1e-4) for loss in stack]

    def loop() -> None:
        for loss, optimizer, *given in zip(stack, own, x, y, strict=True):
            optimizer.zero_grad()
            loss(*given).backward()
            optimizer.step()

    def stacked() -> None:
        put(x, y)
        joined.step()

    return {LOOP: loop, STACKED: stacked}


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    rows = []
    with _torch.threads(options.threads):
        for method in METHODS:
            for width, count in SHAPES:
                title = f"{networks.METHODS[method].title}, {count} x {width} units"
                made = jobs(method, width, count, options.seed)
                samples = sample(made, options.rounds, title)
                rows.append(
                    {
                        "method": networks.METHODS[method].title,
                        "width": width,
                        "networks": count,
                        "milliseconds": spreads([_each(s, count) for s in samples]),
                        "ratio": ratio(samples, STACKED, LOOP),
                    }
                )
        threads = torch.get_num_threads()
    return [*_torch.PACKAGES], {
        "threads": threads,
        "seed": options.seed,
        "rounds": options.rounds,
        "dtype": "float32",
        "optimizer": "Adam",
        "minibatch": BATCH,
        "rows": rows,
    }


def _each(seconds: dict[str, float], count: int) -> dict[str, float]:
    return {name: 1e3 * taken / count for name, taken in seconds.items()}
