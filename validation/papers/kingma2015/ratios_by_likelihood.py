"""Table 2 by the training likelihood.

The network of Table 2 above, and the same at a fifth of the learning rate: each ratio of variances
to local reparameterisation against the mean log-likelihood of the training images without noise. If
the paper's network were ours, after more or fewer steps, then the four ratios that the paper prints
for one number of epochs would be reached at one likelihood.

Each of the paper's ratios is looked up on the curve of ours, by interpolation between two stages of
the training.
"""

# mypy: allow-untyped-calls
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch

from logunif_kl._atomic_io import plain_log_scale
from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, number, with_error
from validation.papers.kingma2015 import printed, stages
from validation.papers.kingma2015.ratios import TITLES
from validation.training.gradient_pairs import Pairs
from validation.training.loop import Examples, Settings, evaluate
from validation.training.parts import slug

NOISE = "correlated"
RATIOS = [(layer, name) for layer in printed.LAYERS for name in ("per_batch", "none")]


def of_the_paper(layer: str, name: str, epochs: int) -> float:
    table = printed.GRADIENT_VARIANCE[NOISE]
    return table[name, layer, epochs] / table["local", layer, epochs]


@torch.no_grad()
def with_noise(model: torch.nn.Module, examples: Examples, rows: int = 1000) -> float:
    """Return the mean log-likelihood of an example, with one draw of the noise."""
    model.train()
    each = zip(examples.x.split(rows), examples.y.split(rows), strict=True)
    total = sum(float(nn.categorical_log_likelihood(model(x), y).double().sum()) for x, y in each)
    return total / len(examples)


def measure_one(
    name: str, case: Record, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> list[Record]:
    settings = Settings(sizes["batch_size"], seed, learning_rate=case["learning_rate"])
    file, hidden = f"{slug(name)}-seed{seed}", sizes["hidden"]
    network = stages.Stages(file, "variational_a", settings, hidden, dataset, parts)

    def at(epochs: int) -> Record:
        model, noise = network.after(epochs)
        noise.manual_seed(1000 * seed + epochs)
        examples = Examples(dataset.train)
        likelihood = evaluate(model, dataset.train)["log_likelihood"]
        noisy = with_noise(model, examples)
        pairs = Pairs(model, noise, examples, settings.batch_size, seed)
        rows = pairs.rows(sizes["pairs"], f"{name}, {epochs} epochs")
        variances = {(row["layer"], row["estimator"]): row for row in rows}
        return {
            "case": name,
            "seed": seed,
            "epochs": epochs,
            "log_likelihood": likelihood,
            "log_likelihood_with_noise": noisy,
            "ratios": [
                {"layer": layer, "estimator": estimator, **ratio(variances, layer, estimator)}
                for layer, estimator in RATIOS
            ],
            "variances": rows,
        }

    return network.measured({**sizes, "epochs": case["epochs"]}, at)


def ratio(variances: dict[tuple[str, str], Record], layer: str, estimator: str) -> Record:
    """Return a ratio to local reparameterisation, with the error for this network."""
    above, below = variances[layer, estimator], variances[layer, "local"]
    found = above["variance"] / below["variance"]
    relative = (each["standard_error"] / each["variance"] for each in (above, below))
    return {"ratio": found, "standard_error": found * math.hypot(*relative)}


def curve(rows: list[Record], case: str, layer: str, estimator: str) -> list[tuple[Record, float]]:
    """Return the stages of a training with one ratio of each."""
    return [
        (row, found["ratio"])
        for row in rows
        if row["case"] == case
        for found in row["ratios"]
        if (found["layer"], found["estimator"]) == (layer, estimator)
    ]


def reached(points: list[tuple[Record, float]], wanted: float) -> Record | None:
    """Return where the ratio first passes a value: the likelihood and the test error there.

    Logarithms are interpolated linearly. The result is None if no two neighbours enclose it.
    """
    for (before, high), (after, low) in pairwise(points):
        if min(high, low) <= wanted <= max(high, low) and high != low:
            share = math.log(wanted / high) / math.log(low / high)

            def between(a: float, b: float, share: float = share) -> float:
                return math.exp((1.0 - share) * math.log(a) + share * math.log(b))

            errors = (each["network"]["test_error_percent"] for each in (before, after))
            return {
                "epochs": between(before["epochs"], after["epochs"]),
                "log_likelihood": -between(-before["log_likelihood"], -after["log_likelihood"]),
                "test_error_percent": between(*errors),
            }
    return None


def apart(rows: list[Record], layer: str, estimator: str) -> float:
    """Return the largest factor between two trainings' ratios at equal likelihoods, or NaN.

    The ratios of the second are interpolated, in logarithms, at the stages of the first.
    """
    first, second = (
        [(math.log(-row["log_likelihood"]), math.log(ratio)) for row, ratio in points]
        for points in (
            curve(rows, case, layer, estimator) for case in dict.fromkeys(r["case"] for r in rows)
        )
    )
    factors = [math.nan]
    for x, y in first:
        for (before, high), (after, low) in pairwise(second):
            if after <= x < before:
                between = high + (low - high) * (x - before) / (after - before)
                factors.append(math.exp(abs(y - between)))
    return max(factors[1:], default=math.nan)


def compared(rows: list[Record]) -> Iterator[Record]:
    """Look up each of the paper's ratios in each training."""
    for case in dict.fromkeys(row["case"] for row in rows):
        for epochs in printed.EPOCHS:
            for layer, estimator in RATIOS:
                points = curve(rows, case, layer, estimator)
                paper = of_the_paper(layer, estimator, epochs)
                every = [value for _, value in points]
                yield {
                    "case": case,
                    "paper_epochs": epochs,
                    "layer": layer,
                    "estimator": estimator,
                    "paper_ratio": paper,
                    "least": min(every),
                    "greatest": max(every),
                    "reached": reached(points, paper),
                }


def draw(record: Record) -> Any:
    figure, grid = subplots((8.0, 6.0), 2, 2, sharex=True)
    for axes, (layer, estimator) in zip(grid.flat, RATIOS, strict=True):
        for index, case in enumerate(record["settings"]["trained"]):
            points = curve(record["rows"], case, layer, estimator)
            x = [-row["log_likelihood"] for row, _ in points]
            axes.loglog(x, [value for _, value in points], f"C{index}.-", label=case)
        for epochs, style in zip(printed.EPOCHS, ("--", ":"), strict=True):
            height = of_the_paper(layer, estimator, epochs)
            label = f"the paper, {epochs} epochs"
            axes.axhline(height, color="0.4", linestyle=style, label=label)
        axes.set_title(f"{layer} layer, {TITLES[estimator]}", fontsize="medium")
        plain_log_scale(axes)
    grid[0][0].invert_xaxis()
    for axes in grid[-1]:
        axes.set_xlabel("−log-likelihood of a training image")
    for axes_row in grid:
        axes_row[0].set_ylabel("variance / local reparameterisation's")
    grid[0][0].legend(fontsize="small", loc="lower left")
    return figure


def show(record: Record) -> str:
    def shown(layer: str, estimator: str) -> Any:
        def cell(row: Record) -> str:
            ((_, value),) = curve([row], row["case"], layer, estimator)
            error = next(
                found["standard_error"]
                for found in row["ratios"]
                if (found["layer"], found["estimator"]) == (layer, estimator)
            )
            return with_error(value, error, 3 if estimator == "none" else 2)

        return f"{layer}: {TITLES[estimator]}", cell

    trained = columns(
        record["rows"],
        ("training", "{case}"),
        ("epochs", "{epochs}"),
        ("test error in %", lambda row: f"{row['network']['test_error_percent']:.2f}"),
        ("log-likelihood of a training image", "{log_likelihood:.4f}"),
        ("with noise", "{log_likelihood_with_noise:.4f}"),
        *(shown(*each) for each in RATIOS),
    )

    def at(name: str, digits: int) -> Any:
        def cell(row: Record) -> str:
            where = row["reached"]
            if where is not None:
                return number(where[name], digits)
            ours = f"never: {number(row['least'], 2)} to {number(row['greatest'], 2)}"
            return ours if name == "epochs" else "–"

        return cell

    looked_up = columns(
        record["compared"],
        ("training", "{case}"),
        ("the paper's epochs", "{paper_epochs}"),
        ("layer", "{layer}"),
        ("estimator", lambda row: TITLES[row["estimator"]]),
        ("paper, ratio to local", lambda row: number(row["paper_ratio"])),
        ("ours has this ratio after epochs", at("epochs", 2)),
        ("at the log-likelihood", at("log_likelihood", 2)),
        ("and the test error in %", at("test_error_percent", 3)),
    )
    return (
        f"{trained}\n\nThe paper's ratios, looked up on these curves:\n\n{looked_up}\n\n"
        f"{_said(record)}"
    )


def _said(record: Record) -> str:
    """Say whether one stage of a training has all ratios that the paper prints for one."""
    text, found = [], record["compared"]
    for case in dict.fromkeys(row["case"] for row in found):
        for epochs in printed.EPOCHS:
            rows = [r for r in found if (r["case"], r["paper_epochs"]) == (case, epochs)]
            there = [r["reached"] for r in rows if r["reached"]]
            said = f"- {case}, the paper's {epochs} epochs: {len(there)} of {len(rows)} ratios"
            for name, title, digits in (
                ("log_likelihood", ", at log-likelihoods of ", 2),
                ("test_error_percent", " and test errors in % of ", 3),
            ):
                ends = [
                    number(f(each[name] for each in there), digits) for f in (min, max) if there
                ]
                said += title + " to ".join(dict.fromkeys(ends)) if there else ""
            paper = printed.TEST_ERROR_AFTER[epochs]
            text.append(f"{said}, where the paper has {paper:g}" if there else said)
    factors = "; ".join(
        f"{number(apart(record['rows'], layer, name), 3)} ({layer} layer, {TITLES[name]})"
        for layer, name in RATIOS
    )
    lines = "\n".join(text)
    return (
        f"How many of the four ratios our training passes through, and where:\n\n{lines}\n\nAt "
        "equal likelihoods the two learning rates give ratios that differ by a factor of at most "
        f"{factors}."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    sizes = {key: value for key, value in settings.items() if key != "trained"}
    rows = [
        row
        for seed in settings["seeds"]
        for name, case in settings["trained"].items()
        for row in measure_one(name, case, seed, sizes, dataset, parts)
    ]
    return {"compared": list(compared(rows)), "rows": rows}


# The learning rate of Table 2, and a fifth of it. The paper's ratios are between the first epochs.
TRAINED = {
    "as in Table 2": {"learning_rate": 1e-3, "epochs": [1, 2, 3, 4, 5, 7, 10, 14, 20]},
    "a fifth of the learning rate": {
        "learning_rate": 2e-4,
        "epochs": [1, 2, 4, 7, 10, 15, 20, 30, 40],
    },
}
FULL = {
    "hidden": [1024] * 3,
    "batch_size": 1000,
    "trained": TRAINED,
    "pairs": {"local": 30, "per_batch": 60, "none": 30},
}
QUICK = {
    "hidden": [32] * 3,
    "batch_size": 100,
    "trained": {
        name: {**case, "epochs": epochs}
        for (name, case), epochs in zip(TRAINED.items(), ([1, 3], [2, 6]), strict=True)
    },
    "pairs": {"local": 7, "per_batch": 7, "none": 7},
}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=11, draw=draw)
EXPERIMENT.run(__name__)
