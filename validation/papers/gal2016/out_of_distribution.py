"""Images that are not test digits.

How often a score is larger for one of 1,000 other images than for one of the first 1,000 test
digits (AUROC). Letters are those that no digit looks like, drawn as MNIST draws its digits.
scikit-learn's digits are digits by other writers, from another scanner. The figure shows the first
seed.

The scores are the mutual information and the entropy from samples of the noise, and the entropy of
the network without noise.
"""

import textwrap
from typing import Any

import numpy as np
import torch

from validation.experiment import Parts, Record, subplots
from validation.markdown import columns, measured
from validation.papers.gal2016 import digit_networks as digits
from validation.papers.gal2016 import images
from validation.training.data import Dataset

BINS = np.linspace(0.0, np.log(10.0), 47)  # the range of the mutual information


def others(settings: Record, dataset: Dataset) -> Record:
    """Make images other than test digits, with their title, and labels if they have some."""
    count = settings["images"]
    rng, test = np.random.default_rng([0, dataset.pixels]), dataset.test.x
    found: dict[str, Record] = {
        name: {"title": other.title, "x": other.make(test, count, rng), "y": None}
        for name, other in images.OTHERS.items()
    }
    if not settings["quick"]:
        split = images.other_digits(test)
        found["other_digits"] = {
            "title": "scikit-learn's digits, enlarged",
            "x": split.x[:count],
            "y": split.y[:count],
        }
    return found


def compared(trained: digits.Trained, test: Any, sets: Record) -> Record:
    of_digits = digits.scores(trained.with_noise(test), trained.without_noise(test)[1])
    found: Record = {"digits": _about(of_digits), "others": {}}
    for name, other in sets.items():
        sampled, (p, entropy) = trained.with_noise(other["x"]), trained.without_noise(other["x"])
        of_others = digits.scores(sampled, entropy)
        p, y = p if sampled is None else sampled.mean, other["y"]
        found["others"][name] = {
            **_about(of_others),
            "auroc": {
                score: digits.auroc(of_digits[score], of_others[score]) for score in of_digits
            },
            # Only where the images are digits.
            "error_percent": None if y is None else digits.error_percent(p, torch.from_numpy(y)),
        }
    return found


def _about(found: dict[str, torch.Tensor]) -> Record:
    about: Record = {name: float(value.double().mean()) for name, value in found.items()}
    if "mutual_information" in found:
        counts, _ = np.histogram(found["mutual_information"].numpy(), BINS)
        about["histogram"] = counts.tolist()
    return about


def summarised(rows: digits.Rows, sets: Record) -> list[Record]:
    return [
        {
            "method": method,
            "title": title,
            "other": name,
            "auroc": {
                score: digits.mean_and_error(
                    row["others"][name]["auroc"].get(score)
                    for row in rows
                    if row["method"] == method
                )
                for score in digits.SCORES
            },
        }
        for name in sets
        for method, title in digits.METHODS.items()
    ]


def draw(record: Record) -> Any:
    others = record["others"]
    titles = {m: title for m, title in digits.METHODS.items() if m != "none"}
    middle = (BINS[:-1] + BINS[1:]) / 2
    figure, axes = subplots((7.2, 9.0), len(others), len(titles), sharex=True, sharey=True)
    for line, (name, other) in zip(axes, others.items(), strict=True):
        for place, method in zip(line, titles, strict=True):
            row = next(row for row in record["rows"] if row["method"] == method)
            area = row["others"][name]["auroc"]["mutual_information"]
            for label, found in (("test digits", row["digits"]), ("others", row["others"][name])):
                counts = np.asarray(found["histogram"])
                place.step(middle, counts / counts.sum(), where="mid", lw=1, label=label)
            place.set_title(f"AUROC {area:.3f}", fontsize="small")
            place.set_yscale("symlog", linthresh=1e-2)
            place.yaxis.set_major_formatter("{x:g}")
            place.set_ylim(0.0, 1.2)
        line[0].set_ylabel(textwrap.fill(other["title"], 24), fontsize="x-small")
    for place, title in zip(axes[-1], titles.values(), strict=True):
        place.set_xlabel(f"mutual information\n{title}")
    handles = axes[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)
    return figure


def show(record: Record) -> str:
    titles = {name: other["title"] for name, other in record["others"].items()}
    return columns(
        ({**row, **row["auroc"]} for row in record["summary"]),
        ("images", lambda row: titles[row["other"]]),
        ("network", "{title}"),
        *((name.replace("_", " "), measured(name, 3)) for name in digits.SCORES),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    sets = others(settings, dataset)
    test = dataset.test.x[: settings["images"]]

    def compare(trained: digits.Trained, *_: Any) -> Record:
        return compared(trained, test, sets)

    rows = digits.of_each("out_of_distribution", compare, settings, dataset, parts)
    return {
        "others": {
            name: {"title": other["title"], "images": len(other["x"])}
            for name, other in sets.items()
        },
        "summary": summarised(rows, sets),
        "rows": rows,
    }


EXPERIMENT = digits.experiment(
    __file__, measure, show, place=3, draw=draw, packages=("torch", "scikit-learn", "matplotlib")
)
EXPERIMENT.run(__name__)
