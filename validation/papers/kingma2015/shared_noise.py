"""Table 1: what one sample of the weights for a minibatch adds.

One sample of the weights for each minibatch instead of one for each data point adds the covariance
of the gradients of two data points, Eq. 5. Here this covariance is measured directly.
`shared_noise.py` has the formula.

A minibatch of M of the N examples has the gradient (N/M) sum_i g_i. One sample of the weights adds
N^2 (1 - 1/M) E Cov(g_i, g_j), i != j, to its variance. For two disjoint sets A and B of examples
and two samples of the weights z and z',

    (1 - 1/M) <g_A(z) - g_A(z'), g_B(z) - g_B(z')> / 2

has this mean, where g_A is N times the mean gradient of the examples in A. The network is that of
`gradient_variance`.
"""

# mypy: allow-untyped-calls
import math
from functools import partial

import torch

from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import number, table, with_error
from validation.output import track
from validation.papers.kingma2015 import printed, stages
from validation.training.gradient_pairs import Pairs, summary
from validation.training.loop import Examples, Settings, seeded


class SharedNoise(Pairs):
    """Products of two differences of gradients; product k is the same in every call."""

    def product(self, index: int, minibatches: int) -> dict[str, float]:
        """Estimate the covariances of Eq. 5 by product ``index``, as a mean over each layer.

        Each set has so many minibatches of examples.
        """
        self._choose("per_batch")
        order = torch.randperm(len(self._examples), generator=seeded(self._seed, 20000 + index))
        in_a_set = self._batch * minibatches
        first, second = order[: 2 * in_a_set].split(in_a_set)
        a, b = self._difference(first, index), self._difference(second, index)
        factor = 0.5 * (1.0 - 1.0 / self._batch)
        return {layer: factor * float((a[layer] * b[layer]).mean()) for layer in a}

    def _difference(self, rows: torch.Tensor, index: int) -> dict[str, torch.Tensor]:
        one, other = (self._of_all(rows, 30000 + 2 * index + which) for which in (0, 1))
        return {layer: one[layer] - other[layer] for layer in one}

    def _of_all(self, rows: torch.Tensor, purpose: int) -> dict[str, torch.Tensor]:
        """Return N times the mean gradient of some examples, with one sample of the weights."""
        total: dict[str, torch.Tensor] = {}
        for some in rows.split(self._batch):
            self._noise.set_state(seeded(self._seed, purpose).get_state())
            found = self._gradients(some, "per_batch")
            for layer, gradient in found.items():
                part = gradient.double() * (len(some) / len(rows))
                total[layer] = total[layer] + part if layer in total else part
        return total


def measure_there(
    network: stages.Stages, sizes: Record, seed: int, dataset: Dataset, epochs: int
) -> Record:
    examples = Examples(dataset.train)
    shared = SharedNoise(*network.after(epochs), examples, sizes["batch_size"], seed)
    numbers = track(range(sizes["products"]), f"{epochs} epochs, products", sizes["products"])
    products = [shared.product(index, sizes["minibatches"]) for index in numbers]
    whole = shared.rows({"per_batch": sizes["pairs"]}, f"{epochs} epochs")
    kept = ("variance", "standard_error", "pairs")
    return {
        "layers": {
            row["layer"]: {
                "shared": summary([each[row["layer"]] for each in products], "products"),
                "per_batch": {name: row[name] for name in kept},
            }
            for row in whole
        }
    }


def column(layer: str, epochs: int, theirs: int, found: Record) -> Record:
    shared, whole = found["shared"], found["per_batch"]
    share = shared["variance"] / whole["variance"]
    error = math.hypot(
        shared["standard_error"] / whole["variance"],
        share * whole["standard_error"] / whole["variance"],
    )
    table = printed.GRADIENT_VARIANCE["independent"]
    one, each = table["per_batch", layer, theirs], table["per_example", layer, theirs]
    return {
        "layer": layer,
        "epochs": epochs,
        **found,
        "above_zero_in_standard_errors": shared["variance"] / shared["standard_error"],
        "share": share,
        "share_standard_error": error,
        "paper_share": (one - each) / one,
    }


def show(record: Record) -> str:
    made = [
        (each["seed"], column) for each in record["seeds_measured"] for column in each["columns"]
    ]

    def variance(of: Record) -> str:
        return f"{number(of['variance'])} ± {number(of['standard_error'], 2)}"

    rows = [
        (
            str(seed),
            column["layer"],
            str(column["epochs"]),
            variance(column["shared"]),
            variance(column["per_batch"]),
            with_error(column["share"], column["share_standard_error"]),
            f"{column['paper_share']:.2f}",
        )
        for seed, column in made
    ]
    steps = [column["above_zero_in_standard_errors"] for _, column in made]
    above = [step for step in steps if step > 0.0]
    head = ["seed", "layer", "epochs", "added", "weight sample per minibatch", "share", "paper"]
    told = f"The added variance is above zero in {len(above)} of {len(steps)} columns"
    if above:
        told += f", by at least {min(above):.1f} standard errors"
    return (
        f"{table(head, rows)}\n\n{told}. Where it is above zero, a sample for each data point has "
        "the smaller variance, as in the paper."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    made = []
    for seed in settings["seeds"]:
        training = Settings(settings["batch_size"], seed)
        name = f"independent-seed{seed}"
        network = stages.Stages(name, "variational_b", training, settings["hidden"], dataset, parts)
        after = network.measured(settings, partial(measure_there, network, settings, seed, dataset))
        columns = [
            column(layer, epochs, theirs, found["layers"][layer])
            for layer in printed.LAYERS
            for epochs, theirs, found in zip(settings["epochs"], printed.EPOCHS, after, strict=True)
        ]
        networks = [found["network"] for found in after]
        made.append({"seed": seed, "networks": networks, "columns": columns})
    return {"seeds_measured": made}


FULL = {**stages.FULL, "products": 40, "minibatches": 5, "pairs": 120}  # minibatches of each set
QUICK = {**stages.QUICK, "products": 20, "pairs": 14}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=2)
EXPERIMENT.run(__name__)
