"""The choice of the threshold on log alpha by a validation curve, for LeNet-300-100.

    python -m validation.papers.molchanov2017.threshold [--data FILE] [--quick]

The last sixth of the training examples is held out. The error on them is measured of the network
that is pruned at thresholds from -4 to 8. The one that keeps the fewest weights, with an error
within one standard error of the least, is chosen; the test error is that of the choice. The paper
takes 3 without such a curve.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import argparse
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

from logunif_kl.cli._output import track
from logunif_kl.torch import nn
from validation.papers.molchanov2017 import comparison
from validation.papers.molchanov2017.models import THRESHOLD
from validation.training.data import Dataset
from validation.training.loop import evaluate
from validation.training.options import Experiment
from validation.training.parts import Parts
from validation.training.subnormals import flushed

EXPERIMENT = Experiment("molchanov2017", "threshold", __doc__, seeds=[1, 2, 3])
EXPERIMENT.parser.add_argument("--plot", metavar="FILE", help="draw the curve of the first seed")
EXPERIMENT.parser.add_argument("--epochs", metavar="N", type=int)


@flushed()
def one(
    seed: int, sizes: dict[str, Any], dataset: Dataset, parts: Parts, *, quick: bool
) -> dict[str, Any]:
    """Train a network, and choose its threshold."""
    training, validation = dataset.held_out(len(dataset.train.y) // 6)
    kept = dataset._replace(train=training)
    run = comparison.run_of("lenet_300_100", "exact", seed, sizes, kept, parts, quick=quick)
    for _ in run.train(sizes["epochs"]):
        pass
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
        "seconds": round(sum(record["seconds"] for record in run.history), 1),
    }


def draw(path: str, row: dict[str, Any]) -> None:
    """Draw the curve of one network."""
    from logunif_kl.cli.provenance import stamp

    curve = nn.ThresholdCurve(
        tuple(row["thresholds"]),
        tuple(row["validation_errors"]),
        tuple(nn.Sparsity(kept, row["weights"]) for kept in row["kept"]),
    )
    figure = curve.plot(loss="validation error in %", chosen=row["chosen"]["threshold"])
    figure.axes[0].set_yscale("log")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata=stamp(path, "molchanov2017_threshold"))


def measure(options: argparse.Namespace, dataset: Dataset, parts: Parts) -> dict[str, Any]:
    """Train a network of each seed, and choose its threshold."""
    options.cases = None
    sizes = comparison.full_and_quick("lenet_300_100", options)
    del sizes["cases"]
    rows = [
        parts.get(
            f"seed{seed}",
            partial(one, seed, sizes, dataset, parts, quick=options.quick),
            seed=seed,
            **sizes,
        )
        for seed in track(options.seeds, "training networks", len(options.seeds))
    ]
    if options.plot:
        draw(options.plot, rows[0])
    return {"sizes": sizes, "rows": rows}


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main(measure))
