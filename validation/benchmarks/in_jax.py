"""Training in JAX: the jobs of ``logunif-kl bench --jax`` and more, with memory and counts."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from logunif_kl import special
from logunif_kl.cli.bench import _jax
from logunif_kl.cli.bench._jax import OURS, PACKAGES, PEERS, Call, ours
from logunif_kl.cli.bench.training import BACKWARD, FORWARD, LOG_SIGMA2
from logunif_kl.cli.timing import Job
from logunif_kl.jax import kl_normal, neg_kl_normal
from validation.benchmarks.frameworks import COPIES, COPY, KERNEL, Record

__all__ = ["PACKAGES", "prepared"]

NEG_KL, KL = "neg_kl_normal, not reduced", "kl_normal, not reduced"
ARRAY, ONE = "ours, log_sigma2 an array", "ours, log_sigma2 one number"


@contextmanager
def prepared(options: argparse.Namespace) -> Iterator[Record]:
    suite = _jax.suite()
    more = [(KL, NEG_KL, FORWARD), (ONE, ARRAY, BACKWARD), (ONE, ARRAY, FORWARD)]
    ratios = [*suite.ratios, *more, (COPY[BACKWARD], OURS, BACKWARD)]
    suite = dataclasses.replace(suite, jobs=jobs, ratios=ratios)
    yield Record(suite, peak_bytes=_peak_bytes, counts=_counts, small=_small)


def jobs(size: int) -> dict[str, Job]:
    weights = mu, _ = _jax.weights(size)
    made: dict[str, Job] = _jax.jobs(size)
    for name, function, arguments in (
        (ARRAY, ours, [mu, jnp.full_like(mu, LOG_SIGMA2)]),
        (ONE, lambda mu: ours(mu, LOG_SIGMA2), [mu]),
    ):
        made[f"{name}: {FORWARD}"] = Call(function, *arguments)
        # The second array of ARRAY is not differentiated, because a number would not be.
        made[f"{name}: {BACKWARD}"] = Call(jax.value_and_grad(function), *arguments)
    for name, function in ((NEG_KL, neg_kl_normal), (KL, kl_normal)):
        made[f"{name}: {FORWARD}"] = Call(function, *weights)
    for name, count in COPIES.items():
        made[name] = Call(jnp.copy, jnp.ones(count // 8 * size, "float32"))
    return made


def _small(size: int) -> dict[str, Job]:
    """Make jobs on few weights; the ufunc on the same weights shows the kernel's own time."""
    weights = _jax.weights(size)
    arrays = [np.asarray(weight) for weight in weights]
    out = tuple(np.empty_like(arrays[0]) for _ in range(3))
    made: dict[str, Job] = {
        f"{name}: {BACKWARD}": Call(jax.value_and_grad(function, argnums=(0, 1)), *weights)
        for name, function in ((OURS, ours), (PEERS, _jax.peers))
    }
    return {**made, KERNEL: partial(special.neg_kl_normal_and_grad, *arrays, out=out)}


def _peak_bytes(job: Job) -> int:
    """Return the memory that XLA plans for a program: results and temporaries."""
    assert isinstance(job, Call)
    found: Any = job.program.memory_analysis()
    return int(found.output_size_in_bytes + found.temp_size_in_bytes)


def _counts(job: Job) -> dict[str, float]:
    """Return the counts of XLA's cost analysis, in which a fusion counts as one loop."""
    assert isinstance(job, Call)
    found: Any = job.program.cost_analysis()
    size = job.arguments[0].size
    counts = {
        kind: found.get(name, 0.0) / size
        for kind, name in (
            ("operations", "flops"),
            ("transcendentals", "transcendentals"),
            ("bytes", "bytes accessed"),
        )
    }
    return {**counts, "loops": float((job.program.as_text() or "").count(" fusion("))}
