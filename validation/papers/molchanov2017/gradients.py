"""Section 4.2: the variance of the gradient of the means.

One posterior in two parametrisations, θ with log α and θ with log σ²: a network of LeNet-300-100
after five epochs without divergence, with one α for all weights, and one minibatch of 200 images.

The posterior is N(theta, alpha theta^2). The loss has the same distribution in both
parametrisations, but its gradient in theta does not, because sigma depends on theta in the first.
"""

import math
import statistics
from collections.abc import Iterator
from typing import Any

import torch

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, measured, number, rounded
from validation.output import track
from validation.papers.molchanov2017 import comparison, models
from validation.summary import grouped, interval, mean_and_error, means
from validation.training.loop import flushed, seeded
from validation.training.networks import variational
from validation.verdict import BY_THE_RULE, agreement, of_networks

POSTERIORS = ("multiplicative", "additive")
ESTIMATORS = ("local", "per_batch")
STATEMENT = "the gradient of theta varies less in the additive parametrisation"


def network(
    means: torch.nn.Module, posterior: str, log_alpha: float, estimator: str, noise: torch.Generator
) -> torch.nn.Module:
    multiplicative = posterior == "multiplicative"
    model = nn.to_variational(
        means,
        posterior=nn.Multiplicative(initial=log_alpha) if multiplicative else nn.Additive(),
        estimator=estimator,
        generator=noise,
    )
    if not multiplicative:
        models.fill(model, "log_sigma2", log_alpha, 2.0)
    return model.train()


class Moments:
    """The elementwise mean and variance of gradients, by Welford's recurrence."""

    def __init__(self) -> None:
        self.count = 0
        self._mean: Any = 0.0
        self._sum: Any = 0.0

    def add(self, gradient: torch.Tensor) -> None:
        self.count += 1
        away = gradient.double() - self._mean
        self._mean = self._mean + away / self.count
        self._sum = self._sum + away * (gradient.double() - self._mean)

    def variance(self) -> float:
        return float(self._sum.sum()) / (self.count - 1)

    def squared_mean(self) -> float:
        """The sum of the squared mean, without the contribution of the noise."""
        return float(self._mean.square().sum()) - self.variance() / self.count


def gradients(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, samples: int) -> Record:
    layers = variational(model)
    moments, losses = [Moments() for _ in layers], []
    for _ in range(samples):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        found = torch.autograd.grad(loss, [layer.weight for layer in layers])
        for each, gradient in zip(moments, found, strict=True):
            each.add(gradient)
        losses.append(float(loss.detach()))
    return {
        "losses": losses,
        "variances": [each.variance() for each in moments],
        "squared_means": [each.squared_mean() for each in moments],
    }


@flushed()
def of_seed(seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> list[Record]:
    run = comparison.run_of("lenet_300_100", "exact", seed, sizes, dataset, parts)
    run.finish(sizes["epochs"])
    means = nn.to_deterministic(run.model, math.inf)
    batch = slice(sizes["batch_size"])
    x, y = torch.from_numpy(dataset.train.x[batch]), torch.from_numpy(dataset.train.y[batch])
    cells = [(e, log_alpha) for e in ESTIMATORS for log_alpha in sizes["log_alphas"]]

    def cell(estimator: str, log_alpha: float) -> Record:
        both = {
            posterior: gradients(
                network(means, posterior, log_alpha, estimator, seeded(seed, 2)),
                *(x, y, sizes["samples"]),
            )
            for posterior in POSTERIORS
        }
        ours, theirs = (both[posterior]["variances"] for posterior in POSTERIORS)
        return {
            "seed": seed,
            "estimator": estimator,
            "log_alpha": log_alpha,
            "ratio": sum(ours) / sum(theirs),
            "ratio_by_layer": [a / b for a, b in zip(ours, theirs, strict=True)],
            **{
                posterior: {
                    "loss": statistics.fmean(each["losses"]),
                    "variance": sum(each["variances"]),
                    "squared_mean": sum(each["squared_means"]),
                }
                for posterior, each in both.items()
            },
        }

    return [cell(*each) for each in track(cells, f"gradients of seed {seed}", len(cells))]


def summarised(rows: list[Record]) -> Iterator[Record]:
    for (estimator, log_alpha), several in grouped(rows, "estimator", "log_alpha").items():
        ratio = mean_and_error([row["ratio"] for row in several])
        noise = {
            posterior: statistics.fmean(
                row[posterior]["variance"] / row[posterior]["squared_mean"] for row in several
            )
            for posterior in POSTERIORS
        }
        yield {
            "estimator": estimator,
            "log_alpha": log_alpha,
            "loss": statistics.fmean(row["additive"]["loss"] for row in several),
            "ratio": ratio["mean"],
            "standard_error": ratio["standard_error"],
            "ratio_by_layer": means(several, "ratio_by_layer"),
            "noise_to_signal": noise,
        }


def _agrees(record: Record, row: Record) -> bool | None:
    """Say whether the ratios of a row are above 1, by their interval over the seeds."""
    cell = row["estimator"], row["log_alpha"]
    ratios = [r["ratio"] for r in record["rows"] if (r["estimator"], r["log_alpha"]) == cell]
    return agreement([interval(ratios)], 1.0, math.inf)


def show(record: Record) -> str:
    shown = columns(
        record["summary"],
        ("estimator", "{estimator}"),
        ("log α", "{log_alpha:g}"),
        ("loss", rounded("loss")),
        ("variance by log α / by log σ²", measured("ratio")),
        ("by layer", lambda row: " – ".join(map(number, row["ratio_by_layer"]))),
        ("noise / signal by log α", lambda row: number(row["noise_to_signal"]["multiplicative"])),
        ("by log σ²", lambda row: number(row["noise_to_signal"]["additive"])),
        ("varies less", lambda row: of_networks(_agrees(record, row))[1]),
    )
    local = [row for row in record["summary"] if row["estimator"] == "local"]
    low = max(row["ratio"] for row in local if row["log_alpha"] <= 0.0)
    return (
        "By local reparameterisation, which the paper trains with, the variance by log α is at "
        f"most {low:.2f} times that by log σ² up to log α = 0, and {local[-1]['ratio']:.2f} times "
        f"at log α = {local[-1]['log_alpha']:g}.\n\n"
        f"{shown}\n\n{record['settings']['samples']} gradients each, means over the seeds with "
        "standard errors. The noise is the variance, summed over the weights, and the signal the "
        f"squared norm of the mean. {BY_THE_RULE}"
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    found = parts.by_seed("networks", [()], settings, of_seed, dataset, parts)
    rows = [row for each in found for row in each]
    return {"statement": STATEMENT, "summary": list(summarised(rows)), "rows": rows}


LOG_ALPHAS = [-8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
# The weight of the divergence rises only after the last epoch.
FULL = {**comparison.SIZES, "epochs": 5, "warm_up": [5, 6], "samples": 400}
FULL |= {"log_alphas": LOG_ALPHAS}
QUICK = {**comparison.QUICK, "epochs": 2, "warm_up": [2, 3], "samples": 40}
QUICK |= {"log_alphas": [-4.0, 0.0, 3.0]}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=4, seeds=(1, 2, 3))
EXPERIMENT.run(__name__)
