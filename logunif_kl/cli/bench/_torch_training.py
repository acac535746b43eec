"""``logunif-kl bench --training``: what a step costs, from the first to the last of a run.

The penalty drives means to 0 and variances up, so the magnitudes of a run change as it goes. The
loss is the penalty over all weights and a small term that draws a tenth of them to a target, as the
data would. A run of a copy that stays at the first step is timed beside, every few steps, so that
the drift of the machine cancels.
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
OURS, PEERS = "ours", "peers"
MUST = "<= 1.3"
AT = (0, 1_000, 3_000)
PARTS = ("step", "penalty")

Penalty = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """How long, of how many weights, and from which seed."""

    weights: int
    steps: int
    seed: int


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """The seconds of a step, and those of the penalty's forward and backward pass in it."""

    all: float
    penalty: float


def _ours(mu: Any, log_sigma2: Any) -> Any:
    return kl_normal(mu, log_sigma2, reduction="sum")


def _peers(mu: Any, log_sigma2: Any) -> Any:
    return -molchanov_sum(torch, torch.sigmoid, mu, log_sigma2)


class Model:
    """The weights with their optimizer."""

    def __init__(self, run: Run, penalty: Penalty) -> None:
        generator = torch.Generator().manual_seed(run.seed)
        draw = partial(torch.randn, run.weights, generator=generator)
        self._first = [draw(), -8.0 + 2.0 * draw()]
        chosen = torch.rand(run.weights, generator=generator) < 0.1
        self._target = torch.where(chosen, draw(), torch.zeros(()))
        self._penalty = penalty
        self.weights = [first.clone().requires_grad_() for first in self._first]
        self._optimizer = torch.optim.Adam(self.weights, lr=LEARNING_RATE)

    def step(self) -> Step:
        """Take a step."""
        began = time.perf_counter()
        self._optimizer.zero_grad(set_to_none=True)
        mu, log_sigma2 = self.weights
        self._penalty(mu, log_sigma2).backward()
        penalized = time.perf_counter()
        # E (w - target)^2, and so the variance besides.
        data: Any = (mu - self._target).square().sum() + log_sigma2.exp().sum()
        (0.5 * PRECISION * data).backward()
        self._optimizer.step()
        return Step(time.perf_counter() - began, penalized - began)

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
        """Return the times of the whole steps and of the penalty in them."""
        steps, firsts = self.steps, self.firsts
        parts = {
            "step": ([s.all for s in steps], [s.all for s in firsts]),
            "penalty": ([s.penalty for s in steps], [s.penalty for s in firsts]),
        }
        return {
            "begin": self.begin,
            "end": self.begin + len(steps),
            **{name: _part(*taken, weights) for name, taken in parts.items()},
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


def _windows(run: Run, penalty: Penalty) -> Iterator[Window]:
    model, copy = Model(run, penalty), Model(run, penalty)
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
    """Run both, and return what was measured with the machine and versions."""
    runs = []
    for name, penalty in ((OURS, _ours), (PEERS, _peers)):
        windows = [
            window.summary(run.weights)
            for window in track(_windows(run, penalty), f"training, {name}", WINDOWS)
        ]
        runs.append({"penalty": name, "windows": windows, **_worst(windows, name)})
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


def _worst(windows: list[dict[str, Any]], name: str) -> dict[str, Any]:
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
        "must": MUST if name == OURS else "",
        "nanoseconds_a_weight_at_step": {
            str(at): {part: window[part]["nanoseconds_a_weight"] for part in PARTS}
            for at, window in marked
        },
    }


def tables(found: dict[str, Any]) -> list[Any]:
    """Make a table of the windows, and one of the worst."""
    windows = new_table(
        f"A step, {found['weights']:,} weights, float32, Adam, threads: {found['threads']}",
        [
            ("steps", False),
            *(
                (f"{run['penalty']}: {words}", True)
                for run in found["runs"]
                for words in (
                    "ms",
                    "/ first",
                    "penalty, ns a weight",
                    "/ its first",
                )
            ),
        ],
    )
    for several in zip(*(run["windows"] for run in found["runs"]), strict=True):
        cells = (
            cell
            for window in several
            for cell in (
                f"{window['step']['milliseconds']['median']:.3f}",
                f"{window['step']['against_first']:.2f}",
                f"{window['penalty']['nanoseconds_a_weight']:.1f}",
                f"{window['penalty']['against_first']:.2f}",
            )
        )
        windows.add_row(f"{several[0]['begin']} to {several[0]['end']}", *cells)
    worst = new_table(
        "The slowest window against the first step",
        [("", False), ("whole step", True), ("penalty alone", True), ("must", True)],
    )
    for run in found["runs"]:
        cells = (f"{run['worst_against_first'][part]:.2f}" for part in PARTS)
        worst.add_row(run["penalty"], *cells, run["must"])
    return [windows, worst]
