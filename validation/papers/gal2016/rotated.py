"""Digits that are turned: how uncertainty and errors grow with the angle.

    python -m validation.papers.gal2016.rotated [--data FILE] [--quick]

Gal and Ghahramani (2016), section 5.2, turn one digit 1 and show the samples of its softmax. Here
the same is done with a digit 1 of the test set, and with many test digits: the test error, the mean
entropy and mutual information at each angle, and the area under the ROC curve by which a score
tells turned digits from upright ones.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from validation.papers.gal2016 import digit_networks, images
from validation.papers.gal2016.digit_networks import (
    METHODS,
    SCORES,
    Rows,
    Trained,
    auroc,
    mean_and_error,
    scores,
)
from validation.training.data import Dataset
from validation.training.options import Experiment
from validation.training.parts import Parts

EXPERIMENT = Experiment(
    "gal2016",
    "rotated",
    __doc__,
    seeds=[1, 2, 3],
    packages=("torch", "scipy", "scikit-learn"),
    folder=digit_networks.FOLDER,
)
EXPERIMENT.parser.add_argument("--plot", metavar="FILE", help="draw the figure")

ANGLES = (0, 15, 30, 45, 60, 90, 135, 180)
ANGLES_OF_ONE = tuple(range(0, 181, 15))


def by_angle(trained: Trained, dataset: Dataset, count: int) -> dict[str, Any]:
    """Measure errors and scores at each angle, and what becomes of one digit."""
    x, y = dataset.test.x[:count], torch.from_numpy(dataset.test.y[:count])
    upright: dict[str, torch.Tensor] = {}
    found = []
    for angle in ANGLES:
        turned = images.rotated(x, angle)
        sampled, (without, entropy) = trained.with_noise(turned), trained.without_noise(turned)
        here = scores(sampled, entropy)
        upright = upright or here  # the first angle is 0
        found.append(
            {
                "angle": angle,
                "error_without_noise": _error(without, y),
                "error": None if sampled is None else _error(sampled.mean, y),
                **{name: float(value.double().mean()) for name, value in here.items()},
                "auroc": {name: auroc(upright[name], here[name]) for name in here},
            }
        )
    return {"angles": found, "one": _of_one(trained, dataset)}


def _error(p: torch.Tensor, y: torch.Tensor) -> float:
    return 100.0 * float((p.argmax(1) != y).double().mean())


def one(dataset: Dataset) -> Any:
    """Take the first 1 of the test digits, at each angle."""
    first = dataset.test.x[np.flatnonzero(dataset.test.y == 1)[:1]]
    return np.concatenate([images.rotated(first, angle) for angle in ANGLES_OF_ONE])


def _of_one(trained: Trained, dataset: Dataset) -> dict[str, Any] | None:
    sampled = trained.with_noise(one(dataset))
    if sampled is None:
        return None
    return {
        "mean": sampled.mean.tolist(),
        "standard_deviation": sampled.variance.sqrt().tolist(),
        "entropy": sampled.entropy.tolist(),
        "mutual_information": sampled.mutual_information.tolist(),
    }


def summarised(rows: Rows) -> list[dict[str, Any]]:
    """Average over the seeds, at each angle."""
    names = ("error", "error_without_noise", *SCORES)
    found = []
    for method in METHODS:
        several = [row["angles"] for row in rows if row["method"] == method]
        for place, angle in enumerate(ANGLES):
            here = [angles[place] for angles in several]
            found.append(
                {
                    "method": method,
                    "title": digit_networks.title(method),
                    "angle": angle,
                    **{name: mean_and_error(each.get(name) for each in here) for name in names},
                    "auroc": {
                        name: mean_and_error(each["auroc"].get(name) for each in here)
                        for name in SCORES
                    },
                }
            )
    return found


def draw(path: str, rows: Rows, summary: list[dict[str, Any]], dataset: Dataset) -> None:
    """Draw the scores by angle, and the probabilities of the digit 1 as it turns."""
    from matplotlib.figure import Figure

    from logunif_kl.cli.provenance import stamp

    figure = Figure(figsize=(10.0, 7.5), layout="constrained")
    panels: Any = figure.subfigures(3, 1, height_ratios=[1.0, 0.25, 1.0])
    above, strip, below = panels
    axes = above.subplots(1, 3)
    titles = ("test error in %", "mean mutual information", "mean entropy")
    for number, method in enumerate(METHODS):
        here = [each for each in summary if each["method"] == method]
        draws = method != "none"
        names = (
            "error" if draws else "error_without_noise",
            "mutual_information",
            "entropy" if draws else "entropy_without_noise",
        )
        for place, name in zip(axes, names, strict=True):
            values = [each[name]["mean"] for each in here]
            if None not in values:
                label = digit_networks.title(method)
                place.plot(ANGLES, values, f"C{number}.-", linewidth=1.0, label=label)
    for place, title in zip(axes, titles, strict=True):
        place.set_title(title, fontsize="medium")
        place.set_xlabel("angle in degrees")
    axes[0].legend(fontsize="small")
    for place, image in zip(strip.subplots(1, len(ANGLES_OF_ONE)), one(dataset), strict=True):
        width = images.side(image[None])
        place.imshow(image.reshape(width, width), cmap="gray_r", vmin=0.0, vmax=1.0)
        place.set_axis_off()
    methods = [method for method in METHODS if method != "none"]
    for place, method in zip(below.subplots(1, len(methods), sharey=True), methods, strict=True):
        found = next(row["one"] for row in rows if row["method"] == method)
        mean, spread = np.asarray(found["mean"]), np.asarray(found["standard_deviation"])
        for digit in sorted(np.argsort(mean.max(0))[-4:]):
            low, high = mean[:, digit] - spread[:, digit], mean[:, digit] + spread[:, digit]
            place.plot(ANGLES_OF_ONE, mean[:, digit], f"C{digit}.-", linewidth=1.0, label=digit)
            place.fill_between(
                ANGLES_OF_ONE, low.clip(0), high.clip(max=1), color=f"C{digit}", alpha=0.15
            )
        place.set_title(digit_networks.title(method), fontsize="medium")
        place.set_xlabel("angle of the digit 1 in degrees")
        place.legend(fontsize="small", title="class")
    below.axes[0].set_ylabel("probability, ± 1 standard deviation")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata=stamp(path, "gal2016_rotated"))


def measure(options: argparse.Namespace, dataset: Dataset, parts: Parts) -> dict[str, Any]:
    """Train the networks, and turn the digits."""
    sizes = digit_networks.full_and_quick(options.quick)
    rows = digit_networks.of_each(
        "rotated",
        lambda trained: by_angle(trained, dataset, sizes["images"]),
        options.seeds,
        sizes,
        dataset,
        parts,
    )
    summary = summarised(rows)
    if options.plot:
        draw(options.plot, rows, summary, dataset)
    return {"sizes": sizes, "summary": summary, "rows": rows}


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main(measure))
