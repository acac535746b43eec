"""The jobs of ``logunif-kl bench --torch``: training in PyTorch, by this library and by peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from ..torch import neg_kl_normal
from ._bench_frameworks import BACKWARD, COPY, FORWARD, Comparison, Suite
from ._bench_peers import molchanov_sum
from .timing import Job, wall_seconds

EAGER, COMPILED, SUM = "ours, eager", "ours, compiled", 'ours, eager, reduction="sum"'
PEERS, PEERS_COMPILED = "peers, eager", "peers, compiled"
PACKAGES = ("torch", "triton")


def _ours(mu: Any, log_sigma2: Any) -> Any:
    return neg_kl_normal(mu, log_sigma2).sum()


def _reduced(mu: Any, log_sigma2: Any) -> Any:
    return neg_kl_normal(mu, log_sigma2, reduction="sum")


_peers = partial(molchanov_sum, torch, torch.sigmoid)


def suite(cuda: bool) -> Suite:
    """Return what to time on the CPU, with PyTorch's current number of threads, or on a GPU."""
    device = torch.device("cuda" if cuda else "cpu")
    return Suite(
        framework="torch",
        device=torch.cuda.get_device_name() if cuda else "cpu",
        threads=torch.get_num_threads(),
        packages=PACKAGES,
        jobs=partial(_jobs, device),
        comparisons=_on_cuda() if cuda else _on_cpu(),
        seconds=_cuda_seconds if cuda else wall_seconds,
        peak_bytes=_cuda_peak_bytes if cuda else _cpu_peak_bytes,
    )


def _on_cpu() -> list[Comparison]:
    return [
        Comparison(PEERS, EAGER, BACKWARD, ">= 5", ">= 10"),
        Comparison(PEERS, SUM, BACKWARD),
        Comparison(PEERS, EAGER, FORWARD),
        Comparison(PEERS, SUM, FORWARD),
        Comparison(COMPILED, PEERS_COMPILED, BACKWARD, "<= 1.2", "<= 1"),
        Comparison(COMPILED, PEERS_COMPILED, FORWARD),
        Comparison(COPY, EAGER, BACKWARD),
    ]


def _on_cuda() -> list[Comparison]:
    return [
        Comparison(COPY, EAGER, BACKWARD, ">= 0.7", ">= 0.9"),
        Comparison(COPY, SUM, BACKWARD),
        Comparison(COPY, SUM, FORWARD),
        Comparison(PEERS, EAGER, BACKWARD, ">= 8"),
        Comparison(PEERS, EAGER, FORWARD),
        Comparison(COMPILED, PEERS_COMPILED, BACKWARD, "<= 1.2", "<= 1"),
        Comparison(COMPILED, PEERS_COMPILED, FORWARD),
    ]


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Set the number of PyTorch's threads within a context."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _jobs(device: torch.device, size: int) -> dict[str, Job]:
    generator = torch.Generator(device).manual_seed(0)
    mu = torch.randn(size, generator=generator, device=device)
    log_sigma2 = -8.0 + 2.0 * torch.randn(size, generator=generator, device=device)
    weights = [mu.requires_grad_(), log_sigma2.requires_grad_()]
    torch._dynamo.reset()  # compile anew for each size
    compiled = partial(torch.compile, fullgraph=True, dynamic=False)
    functions: dict[str, Callable[..., Any]] = {
        EAGER: _ours,
        SUM: _reduced,
        COMPILED: compiled(_ours),
        PEERS: _peers,
        PEERS_COMPILED: compiled(_peers),
    }
    jobs: dict[str, Job] = {}
    for name, function in functions.items():
        jobs[f"{name}: {FORWARD}"] = partial(_forward, function, weights)
        jobs[f"{name}: {BACKWARD}"] = partial(_backward, function, weights)
    for part, arrays in ((FORWARD, 1), (BACKWARD, 3)):
        source, to = torch.ones(2, arrays * size, device=device)
        jobs[f"{COPY}: {part}"] = partial(to.copy_, source)
    return jobs


def _forward(function: Callable[..., Any], weights: list[Any]) -> Any:
    with torch.no_grad():
        return function(*weights)


def _backward(function: Callable[..., Any], weights: list[Any]) -> Any:
    return torch.autograd.grad(function(*weights), weights)


def _cuda_seconds(job: Job, count: int) -> float:
    """Measure the time by events in the stream, because calls return before the GPU is done."""
    torch.cuda.synchronize()
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    begin.record()
    for _ in range(count):
        job()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3 / count


def _cuda_peak_bytes(job: Job) -> int:
    job()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    kept = job()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del kept
    return int(peak)


def _cpu_peak_bytes(job: Job) -> int:
    """Add up what PyTorch's CPU allocator reports to the profiler, in order of time."""
    job()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = job()
    del kept
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak
