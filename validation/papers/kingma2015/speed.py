"""Section 5, "Speed": seconds an epoch with local reparameterisation and with weights per example.

    python -m validation.papers.kingma2015.speed [--data FILE] [--quick]

Times whole training steps (forward, backward, KL and Adam) of the network 784-1024-1024-1024-10
with minibatches of 1000: without noise, with local reparameterisation, with one weight sample a
minibatch, and with one for each example. The last would hold 11 GB of weights for a minibatch, so
that the minibatch is taken in pieces whose gradients add up, in the size that is fastest. The four
are timed in turn, and an epoch is as many steps as the training set has minibatches times the
median step.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from logunif_kl.cli._output import track
from logunif_kl.torch import nn
from validation.papers.kingma2015 import printed
from validation.training import networks
from validation.training.data import Dataset
from validation.training.loop import Examples, seeded
from validation.training.options import Experiment
from validation.training.parts import Parts

EXPERIMENT = Experiment("kingma2015", "speed", __doc__, seeds=[1])
# The method of `networks`, and the estimator.
WAYS = {
    "deterministic": ("none", None),
    "local": ("variational_b", "local"),
    "per_batch": ("variational_b", "per_batch"),
    "per_example": ("variational_b", "per_example"),
}
AT_LEAST = 50.0  # how much faster local reparameterisation is to be than weights per example


def full_and_quick(quick: bool) -> dict[str, Any]:
    """Return the sizes of the experiment; ``rounds`` for weights per example is a third."""
    if quick:
        return {"hidden": [64] * 3, "batch_size": 100, "rounds": 6, "at_once": [20, 100]}
    return {"hidden": [1024] * 3, "batch_size": 1000, "rounds": 9, "at_once": [2, 5, 10]}


def stepper(way: str, sizes: dict[str, Any], dataset: Dataset, seed: int) -> Callable[[int], None]:
    """Return a function that takes a training step, the minibatch in pieces of some size."""
    method, estimator = WAYS[way]
    noise, order = seeded(seed, 1), seeded(seed, 0)
    model = networks.network(
        method,
        dataset.pixels,
        sizes["hidden"],
        seed=seed,
        generator=noise,
        **({} if estimator is None else {"estimator": estimator}),
    )
    optimizer = torch.optim.Adam(model.parameters())
    examples, batch = Examples(dataset.train), sizes["batch_size"]

    def step(at_once: int) -> None:
        rows = torch.randint(len(examples), (batch,), generator=order)
        optimizer.zero_grad(set_to_none=True)
        for some in rows.split(at_once):
            output = model(examples.x[some])
            likelihood = nn.categorical_log_likelihood(output, examples.y[some]).sum()
            (-likelihood / batch).backward()
        if estimator is not None:
            (-nn.neg_kl(model) / len(examples)).backward()
        optimizer.step()

    return step


def measure(options: argparse.Namespace, dataset: Dataset, parts: Parts) -> dict[str, Any]:
    """Time the ways in turn."""
    sizes = full_and_quick(options.quick)
    whole = sizes["batch_size"]
    steps = {way: stepper(way, sizes, dataset, options.seeds[0]) for way in WAYS}
    pieces = _fastest(steps["per_example"], sizes["at_once"])
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for step in steps.values():
        step(whole if step is not steps["per_example"] else pieces)
    rounds = sizes["rounds"]
    for number in track(range(rounds), "timing steps", rounds):
        for way, step in steps.items():
            if way != "per_example":
                seconds[way].append(_seconds(step, whole))
            elif number % 3 == 0:
                seconds[way].append(_seconds(step, pieces))
    in_an_epoch = len(dataset.train.y) / whole
    rows = [
        {
            "way": way,
            "steps": len(taken),
            "examples_at_once": pieces if way == "per_example" else whole,
            "seconds_a_step": statistics.median(taken),
            "least_seconds_a_step": min(taken),
            "greatest_seconds_a_step": max(taken),
            "seconds_an_epoch": statistics.median(taken) * in_an_epoch,
            "paper_seconds_an_epoch": printed.SECONDS_AN_EPOCH.get(way),
        }
        for way, taken in seconds.items()
    ]
    of = {row["way"]: row["seconds_an_epoch"] for row in rows}
    paper = printed.SECONDS_AN_EPOCH
    return {
        "sizes": sizes,
        "rows": rows,
        "per_example_over_local": of["per_example"] / of["local"],
        "paper_per_example_over_local": paper["per_example"] / paper["local"],
        "local_over_deterministic": of["local"] / of["deterministic"],
        "at_least_50_times_faster": of["per_example"] / of["local"] >= AT_LEAST,
    }


def _fastest(step: Callable[[int], None], sizes: list[int]) -> int:
    """Choose the number of examples at once; each is tried twice, and its faster try counts."""
    took = {size: min(_seconds(step, size) for _ in range(2)) for size in sizes}
    return min(took, key=lambda size: took[size])


def _seconds(step: Callable[[int], None], at_once: int) -> float:
    began = time.perf_counter()
    step(at_once)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main(measure))
