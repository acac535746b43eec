"""Measure the accuracy of the CUDA kernels without a GPU: execute their PTX on the CPU.

The assembler may still fuse products with sums, and the bits of a reciprocal are undocumented, so a
GPU's results may differ from these. Each function is therefore measured with correctly rounded
reciprocals, and with errors of up to half and all of the PTX ISA's limit.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.accuracy import search
from validation.accuracy.functions import edges
from validation.output import Record

from . import compiled
from .ptx import Approximation, Machine

SEED = 20261122
COUNT = 200_000
FUNCTIONS = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
SHARES = (0.0, 0.5, 1.0)
"""Of the errors that the PTX ISA allows: taken above, below, and drawn for each result."""


def run(
    kernel: str,
    mu: NDArray[np.float32],
    log_sigma2: NDArray[np.float32],
    approximation: Approximation,
) -> tuple[NDArray[np.float32], ...]:
    """Execute ``value`` or ``gradient`` as `launch` starts them, and return their results."""
    settings = compiled.settings()
    block, size = settings["BLOCK"], len(mu)
    threads = 32 * settings["num_warps"]
    out = [np.full(size, np.nan, np.float32) for _ in range(2 if kernel == "gradient" else 1)]
    upstream = [np.ones(1, np.float32)] if kernel == "gradient" else []
    parameters: list[Any] = [*upstream, mu, log_sigma2, *out, size]
    machine = Machine(-(-size // block), threads, parameters, approximation)
    machine.run(compiled.compiled(kernel, 90).ptx)
    return tuple(out)


def evaluator(function: str, approximation: Approximation) -> Callable[..., NDArray[np.float32]]:
    kernel = "value" if function == FUNCTIONS[0] else "gradient"
    output = max(FUNCTIONS.index(function) - 1, 0)

    def evaluate(mu: NDArray[Any], log_sigma2: NDArray[Any]) -> NDArray[np.float32]:
        # The kernels are compiled for a multiple of 16 elements.
        more = (0, -len(mu) % 16)
        found = run(kernel, np.pad(mu, more), np.pad(log_sigma2, more), approximation)
        return found[output][: len(mu)]

    return evaluate


def points(function: str, count: int = COUNT) -> list[NDArray[Any]]:
    rng = np.random.default_rng(SEED)
    sampled = search.sample(function, rng, count, "float32")
    known = {domain: edges(domain) for domain in ("u", "x")}
    beside = search.beside_edges(function, known, "float32")
    return [np.concatenate(both) for both in zip(sampled, beside, strict=True)]


def rows(count: int = COUNT) -> Iterator[Record]:
    for function in FUNCTIONS:
        tried = points(function, count)
        for share in SHARES:
            ways = [Approximation(share)]
            if share:
                rng = np.random.default_rng(SEED)
                ways += [Approximation(-share), Approximation(share, rng)]
            found = [search.measure(function, evaluator(function, way), tried) for way in ways]
            errors = np.max(found, axis=0)
            worst = int(np.argmax(errors))
            yield {
                "function": function,
                "share_of_documented_error": share,
                "tried": len(errors),
                "seed": SEED,
                "ulp": round(float(errors[worst]), 4),
                "at": [float(p[worst]).hex() for p in tried],
            }
