"""Whether a class of which a network is 90 % sure is right in 90 % of cases.

    python -m validation.papers.gal2016.calibration [--data FILE] [--quick]

The expected calibration error (15 bins of the confidence; Guo et al. 2017, Eq. 3), the mean
negative log-likelihood, the Brier score and the error of each network, by samples of its noise and
without noise: on all test digits, and on test digits turned by 30 and by 60 degrees, which no
network has seen. Last, how well a score tells the wrong predictions from the right ones.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from validation.papers.gal2016 import digit_networks, images
from validation.papers.gal2016.digit_networks import METHODS, Rows, Trained, auroc, mean_and_error
from validation.training.data import Dataset, Split
from validation.training.options import Experiment
from validation.training.parts import Parts

EXPERIMENT = Experiment(
    "gal2016",
    "calibration",
    __doc__,
    seeds=[1, 2, 3],
    packages=("torch", "scikit-learn", "torchmetrics"),
    folder=digit_networks.FOLDER,
)
EXPERIMENT.parser.add_argument("--plot", metavar="FILE", help="draw the figure")

BINS = 15
ANGLES = (0, 30, 60)
MEASURES = (
    "expected_calibration_error",
    "negative_log_likelihood",
    "brier_score",
    "error_percent",
    "auroc_of_errors",
)


def judged(p: torch.Tensor, y: torch.Tensor, score: torch.Tensor) -> dict[str, Any]:
    """Judge probabilities by the labels; the score is to be larger where they are wrong."""
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, log_loss
    from torchmetrics.functional.classification import multiclass_calibration_error

    # Rounded to float32, they may not sum to 1.
    p = p.double() / p.double().sum(1, keepdim=True)
    classes = p.shape[1]
    confidence, predicted = p.max(1)
    right = predicted == y
    accuracy, mean_confidence = calibration_curve(
        right.numpy(), confidence.numpy(), n_bins=BINS, strategy="uniform"
    )
    counts, _ = np.histogram(confidence.numpy(), np.linspace(0.0, 1.0, BINS + 1))
    labels = list(range(classes))
    brier = brier_score_loss(y.numpy(), p.numpy(), labels=labels, scale_by_half=False)
    wrong = ~right
    return {
        "expected_calibration_error": float(
            multiclass_calibration_error(p, y, classes, n_bins=BINS, norm="l1")
        ),
        "negative_log_likelihood": float(log_loss(y.numpy(), p.numpy(), labels=labels)),
        "brier_score": float(brier),
        "error_percent": 100.0 * float(wrong.double().mean()),
        "auroc_of_errors": (
            auroc(score[right], score[wrong]) if bool(right.any() & wrong.any()) else None
        ),
        "reliability": {
            "confidence": mean_confidence.tolist(),
            "accuracy": accuracy.tolist(),
            "count": counts[counts > 0].tolist(),
        },
    }


def with_and_without(trained: Trained, test: Split) -> dict[str, Any]:
    """Judge a network's predictions by samples, and those without noise."""
    found = []
    for angle in ANGLES:
        x, y = images.rotated(test.x, angle), torch.from_numpy(test.y)
        p, entropy = trained.without_noise(x)
        sampled = trained.with_noise(x)
        found.append(
            {
                "angle": angle,
                "without_noise": judged(p, y, entropy),
                "with_noise": (
                    None
                    if sampled is None
                    else {
                        **judged(sampled.mean, y, sampled.entropy),
                        "auroc_of_errors_by_mutual_information": _of_information(sampled, y),
                    }
                ),
            }
        )
    return {"angles": found}


def _of_information(sampled: Any, y: torch.Tensor) -> float | None:
    right = sampled.mean.argmax(1) == y
    if bool(right.all() | ~right.any()):
        return None
    information = sampled.mutual_information
    return auroc(information[right], information[~right])


def summarised(rows: Rows) -> list[dict[str, Any]]:
    """Average over the seeds."""
    found = []
    for place, angle in enumerate(ANGLES):
        for method in METHODS:
            several = [row["angles"][place] for row in rows if row["method"] == method]
            for name in ("without_noise", "with_noise"):
                here = [each[name] for each in several if each[name] is not None]
                if here:
                    found.append(
                        {
                            "angle": angle,
                            "method": method,
                            "title": digit_networks.title(method),
                            "samples": name == "with_noise",
                            **{
                                measure: mean_and_error(each[measure] for each in here)
                                for measure in MEASURES
                            },
                        }
                    )
    return found


def draw(path: str, rows: Rows, summary: Rows) -> None:
    """Draw reliability diagrams: the accuracy in each bin of the confidence, for each network.

    The calibration error is the mean over the seeds.
    """
    from matplotlib.figure import Figure

    from logunif_kl.cli.provenance import stamp

    figure = Figure(figsize=(10.0, 7.5), layout="constrained")
    axes = figure.subplots(len(ANGLES), len(METHODS), sharex=True, sharey=True)
    for line, place_of_angle in zip(axes, range(len(ANGLES)), strict=True):
        for place, method in zip(line, METHODS, strict=True):
            place.plot([0.0, 1.0], [0.0, 1.0], color="0.7", linewidth=0.8)
            for row in (row for row in rows if row["method"] == method):
                here = row["angles"][place_of_angle]
                for color, name in (("C0", "without_noise"), ("C1", "with_noise")):
                    if here[name] is None:
                        continue
                    curve = here[name]["reliability"]
                    first = row["seed"] == rows[0]["seed"]
                    error = next(
                        each["expected_calibration_error"]["mean"]
                        for each in summary
                        if (each["angle"], each["method"]) == (here["angle"], method)
                        and each["samples"] == (name == "with_noise")
                    )
                    label = f"{name.replace('_', ' ')}: ECE {100 * error:.1f} %" if first else None
                    place.plot(
                        curve["confidence"],
                        curve["accuracy"],
                        color,
                        marker=".",
                        linewidth=0.8,
                        label=label,
                    )
            free = "upper left" if place_of_angle else "lower right"
            place.legend(fontsize="x-small", loc=free)
            if place_of_angle == 0:
                place.set_title(digit_networks.title(method), fontsize="medium")
            if place_of_angle == len(ANGLES) - 1:
                place.set_xlabel("confidence")
        line[0].set_ylabel(f"accuracy, turned by {ANGLES[place_of_angle]}°")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata=stamp(path, "gal2016_calibration"))


def measure(options: argparse.Namespace, dataset: Dataset, parts: Parts) -> dict[str, Any]:
    """Train the networks, and judge their predictions."""
    sizes = digit_networks.full_and_quick(options.quick)
    test = dataset.test
    rows = digit_networks.of_each(
        "calibration",
        lambda trained: with_and_without(trained, test),
        options.seeds,
        sizes,
        dataset,
        parts,
    )
    summary = summarised(rows)
    if options.plot:
        draw(options.plot, rows, summary)
    return {"sizes": sizes, "bins": BINS, "summary": summary, "rows": rows}


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main(measure))
