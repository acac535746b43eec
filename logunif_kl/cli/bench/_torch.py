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
from .frameworks import BACKWARD, COPY, FORWARD, Comparison, Suite
from .magnitudes import Way
from .peers import molchanov_sum
from .sizes import DTYPES

EAGER, COMPILED, SUM = "ours, eager", "ours, compiled", 'ours, eager, reduction="sum"'
PEERS, PEERS_COMPILED = "peers, eager", "peers, compiled"
NEG_KL, KL = "neg_kl_normal, not reduced", "kl_normal, not reduced"
ARRAY, ONE = "ours, log_sigma2 an array", "ours, log_sigma2 one number"
KERNEL = "the ufunc, value and gradients"
ONE_THREAD, TWO_THREADS = "ours, one thread", "ours, two threads"
PACKAGES = ("torch", "triton")
# Compiled, ours is to take that part of the peers' time, from each size on.
BY_SIZE = {10_000: "<= 1.1", 100_000: "<= 1", 1_000_000: "<= 0.8"}
_LOG_SIGMA2 = -8.0
# For each magnitude: enough that the calls cost little beside.
_ELEMENTS = {"float64": 30_000, "float32": 100_000}


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
        small=None if cuda else _small,
        on_threads=None if cuda or cpus_usable() < 2 else _on_threads,
        across_threads=[
            Comparison(ONE_THREAD, TWO_THREADS, BACKWARD, ">= 1.6"),
            Comparison(ONE_THREAD, TWO_THREADS, FORWARD),
        ],
    )


def _on_cpu() -> list[Comparison]:
    return [
        Comparison(PEERS, EAGER, BACKWARD, ">= 5", ">= 10"),
        Comparison(PEERS, SUM, BACKWARD, ">= 8"),
        Comparison(PEERS, EAGER, FORWARD),
        Comparison(PEERS, SUM, FORWARD),
        Comparison(COMPILED, PEERS_COMPILED, BACKWARD, BY_SIZE),
        Comparison(COMPILED, PEERS_COMPILED, FORWARD),
        Comparison(KL, NEG_KL, BACKWARD, aim="<= 1"),
        Comparison(KL, NEG_KL, FORWARD, aim="<= 1"),
        Comparison(ONE, ARRAY, BACKWARD, aim="<= 1"),
        Comparison(ONE, ARRAY, FORWARD, aim="<= 1"),
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


def _weights(device: torch.device, size: int) -> list[Any]:
    generator = torch.Generator(device).manual_seed(0)
    mu = torch.randn(size, generator=generator, device=device)
    log_sigma2 = _LOG_SIGMA2 + 2.0 * torch.randn(size, generator=generator, device=device)
    return [mu.requires_grad_(), log_sigma2.requires_grad_()]


def _jobs(device: torch.device, size: int) -> dict[str, Job]:
    weights = _weights(device, size)
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
    jobs |= _no_more(weights)
    for part, arrays in ((FORWARD, 1), (BACKWARD, 3)):
        source, to = torch.ones(2, arrays * size, device=device)
        jobs[f"{COPY}: {part}"] = partial(to.copy_, source)
    return jobs


def _no_more(weights: list[Any]) -> dict[str, Job]:
    """Make the jobs that are to cost no more than others: another sign, one number."""
    mu = weights[0]
    ones = torch.ones_like(mu)
    jobs: dict[str, Job] = {}
    for name, function in ((NEG_KL, neg_kl_normal), (KL, kl_normal)):
        jobs[f"{name}: {FORWARD}"] = partial(_forward, function, weights)
        jobs[f"{name}: {BACKWARD}"] = partial(_backward, function, weights, ones)
    for name, log_sigma2 in ((ARRAY, torch.full_like(mu, _LOG_SIGMA2)), (ONE, _LOG_SIGMA2)):
        function = partial(_of_mu, log_sigma2)
        jobs[f"{name}: {FORWARD}"] = partial(_forward, function, [mu])
        jobs[f"{name}: {BACKWARD}"] = partial(_backward, function, [mu])
    return jobs


def _of_mu(log_sigma2: Any, mu: Any) -> Any:
    return _ours(mu, log_sigma2)


def _small(size: int) -> dict[str, Job]:
    """Make the jobs on few weights; the kernel's own time is that of the ufunc on the same."""
    weights = _weights(torch.device("cpu"), size)
    arrays = [weight.detach().numpy() for weight in weights]
    out = tuple(arrays[0].copy() for _ in range(3))
    jobs: dict[str, Job] = {
        f"{name}: {BACKWARD}": partial(_backward, function, weights)
        for name, function in ((EAGER, _ours), (SUM, _reduced), (PEERS, _peers))
    }
    return {**jobs, KERNEL: partial(special.neg_kl_normal_and_grad, *arrays, out=out)}


def _on_threads(size: int) -> dict[str, Job]:
    weights = _weights(torch.device("cpu"), size)
    return {
        f"{name}: {part}": partial(_on, number, partial(job, _reduced, weights))
        for name, number in ((ONE_THREAD, 1), (TWO_THREADS, 2))
        for part, job in ((FORWARD, _forward), (BACKWARD, _backward))
    }


def _on(number: int, job: Job) -> None:
    if torch.get_num_threads() != number:
        torch.set_num_threads(number)
    job()


def ways() -> list[Way]:
    """List what ``bench --magnitudes`` times: both passes, eager, on one thread."""
    return [
        Way(
            f"neg_kl_normal(...).sum(), {BACKWARD}",
            "torch",
            dtype,
            ("mu", "log_sigma2"),
            _ELEMENTS[dtype],
            _way,
        )
        for dtype in DTYPES
    ]


def _way(*arrays: Any) -> Job:
    weights = [torch.from_numpy(array).requires_grad_() for array in arrays]
    return partial(_backward, _ours, weights)


def _forward(function: Callable[..., Any], weights: list[Any]) -> Any:
    with torch.no_grad():
        return function(*weights)


def _backward(
    function: Callable[..., Any], weights: list[Any], gradient: torch.Tensor | None = None
) -> Any:
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
