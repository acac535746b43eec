"""The figures of Gal (2016), from the committed records of the experiments."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from figures import COLOURS, INK, drawn
from matplotlib.figure import Figure

from validation.paths import RESULTS


def _record(name: str) -> dict[str, Any]:
    path = RESULTS / "gal2016" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _titles(summary: list[dict[str, Any]]) -> dict[str, str]:
    return {row["method"]: row["title"] for row in summary}


@drawn("The predictions of five models of a function on two intervals", size=(7.2, 4.8))
def regression(figure: Figure) -> None:
    """Draw the predictive mean and one and two standard deviations, for the first seed."""
    record = _record("regression")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for place, (method, title) in zip(axes.flat, _titles(record["summary"]).items(), strict=False):
        row = next(row for row in record["rows"] if row["method"] == method)
        x, mean, variance = (np.asarray(row["line"][key]) for key in ("x", "mean", "variance"))
        spread = np.sqrt(variance + record["sigma"] ** 2)
        for times in (1.0, 2.0):
            low, high = mean - times * spread, mean + times * spread
            place.fill_between(x, low, high, color=COLOURS[0], alpha=0.25, linewidth=0)
        place.plot(x, mean, label="mean, ± 1 and 2 standard deviations")
        # What was to be learned, as validation/papers/gal2016/regression.py has it.
        place.plot(x, np.sin(2 * x) + x / 2, "--", color=COLOURS[1], lw=1, label="the function")
        place.set(title=title, ylim=(-5.0, 5.0))
    axes[-1][-1].set_axis_off()
    handles = axes[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)


@drawn("Error, mutual information and entropy against the angle of digits", size=(7.2, 5.4))
def rotated(figure: Figure) -> None:
    """Draw the scores by angle, and the probabilities of a digit 1 as it turns."""
    record = _record("rotated")
    above, below = figure.subplots(2, 3)
    titles = _titles(record["summary"])
    for method, title in titles.items():
        here = [each for each in record["summary"] if each["method"] == method]
        names = ["error", "mutual_information", "entropy"]
        if method == "none":
            names = ["error_without_noise", "mutual_information", "entropy_without_noise"]
        colour = COLOURS[list(titles).index(method)]
        for place, name in zip(above, names, strict=True):
            values = [each[name]["mean"] for each in here]
            if None not in values:
                angles = [each["angle"] for each in here]
                place.plot(angles, values, ".-", color=colour, label=title, lw=1)
    for place, title in zip(above, ("error in %", "mutual information", "entropy"), strict=True):
        place.set(title=title, xlabel="angle in degrees")
    for place, method in zip(below, [m for m in titles if m != "none"], strict=True):
        found = next(row["one"] for row in record["rows"] if row["method"] == method)
        mean, spread = np.asarray(found["mean"]), np.asarray(found["standard_deviation"])
        angles = np.linspace(0.0, 180.0, len(mean))
        for colour, digit in zip(COLOURS, sorted(np.argsort(mean.max(0))[-4:]), strict=False):
            low, high = mean[:, digit] - spread[:, digit], mean[:, digit] + spread[:, digit]
            place.plot(angles, mean[:, digit], ".-", color=colour, label=str(digit), lw=1)
            place.fill_between(
                angles, low.clip(0), high.clip(max=1), color=colour, alpha=0.15, lw=0
            )
        place.set(title=titles[method], xlabel="angle of a digit 1", ylim=(-0.05, 1.05))
        place.legend(fontsize="x-small", title="class")
    below[0].set_ylabel("probability, ± 1 std")
    handles = above[2].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=4)


@drawn("Histograms of the mutual information of test digits and of other images", size=(7.2, 9.0))
def out_of_distribution(figure: Figure) -> None:
    """Draw the information in the first network of each kind, for test digits and others."""
    record = _record("out_of_distribution")
    others = record["others"]
    titles = {m: title for m, title in _titles(record["summary"]).items() if m != "none"}
    axes = figure.subplots(len(others), len(titles), sharex=True, sharey=True)
    for line, (name, other) in zip(axes, others.items(), strict=True):
        for place, method in zip(line, titles, strict=True):
            row = next(row for row in record["rows"] if row["method"] == method)
            area = row["others"][name]["auroc"]["mutual_information"]
            for label, found in (("test digits", row["digits"]), ("others", row["others"][name])):
                counts = np.asarray(found["histogram"])
                edges = np.linspace(0.0, np.log(10.0), len(counts) + 1)
                middle = (edges[:-1] + edges[1:]) / 2
                place.step(middle, counts / counts.sum(), where="mid", lw=1, label=label)
            place.set_title(f"AUROC {area:.3f}", fontsize="small")
            place.set_yscale("symlog", linthresh=1e-2)
            place.set_ylim(0.0, 1.2)
        line[0].set_ylabel("\n".join(_folded(other["title"])), fontsize="x-small")
    for place, title in zip(axes[-1], titles.values(), strict=True):
        place.set_xlabel(f"mutual information\n{title}")
    handles = axes[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)


def _folded(text: str, width: int = 24) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width)


@drawn("Accuracy against confidence of four networks, for turned digits", size=(7.2, 5.8))
def calibration(figure: Figure) -> None:
    """Draw reliability diagrams, for each network and angle, a curve for each seed."""
    record = _record("calibration")
    titles = _titles(record["summary"])
    angles = list(dict.fromkeys(each["angle"] for each in record["summary"]))
    axes = figure.subplots(len(angles), len(titles), sharex=True, sharey=True)
    for i, angle in enumerate(angles):
        for place, (method, title) in zip(axes[i], titles.items(), strict=True):
            place.plot([0.0, 1.0], [0.0, 1.0], color=INK, alpha=0.4, lw=0.8)
            for row in (row for row in record["rows"] if row["method"] == method):
                here = next(each for each in row["angles"] if each["angle"] == angle)
                for colour, name in zip(COLOURS, ("without_noise", "with_noise"), strict=False):
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
