"""Calibration with and without noise.

All test digits, upright and turned. The expected calibration error has 15 bins.

The expected calibration error is that of Guo et al. 2017, Eq. 3. The networks have not seen rotated
digits. AUROC says how well a score separates the wrong predictions from the right ones.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from validation.experiment import Dataset, Parts, Record, subplots
from validation.markdown import columns, measured
from validation.papers.gal2016 import digit_networks as digits
from validation.papers.gal2016 import images

BINS = 15
ANGLES = (0, 30, 60)
MEASURES = (
    "expected_calibration_error",
    "negative_log_likelihood",
    "brier_score",
    "error_percent",
    "auroc_of_errors",
)


def judged(p: torch.Tensor, y: torch.Tensor, score: torch.Tensor) -> Record:
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, log_loss
    from torchmetrics.functional.classification import multiclass_calibration_error

    # After rounding to float32, they may not sum to 1.
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
    return {
        "expected_calibration_error": float(
            multiclass_calibration_error(p, y, classes, n_bins=BINS, norm="l1")
        ),
        "negative_log_likelihood": float(log_loss(y.numpy(), p.numpy(), labels=labels)),
        "brier_score": float(brier),
        "error_percent": digits.error_percent(p, y),
        "auroc_of_errors": _auroc_of_errors(score, right),
        "reliability": {
            "confidence": mean_confidence.tolist(),
            "accuracy": accuracy.tolist(),
            "count": counts[counts > 0].tolist(),
        },
    }


def with_and_without(trained: digits.Trained, settings: Record, dataset: Dataset) -> Record:
    found: digits.Rows = []
    for angle in ANGLES:
        x, y = images.rotated(dataset.test.x, angle), torch.from_numpy(dataset.test.y)
        p, entropy = trained.without_noise(x)
        sampled = trained.with_noise(x)
        found.append({"angle": angle, "without_noise": judged(p, y, entropy), "with_noise": None})
        if sampled is not None:
            right = sampled.mean.argmax(1) == y
            by_information = _auroc_of_errors(sampled.mutual_information, right)
            judgement = judged(sampled.mean, y, sampled.entropy)
            judgement["auroc_of_errors_by_mutual_information"] = by_information
            found[-1]["with_noise"] = judgement
    return {"angles": found}


def _auroc_of_errors(score: torch.Tensor, right: torch.Tensor) -> float | None:
    return digits.auroc(score[right], score[~right]) if bool(right.any() & ~right.all()) else None


def summarised(rows: digits.Rows) -> Iterator[Record]:
    for (place, angle), (method, title), name in itertools.product(
        enumerate(ANGLES), digits.METHODS.items(), ("without_noise", "with_noise")
    ):
        several = [row["angles"][place][name] for row in rows if row["method"] == method]
        if here := [each for each in several if each is not None]:
            yield {
                "angle": angle,
                "method": method,
                "title": title,
                "samples": name == "with_noise",
                **{
                    measure: digits.mean_and_error(each[measure] for each in here)
                    for measure in MEASURES
                },
            }


def draw(record: Record) -> Any:
    angles = list(dict.fromkeys(each["angle"] for each in record["summary"]))
    figure, axes = subplots((7.2, 5.8), len(angles), len(digits.METHODS), sharex=True, sharey=True)
    for i, angle in enumerate(angles):
        for place, (method, title) in zip(axes[i], digits.METHODS.items(), strict=True):
            place.plot([0.0, 1.0], [0.0, 1.0], color="0.6", lw=0.8)
            for row in (row for row in record["rows"] if row["method"] == method):
                here = next(each for each in row["angles"] if each["angle"] == angle)
                for colour, name in (("C0", "without_noise"), ("C1", "with_noise")):
                    if here[name] is None:
                        continue
                    curve = here[name]["reliability"]
                    first = row["seed"] == record["rows"][0]["seed"]
                    label = name.replace("_", " ") if first else None
                    x, y = curve["confidence"], curve["accuracy"]
                    place.plot(x, y, ".-", color=colour, lw=0.8, label=label)
            if i == 0:
                place.set_title(title, fontsize="small")
        axes[i][0].set_ylabel(f"accuracy, turned by {angle}°", fontsize="small")
    for place in axes[-1]:
        place.set_xlabel("confidence")
    handles = axes[0][1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)
    return figure


def show(record: Record) -> str:
    return columns(
        record["summary"],
        ("turned by", "{angle}°"),
        ("network", "{title}"),
        ("prediction", lambda row: "samples" if row["samples"] else "no noise"),
        ("ECE in %", measured("expected_calibration_error", 2, 100.0)),
        ("negative log-likelihood", measured("negative_log_likelihood", 3)),
        ("Brier score", measured("brier_score", 4)),
        ("error in %", measured("error_percent")),
        ("AUROC of errors by entropy", measured("auroc_of_errors", 3)),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = digits.of_each("calibration", with_and_without, settings, dataset, parts)
    return {"bins": BINS, "summary": list(summarised(rows)), "rows": rows}


EXPERIMENT = digits.experiment(
    __file__, measure, show, place=4, draw=draw, packages=("torch", "scikit-learn", "torchmetrics")
)
EXPERIMENT.run(__name__)
