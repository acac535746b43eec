"""Figure 2's first epochs by the other methods, on MNIST.

The networks, initial weights, order of the examples and learning rates of Figure 2 above, for the
first of its 100 epochs: the methods that its record lacks, and VBP again. After the last epoch, the
expected log-likelihood of the first 10,000 training images is computed by ten samples, and by VBP
as in training.
"""

from collections.abc import Iterator

import torch

from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import Cell, columns, measured
from validation.papers.haussmann2018 import learning_curves, networks
from validation.papers.haussmann2018.networks import METHODS, bound
from validation.summary import grouped, mean_and_error, named
from validation.training.loop import flushed, seeded
from validation.training.networks import variational


@flushed()
def train(method: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    run = learning_curves.trained(method, seed, sizes["trained"][method], sizes, dataset, parts)
    return {
        "method": method,
        "seed": seed,
        **log_likelihoods(run.model, method, dataset, sizes, seed),
        "seconds": run.seconds,
        "curve": learning_curves.curve(run),
    }


@torch.no_grad()
def log_likelihoods(
    model: torch.nn.Module, method: str, dataset: Dataset, sizes: Record, seed: int
) -> Record:
    """Return the expected log-likelihood per image, by samples and by VBP's bound."""
    x, y = (torch.from_numpy(each[: sizes["images"]]) for each in dataset.train)
    noise = seeded(seed, 2)
    for layer in variational(model):
        layer.generator = noise
    model.train()

    def of(method: str) -> float:
        elbo = bound(model, len(x), METHODS[method])
        parts = zip(torch.split(x, 1000), torch.split(y, 1000), strict=True)
        sums = [float(elbo(*each).expected_log_likelihood) * len(each[1]) for each in parts]
        return sum(sums) / len(x) ** 2

    sampled = mean_and_error([of("sampled") for _ in range(sizes["samples"])])
    found: Record = {"sampled": sampled["mean"], "sampled_error": sampled["standard_error"]}
    return found | {"own": of(method) if METHODS[method].form else None}


def at(row: Record, epoch: int, name: str) -> float:
    """Return a number of a curve after an epoch."""
    return float(next(point[name] for point in row["curve"] if point["epoch"] == epoch))


def summarised(rows: list[Record]) -> Iterator[Record]:
    for method, several in grouped(rows, "method").items():
        last = several[0]["curve"][-1]["epoch"]
        gaps = [row["sampled"] - row["own"] for row in several if row["own"] is not None]
        yield {
            **looked(method, last, several),
            **named("sampled", [row["sampled"] for row in several]),
            **named("gap", gaps),
        }


def looked(method: str, last: int, several: list[Record]) -> Record:
    return {
        "method": method,
        "epochs": last,
        **named("test_error", [at(row, last, "test_error") for row in several]),
        **named("pruned_first", [at(row, 1, "pruned_percent") for row in several]),
        **named("pruned_last", [at(row, last, "pruned_percent") for row in several]),
    }


SHOWN: tuple[tuple[str, Cell], ...] = (
    ("method", networks.title),
    ("epochs", "{epochs}"),
    ("test error in %", measured("test_error")),
    ("% with log α > 3 after the first", measured("pruned_first", 1)),
    ("after the last", measured("pruned_last", 1)),
)


def show(record: Record) -> str:
    shown = columns(
        record["summary"],
        *SHOWN,
        ("expected log-likelihood of a training image, sampled", measured("sampled", 4)),
        ("sampled less VBP's value", measured("gap", 4)),
    )
    known = learning_curves.EXPERIMENT.read()
    assert known is not None
    beside = [row for row in known["rows"] if row["seed"] in record["settings"]["seeds"]]
    compared = columns(
        [
            looked(method, last, several)
            for last in sorted({row["epochs"] for row in record["summary"]})
            for method, several in grouped(beside, "method").items()
        ],
        *SHOWN,
    )
    heading = "The methods that Figure 2's record has, after as many epochs, with the same seeds:"
    found = [shown, _above(record["summary"]), heading, compared]
    return "\n\n".join(filter(None, [*found, _sparsity(record["rows"], beside)]))


def _above(summary: list[Record]) -> str:
    """Say with which forms the value that VBP maximises is too high."""
    high = [
        f"“{networks.title(row)}”"
        for row in summary
        if row["gap"] + 2.0 * row["gap_standard_error"] < 0.0
    ]
    if not high:
        return ""
    return (
        f"For {' and '.join(high)}, the value that VBP maximises is above the sampled one by more "
        "than two standard errors, so it is not a lower bound."
    )


def _sparsity(rows: list[Record], beside: list[Record]) -> str:
    """Say what the paper's statement about the sparsity becomes here."""
    cold = [at(row, 1, "pruned_percent") for row in (*rows, *beside) if "warm" not in row["method"]]
    last = max(row["curve"][-1]["epoch"] for row in rows if row["method"] == "sampled_warm")
    sampled, vbp = (
        {row["seed"]: at(row, last, "pruned_percent") for row in among if row["method"] == method}
        for among, method in ((rows, "sampled_warm"), (beside, "vbp_warm"))
    )
    pairs = [(vbp[seed], sampled[seed]) for seed in sorted(sampled)]
    less = sum(a < b for a, b in pairs)
    shares = "; ".join(f"{a:.1f} against {b:.1f} %" for a, b in pairs)
    return (
        f"Without a warm-up, {min(cold):.0f} to {max(cold):.0f} % of the weights have log α > 3 "
        f"after the first epoch, whatever the method. With a warm-up, after {last} epochs, VBP is "
        f"less sparse than sampling for {less} of {len(pairs)} seeds: {shares}."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = parts.by_seed("networks", list(settings["trained"]), settings, train, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


TRAINED = {"sampled_warm": 20, "vbp_taylor": 10, "vbp_quadratic": 10, "vbp": 10}
FULL = {**networks.FULL, "trained": TRAINED, "epochs": 100, "samples": 10, "images": 10_000}
QUICK = {**networks.QUICK, "trained": dict.fromkeys(TRAINED, 2), "samples": 2, "images": 20}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=8, seeds=(1, 2, 3), parted=True)
EXPERIMENT.run(__name__)
