"""Bind the graph to the compiled kernels, and try the bounds on random arguments.

The first is a part of the proof. The second is not, but would show a mistake in the algebra.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from validation.accuracy.functions import FUNCTIONS
from validation.accuracy.implementations import implementation
from validation.accuracy.truth import truth
from validation.accuracy.ulp import error

from .bounds import Bound
from .graph import Graph

BATCH = 200_000
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-1074, 2.0**-1022, 4500.0, -4500.0)
OF_TRUTH = 2.0**-18  # in ulp, more than the error of `truth`


def _between(rng: np.random.Generator, low: float, high: float) -> Any:
    return np.exp2(rng.uniform(low, high, BATCH))


def _any_float(rng: np.random.Generator) -> Any:
    """Finite numbers of either sign, infinities and NaN, uniform in their bits."""
    return rng.integers(0, 2**64, BATCH, dtype=np.uint64).view(np.float64)


def _any_log_sigma2(rng: np.random.Generator) -> Any:
    near, far = (rng.uniform(-x, x, BATCH) for x in (1500, 7000))
    which = rng.random(BATCH)
    return np.where(which < 0.4, near, np.where(which < 0.7, far, _any_float(rng)))


def arguments(name: str, rng: np.random.Generator, rare: bool) -> list[dict[str, Any]]:
    """Random arguments of a function. With `rare`, each block has one outside of the window."""
    domain = FUNCTIONS[name].domain
    if domain == "u":
        sets = [{"u": _between(rng, -10, 10)}, {"u": _between(rng, -300, 300)}]
        outside = {"u": 2.0**-310}
        anywhere = {"u": _any_float(rng)}
    elif domain == "x":
        sets = [{"x": rng.uniform(-20, 20, BATCH)}, {"x": rng.uniform(-199, 199, BATCH)}]
        outside = {"x": 201.0}
        anywhere = {
            "x": np.where(rng.random(BATCH) < 0.5, _any_float(rng), rng.uniform(-1500, 1500, BATCH))
        }
    else:
        mu = _between(rng, -20, 20) * rng.choice([-1.0, 1.0], BATCH)
        wide = _between(rng, -129, 129)
        sets = [{"mu": mu, "log_sigma2": rng.uniform(-30, 30, BATCH)}]
        sets.append({"mu": wide, "log_sigma2": rng.uniform(-89, 89, BATCH)})
        outside = {"mu": 2.0**-200, "log_sigma2": 1.0}
        anywhere = {"mu": _any_float(rng), "log_sigma2": _any_log_sigma2(rng)}
        for step, array in zip((97, 89), anywhere.values(), strict=True):
            array[::step] = np.resize(SPECIAL, len(array[::step]))
    if not rare:
        return sets
    for chosen in (*sets, anywhere):
        for key, value in outside.items():
            chosen[key][::64] = value  # a block has at least 64 numbers
    return [*sets, anywhere]


def differing(graph: Graph, name: str, kernel: str, rng: np.random.Generator) -> tuple[int, int]:
    """How many results of a compiled kernel differ from the graph's in a bit, and of how many."""
    compute = implementation(FUNCTIONS[name], kernel)
    found = tried = 0
    for rare in (False, True):
        output = graph.label(f"{name}.rare" if rare else name)
        for chosen in arguments(name, rng, rare):
            want, got = graph.run(output, **chosen), compute(*chosen.values())
            same = got.view(np.uint64) == want.view(np.uint64)
            found += int((~(same | (np.isnan(got) & np.isnan(want)))).sum())
            tried += BATCH
    return found, tried


class Ladder:
    """The largest bound of the pieces that hold a number."""

    def __init__(self, bound: Bound) -> None:
        self.steps = np.unique(bound.lo)
        self.ulp = np.zeros(len(self.steps))
        first = np.searchsorted(self.steps, bound.lo)
        last = np.searchsorted(self.steps, bound.hi, side="right")
        for a, b, ulp in zip(first, last, bound.ulp, strict=True):
            self.ulp[a:b] = np.maximum(self.ulp[a:b], ulp)

    def __call__(self, x: Any) -> Any:
        return self.ulp[np.clip(np.searchsorted(self.steps, x, side="right") - 1, 0, None)]


def largest_share(
    graph: Graph, name: str, bound: Bound, rng: np.random.Generator, count: int, rare: bool = False
) -> tuple[float, float]:
    """Over random arguments, the largest error, and the largest share of the bound of its piece."""
    ladder, worst, share = Ladder(bound), 0.0, 0.0
    output = graph.label(f"{name}.rare" if rare else name)
    for _ in range(max(count // (2 * BATCH), 1)):
        for chosen in arguments(name, rng, rare):
            got = graph.run(output, **chosen)
            found = error(got, truth(name, *chosen.values()), "float64")
            at = _argument(graph, name, chosen, rare)
            worst = max(worst, found.max())
            share = max(share, (found / (ladder(at) + OF_TRUTH)).max())
    return float(worst), float(share)


def _argument(graph: Graph, name: str, chosen: Mapping[str, Any], rare: bool) -> Any:
    if len(chosen) == 1:
        return next(iter(chosen.values()))
    return graph.run(graph.label(f"neg_kl_normal{'.rare' if rare else ''}:u"), **chosen)
