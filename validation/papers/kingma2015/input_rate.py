"""Figure 1a: why variational dropout B does worse than Gaussian dropout B in narrow networks.

    python -m validation.papers.kingma2015.input_rate [--data FILE] [--quick]

Both draw the same noise. Gaussian dropout B keeps the rate of 0.2 at the inputs; variational
dropout B learns it, and the divergence, which is counted for each weight, brings it to its bound,
0.5. In networks with 100 units in each of three hidden layers, the rate of the inputs is held at
0.2 at most, or the divergence is scaled down by 3, as the paper does for A2. All networks are
trained for the same number of epochs on all training examples.
"""

from __future__ import annotations

import statistics
import sys
from functools import partial
from typing import Any, NamedTuple

from validation.experiment import Experiment
from validation.markdown import table, with_error
from validation.record import Record
from validation.summary import named
from validation.training import networks
from validation.training.data import Dataset
from validation.training.loop import Run, Settings, evaluate_averaged, seeded
from validation.training.parts import Parts


class Case(NamedTuple):
    """A way of training, and what is changed of it."""

    method: str
    input_rate: float | None = None
    kl_weight: float = 1.0


CASES = {
    "Gaussian dropout B": Case("gaussian_b"),
    "variational dropout B": Case("variational_b"),
    "variational dropout B, input rate at most 0.2": Case("variational_b", networks.RATE_INPUT),
    "variational dropout B, divergence scaled down by 3": Case("variational_b", kl_weight=1 / 3),
}


def train(
    name: str, seed: int, sizes: dict[str, Any], dataset: Dataset, parts: Parts
) -> dict[str, Any]:
    """Train one network of a case."""
    case, noise = CASES[name], seeded(seed, 1)
    model: Any = networks.network(
        case.method, dataset.pixels, sizes["hidden"], seed=seed, generator=noise
    )
    if case.input_rate is not None:
        model[0].max_log_alpha = networks.rate_to_log_alpha(case.input_rate)
    run = Run(
        model,
        noise,
        dataset.train,
        Settings(sizes["batch_size"], seed, kl_weight=case.kl_weight),
        about={"case": name, "hidden": sizes["hidden"]},
        file=parts.file(f"{_short(name)}-seed{seed}.pt"),
    )
    for _ in run.train(sizes["epochs"]):
        pass
    return {
        "case": name,
        "seed": seed,
        "test_error": evaluate_averaged(run, dataset.test)["error_percent"],
        "log_likelihood": run.history[-1]["log_likelihood"],
        "mean_dropout_rates": [
            layer["mean_dropout_rate"] for layer in networks.learned_alphas(run.model)
        ],
        "seconds": round(sum(record["seconds"] for record in run.history), 1),
    }


def _short(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def summarised(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average over the seeds, and compare with Gaussian dropout B seed by seed."""
    errors = {(row["case"], row["seed"]): row["test_error"] for row in rows}
    found = []
    for name in CASES:
        several = [row for row in rows if row["case"] == name]
        reference = next(iter(CASES))
        away = [row["test_error"] - errors[reference, row["seed"]] for row in several]
        found.append(
            {
                "case": name,
                "seeds": len(several),
                **named("test_error", [row["test_error"] for row in several]),
                **named("above_gaussian_b", away),
                "mean_dropout_rates": [
                    statistics.fmean(rates)
                    for rates in zip(*(row["mean_dropout_rates"] for row in several), strict=True)
                ],
            }
        )
    return found


def show(record: Record) -> str:
    """Figure 1a, B in narrow networks."""
    rows = [
        (
            each["case"],
            with_error(each["test_error"], each["test_error_standard_error"]),
            with_error(each["above_gaussian_b"], each["above_gaussian_b_standard_error"]),
            ", ".join(f"{rate:.2f}" for rate in each["mean_dropout_rates"]),
        )
        for each in record["summary"]
    ]
    head = ["training", "test error in %", "above Gaussian dropout B"]
    return table([*head, "mean dropout rates, from the bottom"], rows)


def measure(settings: dict[str, Any], dataset: Dataset, parts: Parts) -> dict[str, Any]:
    """Train all networks."""
    make = {
        f"{_short(name)}-seed{seed}": partial(train, name, seed, settings, dataset, parts)
        for seed in settings["seeds"]
        for name in CASES
    }
    rows = parts.rows("training networks", make, **{name: settings[name] for name in FULL})
    return {"summary": summarised(rows), "rows": rows}


FULL = {"hidden": [100] * 3, "epochs": 40, "batch_size": 100}
EXPERIMENT = Experiment(
    __file__,
    __doc__,
    measure,
    show,
    title="Figure 1a: B in narrow networks",
    about="Three hidden layers of 100 units, 40 epochs on all training examples, averaged "
    "parameters. Gaussian dropout B keeps the rate of 0.2 at the inputs, which variational dropout "
    "B learns. The mean over the seeds with its standard error, and the same of the difference "
    "from Gaussian dropout B of the same seed.",
    place=7,
    seeds=(1, 2, 3),
    full=FULL,
    quick={"hidden": [24] * 3, "epochs": 5},
)


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
