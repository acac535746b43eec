"""The jobs of ``logunif-kl bench --jax``: training in JAX, by this library and by its peers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import special
from ...jax import kl_normal, neg_kl_normal
from ..provenance import cpus_usable
from ..timing import Job
from .suite import BACKWARD, BYTES, COPY, FORWARD, LOG_SIGMA2, Suite, molchanov_sum

OURS, PEERS = "ours, jitted", "peers, jitted"
NEG_KL, KL = "neg_kl_normal, not reduced", "kl_normal, not reduced"
ARRAY, ONE = "ours, log_sigma2 an array", "ours, log_sigma2 one number"
KERNEL = "the ufunc, value and gradients"
PACKAGES = ("jax", "jaxlib")


def ours(mu: Any, log_sigma2: Any) -> Any:
    """Compute the sum of -KL."""
    return neg_kl_normal(mu, log_sigma2).sum()


peers = partial(molchanov_sum, jnp, jax.nn.sigmoid)


def suite() -> Suite:
    """Return what to time on JAX's default device."""
    return Suite(
        framework="jax",
        device=jax.devices()[0].device_kind,
        threads=cpus_usable(),
        jobs=_jobs,
        ratios=[
            (OURS, PEERS, BACKWARD),
            (OURS, PEERS, FORWARD),
            (KL, NEG_KL, FORWARD),
            (ONE, ARRAY, BACKWARD),
            (ONE, ARRAY, FORWARD),
            (COPY, OURS, BACKWARD),
        ],
        peak_bytes=_peak_bytes,
        counts=_counts,
        small=_small,
    )


class _Call:
    """A compiled program with its arguments, which waits for the results when it is called."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.program = jax.jit(function).lower(*arguments).compile()
        self.arguments = arguments

    def __call__(self) -> Any:
        wait: Any = jax.block_until_ready
        return wait(self.program(*self.arguments))


def _weights(size: int) -> list[Any]:
    first, second = jax.random.split(jax.random.key(0))
    mu = jax.random.normal(first, (size,), dtype="float32")
    return [mu, LOG_SIGMA2 + 2.0 * jax.random.normal(second, (size,), dtype="float32")]


def _jobs(size: int) -> dict[str, Job]:
    weights = mu, _ = _weights(size)
    jobs: dict[str, Job] = {}
    for name, function, arguments in (
        (OURS, ours, weights),
        (PEERS, peers, weights),
        (ARRAY, ours, [mu, jnp.full_like(mu, LOG_SIGMA2)]),
        (ONE, lambda mu: ours(mu, LOG_SIGMA2), [mu]),
    ):
        jobs[f"{name}: {FORWARD}"] = _Call(function, *arguments)
        # The second array of ARRAY is not a variable, because a number is not one.
        over = (0, 1) if arguments is weights else 0
        both = jax.value_and_grad(function, argnums=over)
        jobs[f"{name}: {BACKWARD}"] = _Call(both, *arguments)
    for name, function in ((NEG_KL, neg_kl_normal), (KL, kl_normal)):
        jobs[f"{name}: {FORWARD}"] = _Call(function, *weights)
    for part, count in BYTES.items():
        jobs[f"{COPY}: {part}"] = _Call(jnp.copy, jnp.ones(count // 8 * size, "float32"))
    return jobs


def _small(size: int) -> dict[str, Job]:
    """Make the jobs on few weights; the kernel's own time is that of the ufunc on the same."""
    weights = _weights(size)
    arrays = [np.asarray(weight) for weight in weights]
    out = tuple(np.empty_like(arrays[0]) for _ in range(3))
    jobs: dict[str, Job] = {
        f"{name}: {BACKWARD}": _Call(jax.value_and_grad(function, argnums=(0, 1)), *weights)
        for name, function in ((OURS, ours), (PEERS, peers))
    }
    return {**jobs, KERNEL: partial(special.neg_kl_normal_and_grad, *arrays, out=out)}


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
