"""Table 3: several samples on MNIST.

784-100-100-10 with the log-uniform prior, trained as in Table 1 above, with 1 to 30 samples of each
example's outputs in a step. The paper says that more samples improve the error only marginally; our
text has lost the table's numbers.
"""

from collections.abc import Iterator
from typing import Any

import torch

from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, measured, number
from validation.papers.haussmann2018 import dense
from validation.summary import averaged, grouped, interval, named
from validation.training.loop import Objective, flushed


class Repeated:
    """An objective whose expected log-likelihood is the mean of several samples."""

    def __init__(self, objective: Objective, samples: int) -> None:
        self._objective, self._samples = objective, samples
        self.elbo = objective.elbo

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self._objective(x.repeat(self._samples, 1), y.repeat(self._samples))


@flushed()
def train(samples: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    run = dense.run_of("log_uniform", seed, sizes, dataset, parts, int(samples))
    run._objective = Repeated(run._objective, int(samples))  # type: ignore[assignment]
    run.finish(sizes["epochs"])
    return {"of_likelihood": int(samples), "seed": seed, **dense.tested(run, sizes, dataset)}


def summarised(rows: list[Record]) -> Iterator[Record]:
    by_samples = grouped(rows, "of_likelihood")
    first = [row["test_error"] for row in next(iter(by_samples.values()))]
    for samples, several in by_samples.items():
        errors = [row["test_error"] for row in several]
        mean, half = interval([b - a for a, b in zip(first, errors, strict=True)])
        yield {
            "of_likelihood": samples,
            **averaged(several, "test_error", "averaged_error", "log_likelihood"),
            **named("pruned_percent", [row["pruned"]["pruned_percent"] for row in several]),
            "difference": mean,
            "half_width": half,
            "seconds": sum(row["seconds"] for row in several),
        }


def show(record: Record) -> str:
    return columns(
        record["summary"],
        ("samples", "{of_likelihood}"),
        ("test error in %", measured("test_error")),
        (
            "less that of the first row, 95 %",
            lambda row: (
                f"{row['difference']:+.2f} ± {number(row['half_width'], 2)}"
                if row["half_width"]
                else "–"
            ),
        ),
        (f"mean of {record['settings']['samples']} samples", measured("averaged_error")),
        ("expected log-likelihood in training", measured("log_likelihood", 0)),
        ("% with log α > 3", measured("pruned_percent", 1)),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    names = [str(samples) for samples in settings["of_likelihood"]]
    rows = parts.by_seed("networks", names, settings, train, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


SIZES = {name: value for name, value in dense.FULL.items() if name != "priors"}
FULL = {**SIZES, "units": 100, "of_likelihood": [1, 3, 10, 30]}
QUICK = {**dense.QUICK, "of_likelihood": [1, 3]}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=7, seeds=(1, 2, 3), parted=True)
EXPERIMENT.run(__name__)
