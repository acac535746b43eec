"""Digits that are turned.

The first 1,000 test digits, turned counterclockwise. AUROC: how often a score is larger for a
turned digit than for an upright one. Means over the seeds, with standard errors.

Gal and Ghahramani (2016), section 5.2, rotate one digit 1 and show the samples of its softmax. Here
the same is done with a digit 1 of the test set, and with many test digits.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from validation.experiment import Dataset, Parts, Record, subplots
from validation.markdown import columns, measured
from validation.papers.gal2016 import digit_networks as digits
from validation.papers.gal2016 import images

ANGLES = (0, 15, 30, 45, 60, 90, 135, 180)
ANGLES_OF_ONE = tuple(range(0, 181, 15))


def by_angle(trained: digits.Trained, settings: Record, dataset: Dataset) -> Record:
    """Measure errors and scores at each angle, and the predictions for one digit."""
    count = settings["images"]
    x, y = dataset.test.x[:count], torch.from_numpy(dataset.test.y[:count])
    upright: dict[str, torch.Tensor] = {}

    def at(angle: int) -> Record:
        turned = images.rotated(x, angle)
        sampled, (without, entropy) = trained.with_noise(turned), trained.without_noise(turned)
        here = digits.scores(sampled, entropy)
        upright.update({} if upright else here)  # the first angle is 0
        return {
            "angle": angle,
            "error_without_noise": digits.error_percent(without, y),
            "error": None if sampled is None else digits.error_percent(sampled.mean, y),
            **{name: float(value.double().mean()) for name, value in here.items()},
            "auroc": {name: digits.auroc(upright[name], here[name]) for name in here},
        }

    return {"angles": list(map(at, ANGLES)), "one": _of_one(trained, dataset)}


def one(dataset: Dataset) -> Any:
    """Rotate the first 1 of the test digits to each angle."""
    first = dataset.test.x[np.flatnonzero(dataset.test.y == 1)[:1]]
    return np.concatenate([images.rotated(first, angle) for angle in ANGLES_OF_ONE])


def _of_one(trained: digits.Trained, dataset: Dataset) -> Record | None:
    sampled = trained.with_noise(one(dataset))
    if sampled is None:
        return None
    return {
        "mean": sampled.mean.tolist(),
        "standard_deviation": sampled.variance.sqrt().tolist(),
        "entropy": sampled.entropy.tolist(),
        "mutual_information": sampled.mutual_information.tolist(),
    }


def summarised(rows: digits.Rows) -> Iterator[Record]:
    def averages(here: list[Record], names: Sequence[str]) -> Record:
        return {name: digits.mean_and_error(each.get(name) for each in here) for name in names}

    for method, title in digits.METHODS.items():
        several = [row["angles"] for row in rows if row["method"] == method]
        for place, angle in enumerate(ANGLES):
            here = [angles[place] for angles in several]
            yield {
                "method": method,
                "title": title,
                "angle": angle,
                **averages(here, ("error", "error_without_noise", *digits.SCORES)),
                "auroc": averages([each["auroc"] for each in here], digits.SCORES),
            }


def draw(record: Record) -> Any:
    figure, (above, below) = subplots((7.2, 5.4), 2, 3)
    for method, title in digits.METHODS.items():
        here = [each for each in record["summary"] if each["method"] == method]
        names = ["error", "mutual_information", "entropy"]
        if method == "none":
            names = ["error_without_noise", "mutual_information", "entropy_without_noise"]
        colour = f"C{list(digits.METHODS).index(method)}"
        for place, name in zip(above, names, strict=True):
            values = [each[name]["mean"] for each in here]
            if None not in values:
                angles = [each["angle"] for each in here]
                place.plot(angles, values, ".-", color=colour, label=title, lw=1)
    for place, title in zip(above, ("error in %", "mutual information", "entropy"), strict=True):
        place.set(title=title, xlabel="angle in degrees")
    for place, method in zip(below, [m for m in digits.METHODS if m != "none"], strict=True):
        found = next(row["one"] for row in record["rows"] if row["method"] == method)
        mean, spread = np.asarray(found["mean"]), np.asarray(found["standard_deviation"])
        turns = np.linspace(0.0, 180.0, len(mean))
        for place_of_class, digit in enumerate(sorted(np.argsort(mean.max(0))[-4:])):
            colour = f"C{place_of_class}"
            low, high = mean[:, digit] - spread[:, digit], mean[:, digit] + spread[:, digit]
            place.plot(turns, mean[:, digit], ".-", color=colour, label=str(digit), lw=1)
            place.fill_between(turns, low.clip(0), high.clip(max=1), color=colour, alpha=0.15, lw=0)
        place.set(title=digits.METHODS[method], xlabel="angle of a digit 1", ylim=(-0.05, 1.05))
        place.legend(fontsize="x-small", title="class")
    below[0].set_ylabel("probability, ± 1 std")
    handles = above[2].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=4)
    return figure


def show(record: Record) -> str:
    def error(row: Record) -> str:
        draws = row["error"]["mean"] is not None
        return measured("error" if draws else "error_without_noise", 1)(row)

    areas = ("AUROC by information", "by entropy", "by entropy without noise")
    of_areas = dict(zip(areas, digits.SCORES, strict=True))
    return columns(
        (
            {**row, **{area: row["auroc"][name] for area, name in of_areas.items()}}
            for row in record["summary"]
        ),
        ("network", "{title}"),
        ("angle", "{angle}°"),
        ("error in %", error),
        ("mutual information", measured("mutual_information", 3)),
        ("entropy", measured("entropy", 3)),
        ("without noise", measured("entropy_without_noise", 3)),
        *((area, measured(area, 3)) for area in areas),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = digits.of_each("rotated", by_angle, settings, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


EXPERIMENT = digits.experiment(
    __file__, measure, show, place=2, draw=draw, packages=("torch", "scipy", "scikit-learn")
)
EXPERIMENT.run(__name__)
