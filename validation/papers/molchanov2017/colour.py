"""Error against weights kept, on CIFAR-10.

Sparse variational dropout with the exact divergence at three weights, and with Molchanov's formula,
beside a dense network of which the largest weights are kept: as many as the exact divergence keeps,
chosen at once, and trained on. The paper has no such picture. The network has two convolutions of
stride 2 with 32 and 64 maps, 500 units, and rectifiers. The images are standardised. The weight of
the divergence rises over the first epochs, and the learning rate falls to zero, as in the networks
of Table 1. The networks of a seed have the same initial means and the same order of the examples.
"""

# mypy: allow-untyped-calls
import itertools
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch.nn.utils import prune

from logunif_kl._atomic_io import plain_log_scale
from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, measured, number
from validation.papers.haussmann2018 import networks
from validation.papers.molchanov2017 import comparison
from validation.papers.molchanov2017.models import INITIAL, THRESHOLD
from validation.summary import grouped, interval, named
from validation.training import loop
from validation.training.parts import determining

DENSE = {"at_once": "largest weights of a dense network", "trained_on": "the same, trained on"}
TITLES = {
    "exact": "variational dropout, exact divergence",
    "molchanov": "variational dropout, Molchanov's formula",
    **DENSE,
}


def _run(
    model: torch.nn.Module,
    noise: torch.Generator,
    name: str,
    seed: int,
    sizes: Record,
    dataset: Dataset,
    parts: Parts,
) -> loop.ScheduledRun:
    weight = sizes.get("kl_weight", 1.0)
    run = loop.ScheduledRun(
        model,
        noise,
        dataset.train,
        loop.Settings(sizes["batch_size"], seed, sizes["learning_rate"], None, weight),
        schedule=loop.Schedule(sizes["epochs"], tuple(sizes["warm_up"])),
        about={"network": name},
        file=parts.file(f"{name}-seed{seed}.pt"),
    )
    run.finish(sizes["epochs"])
    return run


def _means(seed: int, dataset: Dataset) -> torch.nn.Module:
    return nn.to_deterministic(networks.network(dataset.shape, seed, loop.seeded(seed, 1)))


def _error(model: torch.nn.Module, dataset: Dataset) -> float:
    return loop.evaluate(model, dataset.test)["error_percent"]


@loop.flushed()
def sparse(
    penalty: str, kl_weight: float, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> Record:
    noise = loop.seeded(seed, 1)
    model = nn.to_variational(
        _means(seed, dataset),
        posterior=nn.Additive(initial=INITIAL),
        penalty=penalty,
        generator=noise,
    )
    given = {**sizes, "kl_weight": kl_weight}
    run = _run(model, noise, f"{penalty}-{kl_weight:g}", seed, given, dataset, parts)
    return {
        "method": penalty,
        "kl_weight": kl_weight,
        "seed": seed,
        "test_error": _error(run.model, dataset),
        "weights": nn.sparsity(run.model, THRESHOLD).weights,
        "seconds": run.seconds,
        **comparison.at_threshold(run.model, THRESHOLD, dataset),
        "by_threshold": [
            comparison.at_threshold(run.model, threshold, dataset)
            for threshold in comparison.THRESHOLDS
        ],
    }


@loop.flushed()
def dense(
    counts: dict[float, int], seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> list[Record]:
    """Train a dense network, and keep so many of its weights, which then are trained on."""
    none = torch.Generator()
    whole = _run(_means(seed, dataset), none, "dense", seed, sizes, dataset, parts)
    error, shorter = _error(whole.model, dataset), {**sizes, "epochs": sizes["epochs_on"]}
    rows = []
    for kl_weight, kept in counts.items():
        about = {"kl_weight": kl_weight, "seed": seed, "test_error": error, "kept": kept}
        model = keep_largest(whole.model, kept)
        at_once = _error(model, dataset)
        rows.append(
            {
                "method": "at_once",
                **about,
                "test_error_pruned": at_once,
                "seconds": whole.seconds,
            }
        )
        on = _run(model, none, f"dense-{kl_weight:g}", seed, shorter, dataset, parts)
        rows.append(
            {
                "method": "trained_on",
                **about,
                "test_error_pruned": _error(on.model, dataset),
                "seconds": whole.seconds + on.seconds,
            }
        )
    return rows


def keep_largest(model: torch.nn.Module, count: int) -> torch.nn.Module:
    """Return a copy that keeps the weights of largest magnitude among all layers, and biases."""
    model = deepcopy(model)
    layers = [m for m in model.modules() if isinstance(m, (torch.nn.Linear, torch.nn.Conv2d))]
    removed = sum(layer.weight.numel() for layer in layers) - count
    weights = [(layer, "weight") for layer in layers]
    prune.global_unstructured(weights, prune.L1Unstructured, amount=removed)
    return model


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    dataset, seeds = dataset.standardised(), settings["seeds"]
    same = determining(settings, "kl_weights")
    cells = [*(("exact", weight) for weight in settings["kl_weights"]), ("molchanov", 1.0)]
    make = {
        f"{penalty}-{weight:g}-seed{seed}": partial(
            sparse, penalty, weight, seed, settings, dataset, parts
        )
        for seed, (penalty, weight) in itertools.product(seeds, cells)
    }
    rows = parts.rows("sparse networks", make, **same)
    exact = [row for row in rows if row["method"] == "exact"]
    counts = {
        seed: {r["kl_weight"]: r["kept"] for r in exact if r["seed"] == seed} for seed in seeds
    }
    of_dense = {
        f"dense-seed{seed}": partial(dense, counts[seed], seed, settings, dataset, parts)
        for seed in seeds
    }
    rows += itertools.chain.from_iterable(parts.rows("dense networks", of_dense, **same))
    return {"summary": list(summarised(rows)), "rows": rows}


def summarised(rows: list[Record]) -> Iterator[Record]:
    """Average over the seeds, and compare the error with that of the exact divergence."""
    weights, by = rows[0]["weights"], grouped(rows, "method", "kl_weight")
    for (method, kl_weight), several in by.items():
        errors, exact = (
            [row["test_error_pruned"] for row in which]
            for which in (several, by["exact", kl_weight])
        )
        yield {
            "method": method,
            "kl_weight": kl_weight,
            **named("test_error", [row["test_error"] for row in several]),
            **named("kept_percent", [100.0 * row["kept"] / weights for row in several]),
            **named("test_error_pruned", errors),
            "more": interval([error - other for error, other in zip(errors, exact, strict=True)]),
            "seconds": sum(row["seconds"] for row in several) / len(several),
        }


def draw(record: Record) -> Any:
    figure, axes = subplots((6.4, 4.4))
    weights = record["rows"][0]["weights"]
    for index, (method, title) in enumerate(TITLES.items()):
        rows = [row for row in record["rows"] if row["method"] == method]
        axes.plot(
            [100.0 * row["kept"] / weights for row in rows],
            [row["test_error_pruned"] for row in rows],
            f"C{index}{'os^v'[index]}",
            markersize=5,
            linestyle="",
            label=title,
        )
        for row in rows:
            by_threshold = row.get("by_threshold", [])
            axes.plot(
                [100.0 * each["kept"] / weights for each in by_threshold],
                [each["test_error_pruned"] for each in by_threshold],
                f"C{index}",
                linewidth=0.7,
            )
    axes.set_xscale("log")
    plain_log_scale(axes)
    axes.set(xlabel="weights kept, in %", ylabel="test error in %")
    axes.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    def more(row: Record) -> str:
        mean, half = row["more"]
        return "–" if row["method"] == "exact" else f"{mean:+.2f} ± {number(half, 2)}"

    shown = columns(
        sorted(record["summary"], key=lambda row: row["kl_weight"]),
        ("weight of the divergence", "{kl_weight:g}"),
        ("CIFAR-10, compressed as JPEG", lambda row: TITLES[row["method"]]),
        ("weights kept in %", measured("kept_percent")),
        ("test error in %", measured("test_error_pruned")),
        ("more than with the exact divergence, 95 %", more),
        ("error of all weights", measured("test_error")),
        ("minutes", lambda row: number(row["seconds"] / 60, 2)),
    )
    return (
        f"{shown}\n\nVariational dropout keeps the weights with log α ≤ {THRESHOLD:g}; the lines "
        "of the picture follow other thresholds. Beside each weight of the divergence stand dense "
        "networks with as many weights."
    )


FULL = {**comparison.SIZES, "epochs": 30, "warm_up": [2, 10], "epochs_on": 5}
FULL |= {"kl_weights": [0.1, 0.3, 1.0]}
QUICK = {**comparison.QUICK, "epochs_on": 2}
EXPERIMENT = Experiment(
    __file__,
    measure,
    show,
    FULL,
    QUICK,
    place=9,
    seeds=(1, 2, 3),
    parted=True,
    images="CIFAR-10",
    draw=draw,
)
EXPERIMENT.run(__name__)
