"""Section 5: speed.

The same network, whole training steps with Adam and the divergence.

With weights drawn for each example, a minibatch of 1000 would hold 11 GB of weights. It is
processed in pieces of the fastest size, whose gradients add up.
"""

# mypy: allow-untyped-calls
import statistics
import time
from collections.abc import Callable

import torch

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, rounded
from validation.output import track
from validation.papers.kingma2015 import printed
from validation.papers.kingma2015.ratios import TITLES
from validation.training import networks
from validation.training.loop import Examples, seeded

WAYS = ("deterministic", "local", "per_batch", "per_example")  # without noise, and by estimator
AT_LEAST = 50.0  # by this factor local reparameterisation should be faster than weights per example


def stepper(way: str, sizes: Record, dataset: Dataset, seed: int) -> Callable[[int], None]:
    noisy = way != "deterministic"
    noise, order = seeded(seed, 1), seeded(seed, 0)
    model = networks.network(
        "variational_b" if noisy else "none",
        dataset.pixels,
        sizes["hidden"],
        seed=seed,
        generator=noise,
        **({"estimator": way} if noisy else {}),
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
        if noisy:
            (-nn.neg_kl(model) / len(examples)).backward()
        optimizer.step()

    return step


def _seconds(step: Callable[[int], None], at_once: int) -> float:
    began = time.perf_counter()
    step(at_once)
    return time.perf_counter() - began


def show(record: Record) -> str:
    titles = {"deterministic": "no noise", **TITLES}
    shown = columns(
        record["rows"],
        ("training", lambda row: titles[row["way"]]),
        ("seconds an epoch", rounded("seconds_an_epoch")),
        ("paper, on a GPU of 2015", rounded("paper_seconds_an_epoch", 4)),
        (
            "seconds a step",
            "{seconds_a_step:.3g} ({least_seconds_a_step:.3g} to {greatest_seconds_a_step:.3g}, "
            "{steps} steps)",
        ),
    )
    return (
        f"{shown}\n\nLocal reparameterisation is "
        f"{record['per_example_over_local']:.0f} times faster than a weight sample per data point "
        f"(paper: {record['paper_per_example_over_local']:.0f}), and takes "
        f"{record['local_over_deterministic']:.2f} times as long as training without noise."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    whole = settings["batch_size"]
    steps = {way: stepper(way, settings, dataset, settings["seeds"][0]) for way in WAYS}
    slow = steps["per_example"]
    took = {n: min(_seconds(slow, n) for _ in range(2)) for n in settings["at_once"]}
    pieces = min(took, key=lambda n: took[n])
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for step in steps.values():
        step(whole if step is not steps["per_example"] else pieces)
    rounds = settings["rounds"]
    for index in track(range(rounds), "timing steps", rounds):
        for way, step in steps.items():
            if way != "per_example":
                seconds[way].append(_seconds(step, whole))
            elif index % 3 == 0:
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
        "rows": rows,
        "per_example_over_local": of["per_example"] / of["local"],
        "paper_per_example_over_local": paper["per_example"] / paper["local"],
        "local_over_deterministic": of["local"] / of["deterministic"],
        "at_least_50_times_faster": of["per_example"] / of["local"] >= AT_LEAST,
    }


FULL = {"hidden": [1024] * 3, "batch_size": 1000, "rounds": 9, "at_once": [2, 5, 10]}
QUICK = {"hidden": [64] * 3, "batch_size": 100, "rounds": 6, "at_once": [20, 100]}
EXPERIMENT = Experiment(
    __file__,
    measure,
    show,
    FULL,
    QUICK,
    place=5,
    noise=(
        "local_over_deterministic",
        "per_example_over_local",
        "rows.*.examples_at_once",
        "at_least_50_times_faster",
    ),
)
EXPERIMENT.run(__name__)
