"""The functions that ``logunif-kl bench --torch`` times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from ...torch import neg_kl_normal
from ..timing import Job, wall_seconds
from .training import BACKWARD, FORWARD, LOG_SIGMA2, Suite, molchanov_sum

EAGER, COMPILED, SUM = "ours, eager", "ours, compiled", 'ours, eager, reduction="sum"'
PEERS, PEERS_COMPILED = "peers, eager", "peers, compiled"
PACKAGES = ("torch", "triton")


def ours(mu: Any, log_sigma2: Any) -> Any:
    return neg_kl_normal(mu, log_sigma2).sum()


def reduced(mu: Any, log_sigma2: Any) -> Any:
    return neg_kl_normal(mu, log_sigma2, reduction="sum")


peers = partial(molchanov_sum, torch, torch.sigmoid)


def suite(cuda: bool) -> Suite:
    """Return the suite for the CPU, with PyTorch's current number of threads, or for a GPU."""
    pairs = [(PEERS, EAGER), (PEERS, SUM), (COMPILED, PEERS_COMPILED)]
    return Suite(
        framework="torch",
        device=torch.cuda.get_device_name() if cuda else "cpu",
        threads=torch.get_num_threads(),
        jobs=partial(jobs, torch.device("cuda" if cuda else "cpu")),
        ratios=[(*pair, part) for pair in pairs for part in (BACKWARD, FORWARD)],
        seconds=cuda_seconds if cuda else wall_seconds,
    )


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def jobs(device: torch.device, size: int) -> dict[str, Job]:
    torch._dynamo.reset()  # compile again for each size
    compiled = partial(torch.compile, fullgraph=True, dynamic=False)
    functions = {
        EAGER: ours,
        SUM: reduced,
        COMPILED: compiled(ours),
        PEERS: peers,
        PEERS_COMPILED: compiled(peers),
    }
    return both_passes({name: (f, weights(device, size)) for name, f in functions.items()})


def weights(device: torch.device, size: int) -> list[Any]:
    """Draw means and log variances of weights; calls with the same size draw the same numbers."""
    generator = torch.Generator(device).manual_seed(0)
    mu = torch.randn(size, generator=generator, device=device)
    log_sigma2 = LOG_SIGMA2 + 2.0 * torch.randn(size, generator=generator, device=device)
    return [mu.requires_grad_(), log_sigma2.requires_grad_()]


def both_passes(called: dict[str, tuple[Any, ...]]) -> dict[str, Job]:
    """Make two jobs of each function: its forward pass, and its forward and backward pass.

    ``called`` maps the name of a function to the arguments that `backward` takes.
    """
    made: dict[str, Job] = {}
    for name, arguments in called.items():
        made[f"{name}: {FORWARD}"] = partial(forward, *arguments[:2])
        made[f"{name}: {BACKWARD}"] = partial(backward, *arguments)
    return made


def forward(function: Callable[..., Any], variables: list[Any]) -> Any:
    with torch.no_grad():
        return function(*variables)


def backward(
    function: Callable[..., Any], variables: list[Any], gradient: torch.Tensor | None = None
) -> Any:
    """Compute a function and its gradients; pass ``gradient`` unless the result is a scalar."""
    return torch.autograd.grad(function(*variables), variables, gradient)


def cuda_seconds(job: Job, count: int) -> float:
    """Measure the time by CUDA events, because calls return before the GPU is done."""
    torch.cuda.synchronize()
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    begin.record()
    for _ in range(count):
        job()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3 / count
