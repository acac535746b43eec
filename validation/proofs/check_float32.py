"""Bind the graph of the float32 kernels to the compiled ones, and try the bounds."""

from collections.abc import Collection
from importlib import import_module
from typing import Any

import numpy as np

from validation.accuracy.proved import FLOAT32_CLAIMS
from validation.accuracy.truth import truth
from validation.accuracy.ulp import error

from .bounds import Bound
from .check import BATCH, OF_TRUTH, Ladder
from .exhaustive import run
from .float32 import NAMES, in_domain, prove
from .graph import Graph, trace
from .rare_float32 import prove_large, prove_limited, prove_small
from .steps_float32 import take_apart
from .tiny_float32 import lowered, prove_tiny

BOX = {True: (-45, 19, 20), False: (-34, 30, 14)}
"""With FMA or without: log2 of the least |mu| and of its bound, and the bound of |log sigma^2|."""


def arguments(fused: bool, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Random (mu, log sigma^2) of the domain: where the KL varies, in the box, and anywhere."""
    low, high, largest = BOX[fused]
    found = []
    for sizes, of_u in (((-10, 10), (-6, 8)), ((low, high), None), ((-126, 122), (-122, 83))):
        size = rng.uniform(*sizes, BATCH)
        log_sigma2 = rng.uniform(-largest, largest, BATCH)
        if of_u:
            log_sigma2 = (2 * size - 1 - rng.uniform(*of_u, BATCH)) * np.log(2)
        mu = np.exp2(size) * rng.choice([-1.0, 1.0], BATCH)
        pair = mu.astype(np.float32), log_sigma2.astype(np.float32)
        chosen = in_domain(fused, *pair)
        found.append((pair[0][chosen], pair[1][chosen]))
    return found


def tiny_arguments(fused: bool, rng: np.random.Generator) -> tuple[Any, Any]:
    """Random means below 2^-29, down to the smallest, and log sigma^2 of the box."""
    mu = np.exp2(rng.uniform(-149, -29.001, BATCH)) * rng.choice([-1.0, 1.0], BATCH)
    end = BOX[fused][2]
    return mu.astype(np.float32), rng.uniform(-end, end, BATCH).astype(np.float32)


def any_arguments(rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Random arguments of all kinds, with one in each block that is in no box."""
    found = []
    for _ in range(2):
        mu = rng.integers(0, 2**32, BATCH, dtype=np.uint32).view(np.float32)
        found.append((mu, rng.uniform(-500, 500, BATCH).astype(np.float32)))
    found[0][1][:] = rng.integers(0, 2**32, BATCH, dtype=np.uint32).view(np.float32)
    size = rng.uniform(-149, 128, BATCH)
    log_sigma2 = (2 * size - 1 - rng.uniform(-160, 140, BATCH)) * np.log(2)
    found.append((np.exp2(size).astype(np.float32), log_sigma2.astype(np.float32)))
    found[0][0][:1000:2], found[1][0][1:1000:2] = 0.0, np.inf
    for mu, log_sigma2 in found:
        mu[::64], log_sigma2[::64] = 3e38, 200.0
    return found


def graph_of(fused: bool) -> Graph:
    return trace(fused, name="symbols_float32.cpp")


def of_graph(graph: Graph, name: str, mu: Any, log_sigma2: Any) -> Any:
    return run(graph, graph.label(name), mu, log_sigma2)


def bind(kernel: str, fused: bool) -> str | None:
    """Compare the graph with the kernel that this process runs; return what is wrong."""
    found, tried = differing(graph_of(fused))
    if found:
        return f"float32: {found} of {tried} results of {kernel} are not those of the graph"
    return None


def differing(graph: Graph) -> tuple[int, int]:
    """How many results of this process's kernel differ from the graph's in a bit, of how many."""
    kernels = import_module("logunif_kl._numpy._float32")
    rng, found, tried = np.random.default_rng(1), 0, 0
    sets = [(of_graph, pair) for pair in arguments(graph.fused, rng)]
    sets += [(lowered, tiny_arguments(graph.fused, rng))]
    for compute, pair in [*sets, *((of_rare, pair) for pair in any_arguments(rng))]:
        got = kernels.value(*pair), *kernels.gradient(np.float32(1), *pair)
        for name, of_kernel in zip(NAMES, got, strict=True):
            want = compute(graph, name, *pair)
            same = of_kernel.view(np.uint32) == want.view(np.uint32)
            found += int((~(same | (np.isnan(of_kernel) & np.isnan(want)))).sum())
            tried += len(want)
    return found, tried


def of_rare(graph: Graph, name: str, mu: Any, log_sigma2: Any) -> Any:
    return run(graph, graph.label(f"{name}.rare"), mu, log_sigma2)


def errors(name: str, results: Any, mu: Any, log_sigma2: Any) -> Any:
    exact = truth(name, mu.astype(np.float64), log_sigma2.astype(np.float64))
    return error(results, exact, "float32")


def largest_share(graph: Graph, name: str, bound: Bound, count: int) -> tuple[float, float]:
    """Over random arguments, the largest error, and the largest share of the bound of its piece."""
    ladder, worst, share = Ladder(bound), 0.0, 0.0
    rng, u = np.random.default_rng(2), take_apart(graph, name).u
    for _ in range(max(count // (3 * BATCH), 1)):
        for pair in arguments(graph.fused, rng):
            found = errors(name, of_graph(graph, name, *pair), *pair)
            worst = max(worst, found.max())
            share = max(share, (found / (ladder(run(graph, u, *pair)) + OF_TRUTH)).max())
    return float(worst), float(share)


def report(arithmetic: str, names: Collection[str], samples: int, verbose: bool) -> bool:
    """Prove and try the functions of `names`, print their bounds, and return whether they hold."""
    graph, good = graph_of(arithmetic == "fused"), True
    for name in (name for name in NAMES if name in names):
        bound, claim = prove(graph, name), FLOAT32_CLAIMS[name][arithmetic]
        worst, share = largest_share(graph, name, bound, samples)
        good &= _show(f"{arithmetic} float32 {name}", bound.worst, claim, worst, share)
        if verbose:
            i = int(np.argmax(bound.ulp))
            print(f"  worst for u between {bound.lo[i].hex()} and {bound.hi[i].hex()}, by:")
            for ulp, term in sorted(((x[i], term) for term, x in bound.parts.items()))[::-1]:
                print(f"  {ulp:8.4f} {term}")
        tiny, pair = prove_tiny(bound), tiny_arguments(graph.fused, np.random.default_rng(3))
        worst = errors(name, lowered(graph, name, *pair), *pair).max()
        good &= _show(f"{arithmetic} float32 {name}.tiny", tiny, claim, worst, worst / tiny)
        rare, worst, share, other = _rare(graph, name, bound)
        good &= _show(f"{arithmetic} float32 {name}.rare", rare, claim, worst, share)
        print(f"  not proved: lanes with scaled arguments, {other:.3f} found")
    return good


def _rare(graph: Graph, name: str, bound: Bound) -> tuple[float, float, float, float]:
    """Prove and try the rare form.

    Return the bound, the largest error and share of the bound of its kind of lane, and the largest
    error of the lanes for which nothing is proved.
    """
    kind = "value" if name == NAMES[0] else "gradient"
    limited = prove_limited(graph, name, bound)
    bounds = {"small": prove_small(graph, name), "large": prove_large(graph, name)}
    ladder, steps = Ladder(bound), take_apart(graph, name)
    worst = share = other = 0.0
    for pair in any_arguments(np.random.default_rng(4)):
        with np.errstate(invalid="ignore"):  # a NaN that signals
            found = errors(name, of_rare(graph, name, *pair), *pair)
        ways = {
            way: run(graph, graph.label(f"{kind}.{way}"), *pair) > 0
            for way in ("own", "nan", *bounds)
        }
        u, excess = (run(graph, node, *pair) for node in (steps.u, steps.excess))
        special = (pair[0] == 0) | np.isinf(pair[0]) | ways["nan"]
        allowed = np.where(excess > 0, limited, ladder(u))
        for way, of_way in bounds.items():
            allowed = np.where(ways[way], of_way, allowed)
        allowed = np.where(special, 0.0, allowed) + OF_TRUTH
        scaled = ~np.logical_or.reduce(list(ways.values()))
        other = max(other, found[scaled].max(initial=0.0))
        worst = max(worst, found[~scaled].max())
        share = max(share, (found / allowed)[~scaled].max())
    proved = max(bound.worst, limited, *bounds.values())
    return float(proved), float(worst), float(share), float(other)


def _show(title: str, proved: float, claim: float, worst: float, share: float) -> bool:
    wrong = []
    if proved > claim:
        wrong.append(f"more than {claim}, which is claimed")
    if share > 1:
        wrong.append("a random argument errs by more than the bound of its piece")
    print(
        f"{title}: proved {proved:.4f} ulp; {worst:.3f} found, at most {share:.3f} of the bound"
        + "".join(f"\n  FAILED: {sentence}" for sentence in wrong),
        flush=True,
    )
    return not wrong
