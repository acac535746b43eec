"""Appendix F: the variance over minibatches without replacement.

784-1024-1024-1024-10 with independent weight noise (variational B), minibatches of 1000: the
variance of the estimated log-likelihood, by the exact formula, and the bound that Eq. 48 prints.

For N examples and minibatches of M without replacement, with noise of its own for each example, the
exact variance of N/M times the sum of L_i over the minibatch is

    N^2 (1 - M/N)/M S^2 + N/M sum_i Var[L_i],

where S^2 is the sample variance of E[L_i] over all examples. The bound of Eq. 48 is N/M (L_D^2/N +
sum_i Var[L_i]) with L_D = sum_i E[L_i].
"""

# mypy: allow-untyped-calls
import torch

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, rounded
from validation.output import track
from validation.papers.kingma2015.stages import Stages
from validation.training.loop import Examples, Settings

ROWS = 2000


@torch.no_grad()
def moments(
    model: torch.nn.Module, examples: Examples, draws: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Estimate the mean and the variance of log p(y_i | x_i, w) for each example."""
    model.train()
    means, variances = [], []
    for x, y in zip(examples.x.split(ROWS), examples.y.split(ROWS), strict=True):
        each = torch.stack(
            [nn.categorical_log_likelihood(model(x), y).double() for _ in range(draws)]
        )
        means.append(each.mean(0))
        variances.append(each.var(0))
    return torch.cat(means), torch.cat(variances)


def compared(mean: torch.Tensor, variance: torch.Tensor, draws: int, size: int) -> Record:
    n = len(mean)
    spread = mean.var() - variance.mean() / draws
    exact = n**2 * (1.0 - size / n) / size * spread + n / size * variance.sum()
    bound = n / size * (mean.sum() ** 2 / n + variance.sum())
    return {
        "mean_log_likelihood": float(mean.mean()),
        "variance": float(exact),
        "printed_bound": float(bound),
        "ratio": float(exact / bound),
    }


def measure_one(seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> list[Record]:
    settings = Settings(sizes["batch_size"], seed)
    stages = Stages(f"seed{seed}", "variational_b", settings, sizes["hidden"], dataset, parts)

    def at(epochs: int) -> Record:
        model, noise = stages.after(epochs)
        noise.manual_seed(1000 * seed + epochs)
        found = moments(model, Examples(dataset.train), sizes["draws"])
        of = compared(*found, sizes["draws"], sizes["batch_size"])
        return {"seed": seed, "epochs": epochs, **of}

    return stages.measured(sizes, at)


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    seeds = settings["seeds"]
    rows = [
        row
        for seed in track(seeds, "networks", len(seeds))
        for row in measure_one(seed, settings, dataset, parts)
    ]
    return {"holds": all(row["ratio"] <= 1.0 for row in rows), "rows": rows}


def show(record: Record) -> str:
    least, most = (f(row["ratio"] for row in record["rows"]) for f in (min, max))
    return (
        columns(
            record["rows"],
            ("network", "{seed}"),
            ("epochs", "{epochs}"),
            ("test error in %", lambda row: f"{row['network']['test_error_percent']:.2f}"),
            ("mean of log p", rounded("mean_log_likelihood")),
            ("variance", rounded("variance")),
            ("bound of Eq. 48", rounded("printed_bound")),
            ("variance / bound", rounded("ratio")),
        )
        + f"\n\nThe variance is {least:.1f} to {most:.1f} times what Eq. 48 gives as an upper "
        "bound. The paper replaces (E L_i)² by (L_D/N)², but the mean of squares is at least the "
        "square of the mean."
    )


FULL = {"hidden": [1024] * 3, "batch_size": 1000, "epochs": [1, 2, 8], "draws": 6}
QUICK = {"hidden": [32] * 3, "batch_size": 100, "epochs": [1, 2], "draws": 8}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=10, seeds=(1, 2, 3))
EXPERIMENT.run(__name__)
