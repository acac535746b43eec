"""The functions that ``logunif-kl bench --jax`` times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ...jax import neg_kl_normal
from ..provenance import cpus_usable
from ..timing import Job
from .training import BACKWARD, FORWARD, LOG_SIGMA2, Suite, molchanov_sum

OURS, PEERS = "ours, jitted", "peers, jitted"
PACKAGES = ("jax", "jaxlib")


def ours(mu: Any, log_sigma2: Any) -> Any:
    return neg_kl_normal(mu, log_sigma2).sum()


peers = partial(molchanov_sum, jnp, jax.nn.sigmoid)


def suite() -> Suite:
    return Suite(
        framework="jax",
        device=jax.devices()[0].device_kind,
        threads=cpus_usable(),
        jobs=jobs,
        ratios=[(OURS, PEERS, part) for part in (BACKWARD, FORWARD)],
    )


class Call:
    """A compiled program with its arguments. A call runs the program and waits for the results."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.program = jax.jit(function).lower(*arguments).compile()
        self.arguments = arguments

    def __call__(self) -> Any:
        wait: Any = jax.block_until_ready
        return wait(self.program(*self.arguments))


def jobs(size: int) -> dict[str, Job]:
    arguments = weights(size)
    made: dict[str, Job] = {}
    for name, function in ((OURS, ours), (PEERS, peers)):
        made[f"{name}: {FORWARD}"] = Call(function, *arguments)
        both = jax.value_and_grad(function, argnums=(0, 1))
        made[f"{name}: {BACKWARD}"] = Call(both, *arguments)
    return made


def weights(size: int) -> list[Any]:
    """Draw means and log variances of weights; calls with the same size draw the same numbers."""
    first, second = jax.random.split(jax.random.key(0))
    mu = jax.random.normal(first, (size,), dtype="float32")
    return [mu, LOG_SIGMA2 + 2.0 * jax.random.normal(second, (size,), dtype="float32")]
