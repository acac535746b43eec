"""Abstract: learning curves by estimator.

784-200-200-200-10 with independent weight noise (variational B), trained by local
reparameterisation and by one sample of the weights for each minibatch, with the same initial
weights and order of the examples. After each epoch the expected log-likelihood of a training image
is measured by one draw of the noise, in the same way for both. A weight sample for each data point,
whose variance falls with the minibatch too, takes a hundred times as long and is left out.
"""

# mypy: allow-untyped-calls
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch

from logunif_kl._atomic_io import plain_log_scale
from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, measured, number
from validation.papers.kingma2015.ratios import TITLES
from validation.summary import averaged, grouped, interval
from validation.training import networks
from validation.training.loop import Examples, Settings, evaluate, seeded
from validation.verdict import BY_THE_RULE, agreement, of_networks

ESTIMATORS = ("local", "per_batch")
MUCH = 0.5  # of the epochs: at most this share counts as much faster


@torch.no_grad()
def with_noise(
    model: torch.nn.Module, examples: Examples, noise: torch.Generator, rows: int = 1000
) -> float:
    """Return the mean log-likelihood of an example, with one draw of the noise for each.

    The state of the network's own noise is left as it was.
    """
    layers, kept = networks.variational(model), noise.get_state()
    own = [layer.estimator for layer in layers]
    noise.set_state(seeded(0, 5).get_state())
    for layer in layers:
        layer.estimator = "local"
    model.train()
    each = zip(examples.x.split(rows), examples.y.split(rows), strict=True)
    total = sum(float(nn.categorical_log_likelihood(model(x), y).double().sum()) for x, y in each)
    for layer, estimator in zip(layers, own, strict=True):
        layer.estimator = estimator
    noise.set_state(kept)
    return total / len(examples)


def train(
    estimator: str, size: int, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> Record:
    run = networks.run_of(
        "variational_b",
        dataset.train,
        sizes["hidden"],
        Settings(size, seed, averaging=None),
        about={"estimator": estimator, "hidden": sizes["hidden"]},
        file=parts.file(f"{estimator}-{size}-seed{seed}.pt"),
        estimator=estimator,
    )
    examples = Examples(dataset.train)

    def look() -> Record:
        return {
            "expected": with_noise(run.model, examples, run.noise),
            "test_error": evaluate(run.model, dataset.test)["error_percent"],
        }

    run.finish(sizes["epochs"], look)
    return {
        "estimator": estimator,
        "minibatch": size,
        "seed": seed,
        "expected": run.history[-1]["expected"],
        "test_error": run.history[-1]["test_error"],
        "expected_by_epoch": [record["expected"] for record in run.history],
        "test_error_by_epoch": [record["test_error"] for record in run.history],
        "seconds": run.seconds,
    }


def epochs_to(values: list[float], wanted: float) -> float:
    """Return after how many epochs a curve first reaches a value, by linear interpolation.

    It is at most 1 if the value is reached in the first epoch, and infinite if never.
    """
    if values[0] >= wanted:
        return 1.0
    for epoch, (low, high) in enumerate(pairwise(values), start=1):
        if low < wanted <= high:
            return epoch + (wanted - low) / (high - low)
    return math.inf


def shares(rows: list[Record]) -> Iterator[Record]:
    """Compare, seed by seed, the epochs to the value that per_batch has at the end."""
    for size, several in grouped(rows, "minibatch").items():
        of = {(row["estimator"], row["seed"]): row for row in several}
        found = []
        for seed in sorted({row["seed"] for row in several}):
            local, shared = (of[name, seed]["expected_by_epoch"] for name in ESTIMATORS)
            found.append(epochs_to(local, shared[-1]) / epochs_to(shared, shared[-1]))
        yield {"minibatch": size, "shares": found, "interval": interval(found)}


def statements(rows: list[Record]) -> Iterator[Record]:
    """Measure the abstract's words: the variance leads to “much faster convergence”."""
    found = list(shares(rows))
    for said, high in (("faster", 1.0), (f"much faster: {MUCH:.0%} of the epochs", MUCH)):
        intervals = [each["interval"] for each in found]
        agrees = agreement(intervals, high=high)
        yield {"statement": said, "intervals": intervals, "agrees": agrees}


def draw(record: Record) -> Any:
    sizes = record["settings"]["minibatches"]
    figure, grid = subplots((8.0, 3.2 * len(sizes)), len(sizes), 2, sharex=True, squeeze=False)
    for (of_bound, of_error), size in zip(grid, sizes, strict=True):
        for row in record["rows"]:
            if row["minibatch"] == size:
                colour = f"C{ESTIMATORS.index(row['estimator'])}"
                label = (
                    TITLES[row["estimator"]] if row["seed"] == record["rows"][0]["seed"] else None
                )
                epochs = range(1, len(row["expected_by_epoch"]) + 1)
                losses = [-value for value in row["expected_by_epoch"]]
                of_bound.plot(epochs, losses, colour, linewidth=0.9, label=label)
                of_error.plot(epochs, row["test_error_by_epoch"], colour, linewidth=0.9)
        for axes in (of_bound, of_error):
            plain_log_scale(axes)
            axes.set_title(f"minibatches of {size}", fontsize="medium")
        of_bound.set_ylabel("−expected log-likelihood\nof a training image")
        of_error.set_ylabel("test error in %")
    for axes in grid[-1]:
        axes.set_xlabel("epochs")
    grid[0][0].legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    rows = [
        {"minibatch": size, "estimator": name, **averaged(several, "expected", "test_error")}
        for (size, name), several in grouped(record["rows"], "minibatch", "estimator").items()
    ]
    shown = columns(
        rows,
        ("minibatch", "{minibatch}"),
        ("estimator", lambda row: TITLES[row["estimator"]]),
        ("expected log-likelihood of a training image", measured("expected", 4)),
        ("test error in %", measured("test_error")),
    )
    reached = columns(
        shares(record["rows"]),
        ("minibatch", "{minibatch}"),
        ("share, seed by seed", lambda r: ", ".join(f"{v:.2f}" for v in r["shares"])),
        (
            "mean, 95 %",
            lambda row: f"{row['interval'][0]:.2f} ± {number(row['interval'][1], 2)}",
        ),
    )
    said = columns(
        statements(record["rows"]),
        ("convergence by local reparameterisation is", "{statement}"),
        ("our networks", lambda row: of_networks(row["agrees"])[0]),
        ("verdict", lambda row: of_networks(row["agrees"])[1]),
    )
    epochs = record["settings"]["epochs"]
    return (
        f"After {epochs} epochs, means over the seeds with standard errors:\n\n{shown}\n\nThe "
        "epochs after which local reparameterisation first has the expected log-likelihood that a "
        "sample for each minibatch has at the end, as a share of the latter's "
        f"epochs:\n\n{reached}\n\n"
        f"What the abstract says. {BY_THE_RULE} It gives no factor; at most half of the epochs "
        f"counts here as much faster.\n\n{said}"
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    cells = [(name, size) for size in settings["minibatches"] for name in ESTIMATORS]
    return {"rows": parts.by_seed("networks", cells, settings, train, dataset, parts)}


FULL = {"hidden": [200] * 3, "epochs": 20, "minibatches": [100, 1000]}
QUICK = {"hidden": [32] * 3, "epochs": 6, "minibatches": [24, 120]}
EXPERIMENT = Experiment(
    __file__, measure, show, FULL, QUICK, place=13, seeds=(1, 2, 3), parted=True, draw=draw
)
EXPERIMENT.run(__name__)
