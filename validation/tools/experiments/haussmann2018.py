"""The page of the experiments on Haussmann et al. 2018."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from validation.paths import RESULTS
from validation.tools.experiments.section import Section
from validation.tools.experiments.tables import number, with_error, yes
from validation.tools.markdown import Results, table

PAPER = "haussmann2018"

HEAD = """\
# Haussmann, Hamprecht and Kandemir 2018: the experiments

*Sampling-Free Variational Inference of Bayesian Neural Networks by Variance Backpropagation*,
arXiv:1805.07654, in its first version, whose tables have lost their numbers in the text that we
have: its words are decided below. `python -m validation.tools.experiments` writes this page from
the records in `validation/results/haussmann2018/`. How MNIST is named, and how a run that was ended
goes on, is as for Kingma et al. 2015. `--part 1/2` and `--part 2/2` of
the learning curves are two processes, whose results the command without it collects.
"""


def moments(record: Results) -> str:
    """Section 2.3."""
    rows = [
        (
            row["title"],
            "exact" if row["exact"] else "not exact",
            _range(row["mean_off_in_deviations"], "{:+.3f}"),
            f"{row['mean_off_in_errors']:.1f}",
            _range(row["variance_ratio"], "{:.3f}"),
            f"{row['variance_off_in_errors']:.1f}",
        )
        for row in record["rows"]
    ]
    head = [
        "network",
        "assumptions",
        "mean − sampled, in deviations",
        "in standard errors",
        "variance / sampled",
        "in standard errors",
    ]
    alone = [
        (
            f"{row['ratio']:g}",
            *(number(row[k]) for k in ("mean", "exact_mean", "variance", "exact_variance")),
        )
        for row in record["rectifier"]
    ]
    columns = ["E[h]/deviation of h", "mean", "of max(h, 0)", "variance", "of max(h, 0)"]
    return (
        table(head, rows)
        + f"\n\n{record['sizes']['samples']:,} samples of all weights; the least and the greatest "
        "over the outputs. The rectifier alone, for h of variance 1:\n\n"
        + table(columns, alone)
        + _figure("moments")
    )


def _range(found: Results, form: str) -> str:
    return f"{form.format(found['least'])} to {form.format(found['greatest'])}"


def learning_curves(record: Results) -> str:
    """Figure 2 and Table 2."""
    rows = [
        (
            row["title"],
            _with_error(row, "test_error"),
            _with_error(row, "early_error"),
            _of_seeds(record, row, lambda seed: seed["curve"][0]["pruned_percent"], 1),
            _with_error(row, "early_pruned_percent", 1),
            f"{_with_error(row, 'pruned_percent', 1)}: {_with_error(row, 'pruned_error')}",
            f"{number(row['histogram_threshold'], 2)}; {_with_error(row, 'histogram_percent', 1)}: "
            f"{_with_error(row, 'histogram_error')}",
            number(row["variance_ratio"], 3),
            f"{row['seconds'] / 3600:.1f} h",
        )
        for row in record["summary"]
    ]
    head = [
        "method",
        "test error in %",
        "mean of the first 10 epochs",
        "% with log α > 3 after the first",
        "after ten",
        "% pruned at log α > 3: error",
        "by the histogram: threshold; % pruned: error",
        "variance of outputs / sampled",
        "training",
    ]
    said = [
        (
            found["statement"],
            "; ".join(" against ".join(f"{v:.2f}" for v in each) for each in found["ours"]),
            yes(found["holds"]),
        )
        for found in record["statements"]
    ]
    return (
        table(head, rows)
        + _histograms(record)
        + "\n\nWhat the paper says of it, which holds here if it does for each seed:\n\n"
        + table(["statement", "seed by seed", "holds"], said)
        + _figure("learning_curves")
    )


def _histograms(record: Results) -> str:
    """Say between which modes the thresholds lie, and what a higher one does."""
    beyond = [100.0 * seed["histogram"][-1] / sum(seed["histogram"]) for seed in record["rows"]]
    rows = [
        (
            row["title"],
            "; ".join(
                number(seed["by_histogram"]["threshold"]) if seed["by_histogram"] else "none"
                for seed in record["rows"]
                if seed["method"] == row["method"]
            ),
            _of_seeds(record, row, lambda seed: _at_ten(seed)["pruned_percent"]),
            _of_seeds(record, row, lambda seed: _at_ten(seed)["error_percent"]),
        )
        for row in record["summary"]
    ]
    return (
        "\n\nThe histogram's threshold is the valley between two modes of log α below 12, that of "
        "the weights that are kept and one of those that are being pruned. The weights beyond, "
        f"{min(beyond):.1f} to {max(beyond):.1f} % at the end, are no mode of it. A threshold of "
        "10 is between them and the rest; it prunes less than 3 does, at about the same error, so "
        "the last statement below depends on which modes are meant:\n\n"
        + table(
            ["method", "threshold, seed by seed", "% pruned at log α > 10", "error in %"],
            rows,
        )
    )


def _at_ten(seed: Results) -> Results:
    return next(dict(each) for each in seed["by_threshold"] if each["threshold"] == 10.0)


def _of_seeds(
    record: Results, row: Results, value: Callable[[Results], float], decimals: int = 2
) -> str:
    """The mean over the seeds of a method, with its standard error."""
    values = [value(seed) for seed in record["rows"] if seed["method"] == row["method"]]
    if len(values) == 1:
        return f"{values[0]:.{decimals}f}"
    error = statistics.stdev(values) / math.sqrt(len(values))
    return with_error(statistics.fmean(values), error, decimals)


def _with_error(row: Results, name: str, decimals: int = 2) -> str:
    return with_error(row[name], row[f"{name}_standard_error"], decimals)


def _figure(name: str) -> str:
    path = RESULTS / PAPER / f"{name}.png"
    return f"\n\n![{name}](../../results/{PAPER}/{name}.png)" if path.exists() else ""


def _section(name: str, title: str, about: str, show: object) -> Section:
    plot = f" --plot validation/results/{PAPER}/{name}.png"
    return Section(name, title, about, plot, show, PAPER)  # type: ignore[arg-type]


SECTIONS = (
    _section(
        "moments",
        "Section 2.3: the recursion's mean and variance",
        "Small networks as torch initialises them, on one test image, against samples of all "
        "weights. Where the recursion's assumptions hold, its moments are within the samples' "
        "standard errors; elsewhere the difference is its own.",
        moments,
    ),
    _section(
        "learning_curves",
        "Figure 2 and Table 2: learning curves on MNIST",
        "The strided LeNet-5 of the published code, 20-50-500-10, with the log-uniform prior and "
        "its exact divergence, Adam with a rate that falls linearly to zero; means over the seeds "
        "with standard errors. The rate (10⁻³) and the minibatch (100) are not in our text. The "
        "paper has no warm-up: nearly all weights have log α > 3 after the first epoch then. With "
        "a warm-up of the same bound, the third method, half of them have, and its error is lower.",
        learning_curves,
    ),
)
