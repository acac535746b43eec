"""Figure 1b: test error of convolutional networks on CIFAR-10.

Two convolutions of stride 2 with 32 and 64 maps, and two linear layers of 128 units (k = 1 in the
paper), with softplus after each; early stopping on the last sixth of the training set, and temporal
averaging, as in Figure 1a. The paper does not give the size of the kernels, the minibatch, or the
nonlinearity of the linear layers: we take 5 × 5, 100, and softplus. The images are standardised.

Each channel of an image, map and unit has its own alpha. All methods of a seed have the same
initial weights and the same order of the examples.
"""

from functools import partial
from itertools import pairwise
from typing import Any

import torch

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, measured, number
from validation.papers.kingma2015 import test_error
from validation.training import networks
from validation.training.data import CLASSES
from validation.training.loop import Run, Settings, flushed, seeded
from validation.verdict import BY_THE_RULE

statements = test_error.statements

METHODS = [method for method in networks.METHODS if method != "gaussian_b"]
KERNEL, STRIDE, PADDING = 5, 2, 2


def network(
    method: str, shape: tuple[int, int, int], maps: int, seed: int, generator: torch.Generator
) -> torch.nn.Sequential:
    """Build the network for images of a shape; the first layer has ``maps`` maps."""
    channels, side, _ = shape
    left = -(-side // STRIDE**2)
    flat = 2 * maps * left * left
    layers: list[torch.nn.Module] = [torch.nn.Unflatten(1, shape)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for sizes in pairwise([channels, maps, 2 * maps]):
            given = (*sizes, KERNEL, STRIDE, PADDING)
            rate = networks.RATE_INPUT if sizes[0] == channels else networks.RATE_HIDDEN
            layers += networks.with_dropout(
                method,
                partial(torch.nn.Conv2d, *given),
                partial(nn.VariationalConv2d, *given),
                rate,
                generator,
            )
            layers.append(torch.nn.Softplus())
        layers.append(torch.nn.Flatten())
        for sizes in pairwise([flat, 4 * maps, 4 * maps, CLASSES]):
            layers += networks.with_dropout(
                method,
                partial(torch.nn.Linear, *sizes),
                partial(nn.VariationalLinear, *sizes),
                networks.RATE_HIDDEN,
                generator,
            )
            layers.append(torch.nn.Softplus())
    return torch.nn.Sequential(*layers[:-1])


@flushed()
def train(method: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    training, validation = dataset.held_out(len(dataset.train.y) // 6)
    noise = seeded(seed, 1)
    run = Run(
        network(method, dataset.shape, sizes["maps"], seed, noise),
        noise,
        training,
        Settings(sizes["batch_size"], seed, kl_weight=networks.METHODS[method].kl_weight),
        about={"method": method, "maps": sizes["maps"]},
        file=parts.file(f"{method}-seed{seed}.pt"),
    )
    cell = {"method": method, "width": sizes["maps"], "seed": seed}
    return {**cell, **test_error.stopped_early(run, validation, dataset.test, sizes)}


def draw(record: Record) -> Any:
    figure, axes = subplots((6.4, 4.4))
    for index, method in enumerate(record["settings"]["methods"]):
        curves = [row["test_error_by_epoch"] for row in record["rows"] if row["method"] == method]
        for curve in curves:
            axes.plot(
                range(1, len(curve) + 1),
                curve,
                f"C{index}",
                linestyle="-" if "variational" in method else "--",
                linewidth=1.0,
                label=networks.METHODS[method].title if curve is curves[0] else None,
            )
    axes.set(xlabel="epochs", ylabel="test error in %")
    axes.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    rows, settings = record["rows"], record["settings"]
    shown = columns(
        record["summary"],
        ("CIFAR-10, compressed as JPEG", "{title}"),
        ("test error in %", measured("test_error")),
        ("epochs", lambda row: number(row["epochs"], 2)),
        ("mean dropout rate", lambda row: number(row["mean_dropout_rate"], 2)),
        ("minutes", lambda row: number(row["seconds"] / 60 / row["seeds"], 2)),
    )
    cut = sum(row["epochs_run"] - row["epoch"] < settings["patience"] for row in rows)
    return (
        f"{shown}\n\nWhat the paper says of Figure 1. {BY_THE_RULE}\n\n"
        f"{test_error.said(rows)}\n\n{cut} of {len(rows)} runs reached the limit of "
        f"{settings['epochs']} epochs before early stopping ended them, so they may have improved "
        "further. The images are not the published ones, so the methods can be compared with each "
        "other, and not with the paper's numbers."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = parts.by_seed(
        "networks",
        settings["methods"],
        settings,
        train,
        dataset.standardised(),
        parts,
        without=["methods"],
    )
    return {"summary": list(test_error.summarised(rows)), "rows": rows}


FULL = {"methods": METHODS, "maps": 32, "epochs": 30, "patience": 10, "batch_size": 100}
QUICK = {"maps": 8, "epochs": 6, "patience": 6, "batch_size": 12}
EXPERIMENT = Experiment(
    __file__,
    measure,
    show,
    FULL,
    QUICK,
    place=14,
    seeds=(1, 2, 3),
    choose=("methods",),
    parted=True,
    images="CIFAR-10",
    draw=draw,
)
EXPERIMENT.run(__name__)
