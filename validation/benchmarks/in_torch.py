"""Training in PyTorch: the jobs of ``logunif-kl bench --torch`` and more, with memory."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from logunif_kl import special
from logunif_kl.cli.bench import _torch
from logunif_kl.cli.bench._torch import EAGER, PACKAGES, PEERS, SUM, both_passes, ours, reduced
from logunif_kl.cli.bench.training import BACKWARD, FORWARD, LOG_SIGMA2, Ratio
from logunif_kl.cli.provenance import cpus_usable
from logunif_kl.cli.timing import Job
from logunif_kl.torch import kl_normal, neg_kl_normal
from validation.benchmarks.frameworks import COPIES, COPY, KERNEL, Record

__all__ = ["PACKAGES", "prepared"]

NEG_KL, KL = "neg_kl_normal, not reduced", "kl_normal, not reduced"
ARRAY, ONE = "ours, log_sigma2 an array", "ours, log_sigma2 one number"
ONE_THREAD, TWO_THREADS = "ours, one thread", "ours, two threads"


@contextmanager
def prepared(options: argparse.Namespace) -> Iterator[Record]:
    """Return the record, and set PyTorch's number of threads within the context."""
    with _torch.threads(options.threads):
        yield record(options.cuda)


def record(cuda: bool) -> Record:
    suite = _torch.suite(cuda)
    ratios: list[Ratio] = [*suite.ratios, (COPY[BACKWARD], EAGER, BACKWARD)]
    if cuda:
        ratios += [(COPY[part], SUM, part) for part in (BACKWARD, FORWARD)]
    else:
        pairs = ((KL, NEG_KL), (ONE, ARRAY))
        ratios += [(*pair, part) for pair in pairs for part in (BACKWARD, FORWARD)]
    device = torch.device("cuda" if cuda else "cpu")
    return Record(
        dataclasses.replace(suite, jobs=partial(jobs, device), ratios=ratios),
        peak_bytes=cuda_peak_bytes if cuda else cpu_peak_bytes,
        small=None if cuda else _small,
        on_threads=None if cuda or cpus_usable() < 2 else _on_threads,
        across_threads=[(ONE_THREAD, TWO_THREADS, part) for part in (BACKWARD, FORWARD)],
    )


def jobs(device: torch.device, size: int) -> dict[str, Job]:
    weights = mu, _ = _torch.weights(device, size)
    ones, array = torch.ones_like(mu), torch.full_like(mu, LOG_SIGMA2)
    made = _torch.jobs(device, size) | both_passes(
        {
            NEG_KL: (neg_kl_normal, weights, ones),
            KL: (kl_normal, weights, ones),
            ARRAY: (lambda mu: ours(mu, array), [mu]),
            ONE: (lambda mu: ours(mu, LOG_SIGMA2), [mu]),
        }
    )
    for name, count in COPIES.items():
        source, to = torch.ones(2, count // 8 * size, device=device)
        made[name] = partial(to.copy_, source)
    return made


def _small(size: int) -> dict[str, Job]:
    """Make jobs on few weights; the ufunc on the same weights shows the kernel's own time."""
    weights = _torch.weights(torch.device("cpu"), size)
    arrays = [weight.detach().numpy() for weight in weights]
    out = tuple(arrays[0].copy() for _ in range(3))
    made: dict[str, Job] = {
        f"{name}: {BACKWARD}": partial(_torch.backward, function, weights)
        for name, function in ((EAGER, ours), (SUM, reduced), (PEERS, _torch.peers))
    }
    return {**made, KERNEL: partial(special.neg_kl_normal_and_grad, *arrays, out=out)}


def _on_threads(size: int) -> dict[str, Job]:
    weights = _torch.weights(torch.device("cpu"), size)
    return {
        f"{name}: {part}": partial(_on, number, partial(job, reduced, weights))
        for name, number in ((ONE_THREAD, 1), (TWO_THREADS, 2))
        for part, job in ((FORWARD, _torch.forward), (BACKWARD, _torch.backward))
    }


def _on(number: int, job: Job) -> None:
    if torch.get_num_threads() != number:
        torch.set_num_threads(number)
    job()


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
    """Add up, in order of time, the allocations that PyTorch's CPU allocator reports."""
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


# Operations of torch that multiply matrices, and those that draw random numbers.
PRODUCTS = re.compile(r"::(mm|addmm|bmm|baddbmm|_linear_pointwise|\w*conv\w*)$")
NOISE = re.compile(r"::(normal_|uniform_|bernoulli_|rand\w*)$")


def shares(job: Job, device: str, repeats: int = 3) -> dict[str, float]:
    """Return the shares of a job's time that matrix products and random numbers take.

    Compiled kernels that draw their own random numbers are not counted.
    """
    job()
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        for _ in range(repeats):
            job()
    clock = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
    # The events of GPU kernels repeat the times of the operations that started them.
    events = (e for e in profiler.key_averages() if e.device_type == DeviceType.CPU)
    times = [(event.key, getattr(event, clock)) for event in events]
    total = sum(time for _, time in times)
    kinds = {"products": PRODUCTS, "noise": NOISE}
    return {
        kind: sum(time for key, time in times if pattern.search(key)) / total
        for kind, pattern in kinds.items()
    }
