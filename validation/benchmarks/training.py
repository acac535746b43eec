"""The cost of a training step in PyTorch, from the first to the last step of an ordinary run.

The penalty drives means to 0 and variances up, so magnitudes change during a run. The loss is the
penalty over all weights plus a small term that draws a tenth of them to a target, as data would. A
copy that repeats the first step is timed next to the run, every few steps, so that the drift of the
machine cancels. Adam's averages become subnormal where gradients vanish. One run flushes them to 0,
only in Adam's step, to show their cost.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from logunif_kl.cli.bench import _torch
from logunif_kl.cli.timing import spread
from logunif_kl.torch import kl_normal
from validation.output import Record, track

WINDOWS = 30
EVERY = 10  # steps between two steps of the copy
LEARNING_RATE = 1e-2
PRECISION = 1e-3  # of the data term, for each weight
WARM_UP = 30
AT = (0, 1_000, 3_000)
PARTS = ("step", "penalty", "optimizer")


def ours(mu: Any, log_sigma2: Any) -> Any:
    return kl_normal(mu, log_sigma2, reduction="sum")


def peers(mu: Any, log_sigma2: Any) -> Any:
    return -_torch.peers(mu, log_sigma2)


class Way(NamedTuple):
    """The penalty of a run, and whether Adam's step flushes subnormals to 0."""

    name: str
    penalty: Callable[[Any, Any], Any]
    flushes: bool = False


WAYS = (Way("ours", ours), Way("ours, flushed in Adam", ours, flushes=True), Way("peers", peers))


def timed(
    parts: Mapping[str, Callable[[], object]], wait: Callable[[], object] = lambda: None
) -> dict[str, float]:
    """Run the parts in order, and return the seconds of each and of the whole ``step``.

    ``wait`` returns when the device has finished.
    """
    wait()
    times = [time.perf_counter()]
    for run in parts.values():
        run()
        wait()
        times.append(time.perf_counter())
    took = (after - before for before, after in pairwise(times))
    return {**dict(zip(parts, took, strict=True)), "step": times[-1] - times[0]}


class Model:
    """The weights with their optimizer."""

    def __init__(self, weights: int, seed: int, way: Way) -> None:
        generator = torch.Generator().manual_seed(seed)
        draw = partial(torch.randn, weights, generator=generator)
        self.first = [draw(), -8.0 + 2.0 * draw()]
        chosen = torch.rand(weights, generator=generator) < 0.1
        self._target = torch.where(chosen, draw(), torch.zeros(()))
        self._way = way
        self.weights = [first.clone().requires_grad_() for first in self.first]
        self._optimizer = torch.optim.Adam(self.weights, lr=LEARNING_RATE)

    def step(self) -> dict[str, float]:
        mu, log_sigma2 = self.weights

        def penalty() -> None:
            self._optimizer.zero_grad(set_to_none=True)
            self._way.penalty(mu, log_sigma2).backward()

        def data() -> None:
            # E (w - target)^2, which includes the variance.
            error: Any = (mu - self._target).square().sum() + log_sigma2.exp().sum()
            (0.5 * PRECISION * error).backward()
            torch.set_flush_denormal(self._way.flushes)

        took = timed({"penalty": penalty, "data": data, "optimizer": self._optimizer.step})
        torch.set_flush_denormal(False)
        return took

    def first_step(self) -> dict[str, float]:
        """Repeat the first step from the same weights, once without timing it."""
        for _ in range(2):
            with torch.no_grad():
                for weight, first in zip(self.weights, self.first, strict=True):
                    weight.copy_(first)
            for state in self._optimizer.state.values():
                for value in state.values():
                    value.zero_()
            found = self.step()
        return found


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    """Run each method, and return the times of its windows and of the slowest window."""
    runs = []
    with _torch.threads(options.threads):
        for way in WAYS:
            windows = track(_windows(options, way), f"training, {way.name}", WINDOWS)
            runs.append(_run(way, list(windows)))
        threads = torch.get_num_threads()
    return list(_torch.PACKAGES), {
        "threads": threads,
        "seed": options.seed,
        "weights": options.size,
        "steps": options.steps,
        "dtype": "float32",
        "optimizer": "Adam",
        "learning_rate": LEARNING_RATE,
        "precision_of_the_data": PRECISION,
        "runs": runs,
    }


def _windows(options: argparse.Namespace, way: Way) -> Iterator[Record]:
    """Yield the times of consecutive steps, relative to those of the first step meanwhile."""
    model, copy = (Model(options.size, options.seed, way) for _ in range(2))
    for _ in range(WARM_UP):
        copy.first_step()
    edges = [options.steps * index // WINDOWS for index in range(WINDOWS + 1)]
    for begin, end in pairwise(edges):
        steps, firsts = [], []
        for index in range(begin, end):
            if (index - begin) % EVERY == 0:
                firsts += [copy.first_step(), copy.first_step()]
            steps.append(model.step())
        parts = {
            part: _part([s[part] for s in steps], [s[part] for s in firsts], options.size)
            for part in PARTS
        }
        yield {"begin": begin, "end": end, **parts}


def _part(taken: list[float], first: list[float], weights: int) -> Record:
    # A spread needs at least two samples, and a window may have one step.
    found = spread(taken if len(taken) > 1 else 2 * taken, 1e3)
    at_first = spread(first, 1e3)["median"]
    return {
        "milliseconds": found,
        "milliseconds_of_the_first_meanwhile": at_first,
        "nanoseconds_a_weight": found["median"] * 1e6 / weights,
        "against_first": found["median"] / at_first,
    }


def _run(way: Way, windows: list[Record]) -> Record:
    last = windows[-1]
    return {
        "name": way.name,
        "windows": windows,
        "worst_against_first": {
            part: max(window[part]["against_first"] for window in windows) for part in PARTS
        },
        "nanoseconds_a_weight_at_step": {
            str(at): {part: window[part]["nanoseconds_a_weight"] for part in PARTS}
            for at in AT
            for window in windows
            if window["begin"] <= at < window["end"] or (window is last and at == window["end"])
        },
    }
