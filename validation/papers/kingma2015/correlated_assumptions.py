"""Table 2 under other assumptions.

In the networks of Table 2 above, the divergence of the scales is a few thousand nats, and the lower
layers stay below the largest dropout rate, 0.5. Here the divergence of a scale is counted once for
each weight that it multiplies, or the learning rate is a fifth.

``kl_weight`` is the number of weights that a scale multiplies in the lower layers.
"""

from collections.abc import Callable

from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, listed
from validation.papers.kingma2015 import stages
from validation.papers.kingma2015.ratios import agreement, compared_with_the_paper, tabulated
from validation.training.loop import Settings
from validation.training.parts import slug

# What differs in the `Settings`, given the units of a layer.
ASSUMPTIONS: dict[str, Callable[[int], Record]] = {
    "the divergence counted for each weight": lambda units: {"kl_weight": float(units)},
    "a fifth of the learning rate": lambda units: {"learning_rate": 2e-4},
}


def measure_one(
    name: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> list[Record]:
    settings = Settings(sizes["batch_size"], seed, **ASSUMPTIONS[name](sizes["hidden"][0]))
    file = f"{slug(name)}-seed{seed}"
    network = stages.Stages(file, "variational_a", settings, sizes["hidden"], dataset, parts)

    def variances(epochs: int) -> Record:
        pairs, label = network.pairs(epochs), f"{epochs} epochs"
        return {"variances": pairs.rows(sizes["pairs"], label, seed=seed, epochs=epochs)}

    return [{"seed": seed, **found} for found in network.measured(sizes, variances)]


def show(record: Record) -> str:
    text = []
    for case in record["cases"]:
        networks = columns(
            case["networks"],
            ("seed", "{seed}"),
            ("epochs", "{epochs}"),
            ("test error in %", "{test_error_percent:.2f}"),
            ("mean dropout rates, from the bottom", listed("mean_dropout_rates")),
        )
        text += [f"### Table 2: {case['assumption']}", tabulated(case["columns"])]
        text += [agreement(case["columns"]), networks]
    return "\n\n".join(text)


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    def case(name: str) -> Record:
        found = [
            each
            for seed in settings["seeds"]
            for each in measure_one(name, seed, settings, dataset, parts)
        ]
        rows = [row for each in found for row in each["variances"]]
        return {
            "assumption": name,
            "networks": [{"seed": each["seed"], **each["network"]} for each in found],
            "columns": compared_with_the_paper(rows, "correlated", settings["epochs"]),
        }

    return {"cases": parts.share(ASSUMPTIONS, case, "assumptions")}


FULL = {**stages.FULL, "pairs": {"local": 90, "per_batch": 120, "none": 90}}
QUICK = {**stages.QUICK, "pairs": {"local": 7, "per_batch": 7, "none": 7}}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=4, parted=True)
EXPERIMENT.run(__name__)
