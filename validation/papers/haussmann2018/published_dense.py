"""Table 1 with the prior and the initial values of the published code.

784-n-n-10 with 400, 800 and 1200 units, by Adam for 10 epochs without a warm-up; the prior N(0,
0.1), which is precision 10, and the initial values of the published code. VBP is its Taylor
expansion with C = 100. The baseline is Bayes by Backprop: one sample of the weights for each
minibatch. Its scale mixture, whose divergence is estimated by one sample for each weight, was
trained with 400 units only. The rate falls linearly from 10⁻³ to 0.

The divergence from the normal prior is exact in both. Blundell et al. (2015) estimate it by the
sample, which adds variance to the baseline.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, measured, number
from validation.papers.haussmann2018 import dense, networks
from validation.papers.haussmann2018.networks import Annealed, Method
from validation.summary import averaged, grouped, interval
from validation.training.loop import Settings, flushed, seeded
from validation.training.networks import variational
from validation.verdict import BY_THE_RULE, agreement, of_networks

PRECISION = 10.0


class Case(NamedTuple):
    title: str
    make: Callable[[torch.Generator], Any]
    method: Method = Method("Bayes by Backprop")


def normal(_: torch.Generator) -> Any:
    return nn.NormalPrior(1.0 / PRECISION)


CASES = {
    "normal": Case("N(0, 0.1), Bayes by Backprop", normal),
    "normal_vbp": Case("N(0, 0.1), VBP", normal, Method("VBP", "taylor", networks.STEEPNESS)),
    "mixture": Case("scale mixture, Bayes by Backprop", dense.mixture),
}


def network(name: str, sizes: list[int], seed: int, noise: torch.Generator) -> torch.nn.Module:
    """Build a network with the initial values of the published code and the case's estimator."""
    model = dense.network(sizes, seed, noise, CASES[name].make(seeded(seed, 2)))
    networks.as_the_authors(model, seeded(seed, 3))
    if CASES[name].method.form is None:
        for layer in variational(model):
            layer.estimator = "per_batch"
    return model


@flushed()
def train(
    name: str, units: int, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> Record:
    noise = seeded(seed, 1)
    run = Annealed(
        CASES[name].method,
        sizes["epochs"],
        network(name, dense.widths(dataset.pixels, units), seed, noise),
        noise,
        dataset.train,
        Settings(sizes["batch_size"], seed, sizes["learning_rate"], None, sizes["kl_weight"]),
        about={"prior": name, "units": units},
        file=parts.file(f"{name}-{units}-seed{seed}.pt"),
    )
    run.finish(sizes["epochs"])
    found = dense.tested(run, sizes, dataset)
    return {"prior": name, "units": units, "seed": seed, **found}


def statements(rows: list[Record]) -> Iterator[Record]:
    """Measure the statements about Table 1 at each number of units that has their networks."""
    for statement, names, below in dense.OF_TABLE_1:
        intervals, units = [], []
        for width, several in grouped(rows, "units").items():
            of = {(row["prior"], row["seed"]): row["test_error"] for row in several}
            seeds = sorted({row["seed"] for row in several})
            if all((name, seed) in of for name in names for seed in seeds):
                errors = ([of[name, seed] for name in names] for seed in seeds)
                intervals.append(interval([below(*each) for each in errors]))
                units.append(width)
        if intervals:
            agrees = agreement(intervals)
            yield {"statement": statement, "units": units, "intervals": intervals, "agrees": agrees}


def summarised(rows: list[Record]) -> Iterator[Record]:
    kept = ("test_error", "test_log_likelihood", "averaged_error", "averaged_log_likelihood")
    for (units, prior), several in grouped(rows, "units", "prior").items():
        yield {"units": units, "title": CASES[prior].title, **averaged(several, *kept)}


def show(record: Record) -> str:
    averaged_by = f"{record['settings']['samples']} samples"
    shown = columns(
        summarised(record["rows"]),
        ("units", "{units}"),
        ("prior and training", "{title}"),
        ("test error in %", measured("test_error")),
        (f"error, {averaged_by}", measured("averaged_error")),
        ("log-likelihood of a test image", measured("test_log_likelihood", 3)),
        (f"log-likelihood, {averaged_by}", measured("averaged_log_likelihood", 3)),
    )
    said = columns(
        statements(record["rows"]),
        ("statement", "{statement}"),
        ("units", lambda row: ", ".join(map(str, row["units"]))),
        (
            "difference, 95 %",
            lambda row: "; ".join(f"{m:+.2f}" + _half(h) for m, h in row["intervals"]),
        ),
        ("our networks", lambda row: of_networks(row["agrees"])[0]),
        ("verdict", lambda row: of_networks(row["agrees"])[1]),
    )
    return (
        f"{shown}\n\nWhat the paper says of Table 1. {BY_THE_RULE} The learning rate and the "
        f"parameters of the mixture are ours.\n\n{said}"
    )


def _half(width: float) -> str:
    return "" if math.isnan(width) else f" ± {number(width, 2)}"


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    cells = [(name, units) for name, several in settings["units"].items() for units in several]
    return {"rows": parts.by_seed("networks", cells, settings, train, dataset, parts)}


UNITS = {"normal": [400, 800, 1200], "normal_vbp": [400, 800, 1200], "mixture": [400]}
FULL = {**networks.FULL, "units": UNITS, "samples": 20}
QUICK = {
    **networks.QUICK,
    "units": {"normal": [16, 24], "normal_vbp": [16, 24], "mixture": [16]},
    "samples": 5,
}
EXPERIMENT = Experiment(
    __file__, measure, show, FULL, QUICK, place=10, seeds=(1, 2, 3), parted=True
)
EXPERIMENT.run(__name__)
