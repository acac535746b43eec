"""Section 2.3.3: maximum pooling and noisy inputs on MNIST.

A convolution of 8 channels with maximum pooling and two linear layers, 64-10, trained on inputs
with noise of variance 0.01: VBP propagates the variance, and the sampled network draws the noise.
Adam for 10 epochs; the weight of the divergence rises over the first 5.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, measured
from validation.papers.haussmann2018 import networks
from validation.papers.haussmann2018.networks import METHODS, Annealed
from validation.summary import averaged, grouped
from validation.training.data import CLASSES
from validation.training.loop import Settings, evaluate, flushed, seeded


class Noisy(torch.nn.Module):
    """Add noise to the input: pass its variance to a `VBP`, and draw it for another model."""

    def __init__(
        self, model: torch.nn.Module, deviation: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.model, self.deviation, self.generator = model, deviation, generator

    def forward(self, x: torch.Tensor) -> Any:
        if isinstance(self.model, nn.VBP):
            return self.model(nn.Moments(x, torch.full_like(x, self.deviation**2)))
        noise = torch.randn(x.shape, generator=self.generator, dtype=x.dtype)
        return self.model(x + self.deviation * noise)


def network(pixels: int, seed: int, generator: torch.Generator) -> torch.nn.Sequential:
    """Build a convolution with maximum pooling, and two linear layers."""
    side = math.isqrt(pixels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, side, side)),
            nn.VariationalConv2d(1, 8, 3, padding=1, generator=generator),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            nn.VariationalLinear(8 * (side // 2) ** 2, 64, generator=generator),
            torch.nn.ReLU(),
            nn.VariationalLinear(64, CLASSES, generator=generator),
        )


@flushed()
def train(name: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    noise = seeded(seed, 1)
    model = network(dataset.pixels, seed, noise)
    run = Annealed(
        METHODS[name]._replace(warm_up=sizes["warm_up"]),
        sizes["epochs"],
        model,
        noise,
        dataset.train,
        Settings(sizes["batch_size"], seed, sizes["learning_rate"], None, sizes["kl_weight"]),
        about={"input_deviation": sizes["input_deviation"]},
        file=parts.file(f"{name}-seed{seed}.pt"),
    )
    elbo = run._objective.elbo
    elbo.model = Noisy(elbo.model, sizes["input_deviation"], noise)
    run.finish(sizes["epochs"])
    found = evaluate(model, dataset.test)
    return {
        "method": name,
        "seed": seed,
        "test_error": found["error_percent"],
        "test_log_likelihood": found["log_likelihood"],
        "log_likelihood": run.history[-1]["log_likelihood"] / len(dataset.train.y),
        "neg_kl": run.history[-1]["neg_kl"],
        "seconds": run.seconds,
    }


def summarised(rows: list[Record]) -> Iterator[Record]:
    for method, several in grouped(rows, "method").items():
        yield {
            "method": method,
            **averaged(several, "test_error", "test_log_likelihood", "log_likelihood"),
            "seconds": sum(row["seconds"] for row in several),
        }


def show(record: Record) -> str:
    return columns(
        record["summary"],
        ("method", networks.title),
        ("test error in %", measured("test_error")),
        ("log-likelihood of a test image", measured("test_log_likelihood", 3)),
        ("expected log-likelihood in training", measured("log_likelihood", 3)),
        ("training", lambda row: f"{row['seconds'] / 60:.1f} min"),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = parts.by_seed("networks", settings["methods"], settings, train, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


TRAINED = ["vbp", "vbp_taylor", "sampled"]
FULL = {**networks.FULL, "methods": TRAINED, "warm_up": 5, "input_deviation": 0.1}
QUICK = {**networks.QUICK, "warm_up": 3}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=4, seeds=(1, 2, 3), parted=True)
EXPERIMENT.run(__name__)
