"""The jobs of ``logunif-kl bench --torch``: training in PyTorch, by this library and by peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from ... import special
from ...torch import kl_normal, neg_kl_normal
from ..provenance import cpus_usable
from ..timing import Job, wall_seconds
from .suite import BACKWARD, BYTES, COPY, FORWARD, LOG_SIGMA2, Ratio, Suite, molchanov_sum

EAGER, COMPILED, SUM = "ours, eager", "ours, compiled", 'ours, eager, reduction="sum"'
PEERS, PEERS_COMPILED = "peers, eager", "peers, compiled"
NEG_KL, KL = "neg_kl_normal, not reduced", "kl_normal, not reduced"
ARRAY, ONE = "ours, log_sigma2 an array", "ours, log_sigma2 one number"
KERNEL = "the ufunc, value and gradients"
ONE_THREAD, TWO_THREADS = "ours, one thread", "ours, two threads"
PACKAGES = ("torch", "triton")


def ours(mu: Any, log_sigma2: Any) -> Any:
    """Compute the sum of -KL from what is not reduced."""
    return neg_kl_normal(mu, log_sigma2).sum()


def reduced(mu: Any, log_sigma2: Any) -> Any:
    """Compute the sum of -KL by the function's own reduction."""
    return neg_kl_normal(mu, log_sigma2, reduction="sum")


peers = partial(molchanov_sum, torch, torch.sigmoid)


def suite(cuda: bool) -> Suite:
    """Return what to time on the CPU, with PyTorch's current number of threads, or on a GPU."""
    device = torch.device("cuda" if cuda else "cpu")
    pairs = [(COPY, SUM), (PEERS, EAGER)] if cuda else [(PEERS, EAGER), (PEERS, SUM)]
    pairs += [(COMPILED, PEERS_COMPILED)]
    pairs += [] if cuda else [(KL, NEG_KL), (ONE, ARRAY)]
    ratios: list[Ratio] = [(*pair, part) for pair in pairs for part in (BACKWARD, FORWARD)]
    across = [(ONE_THREAD, TWO_THREADS, part) for part in (BACKWARD, FORWARD)]
    return Suite(
        framework="torch",
        device=torch.cuda.get_device_name() if cuda else "cpu",
        threads=torch.get_num_threads(),
        jobs=partial(_jobs, device),
        ratios=[*ratios, (COPY, EAGER, BACKWARD)],
        seconds=_cuda_seconds if cuda else wall_seconds,
        peak_bytes=cuda_peak_bytes if cuda else cpu_peak_bytes,
        small=None if cuda else _small,
        on_threads=None if cuda or cpus_usable() < 2 else _on_threads,
        across_threads=across,
    )


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Set the number of PyTorch's threads within a context."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _weights(device: torch.device, size: int) -> list[Any]:
    generator = torch.Generator(device).manual_seed(0)
    mu = torch.randn(size, generator=generator, device=device)
    log_sigma2 = LOG_SIGMA2 + 2.0 * torch.randn(size, generator=generator, device=device)
    return [mu.requires_grad_(), log_sigma2.requires_grad_()]


def _jobs(device: torch.device, size: int) -> dict[str, Job]:
    weights = mu, _ = _weights(device, size)
    ones, array = torch.ones_like(mu), torch.full_like(mu, LOG_SIGMA2)
    torch._dynamo.reset()  # compile anew for each size
    compiled = partial(torch.compile, fullgraph=True, dynamic=False)
    # A function, its variables, and the gradient of its result where that is not a number.
    called: dict[str, tuple[Any, ...]] = {
        EAGER: (ours, weights),
        SUM: (reduced, weights),
        COMPILED: (compiled(ours), weights),
        PEERS: (peers, weights),
        PEERS_COMPILED: (compiled(peers), weights),
        NEG_KL: (neg_kl_normal, weights, ones),
        KL: (kl_normal, weights, ones),
        ARRAY: (lambda mu: ours(mu, array), [mu]),
        ONE: (lambda mu: ours(mu, LOG_SIGMA2), [mu]),
    }
    jobs: dict[str, Job] = {}
    for name, arguments in called.items():
        jobs[f"{name}: {FORWARD}"] = partial(forward, *arguments[:2])
        jobs[f"{name}: {BACKWARD}"] = partial(backward, *arguments)
    for part, count in BYTES.items():
        source, to = torch.ones(2, count // 8 * size, device=device)
        jobs[f"{COPY}: {part}"] = partial(to.copy_, source)
    return jobs


def _small(size: int) -> dict[str, Job]:
    """Make the jobs on few weights; the kernel's own time is that of the ufunc on the same."""
    weights = _weights(torch.device("cpu"), size)
    arrays = [weight.detach().numpy() for weight in weights]
    out = tuple(arrays[0].copy() for _ in range(3))
    jobs: dict[str, Job] = {
        f"{name}: {BACKWARD}": partial(backward, function, weights)
        for name, function in ((EAGER, ours), (SUM, reduced), (PEERS, peers))
    }
    return {**jobs, KERNEL: partial(special.neg_kl_normal_and_grad, *arrays, out=out)}


def _on_threads(size: int) -> dict[str, Job]:
    weights = _weights(torch.device("cpu"), size)
    return {
        f"{name}: {part}": partial(_on, number, partial(job, reduced, weights))
        for name, number in ((ONE_THREAD, 1), (TWO_THREADS, 2))
        for part, job in ((FORWARD, forward), (BACKWARD, backward))
    }


def _on(number: int, job: Job) -> None:
    if torch.get_num_threads() != number:
        torch.set_num_threads(number)
    job()


def forward(function: Callable[..., Any], weights: list[Any]) -> Any:
    """Compute a function without its gradients."""
    with torch.no_grad():
        return function(*weights)


def backward(
    function: Callable[..., Any], weights: list[Any], gradient: torch.Tensor | None = None
) -> Any:
    """Compute a function and its gradients."""
    return torch.autograd.grad(function(*weights), weights, gradient)


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


def cuda_peak_bytes(job: Job) -> int:
    """Return the peak of the GPU's memory that a job adds."""
    job()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    kept = job()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del kept
    return int(peak)


def cpu_peak_bytes(job: Job) -> int:
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
