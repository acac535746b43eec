"""The tables of the experiments after Gal 2016, each made from a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from validation.paths import RESULTS
from validation.tools.experiments.section import Section
from validation.tools.experiments.tables import number
from validation.tools.markdown import Results, table

PAPER = "gal2016"

HEAD = """\
# Gal 2016: dropout as a Bayesian network

After *Uncertainty in Deep Learning* (thesis, 2016), and Gal and Ghahramani, *Dropout as a Bayesian
Approximation*, arXiv:1506.02142. `logunif_kl.torch.nn.predict` draws the noise of a trained network
again, and the mutual information of class and weights says how much its samples contradict each
other. The experiments are ours, after their figures: no printed numbers stand beside these.
`python -m validation.tools.experiments` writes this page from the records in
`validation/results/gal2016/`.

The networks are 784-256-256-10, trained for 10 epochs on MNIST; the experiments on digits share
them. MNIST comes by `--data`, as in the experiments of Kingma et al. Nothing is downloaded, so the
other images are made from what is at hand; `--other FILE` adds the test images of another file,
such as Fashion-MNIST. `--quick` takes scikit-learn's digits and some seconds instead.
"""


def _figure(name: str) -> str:
    path = RESULTS / PAPER / f"{name}.png"
    return f"\n\n![{name}](../../results/{PAPER}/{name}.png)" if path.exists() else ""


def _shown(found: Any, decimals: int, factor: float = 1.0) -> str:
    """Write a mean over the seeds with its standard error."""
    if found["mean"] is None:
        return "–"
    text = f"{factor * found['mean']:.{decimals}f}"
    error = found["standard_error"]
    return text if error is None else f"{text} ± {factor * error:.{decimals}f}"


def regression(record: Results) -> str:
    """Tabulate what each network says where there are data, between them and beyond."""
    rows = [
        (
            row["title"],
            row["range"],
            number(row["standard_deviation"]),
            f"{100 * row['coverage_95']:.0f}",
            number(row["root_mean_squared_error"]),
            f"{row['log_density']:.2f}",
        )
        for row in record["summary"]
    ]
    head = ["network", "points", "standard deviation", "in the 95 % interval, %"]
    return table([*head, "error (root mean square)", "log density"], rows) + _figure("regression")


def rotated(record: Results) -> str:
    """Tabulate errors and scores by angle."""
    rows = []
    for row in record["summary"]:
        draws = row["error"]["mean"] is not None
        rows.append(
            (
                row["title"],
                f"{row['angle']}°",
                _shown(row["error" if draws else "error_without_noise"], 1),
                _shown(row["mutual_information"], 3),
                _shown(row["entropy"], 3),
                _shown(row["entropy_without_noise"], 3),
                *(_shown(row["auroc"][name], 3) for name in _SCORES),
            )
        )
    head = ["network", "angle", "error in %", "mutual information", "entropy", "without noise"]
    areas = ["AUROC by information", "by entropy", "by entropy without noise"]
    return table([*head, *areas], rows) + _figure("rotated")


_SCORES = ("mutual_information", "entropy", "entropy_without_noise")


def out_of_distribution(record: Results) -> str:
    """Tabulate the areas under the ROC curve."""
    titles = {name: other["title"] for name, other in record["others"].items()}
    rows = [
        (
            titles[row["other"]],
            row["title"],
            *(_shown(row["auroc"][name], 3) for name in _SCORES),
        )
        for row in record["summary"]
    ]
    head = ["images", "network", "mutual information", "entropy", "entropy without noise"]
    return table(head, rows) + _figure("out_of_distribution")


def calibration(record: Results) -> str:
    """Tabulate how probabilities agree with frequencies."""
    rows = [
        (
            f"{row['angle']}°",
            row["title"],
            "samples" if row["samples"] else "no noise",
            _shown(row["expected_calibration_error"], 2, 100.0),
            _shown(row["negative_log_likelihood"], 3),
            _shown(row["brier_score"], 4),
            _shown(row["error_percent"], 2),
            _shown(row["auroc_of_errors"], 3),
        )
        for row in record["summary"]
    ]
    head = ["turned by", "network", "prediction", "ECE in %", "negative log-likelihood"]
    more = ["Brier score", "error in %", "AUROC of errors by entropy"]
    return table([*head, *more], rows) + _figure("calibration")


def _section(
    name: str, title: str, about: str, show: Callable[[Results], str], *, data: bool = True
) -> Section:
    figure = f" --plot validation/results/{PAPER}/{name}.png"
    return Section(name, title, about, figure, show, PAPER, data=data)


SECTIONS = (
    _section(
        "regression",
        "A regression in one dimension",
        "Points of sin(2x) + x/2 on two intervals, with noise of standard deviation 0.1; networks "
        "1-100-100-1. The standard deviation is that of the samples; the interval and the log "
        "density have the noise of the data, too. Means over the seeds, on points that were not "
        "trained on: in the intervals (data), between them, and beyond.",
        regression,
        data=False,
    ),
    _section(
        "rotated",
        "Digits that are turned",
        "The first 1,000 test digits, turned counterclockwise. AUROC: how often a score is larger "
        "for a turned digit than for an upright one. Means over the seeds, with standard errors.",
        rotated,
    ),
    _section(
        "out_of_distribution",
        "Images that are no test digits",
        "How often a score is larger for one of 1,000 other images than for one of the first 1,000 "
        "test digits (AUROC). Letters are those that no digit looks like, drawn as MNIST has its "
        "digits. scikit-learn's digits are digits, of other writers and another scanner. "
        "The figure has the first seed.",
        out_of_distribution,
    ),
    _section(
        "calibration",
        "Calibration with and without noise",
        "All test digits, upright and turned. The expected calibration error has 15 bins.",
        calibration,
    ),
)
