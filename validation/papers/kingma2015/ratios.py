"""Ratios of the variances of gradients by two estimators, next to those of the paper."""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from validation.markdown import number, table
from validation.output import Record
from validation.papers.kingma2015 import printed

ESTIMATORS = {
    "independent": ("local", "per_batch", "none", "per_example"),
    # Local reparameterisation draws a scale for each example, so two rows would be the same.
    "correlated": ("local", "per_batch", "none"),
}

TITLES = {
    "local": "local reparameterisation",
    "per_example": "weight sample per data point",
    "per_batch": "weight sample per minibatch",
    "none": "no dropout noise",
}


def compared_with_the_paper(
    variances: list[Record], noise_kind: str, epochs: Sequence[int]
) -> list[Record]:
    """Compare each column's ratios to local reparameterisation with those of the paper.

    The two ``epochs`` stand for the paper's 10 and 100.
    """
    columns, of = [], printed.GRADIENT_VARIANCE[noise_kind]
    for layer in printed.LAYERS:
        for ours, theirs in zip(epochs, printed.EPOCHS, strict=True):
            there = {row["estimator"] for row in variances if row["epochs"] == ours}
            names = [name for name in ESTIMATORS[noise_kind] if name in there]
            mine = {name: pooled(variances, name, layer, ours) for name in names}
            paper = {name: of[name, layer, theirs] for name in mine}
            columns.append(_column(layer, ours, mine, paper))
    return columns


def pooled(variances: list[Record], estimator: str, layer: str, epochs: int) -> tuple[float, float]:
    """Return the mean over the seeds, and its standard error for these networks."""
    key = (estimator, layer, epochs)
    rows = [v for v in variances if (v["estimator"], v["layer"], v["epochs"]) == key]
    errors = math.hypot(*(row["standard_error"] for row in rows))
    return statistics.fmean(row["variance"] for row in rows), errors / len(rows)


def _column(
    layer: str, epochs: int, mine: dict[str, tuple[float, float]], paper: dict[str, float]
) -> Record:
    local, local_error = mine["local"]
    entries = {}
    for name, (value, error) in mine.items():
        ratio, paper_ratio = value / local, paper[name] / paper["local"]
        # Treat the two as independent. The ratio of the local estimator to itself is exact.
        relative = math.hypot(error / value, local_error / local) if name != "local" else 0.0
        entries[name] = {
            "variance": value,
            "standard_error": error,
            "ratio_to_local": ratio,
            "ratio_standard_error": ratio * relative,
            "paper": paper[name],
            "paper_ratio_to_local": paper_ratio,
            "ratio_over_paper_ratio": ratio / paper_ratio,
        }
    by_paper = sorted(mine, key=lambda name: paper[name])
    values = [mine[name] for name in by_paper]
    gaps = [(b[0] - a[0]) / math.hypot(a[1], b[1]) for a, b in pairwise(values)]
    return {
        "layer": layer,
        "epochs": epochs,
        "estimators": entries,
        "order_as_in_the_paper": all(gap > 0.0 for gap in gaps),
        "least_gap_in_standard_errors": min(gaps),
        "ratios_within_2": all(
            0.5 <= entry["ratio_over_paper_ratio"] <= 2.0 for entry in entries.values()
        ),
    }


def nearest_error(trained: list[Record], percent: float) -> int:
    """Choose the number of epochs whose test error is nearest to the paper's."""

    def away(epochs: int) -> float:
        errors = [each["test_error_percent"] for each in trained if each["epochs"] == epochs]
        return abs(math.log(statistics.fmean(errors) / percent))

    return min(sorted({each["epochs"] for each in trained}), key=away)


def tabulated(columns: list[Record]) -> str:
    rows = [
        (
            column["layer"],
            str(column["epochs"]),
            TITLES[estimator],
            f"{number(entry['variance'])} ± {number(entry['standard_error'], 2)}",
            number(entry["paper"]),
            number(entry["ratio_to_local"]),
            number(entry["paper_ratio_to_local"]),
            number(entry["ratio_over_paper_ratio"], 2),
        )
        for column in columns
        for estimator in TITLES
        if (entry := column["estimators"].get(estimator)) is not None
    ]
    ratios = ["to local", "paper, to local", "ours / paper"]
    return table(["layer", "epochs", "estimator", "variance", "paper, variance", *ratios], rows)


def near(columns: list[Record]) -> str:
    """Count the ratios that are within a factor of 2 of the paper's."""
    entries = [e for c in columns for name, e in c["estimators"].items() if name != "local"]
    found = sum(0.5 <= entry["ratio_over_paper_ratio"] <= 2.0 for entry in entries)
    return f"{found} of {len(entries)}"


def agreement(columns: list[Record]) -> str:
    ordered = sum(column["order_as_in_the_paper"] for column in columns)
    least = min(column["least_gap_in_standard_errors"] for column in columns)
    return (
        f"The estimators have the paper's order in {ordered} of {len(columns)} columns; the least "
        f"difference between neighbours in this order is {least:.1f} standard errors. "
        f"{near(columns)} ratios to local reparameterisation are within a factor of 2 of the "
        "paper's."
    )
