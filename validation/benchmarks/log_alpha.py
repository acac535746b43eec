"""Training by KL as a function of log alpha alone, compiled, against Molchanov's formula.

Each job computes the sum of KL over float32 weights and its gradient, on one thread.
"""

# mypy: allow-untyped-calls
import argparse
import os
from functools import partial
from typing import Any

import numpy as np

from logunif_kl.cli.timing import Job, ratio, sample, spreads
from logunif_kl.methods._molchanov import K1, K2, K3
from validation.output import Record

OURS, FORMULA = "ours", "Molchanov's formula"
PACKAGES = ("torch", "jax", "jaxlib")


def formula(sigmoid: Any, softplus: Any, x: Any) -> Any:
    """KL by the authors' formula, in the form that does not overflow."""
    return K1 - K1 * sigmoid(K2 + K3 * x) + 0.5 * softplus(-x)


def in_torch(x: np.ndarray) -> dict[str, Job]:
    import torch

    from logunif_kl.torch import kl

    torch.compiler.reset()  # compile again for each size
    theirs = partial(formula, torch.sigmoid, torch.nn.functional.softplus)

    def job(function: Any) -> Job:
        leaf = torch.from_numpy(x).requires_grad_()
        compiled = torch.compile(function, fullgraph=True, dynamic=False)
        return lambda: torch.autograd.grad(compiled(leaf), leaf)

    return {
        OURS: job(lambda x: kl(x, reduction="sum")),
        FORMULA: job(lambda x: theirs(x).sum()),
    }


def in_jax(x: np.ndarray) -> dict[str, Job]:
    import jax

    from logunif_kl.cli.bench._jax import Call
    from logunif_kl.jax import kl

    theirs = partial(formula, jax.nn.sigmoid, jax.nn.softplus)

    def job(function: Any) -> Job:
        return Call(jax.value_and_grad(function), jax.numpy.asarray(x))

    return {
        OURS: job(lambda x: kl(x, reduction="sum")),
        FORMULA: job(lambda x: theirs(x).sum()),
    }


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # for threads that start from now on
    try:
        rows = [
            _row(options, framework, jobs, size)
            for framework, jobs in (("PyTorch", in_torch), ("JAX", in_jax))
            for size in options.size
        ]
    finally:
        os.sched_setaffinity(0, before)
    return list(PACKAGES), {"threads": 1, "seed": options.seed, "rows": rows}


def _row(options: argparse.Namespace, framework: str, jobs: Any, size: int) -> Record:
    x = np.random.default_rng(options.seed).uniform(-8.0, 8.0, size).astype("float32")
    samples = sample(jobs(x), options.rounds, f"{framework}, {size:,}")
    return {
        "framework": framework,
        "size": size,
        "nanoseconds_an_element": spreads(samples, 1e9 / size),
        "ratio": ratio(samples, OURS, FORMULA),
    }
