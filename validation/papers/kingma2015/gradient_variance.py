"""Tables 1 and 2: the variance of stochastic gradients by four estimators.

    python -m validation.papers.kingma2015.gradient_variance [--data FILE] [--quick]

A network 784-1024-1024-1024-10 is trained with variational dropout, with independent noise (Table
1) and with correlated noise (Table 2). After 10 and after 100 epochs its parameters are held, and
gradients of the estimate of the expected log-likelihood (Eq. 3, with its factor N/M) in the weights
theta of the top and of the bottom layer are computed from minibatches of M = 1000.

The variance of a parameter's gradient is over the minibatch and the noise. It is estimated as half
the squared difference of the gradients of two disjoint minibatches with noise of their own; a pass
through the training set gives N/(2M) such pairs, and a new order of the examples as many more. The
two being drawn without replacement, the part of the examples is on average exactly S^2/M, the
variance of the mean of M examples drawn *with* replacement, as in Eqs. 4 and 5, and the noise's
part is that of one minibatch. With one sample of the weights for a minibatch, where S^2 depends on
the noise, the first part is too small by at most a share M/N of it. What is reported is the mean
over the parameters of a layer, and its standard error from the spread of the pairs. The paper says
"average empirical variance" and no more, so that only ratios of two estimators in one column are
free of the scale.

The paper leaves open, and this takes: minibatches of 1000 in training too, one alpha for each input
unit, which starts from the dropout rates 0.2 and 0.5 and stays at most 1, and the parameters as the
last step left them. As its networks have a test error of 3 % after 10 epochs, and these may learn
faster, the variances are also measured after other numbers of epochs, and compared where the test
error is nearest to the paper's.

``--noise independent`` and ``--noise correlated`` are two processes, whose results the command
without it collects.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from logunif_kl.cli._output import track
from validation.papers.kingma2015 import printed
from validation.papers.kingma2015.ratios import ESTIMATORS, beside_the_paper, nearest_error, pooled
from validation.training import checkpoint, networks
from validation.training.data import Dataset, Split
from validation.training.gradient_pairs import Pairs, summary
from validation.training.loop import (
    Examples,
    Run,
    Settings,
    TrainingError,
    evaluate,
    evaluate_averaged,
    seeded,
)
from validation.training.options import Experiment
from validation.training.parts import Parts

EXPERIMENT = Experiment("kingma2015", "gradient_variance", __doc__, seeds=[1])
EXPERIMENT.parser.add_argument("--plot", metavar="FILE", help="draw the figure")
EXPERIMENT.parser.add_argument(
    "--noise", choices=("independent", "correlated"), help="do one table's part and write none"
)
METHODS = {"independent": "variational_b", "correlated": "variational_a"}
SLOW = ("per_example",)  # takes hours, and so comes after all training


def full_and_quick(quick: bool) -> dict[str, Any]:
    """Return the sizes of the experiment."""
    if quick:
        return {
            "hidden": [32] * 3,
            "batch_size": 100,
            "epochs": [3, 10],
            "pairs": {"local": 14, "per_batch": 14, "none": 14, "per_example": 7},
            "epochs_between": [6],
            "pairs_between": {"local": 7, "per_batch": 7, "none": 7},
        }
    return {
        "hidden": [1024] * 3,
        "batch_size": 1000,
        "epochs": [10, 100],
        "pairs": {"local": 90, "per_batch": 120, "none": 90, "per_example": 15},
        "epochs_between": [1, 2, 3, 5, 20, 50],
        "pairs_between": {"local": 30, "per_batch": 60, "none": 30},
    }


def measure_one(
    noise_kind: str,
    seed: int,
    estimators: Sequence[str],
    sizes: dict[str, Any],
    dataset: Dataset,
    parts: Parts,
) -> dict[str, Any]:
    """Train one network, and measure some estimators after each number of epochs."""
    network = _Network(noise_kind, seed, sizes, dataset, parts)
    found: dict[str, Any] = {"trained": [], "variances": []}
    for epochs in sorted([*sizes["epochs"], *sizes["epochs_between"]]):
        found["trained"].append(network.said_after(epochs))
        counts = sizes["pairs"] if epochs in sizes["epochs"] else sizes["pairs_between"]
        for estimator in estimators:
            if estimator not in counts:
                continue
            count = counts[estimator]
            progress = track(range(count), f"{noise_kind}, {epochs} epochs, {estimator}", count)
            halves = parts.growing(
                f"{network.name}-epoch{epochs}-{estimator}",
                count,
                partial(_next, progress, network, epochs, estimator),
                **network.about,
            )
            for layer in printed.LAYERS:
                entry = {"seed": seed, "estimator": estimator, "layer": layer, "epochs": epochs}
                found["variances"].append({**entry, **summary([half[layer] for half in halves])})
    return found


class _Network:
    """A network after each number of epochs; it is trained when something of it is missing."""

    def __init__(
        self, noise_kind: str, seed: int, sizes: dict[str, Any], dataset: Dataset, parts: Parts
    ) -> None:
        self.name = f"{noise_kind}-seed{seed}"
        self._settings = Settings(sizes["batch_size"], seed)
        kind = {"noise": noise_kind, "hidden": sizes["hidden"]}
        self.about = {**self._settings.about(), "data": dataset.sha256, **kind}
        self._dataset, self._parts = dataset, parts
        self._make = partial(
            networks.network, METHODS[noise_kind], dataset.pixels, sizes["hidden"], seed=seed
        )
        noise = seeded(seed, 1)
        self._run = Run(
            self._make(generator=noise),
            noise,
            dataset.train,
            self._settings,
            about=kind,
            file=parts.file(f"{self.name}.pt"),
        )
        self._pairs: tuple[int, Pairs] | None = None

    def said_after(self, epochs: int) -> dict[str, Any]:
        """Return what the network is like after some epochs, from file if there."""
        name = f"{self.name}-epoch{epochs}-trained"
        kept = self._parts.kept(name, **self.about)
        if kept is not None:
            said: dict[str, Any] = kept[0]
            return said
        self._train(epochs)
        said = _said(self._run, self._dataset.test)
        self._parts.keep(name, said, **self.about)
        return said

    def pairs_after(self, epochs: int) -> Pairs:
        """Return the pairs of minibatches of the parameters after some epochs."""
        if self._pairs is None or self._pairs[0] != epochs:
            noise, settings = torch.Generator(), self._settings
            model = self._make(generator=noise)
            model.load_state_dict(self._parameters(epochs))
            examples = Examples(self._dataset.train)
            self._pairs = epochs, Pairs(model, noise, examples, settings.batch_size, settings.seed)
        return self._pairs[1]

    def _parameters(self, epochs: int) -> dict[str, Any]:
        path = self._parameters_file(epochs)
        kept = None if path is None else checkpoint.load(path, self.about)
        if kept is not None:
            return kept
        return self._train(epochs)

    def _train(self, epochs: int) -> dict[str, Any]:
        run, path = self._run, self._parameters_file(epochs)
        if run.epoch > epochs:
            raise TrainingError(f"{path} is missing, and the run is past it: remove its folder")
        for _ in track(run.train(epochs), f"training to {epochs} epochs", epochs - run.epoch):
            pass
        held = copy.deepcopy(run.model.state_dict())
        if path is not None:
            checkpoint.save(path, self.about, held)
        return held

    def _parameters_file(self, epochs: int) -> Path | None:
        return self._parts.file(f"{self.name}-epoch{epochs}.pt")


def _said(run: Run, test: Split) -> dict[str, Any]:
    last, averaged = evaluate(run.model, test), evaluate_averaged(run, test)
    return {
        "epochs": run.epoch,
        **{f"test_{name}": value for name, value in last.items()},
        **{f"test_{name}_averaged": value for name, value in averaged.items()},
        "log_likelihood": run.history[-1]["log_likelihood"],
        "neg_kl": run.history[-1]["neg_kl"],
        "seconds_of_training": round(sum(record["seconds"] for record in run.history), 1),
        "alphas": networks.learned_alphas(run.model),
    }


def _next(
    progress: Any, network: _Network, epochs: int, estimator: str, number: int
) -> dict[str, float]:
    next(progress, None)
    return network.pairs_after(epochs).half_squared_difference(estimator, number)


def draw(path: str, tables: dict[str, Any]) -> None:
    """Draw each estimator's variance over that of local reparameterisation, by epochs."""
    from matplotlib.figure import Figure

    from logunif_kl.cli.provenance import stamp

    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    grid = figure.subplots(2, 2, sharex=True, squeeze=False)
    for axes_row, made in zip(grid, tables.values(), strict=True):
        for axes, layer in zip(axes_row, printed.LAYERS, strict=True):
            _draw_one(axes, made, layer)
            axes.set_title(f"{made['noise']} noise, {layer} layer", fontsize="medium")
    for axes in grid[-1]:
        axes.set_xlabel("epochs")
    for axes_row in grid:
        axes_row[0].set_ylabel("variance / local reparameterisation's")
    grid[0][0].legend(fontsize="small")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata=stamp(path, "kingma2015_gradient_variance"))


def _draw_one(axes: Any, made: dict[str, Any], layer: str) -> None:
    rows = [row for row in made["each"] if row["layer"] == layer]
    for number, estimator in enumerate(ESTIMATORS[made["noise"]]):
        epochs = sorted({row["epochs"] for row in rows if row["estimator"] == estimator})
        ratios = [
            pooled(rows, estimator, layer, e)[0] / pooled(rows, "local", layer, e)[0]
            for e in epochs
        ]
        axes.loglog(epochs, ratios, f"C{number}.-", label=estimator.replace("_", " "))
        table = printed.GRADIENT_VARIANCE[made["noise"]]
        theirs = [table[estimator, layer, e] / table["local", layer, e] for e in printed.EPOCHS]
        label = "the paper" if estimator == "local" else None
        axes.loglog(printed.EPOCHS, theirs, f"C{number}x", markersize=9, label=label)


def measure(options: argparse.Namespace, dataset: Dataset, parts: Parts) -> dict[str, Any] | None:
    """Make both tables, or the part of one, of which there is no record."""
    sizes = full_and_quick(options.quick)
    kinds = [options.noise] if options.noise else list(ESTIMATORS)
    tables: dict[str, dict[str, Any]] = {}
    found_of: dict[str, list[dict[str, Any]]] = {}
    for kind in kinds:
        fast = [name for name in ESTIMATORS[kind] if name not in SLOW]
        found_of[kind] = [
            measure_one(kind, seed, fast, sizes, dataset, parts) for seed in options.seeds
        ]
    for number, (kind, found) in enumerate(found_of.items(), start=1):
        slow = [name for name in ESTIMATORS[kind] if name in SLOW]
        slowly = [measure_one(kind, seed, slow, sizes, dataset, parts) for seed in options.seeds]
        variances = [row for each in (*found, *slowly) for row in each["variances"]]
        trained = [row for each in found for row in each["trained"]]
        as_good = [nearest_error(trained, printed.TEST_ERROR_AFTER[e]) for e in printed.EPOCHS]
        tables[f"table_{number}"] = {
            "noise": kind,
            "columns": beside_the_paper(variances, kind, sizes["epochs"]),
            "at_the_error_of_the_paper": beside_the_paper(variances, kind, as_good),
            "networks": [
                {"seed": seed, "trained": each["trained"]}
                for seed, each in zip(options.seeds, found, strict=True)
            ],
            "each": variances,
        }
    if options.noise:
        return None
    networks_trained = [each for table in tables.values() for each in table["networks"]]
    training = sum(each["trained"][-1]["seconds_of_training"] for each in networks_trained)
    if options.plot:
        draw(options.plot, tables)
    return {"seconds": round(training + parts.seconds, 1), "sizes": sizes, **tables}


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main(measure))
