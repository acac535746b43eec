"""Whether the mutual information tells images that are no digits from test digits.

    python -m validation.papers.gal2016.out_of_distribution [--data FILE] [--other FILE] [--quick]

A score is compared between test digits and other images, by the area under the ROC curve (0.5 is
chance, 1 is perfect): the mutual information and the entropy by samples of the noise, and the
entropy of the same network without noise. The other images are made from what is at hand (see
`images`), and scikit-learn's digits, which are digits of another origin. ``--other`` adds the test
images of a file of the user, such as Fashion-MNIST.
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
from validation.training import data
from validation.training.data import DataError, Dataset
from validation.training.options import Experiment
from validation.training.parts import Parts

EXPERIMENT = Experiment(
    "gal2016",
    "out_of_distribution",
    __doc__,
    seeds=[1, 2, 3],
    packages=("torch", "scikit-learn", "matplotlib"),
    folder=digit_networks.FOLDER,
)
EXPERIMENT.parser.add_argument(
    "--other", metavar="FILE", help="further images, such as Fashion-MNIST: .npz or IDX files"
)
EXPERIMENT.parser.add_argument("--plot", metavar="FILE", help="draw the figure")

BINS = np.linspace(0.0, np.log(10.0), 47)  # of the mutual information: all that it can be


def others(options: argparse.Namespace, dataset: Dataset, count: int) -> dict[str, Any]:
    """Make the images that are no test digits, with their title and labels, if they have some."""
    rng, test = np.random.default_rng([0, dataset.pixels]), dataset.test.x
    found: dict[str, dict[str, Any]] = {
        name: {"title": other.title, "x": other.make(test, count, rng), "y": None}
        for name, other in images.OTHERS.items()
    }
    if not options.quick:
        split = images.other_digits(test)
        found["other_digits"] = {
            "title": "scikit-learn's digits, enlarged",
            "x": split.x[:count],
            "y": split.y[:count],
        }
    if options.other is not None:
        named = data.load(options.other)
        if named.pixels != dataset.pixels:
            raise DataError(
                f"{options.other} has {named.pixels} pixels an image, and the digits have "
                f"{dataset.pixels}: name images of the same size"
            )
        found["other"] = {
            "title": f"{named.name}, by --other",
            "x": named.test.x[:count],
            "y": None,
            "sha256": named.sha256,
        }
    return found


def compared(trained: Trained, test: Any, sets: dict[str, Any]) -> dict[str, Any]:
    """Compare the scores of test digits with those of each set of others."""
    of_digits = scores(trained.with_noise(test), trained.without_noise(test)[1])
    found: dict[str, Any] = {"digits": _about(of_digits), "others": {}}
    for name, other in sets.items():
        sampled, (p, entropy) = trained.with_noise(other["x"]), trained.without_noise(other["x"])
        of_others = scores(sampled, entropy)
        found["others"][name] = {
            **_about(of_others),
            "auroc": {score: auroc(of_digits[score], of_others[score]) for score in of_digits},
            "error_percent": _error(p if sampled is None else sampled.mean, other["y"]),
        }
    return found


def _about(found: dict[str, torch.Tensor]) -> dict[str, Any]:
    about: dict[str, Any] = {name: float(value.double().mean()) for name, value in found.items()}
    if "mutual_information" in found:
        counts, _ = np.histogram(found["mutual_information"].numpy(), BINS)
        about["histogram"] = counts.tolist()
    return about


def _error(p: torch.Tensor, y: Any) -> float | None:
    """Return the error in per cent, where the images are digits."""
    if y is None:
        return None
    return 100.0 * float((p.argmax(1) != torch.from_numpy(y)).double().mean())


def summarised(rows: Rows, sets: dict[str, Any]) -> list[dict[str, Any]]:
    """Average the areas over the seeds."""
    return [
        {
            "method": method,
            "title": digit_networks.title(method),
            "other": name,
            "auroc": {
                score: mean_and_error(
                    row["others"][name]["auroc"].get(score)
                    for row in rows
                    if row["method"] == method
                )
                for score in SCORES
            },
        }
        for name in sets
        for method in METHODS
    ]


def draw(path: str, rows: Rows, sets: dict[str, Any]) -> None:
    """Show some images of each set, and the information in the first network of each kind."""
    from matplotlib.figure import Figure

    from logunif_kl.cli.provenance import stamp

    methods = [method for method in METHODS if method != "none"]
    figure = Figure(figsize=(10.0, 1.0 + 1.2 * len(sets)), layout="constrained")
    axes = figure.subplots(
        len(sets), 1 + len(methods), squeeze=False, width_ratios=[1.6] + [1.0] * len(methods)
    )
    middle = (BINS[:-1] + BINS[1:]) / 2
    for line, (name, other) in zip(axes, sets.items(), strict=True):
        width = images.side(other["x"])
        strip = np.hstack([image.reshape(width, width) for image in other["x"][:8]])
        line[0].imshow(strip, cmap="gray_r", vmin=0.0, vmax=1.0)
        line[0].set_axis_off()
        line[0].set_title(other["title"], fontsize="small")
        for place, method in zip(line[1:], methods, strict=True):
            row = next(row for row in rows if row["method"] == method)
            both = {"test digits": row["digits"], "at the left": row["others"][name]}
            for label, found in both.items():
                share = np.asarray(found["histogram"]) / sum(found["histogram"])
                place.step(middle, share, where="mid", linewidth=1.0, label=label)
            area = row["others"][name]["auroc"]["mutual_information"]
            place.set_title(f"AUROC {area:.3f}", fontsize="small")
            place.set_yscale("symlog", linthresh=1e-2)
            place.set_ylim(0.0, 1.2)
            place.tick_params(labelsize="x-small")
    for place, method in zip(axes[-1][1:], methods, strict=True):
        place.set_xlabel(f"mutual information\n{digit_networks.title(method)}", fontsize="small")
    axes[0][1].legend(fontsize="x-small")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata=stamp(path, "gal2016_out_of_distribution"))


def measure(options: argparse.Namespace, dataset: Dataset, parts: Parts) -> dict[str, Any]:
    """Train the networks, and compare the scores."""
    sizes = digit_networks.full_and_quick(options.quick)
    sets = others(options, dataset, sizes["images"])
    test = dataset.test.x[: sizes["images"]]
    rows = digit_networks.of_each(
        "out_of_distribution",
        lambda trained: compared(trained, test, sets),
        options.seeds,
        sizes,
        dataset,
        parts,
        others=[*sets, *(other["sha256"] for other in sets.values() if "sha256" in other)],
    )
    if options.plot:
        draw(options.plot, rows, sets)
    return {
        "sizes": sizes,
        "others": {
            name: {"title": other["title"], "images": len(other["x"])}
            for name, other in sets.items()
        },
        "summary": summarised(rows, sets),
        "rows": rows,
    }


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main(measure))
