"""What Table 2 leaves open: its ratios under other assumptions about the training.

    python -m validation.papers.kingma2015.correlated_assumptions [--data FILE] [--quick] [--part]

With correlated noise (type A, section 3.2) a scale s_i multiplies all weights of an input unit. The
divergence of the scales is that of a few thousand numbers, and in the network of Table 2 here no
layer comes to the largest dropout rate, 1/2, as all layers of Table 1 do, where the divergence is
that of millions of weights. The paper scales the divergence of type A down by 3
(Figure 1a, A2) because small networks underfit under it, which a divergence of a few thousand nats
would not make them do. Here the divergence of each scale is counted once for each of the weights
that it multiplies in the lower layers: ``kl_weight`` is their number, and the scales of the top
layer, each of which multiplies ten, are counted as often. The other network is trained by a fifth
of the learning rate.

``--part 1/2`` and ``--part 2/2`` are two processes, whose results the command without it collects.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NamedTuple

from validation.experiment import Experiment
from validation.markdown import table
from validation.output import track
from validation.papers.kingma2015 import printed
from validation.papers.kingma2015.ratios import agreement, beside_the_paper, tabulated
from validation.papers.kingma2015.stages import Stages
from validation.record import Record
from validation.training.data import Dataset
from validation.training.gradient_pairs import Pairs, summary
from validation.training.loop import Examples, Settings
from validation.training.parts import Parts


class Assumption(NamedTuple):
    """What is changed of the training."""

    counted_for_each_weight: bool = False
    learning_rate: float = 1e-3


ASSUMPTIONS = {
    "the divergence counted for each weight": Assumption(counted_for_each_weight=True),
    "a fifth of the learning rate": Assumption(learning_rate=2e-4),
}


def measure_there(
    stages: Stages, epochs: int, seed: int, sizes: dict[str, Any], dataset: Dataset
) -> dict[str, Any]:
    """Measure the variances after a number of epochs."""
    model, noise = stages.after(epochs)
    pairs = Pairs(model, noise, Examples(dataset.train), sizes["batch_size"], seed)
    rows = []
    for estimator, count in sizes["pairs"].items():
        numbers = track(range(count), f"{epochs} epochs, {estimator}", count)
        halves = [pairs.half_squared_difference(estimator, index) for index in numbers]
        for layer in printed.LAYERS:
            entry = {"seed": seed, "estimator": estimator, "layer": layer, "epochs": epochs}
            rows.append({**entry, **summary([half[layer] for half in halves])})
    return {"network": {"seed": seed, **stages.said_after(epochs)}, "variances": rows}


def measure_one(
    name: str, seed: int, sizes: dict[str, Any], dataset: Dataset, parts: Parts
) -> list[dict[str, Any]]:
    """Train under one assumption, and measure after each number of epochs."""
    assumed, file = ASSUMPTIONS[name], f"{name.replace(' ', '-')}-seed{seed}"
    settings = Settings(
        sizes["batch_size"],
        seed,
        learning_rate=assumed.learning_rate,
        kl_weight=float(sizes["hidden"][0]) if assumed.counted_for_each_weight else 1.0,
    )
    stages = Stages(file, "variational_a", settings, sizes["hidden"], dataset, parts)
    return [
        parts.get(
            f"{file}-epoch{epochs}",
            partial(measure_there, stages, epochs, seed, sizes, dataset),
            **{**sizes, **settings.about()},
        )
        for epochs in sizes["epochs"]
    ]


def show(record: Record) -> str:
    """Tabulate Table 2 under each assumption."""
    text = []
    for case in record["cases"]:
        text += [f"### Table 2: {case['assumption']}", "", tabulated(case["columns"]), ""]
        rows = [
            (
                str(each["seed"]),
                str(each["epochs"]),
                f"{each['test_error_percent']:.2f}",
                ", ".join(f"{rate:.2f}" for rate in each["mean_dropout_rates"]),
            )
            for each in case["networks"]
        ]
        head = ["seed", "epochs", "test error in %", "mean dropout rates, from the bottom"]
        text += [agreement(case["columns"]), "", table(head, rows), ""]
    return "\n".join(text).rstrip()


def measure(settings: dict[str, Any], dataset: Dataset, parts: Parts) -> dict[str, Any]:
    """Measure under each assumption."""

    def case(name: str) -> dict[str, Any]:
        sizes = {key: settings[key] for key in FULL}
        found = [
            each
            for seed in settings["seeds"]
            for each in measure_one(name, seed, sizes, dataset, parts)
        ]
        rows = [row for each in found for row in each["variances"]]
        return {
            "assumption": name,
            "networks": [each["network"] for each in found],
            "columns": beside_the_paper(rows, "correlated", sizes["epochs"]),
        }

    return {"cases": parts.share(ASSUMPTIONS, case, "assumptions")}


FULL = {
    "hidden": [1024] * 3,
    "batch_size": 1000,
    "epochs": [10, 100],
    "pairs": {"local": 90, "per_batch": 120, "none": 90},
}
EXPERIMENT = Experiment(
    __file__,
    __doc__,
    measure,
    show,
    title="Table 2 under other assumptions",
    about="In the networks of Table 2 above, the divergence of the scales is a few thousand nats, "
    "and the lower layers stay below the largest dropout rate, 0.5. Here the divergence of a scale "
    "is counted once for each weight that it multiplies, or the learning rate is a fifth.",
    place=4,
    parted=True,
    full=FULL,
    quick={
        "hidden": [32] * 3,
        "batch_size": 100,
        "epochs": [3, 10],
        "pairs": {"local": 7, "per_batch": 7, "none": 7},
    },
)


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
