"""Figure 1a: B in narrow networks.

Three hidden layers of 100 units, the only width that was run; 40 epochs on all training examples,
averaged parameters. Gaussian dropout B keeps the rate of 0.2 at the inputs, which variational
dropout B learns. The mean over the seeds with its standard error, and the same of the difference
from Gaussian dropout B of the same seed.

Variational dropout B learns the rate of the inputs, and the divergence, which counts once for each
weight, raises it to its bound, 0.5.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from validation.experiment import Dataset, Experiment, Record
from validation.markdown import columns, listed, measured
from validation.summary import averaged, grouped, means, named
from validation.training import networks
from validation.training.loop import Settings, evaluate_averaged
from validation.training.parts import Parts, slug

# The method, whether the rate at the inputs is limited, and the weight of the divergence.
CASES = {
    "Gaussian dropout B": ("gaussian_b", False, 1.0),
    "variational dropout B": ("variational_b", False, 1.0),
    "variational dropout B, input rate at most 0.2": ("variational_b", True, 1.0),
    "variational dropout B, divergence scaled down by 3": ("variational_b", False, 1 / 3),
}


def train(name: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    method, limited, kl_weight = CASES[name]
    run = networks.run_of(
        method,
        dataset.train,
        sizes["hidden"],
        Settings(sizes["batch_size"], seed, kl_weight=kl_weight),
        about={"case": name, "hidden": sizes["hidden"]},
        file=parts.file(f"{slug(name)}-seed{seed}.pt"),
    )
    if limited:
        bottom: Any = next(run.model.children())
        bound = networks.rate_to_log_alpha(networks.RATE_INPUT)
        bottom.posterior = replace(bottom.posterior, max_log_alpha=bound)
    run.finish(sizes["epochs"])
    return {
        "case": name,
        "seed": seed,
        "test_error": evaluate_averaged(run, dataset.test)["error_percent"],
        "log_likelihood": run.history[-1]["log_likelihood"],
        "mean_dropout_rates": [
            layer["mean_dropout_rate"] for layer in networks.learned_alphas(run.model)
        ],
        "seconds": run.seconds,
    }


def summarised(rows: list[Record]) -> Iterator[Record]:
    first = {row["seed"]: row["test_error"] for row in rows if row["case"] == next(iter(CASES))}
    for name, several in grouped(rows, "case").items():
        above = [row["test_error"] - first[row["seed"]] for row in several]
        yield {
            "case": name,
            "seeds": len(several),
            **averaged(several, "test_error"),
            **named("above_gaussian_b", above),
            "mean_dropout_rates": means(several, "mean_dropout_rates"),
        }


def show(record: Record) -> str:
    return columns(
        record["summary"],
        ("training", "{case}"),
        ("test error in %", measured("test_error")),
        ("above Gaussian dropout B", measured("above_gaussian_b")),
        ("mean dropout rates, from the bottom", listed("mean_dropout_rates")),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = parts.by_seed("networks", list(CASES), settings, train, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


FULL = {"hidden": [100] * 3, "epochs": 40, "batch_size": 100}
QUICK = {"hidden": [24] * 3, "epochs": 5}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=7, seeds=(1, 2, 3))
EXPERIMENT.run(__name__)
