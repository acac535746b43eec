"""The jobs of ``logunif-kl bench --jax``: training in JAX, by this library and by its peers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ..jax import neg_kl_normal
from ._bench_frameworks import BACKWARD, COPY, FORWARD, Comparison, Suite
from ._bench_peers import molchanov_sum
from .provenance import cpus_usable
from .timing import Job, wall_seconds

OURS, PEERS = "ours, jitted", "peers, jitted"
PACKAGES = ("jax", "jaxlib")


def _ours(mu: Any, log_sigma2: Any) -> Any:
    return neg_kl_normal(mu, log_sigma2).sum()


_peers = partial(molchanov_sum, jnp, jax.nn.sigmoid)


def suite() -> Suite:
    """Return what to time on JAX's default device."""
    return Suite(
        framework="jax",
        device=jax.devices()[0].device_kind,
        threads=cpus_usable(),
        packages=PACKAGES,
        jobs=_jobs,
        comparisons=[
            Comparison(OURS, PEERS, BACKWARD, "<= 1.2", "<= 1"),
            Comparison(OURS, PEERS, FORWARD, "<= 1.2", "<= 1"),
            Comparison(COPY, OURS, BACKWARD),
        ],
        seconds=wall_seconds,
        peak_bytes=_peak_bytes,
        counts=_counts,
    )


class _Call:
    """A compiled program with its arguments, which waits for the results when it is called."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.program = jax.jit(function).lower(*arguments).compile()
        self.arguments = arguments

    def __call__(self) -> Any:
        wait: Any = jax.block_until_ready
        return wait(self.program(*self.arguments))


def _jobs(size: int) -> dict[str, Job]:
    first, second = jax.random.split(jax.random.key(0))
    mu = jax.random.normal(first, (size,), dtype="float32")
    log_sigma2 = -8.0 + 2.0 * jax.random.normal(second, (size,), dtype="float32")
    jobs: dict[str, Job] = {}
    for name, function in ((OURS, _ours), (PEERS, _peers)):
        jobs[f"{name}: {FORWARD}"] = _Call(function, mu, log_sigma2)
        both = jax.value_and_grad(function, argnums=(0, 1))
        jobs[f"{name}: {BACKWARD}"] = _Call(both, mu, log_sigma2)
    for part, arrays in ((FORWARD, 1), (BACKWARD, 3)):
        jobs[f"{COPY}: {part}"] = _Call(jnp.copy, jnp.ones(arrays * size, "float32"))
    return jobs


def _peak_bytes(job: Job) -> int:
    """Return the memory that XLA plans for a program: results and temporaries."""
    assert isinstance(job, _Call)
    found: Any = job.program.memory_analysis()
    return int(found.output_size_in_bytes + found.temp_size_in_bytes)


def _counts(job: Job) -> dict[str, float]:
    """Return the counts of XLA's cost analysis; a fusion counts as a loop."""
    assert isinstance(job, _Call)
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
