"""The threshold, by a validation curve.

LeNet-300-100 with the exact divergence, trained on five sixths of the training set. The chosen
threshold is the one with the fewest weights whose error on the last sixth is within one standard
error of the least.
"""

import math
from typing import Any

from logunif_kl._atomic_io import plain_log_scale
from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, rounded
from validation.papers.molchanov2017 import comparison
from validation.papers.molchanov2017.models import THRESHOLD
from validation.training.loop import evaluate, flushed


@flushed()
def one(seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    training, validation = dataset.held_out(len(dataset.train.y) // 6)
    kept = dataset._replace(train=training)
    run = comparison.run_of("lenet_300_100", "exact", seed, sizes, kept, parts)
    run.finish(sizes["epochs"])
    curve = nn.threshold_curve(run.model, lambda m: evaluate(m, validation)["error_percent"])
    least = min(curve.losses) / 100.0
    error = 100.0 * math.sqrt(least * (1.0 - least) / len(validation.y))
    threshold = curve.choose(tolerance=error)

    def at(value: float) -> dict[str, float]:
        counts = nn.sparsity(run.model, value)
        pruned = nn.to_deterministic(run.model, value)
        return {
            "threshold": value,
            "kept": counts.kept,
            "compression": counts.weights / max(counts.kept, 1),
            "validation_error": evaluate(pruned, validation)["error_percent"],
            "test_error": evaluate(pruned, dataset.test)["error_percent"],
        }

    return {
        "seed": seed,
        "thresholds": list(curve.thresholds),
        "validation_errors": list(curve.losses),
        "kept": [counts.kept for counts in curve.sparsities],
        "weights": curve.sparsities[0].weights,
        "standard_error": error,
        "chosen": at(threshold),
        "of_the_paper": at(THRESHOLD),
        "seconds": run.seconds,
    }


def draw(record: Record) -> Any:
    row = record["rows"][0]
    curve = nn.ThresholdCurve(
        tuple(row["thresholds"]),
        tuple(row["validation_errors"]),
        tuple(nn.Sparsity(kept, row["weights"]) for kept in row["kept"]),
    )
    figure, axes = subplots((6.4, 4.0))
    curve.plot(loss="validation error in %", chosen=row["chosen"]["threshold"], ax=axes)
    plain_log_scale(axes)
    return figure


def show(record: Record) -> str:
    return columns(
        (
            {"seed": row["seed"], "which": which.replace("_", " "), **row[which]}
            for row in record["rows"]
            for which in ("chosen", "of_the_paper")
        ),
        ("seed", "{seed}"),
        ("threshold", "{which}"),
        ("log α", "{threshold:.1f}"),
        ("validation error in %", "{validation_error:.2f}"),
        ("test error in %", "{test_error:.2f}"),
        ("times fewer weights", rounded("compression")),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    return {"rows": parts.by_seed("networks", [()], settings, one, dataset, parts)}


FULL = {**comparison.SIZES, "epochs": 200}
EXPERIMENT = Experiment(
    __file__, measure, show, FULL, comparison.QUICK, place=3, seeds=(1, 2, 3), draw=draw
)
EXPERIMENT.run(__name__)
