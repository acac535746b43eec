"""``logunif-kl bench --training``: what a step costs, from the first to the last of a run.

The penalty drives means to 0 and variances up, so the magnitudes of a run change as it goes. The
loss is the penalty over all weights and a small term that draws a tenth of them to a target, as the
data would. A run of a copy that stays at the first step is timed beside, every few steps, so that
the drift of the machine cancels. Adam's averages become subnormal where gradients end; one run
flushes them to 0, in Adam's step alone, which shows what they cost.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from ...torch import kl_normal
from .._output import new_table, track
from ..provenance import provenance
from ..timing import Spread
from ._torch import PACKAGES
from .peers import molchanov_sum

WEIGHTS, STEPS = 100_000, 3_000
WINDOWS = 30
EVERY = 10  # steps between two of the copy
LEARNING_RATE = 1e-2
PRECISION = 1e-3  # of the data, for each weight
WARM_UP = 30
MUST = "<= 1.3"
AT = (0, 1_000, 3_000)
PARTS = ("step", "penalty", "optimizer")

Penalty = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """How long, of how many weights, and from which seed."""

    weights: int
    steps: int
    seed: int


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """The seconds of a step; in it, those of the penalty's two passes and of the optimizer's."""

    step: float
    penalty: float
    optimizer: float


def _ours(mu: Any, log_sigma2: Any) -> Any:
    return kl_normal(mu, log_sigma2, reduction="sum")


def _peers(mu: Any, log_sigma2: Any) -> Any:
    return -molchanov_sum(torch, torch.sigmoid, mu, log_sigma2)


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """How a run is computed: by which penalty, and whether Adam's step flushes subnormals to 0."""

    name: str
    penalty: Penalty
    flushes: bool = False
    must: str = ""


OURS = Way("ours", _ours, must=MUST)
OURS_FLUSHED = Way("ours, flushed in Adam", _ours, flushes=True)
PEERS = Way("peers", _peers)


class Model:
    """The weights with their optimizer."""

    def __init__(self, run: Run, way: Way) -> None:
        generator = torch.Generator().manual_seed(run.seed)
        draw = partial(torch.randn, run.weights, generator=generator)
        self._first = [draw(), -8.0 + 2.0 * draw()]
        chosen = torch.rand(run.weights, generator=generator) < 0.1
        self._target = torch.where(chosen, draw(), torch.zeros(()))
        self._way = way
        self.weights = [first.clone().requires_grad_() for first in self._first]
        self._optimizer = torch.optim.Adam(self.weights, lr=LEARNING_RATE)

    def step(self) -> Step:
        """Take a step."""
        began = time.perf_counter()
        self._optimizer.zero_grad(set_to_none=True)
        mu, log_sigma2 = self.weights
        self._way.penalty(mu, log_sigma2).backward()
        penalized = time.perf_counter()
        # E (w - target)^2, and so the variance besides.
        data: Any = (mu - self._target).square().sum() + log_sigma2.exp().sum()
        (0.5 * PRECISION * data).backward()
        torch.set_flush_denormal(self._way.flushes)
        prepared = time.perf_counter()
        self._optimizer.step()
        ended = time.perf_counter()
        torch.set_flush_denormal(False)
        return Step(ended - began, penalized - began, ended - prepared)

    def first_step(self) -> Step:
        """Take the first step again, from the same weights, once without timing it."""
        for _ in range(2):
            with torch.no_grad():
                for weight, first in zip(self.weights, self._first, strict=True):
                    weight.copy_(first)
            for state in self._optimizer.state.values():
                for value in state.values():
                    value.zero_()
            found = self.step()
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """Some steps on end: where they begin, their times, and those of the first step meanwhile."""

    begin: int
    steps: list[Step]
    firsts: list[Step]

    def summary(self, weights: int) -> dict[str, Any]:
        """Return the times of the whole steps and of their parts."""

        def seconds(part: str, steps: list[Step]) -> list[float]:
            return [getattr(step, part) for step in steps]

        parts = {
            part: _part(seconds(part, self.steps), seconds(part, self.firsts), weights)
            for part in PARTS
        }
        return {
            "begin": self.begin,
            "end": self.begin + len(self.steps),
            **parts,
        }


def _part(taken: list[float], first: list[float], weights: int) -> dict[str, Any]:
    # A spread is of two samples at least, and a window may have one step.
    spread, at_first = Spread.of(taken if len(taken) > 1 else 2 * taken), Spread.of(first).median
    return {
        "milliseconds": dataclasses.asdict(spread.scaled(1e3)),
        "milliseconds_of_the_first_meanwhile": at_first * 1e3,
        "nanoseconds_a_weight": spread.median * 1e9 / weights,
        "against_first": spread.median / at_first,
    }


def _windows(run: Run, way: Way) -> Iterator[Window]:
    model, copy = Model(run, way), Model(run, way)
    for _ in range(WARM_UP):
        copy.first_step()
    edges = [run.steps * index // WINDOWS for index in range(WINDOWS + 1)]
    for begin, end in pairwise(edges):
        steps, firsts = [], []
        for index in range(begin, end):
            if (index - begin) % EVERY == 0:
                firsts += [copy.first_step(), copy.first_step()]
            steps.append(model.step())
        yield Window(begin, steps, firsts)


def document(run: Run, command: str) -> dict[str, Any]:
    """Run each way, and return what was measured with the machine and versions."""
    runs = []
    for way in (OURS, OURS_FLUSHED, PEERS):
        windows = [
            window.summary(run.weights)
            for window in track(_windows(run, way), f"training, {way.name}", WINDOWS)
        ]
        runs.append({"name": way.name, "windows": windows, **_worst(windows), "must": way.must})
    return {
        **provenance(command, *PACKAGES, of="bench_torch"),
        "threads": torch.get_num_threads(),
        "seed": run.seed,
        "weights": run.weights,
        "steps": run.steps,
        "dtype": "float32",
        "optimizer": "Adam",
        "learning_rate": LEARNING_RATE,
        "precision_of_the_data": PRECISION,
        "runs": runs,
    }


def _worst(windows: list[dict[str, Any]]) -> dict[str, Any]:
    last = windows[-1]
    marked = [
        (at, window)
        for at in AT
        for window in windows
        if window["begin"] <= at < window["end"] or (window is last and at == window["end"])
    ]
    return {
        "worst_against_first": {
            part: max(window[part]["against_first"] for window in windows) for part in PARTS
        },
        "nanoseconds_a_weight_at_step": {
            str(at): {part: window[part]["nanoseconds_a_weight"] for part in PARTS}
            for at, window in marked
        },
    }


def tables(found: dict[str, Any]) -> list[Any]:
    """Make a table of each run's windows, and one of the worst."""
    size = f"{found['weights']:,} weights, float32, Adam, threads: {found['threads']}"
    of_windows = []
    for run in found["runs"]:
        columns = [("steps", False), ("ms", True), ("/ first", True)]
        for part in PARTS[1:]:
            columns += [(f"{part}, ns a weight", True), ("/ its first", True)]
        windows = new_table(f"A step, {run['name']}, {size}", columns)
        for window in run["windows"]:
            step = window["step"]
            cells = [f"{step['milliseconds']['median']:.3f}", f"{step['against_first']:.2f}"]
            for part in PARTS[1:]:
                cells.append(f"{window[part]['nanoseconds_a_weight']:.1f}")
                cells.append(f"{window[part]['against_first']:.2f}")
            windows.add_row(f"{window['begin']} to {window['end']}", *cells)
        of_windows.append(windows)
    worst = new_table(
        "The slowest window against the first step",
        [("", False), ("whole step", True), *((part, True) for part in PARTS[1:]), ("must", True)],
    )
    for run in found["runs"]:
        cells = [f"{run['worst_against_first'][part]:.2f}" for part in PARTS]
        worst.add_row(run["name"], *cells, run["must"])
    return [*of_windows, worst]
