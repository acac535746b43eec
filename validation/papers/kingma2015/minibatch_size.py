"""Eqs. 4 and 5: the variance of a gradient by the size of the minibatch.

784-200-200-200-10, trained with minibatches of 1000: the variance of the gradient of Eq. 3 in the
weights of a layer, as a mean over its weights, for minibatches of M examples. By Eqs. 4 and 5 the
variances of the examples' gradients contribute V/M, and their covariances (1 - 1/M) C. With noise
of its own for each example C is 0, so M times the variance is the same for each M.

`gradient_pairs` estimates the variances; two disjoint minibatches of a finite number of examples
give V/M without a correction. With one sample of the noise for a minibatch, V is the same as with
one for each example. So the difference of the two variances, divided by 1 - 1/M, is C at each M.
"""

import math
from collections.abc import Iterator
from typing import Any

from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, number
from validation.papers.kingma2015 import printed, stages
from validation.papers.kingma2015.ratios import TITLES
from validation.summary import interval
from validation.training.gradient_pairs import Pairs
from validation.training.loop import Examples, Settings
from validation.verdict import BY_THE_RULE, agreement, of_networks

METHODS = {"independent": "variational_b", "correlated": "variational_a"}
# The estimators whose noise is drawn for each example, and the one that draws it once. For
# correlated noise, local reparameterisation is one scale for each example.
EACH = {"independent": ("local", "per_example"), "correlated": ("local",)}
SHARED = "per_batch"
NEAR = 0.05  # of the power -1 of M: up to 26 % from the smallest to the largest M of the full form


def measure_one(
    noise: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> list[Record]:
    training = Settings(sizes["batch_size"], seed)
    name, hidden = f"{noise}-seed{seed}", sizes["hidden"]
    network = stages.Stages(name, METHODS[noise], training, hidden, dataset, parts)
    examples = Examples(dataset.train)

    def at(epochs: int) -> Record:
        rows = []
        for place, size in enumerate(sizes["minibatches"]):
            pairs = Pairs(*network.after(epochs), examples, size, seed)
            counts = {each: sizes["pairs"][each][place] for each in (*EACH[noise], SHARED)}
            label = f"{name}, {epochs} epochs, minibatches of {size}"
            rows += pairs.rows(counts, label, minibatch=size)
        return {"noise": noise, "seed": seed, "epochs": epochs, "variances": rows}

    return network.measured(sizes, at)


def variance(row: Record, estimator: str, layer: str, size: int) -> float:
    return next(
        float(each["variance"])
        for each in row["variances"]
        if (each["estimator"], each["layer"], each["minibatch"]) == (estimator, layer, size)
    )


def covariance(row: Record, layer: str, size: int) -> float:
    """Return C of Eq. 5, from the variances of one network with minibatches of one size."""
    shared, each = (variance(row, name, layer, size) for name in (SHARED, EACH[row["noise"]][-1]))
    return (shared - each) / (1.0 - 1.0 / size)


def _groups(rows: list[Record]) -> Iterator[tuple[Record, list[Record]]]:
    """Yield the networks of all seeds for each noise, number of epochs and layer."""
    for noise, epochs in dict.fromkeys((row["noise"], row["epochs"]) for row in rows):
        several = [row for row in rows if (row["noise"], row["epochs"]) == (noise, epochs)]
        for layer in printed.LAYERS:
            yield {"noise": noise, "epochs": epochs, "layer": layer}, several


def summarised(rows: list[Record], sizes: list[int]) -> Iterator[Record]:
    """Average M times the variance, in units of that with the smallest M, over the seeds."""
    for about, several in _groups(rows):
        layer = about["layer"]
        for estimator in (*EACH[about["noise"]], SHARED):

            def product(row: Record, size: int, name: str = estimator, of: str = layer) -> float:
                return size * variance(row, name, of, size)

            yield {
                **about,
                "estimator": estimator,
                "products": [
                    interval([product(row, size) / product(row, sizes[0]) for row in several])
                    for size in sizes
                ],
            }


def covariances(rows: list[Record], sizes: list[int]) -> Iterator[Record]:
    """Average C of Eq. 5 and its share of the variance with one sample, over the seeds."""
    for about, several in _groups(rows):
        layer = about["layer"]
        for size in sizes:
            found = [covariance(row, layer, size) for row in several]
            parts = [(1.0 - 1.0 / size) * each for each in found]
            whole = [variance(row, SHARED, layer, size) for row in several]
            yield {
                **about,
                "minibatch": size,
                "covariance": interval(found),
                "share": interval([a / b for a, b in zip(parts, whole, strict=True)]),
            }


def powers(rows: list[Record], sizes: list[int], estimator: str) -> list[tuple[float, float]]:
    """Return the power of M that the variance follows, for each group of networks."""
    first, last = sizes[0], sizes[-1]

    def power(row: Record, layer: str) -> float:
        ends = [variance(row, estimator, layer, size) for size in (first, last)]
        return math.log(ends[1] / ends[0]) / math.log(last / first)

    return [
        interval([power(row, about["layer"]) for row in several])
        for about, several in _groups(rows)
    ]


def statements(rows: list[Record]) -> Iterator[Record]:
    """Measure what section 2.2 and the abstract say of the variance."""
    sizes = sorted({each["minibatch"] for row in rows for each in row["variances"]})
    for noise, estimators in EACH.items():
        there = [row for row in rows if row["noise"] == noise]
        for estimator in estimators:
            yield _measured(
                f"{TITLES[estimator]}, {noise} noise: the variance is inversely proportional to M "
                "(power of M)",
                powers(there, sizes, estimator),
                -1.0 - NEAR,
                -1.0 + NEAR,
            )
        yield _measured(
            f"{TITLES[SHARED]}, {noise} noise: the variance decreases more slowly than 1/M "
            "(power of M)",
            powers(there, sizes, SHARED),
            -1.0,
            math.inf,
        )
        yield _measured(
            f"{noise} noise: the covariances dominate the variance for M = {sizes[-1]} (share)",
            [c["share"] for c in covariances(there, sizes) if c["minibatch"] == sizes[-1]],
            0.5,
            math.inf,
        )


def _measured(
    statement: str, intervals: list[tuple[float, float]], low: float, high: float
) -> Record:
    agrees = agreement(intervals, low=low, high=high)
    return {"statement": statement, "intervals": intervals, "agrees": agrees}


def draw(record: Record) -> Any:
    figure, grid = subplots((8.0, 6.0), 2, 2, sharex=True)
    last, sizes = max(record["settings"]["epochs"]), record["settings"]["minibatches"]
    for axes_row, noise in zip(grid, METHODS, strict=True):
        rows = [r for r in record["rows"] if (r["noise"], r["epochs"]) == (noise, last)]
        for axes, layer in zip(axes_row, printed.LAYERS, strict=True):
            for index, name in enumerate((SHARED, *EACH[noise])):
                for place, row in enumerate(rows):
                    values = [variance(row, name, layer, size) for size in sizes]
                    label = TITLES[name] if not place else None
                    style = f"C{index}{('o-', 's--', '^:')[index]}"
                    axes.loglog(sizes, values, style, markersize=3, linewidth=0.9, label=label)
            axes.set_title(f"{noise} noise, {layer} layer", fontsize="medium")
        axes_row[0].set_ylabel("variance of a gradient")
    for axes in grid[-1]:
        axes.set_xlabel("examples in a minibatch")
    grid[0][0].legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    rows, sizes = record["rows"], record["settings"]["minibatches"]

    def of_size(place: int) -> Any:
        return lambda row: _written(row["products"][place], 3)

    products = columns(
        summarised(rows, sizes),
        ("noise", "{noise}"),
        ("epochs", "{epochs}"),
        ("layer", "{layer}"),
        ("estimator", lambda row: TITLES[row["estimator"]]),
        *((f"M = {size}", of_size(place)) for place, size in enumerate(sizes) if place),
    )
    shared = columns(
        covariances(rows, sizes),
        ("noise", "{noise}"),
        ("epochs", "{epochs}"),
        ("layer", "{layer}"),
        ("M", "{minibatch}"),
        ("C of Eq. 5", lambda row: _written(row["covariance"], 3)),
        ("its share of the variance", lambda row: _written(row["share"], 2)),
    )
    said = columns(
        statements(rows),
        ("statement", "{statement}"),
        ("ours, 95 %", lambda row: "; ".join(_written(each, 3) for each in row["intervals"])),
        ("our networks", lambda row: of_networks(row["agrees"])[0]),
        ("verdict", lambda row: of_networks(row["agrees"])[1]),
    )
    return (
        f"M times the variance, in units of that for M = {sizes[0]}, as a mean over the seeds with "
        f"its 95 % interval:\n\n{products}\n\nThe covariance that one sample of the noise adds, "
        f"which by Eq. 5 is the same for each M:\n\n{shared}\n\nWhat the paper says (abstract and "
        f"section 2.2). {BY_THE_RULE} Within {NEAR:g} of the power -1 counts as inversely "
        f"proportional.\n\n{said}"
    )


def _written(found: tuple[float, float], digits: int) -> str:
    middle, half = found
    return number(middle, digits) + ("" if math.isnan(half) else f" ± {number(half, 2)}")


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = [
        row
        for seed in settings["seeds"]
        for noise in METHODS
        for row in measure_one(noise, seed, settings, dataset, parts)
    ]
    return {"rows": rows}


FULL = {
    "hidden": [200] * 3,
    "batch_size": 1000,
    "epochs": [1, 10],
    "minibatches": [10, 100, 1000],
    "pairs": {
        "local": [1000, 300, 100],
        "per_batch": [1000, 300, 200],
        "per_example": [300, 60, 15],
    },
}
QUICK = {
    "hidden": [16] * 3,
    "batch_size": 100,
    "epochs": [3],
    "minibatches": [4, 40],
    "pairs": {"local": [20, 10], "per_batch": [20, 10], "per_example": [20, 5]},
}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=12, seeds=(1, 2, 3), draw=draw)
EXPERIMENT.run(__name__)
