"""Tables 1 and 2: the variance of gradients.

784-1024-1024-1024-10, minibatches of 1000: the variance of the stochastic gradient in the weights θ
of a layer, as a mean over its weights, with the standard error over pairs of minibatches. The paper
does not say how it averages, but ratios to local reparameterisation do not depend on the average.
`gradient_variance.py` explains the estimate of the variance and its assumptions.

The gradients are those of Eq. 3, with its factor N/M; `gradient_pairs` estimates their variance.
With one sample of the weights for a minibatch, the examples' part (Eqs. 4 and 5) is too small by at
most a share M/N. The paper does not give the minibatch in training (here 1000), the sharing of
alpha (here one for each input unit, at most 1, from the rates 0.2 and 0.5), or whether parameters
are averaged (here not).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns
from validation.output import track
from validation.papers.kingma2015 import printed, stages
from validation.papers.kingma2015.ratios import (
    ESTIMATORS,
    agreement,
    compared_with_the_paper,
    nearest_error,
    pooled,
    tabulated,
)
from validation.training import networks
from validation.training.gradient_pairs import Pairs, by_layer
from validation.training.loop import Run, Settings, evaluate, evaluate_averaged

METHODS = {"independent": "variational_b", "correlated": "variational_a"}
SLOW = ("per_example",)  # takes hours, so comes last


def measure_one(kind: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    settings, name = Settings(sizes["batch_size"], seed), f"{kind}-seed{seed}"
    network = stages.Stages(
        name, METHODS[kind], settings, sizes["hidden"], dataset, parts, describe
    )
    counts: dict[int, Any] = dict.fromkeys(sizes["epochs_between"], sizes["pairs_between"])
    counts |= dict.fromkeys(sizes["epochs"], sizes["pairs"])
    trained = [network.described_after(epochs) for epochs in sorted(counts)]
    cells = [
        (epochs, estimator, counts[epochs][estimator])
        for epochs in sorted(counts)
        for estimator in ESTIMATORS[kind]
        if estimator in counts[epochs]
    ]
    pairs, variances = cache(network.pairs), []
    for epochs, estimator, count in sorted(cells, key=lambda cell: cell[1] in SLOW):
        progress = track(range(count), f"{kind}, {epochs} epochs, {estimator}", count)
        halves = parts.growing(
            f"{name}-epoch{epochs}-{estimator}",
            count,
            partial(_next, progress, pairs, epochs, estimator),
            **network.about,
        )
        variances += by_layer(halves, seed=seed, estimator=estimator, epochs=epochs)
    return {"seed": seed, "trained": trained, "variances": variances}


def _next(
    progress: Any, pairs: Callable[[int], Pairs], epochs: int, estimator: str, index: int
) -> dict[str, float]:
    next(progress, None)
    return pairs(epochs).half_squared_difference(estimator, index)


def describe(run: Run, dataset: Dataset) -> Record:
    last, averaged = evaluate(run.model, dataset.test), evaluate_averaged(run, dataset.test)
    return {
        "epochs": run.epoch,
        **{f"test_{name}": value for name, value in last.items()},
        **{f"test_{name}_averaged": value for name, value in averaged.items()},
        "log_likelihood": run.history[-1]["log_likelihood"],
        "neg_kl": run.history[-1]["neg_kl"],
        "seconds_of_training": run.seconds,
        "alphas": networks.learned_alphas(run.model),
    }


def draw(record: Record) -> Any:
    figure, grid = subplots((8.0, 6.0), 2, 2, sharex=True, squeeze=False)
    for axes_row, made in zip(grid, (record["table_1"], record["table_2"]), strict=True):
        for axes, layer in zip(axes_row, printed.LAYERS, strict=True):
            _draw_one(axes, made, layer)
            axes.set_title(f"{made['noise']} noise, {layer} layer", fontsize="medium")
    for axes in grid[-1]:
        axes.set_xlabel("epochs")
    for axes_row in grid:
        axes_row[0].set_ylabel("variance / local reparameterisation's")
    grid[0][0].legend(fontsize="small")
    return figure


def _draw_one(axes: Any, made: Record, layer: str) -> None:
    rows = [row for row in made["each"] if row["layer"] == layer]
    for index, estimator in enumerate(ESTIMATORS[made["noise"]]):
        epochs = sorted({row["epochs"] for row in rows if row["estimator"] == estimator})
        ratios = [
            pooled(rows, estimator, layer, e)[0] / pooled(rows, "local", layer, e)[0]
            for e in epochs
        ]
        axes.loglog(epochs, ratios, f"C{index}.-", label=estimator.replace("_", " "))
        table = printed.GRADIENT_VARIANCE[made["noise"]]
        theirs = [table[estimator, layer, e] / table["local", layer, e] for e in printed.EPOCHS]
        label = "the paper" if estimator == "local" else None
        axes.loglog(printed.EPOCHS, theirs, f"C{index}x", markersize=9, label=label)


def show(record: Record) -> str:
    text = []
    for name, title in (("table_1", "Table 1: independent"), ("table_2", "Table 2: correlated")):
        made = record[name]
        at_the_error = made["at_the_error_of_the_paper"]
        text += [f"### {title} weight noise", tabulated(made["columns"])]
        text.append(agreement(made["columns"]))
        text += [
            _networks(made["networks"]),
            "Where the test error is nearest to the paper's, whatever the number of epochs:",
            tabulated(at_the_error),
            agreement(at_the_error),
        ]
    return "\n\n".join(text)


def _networks(networks: list[Record]) -> str:
    return columns(
        ({"seed": each["seed"], **trained} for each in networks for trained in each["trained"]),
        ("seed", "{seed}"),
        ("epochs", "{epochs}"),
        ("test error in %", "{test_error_percent:.2f}"),
        ("with averaged parameters", "{test_error_percent_averaged:.2f}"),
        (
            "mean dropout rates, from the bottom",
            lambda row: ", ".join(f"{a['mean_dropout_rate']:.2f}" for a in row["alphas"]),
        ),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    def made(kind: str) -> Record:
        found = [measure_one(kind, seed, settings, dataset, parts) for seed in settings["seeds"]]
        variances = [row for each in found for row in each.pop("variances")]
        trained = [row for each in found for row in each["trained"]]
        as_good = [nearest_error(trained, printed.TEST_ERROR_AFTER[e]) for e in printed.EPOCHS]
        return {
            "noise": kind,
            "columns": compared_with_the_paper(variances, kind, settings["epochs"]),
            "at_the_error_of_the_paper": compared_with_the_paper(variances, kind, as_good),
            "networks": found,
            "each": variances,
        }

    tables = parts.share(ESTIMATORS, made, "tables")
    networks = [each for table in tables for each in table["networks"]]
    training = sum(each["trained"][-1]["seconds_of_training"] for each in networks)
    seconds = round(training + parts.seconds, 1)
    return {"seconds": seconds, "table_1": tables[0], "table_2": tables[1]}


FULL = {
    **stages.FULL,
    "pairs": {"local": 90, "per_batch": 120, "none": 90, "per_example": 15},
    "epochs_between": [1, 2, 3, 5, 20, 50],
    "pairs_between": {"local": 30, "per_batch": 60, "none": 30},
}
QUICK = {
    **stages.QUICK,
    "pairs": {"local": 14, "per_batch": 14, "none": 14, "per_example": 7},
    "epochs_between": [6],
    "pairs_between": {"local": 7, "per_batch": 7, "none": 7},
}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=1, parted=True, draw=draw)
EXPERIMENT.run(__name__)
