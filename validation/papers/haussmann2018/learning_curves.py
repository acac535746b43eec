"""Figure 2 and Table 2: learning curves on MNIST.

The strided LeNet-5 of the published code, 20-50-500-10, with the log-uniform prior and its exact
divergence, Adam with a rate that falls linearly to zero; means over the seeds with standard errors.
Our text of the paper lacks the rate (we take 10⁻³) and the minibatch (100). The paper has no
warm-up: nearly all weights have log α > 3 after the first epoch then. With a warm-up of the same
bound, the third method, half of them have, and its error is lower.

All networks of a seed have the same initial weights and see the examples in the same order. At the
end VBP's output variance is compared with that of samples of the weights, on test images.
"""

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from logunif_kl._atomic_io import plain_log_scale
from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import Cell, columns, measured, number, rounded, with_error
from validation.papers.haussmann2018 import networks
from validation.papers.haussmann2018.networks import METHODS, Annealed, network
from validation.summary import grouped, interval, mean_and_error, named
from validation.training.data import Split
from validation.training.loop import Settings, evaluate, flushed, seeded
from validation.training.networks import variational
from validation.verdict import BY_THE_RULE, agreement, of_networks

THRESHOLD = 3.0  # on log alpha, after Molchanov et al. 2017; section 4
CURVE = ("epoch", "test_error", "pruned_percent", "log_likelihood", "neg_kl")
EARLY = 10  # epochs whose mean error measures steepness; pruning is also measured then


def trained(
    method: str, seed: int, epochs: int, sizes: Record, dataset: Dataset, parts: Parts
) -> Annealed:
    """Train for the first of ``sizes["epochs"]`` epochs, and look at the weights after each."""
    noise = seeded(seed, 1)
    model = network(dataset.shape, seed, noise)
    if "initial" in sizes:
        networks.as_the_authors(model, seeded(seed, 3))
    run = Annealed(
        METHODS[method],
        sizes["epochs"],
        model,
        noise,
        dataset.train,
        Settings(sizes["batch_size"], seed, sizes["learning_rate"], None, sizes["kl_weight"]),
        about={"method": method},
        file=parts.file(f"{method}-seed{seed}.pt"),
    )

    def look() -> Record:
        found = evaluate(run.model, dataset.test)
        beyond = networks.log_alphas(run.model) > THRESHOLD
        return {
            "test_error": found["error_percent"],
            "test_log_likelihood": found["log_likelihood"],
            "pruned_percent": 100.0 * float(beyond.double().mean()),
        }

    run.finish(epochs, look)
    return run


def curve(run: Annealed) -> list[Record]:
    return [{name: record[name] for name in CURVE} for record in run.history]


@flushed()
def train(method: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    run = trained(method, seed, sizes["epochs"], sizes, dataset, parts)
    model = run.model
    counts = networks.histogram(model)
    chosen = networks.valley(counts)
    prune = partial(networks.pruned, model, split=dataset.test)
    return {
        "method": method,
        "seed": seed,
        "test_error": run.history[-1]["test_error"],
        "log_likelihood": run.history[-1]["log_likelihood"] / len(dataset.train.y),
        "test_log_likelihood": run.history[-1]["test_log_likelihood"],
        "neg_kl": run.history[-1]["neg_kl"],
        "fixed": prune(THRESHOLD),
        "by_histogram": None if chosen is None else prune(chosen),
        "by_threshold": [prune(threshold) for threshold in networks.THRESHOLDS],
        "histogram": counts,
        "variance": _variance(model, dataset.test, sizes, seed),
        "seconds": run.seconds,
        "curve": curve(run),
    }


@torch.no_grad()
def _variance(model: torch.nn.Module, test: Split, sizes: Record, seed: int) -> dict[str, float]:
    x, noise = torch.from_numpy(test.x[: sizes["images"]]), seeded(seed, 2)
    model.eval()
    for layer in variational(model):
        layer.estimator, layer.generator = "per_batch", noise
    with nn.sampling(model):
        each = torch.stack([model(x) for _ in range(sizes["samples"])]).double()
    found = nn.moments(model, x)
    mean, variance = each.mean(0), each.var(0)
    ratio = (found.variance.double() / variance).flatten()
    low, median, high = ratio.quantile(torch.tensor([0.05, 0.5, 0.95]).double()).tolist()
    bias = ((found.mean.double() - mean) / variance.sqrt()).flatten()
    return {
        "ratio_5_percent": low,
        "ratio_median": median,
        "ratio_95_percent": high,
        "mean_off_in_deviations": float(bias.square().mean().sqrt()),
        "deviation": float(variance.mean().sqrt()),
        "samples": sizes["samples"],
    }


def _early(row: Record) -> float:
    return statistics.fmean(point["test_error"] for point in row["curve"][:EARLY])


def summarised(rows: list[Record]) -> Iterator[Record]:
    for method, several in grouped(rows, "method").items():
        histograms = [row["by_histogram"] for row in several if row["by_histogram"]]
        gone = [row["curve"][:EARLY][-1]["pruned_percent"] for row in several]
        yield {
            "method": method,
            "seeds": len(several),
            **named("test_error", [row["test_error"] for row in several]),
            **named("early_error", [_early(row) for row in several]),
            **named("early_pruned_percent", gone),
            **named("pruned_percent", [row["fixed"]["pruned_percent"] for row in several]),
            **named("pruned_error", [row["fixed"]["error_percent"] for row in several]),
            **named("histogram_threshold", [found["threshold"] for found in histograms]),
            **named("histogram_percent", [found["pruned_percent"] for found in histograms]),
            **named("histogram_error", [found["error_percent"] for found in histograms]),
            "variance_ratio": statistics.fmean(r["variance"]["ratio_median"] for r in several),
            "seconds": sum(row["seconds"] for row in several),
        }


def statements(rows: list[Record]) -> list[Record]:
    """Measure the statements of section 4 about all four data sets (or the majority: three)."""
    of = {(row["method"], row["seed"]): row for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    found = []

    def enter(statement: str, numbers: list[list[float]], high: float = 0.0) -> None:
        """Enter a statement that the difference of two numbers, or a number, is below ``high``."""
        differences = [each[0] - each[1] if len(each) > 1 else each[0] for each in numbers]
        between = interval(differences)
        agrees = agreement([between], high=high)
        found.append(
            {"statement": statement, "ours": numbers, "interval": between, "agrees": agrees}
        )

    def share(row: Record) -> float:
        return float(row["fixed"]["pruned_percent"])

    if not all(("vbp", seed) in of for seed in seeds):
        return found
    ours = [of["vbp", seed] for seed in seeds]
    if all(("sampled", seed) in of for seed in seeds):
        pairs = list(zip(ours, (of["sampled", seed] for seed in seeds), strict=True))
        errors = [[a["test_error"], b["test_error"]] for a, b in pairs]
        enter("VBP has a lower test error than sampled variational dropout", errors)
        steep = [[_early(a), _early(b)] for a, b in pairs]
        enter("VBP has the steeper learning curve: a lower mean error of ten epochs", steep)
        shares = [[share(a), share(b)] for a, b in pairs]
        enter("VBP is less sparse than sampled variational dropout", shares)
    kept = [[100.0 - share(row)] for row in ours]
    enter("VBP prunes the far majority of the weights: it keeps less than half", kept, 50.0)
    both = [(row["fixed"], row["by_histogram"]) for row in ours if row["by_histogram"]]
    if len(both) == len(ours):
        for statement, name in (
            ("log α > 3 prunes more than the histogram's threshold: it keeps less", "pruned"),
            ("log α > 3 costs more accuracy than the histogram's threshold", "error"),
        ):
            column = f"{name}_percent"
            pairs_of = [[chosen[column], fixed[column]] for fixed, chosen in both]
            enter(statement, pairs_of)
    return found


def draw(record: Record) -> Any:
    rows = record["rows"]
    figure, (errors, shares, counts) = subplots((10.5, 3.4), 1, 3)
    width = (networks.HIGHEST - networks.LOWEST) / networks.BINS
    centres = [networks.LOWEST + (i + 0.5) * width for i in range(networks.BINS)]
    for index, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        several = [row for row in rows if row["method"] == method]
        for seed, row in enumerate(several):
            style: Record = {"color": f"C{index}", "linewidth": 0.8}
            label = METHODS[method].title if not seed else None
            epochs = [point["epoch"] for point in row["curve"]]
            errors.plot(epochs, [p["test_error"] for p in row["curve"]], label=label, **style)
            shares.plot(epochs, [p["pruned_percent"] for p in row["curve"]], **style)
            counts.step(centres, [max(n, 0.5) for n in row["histogram"]], where="mid", **style)
    plain_log_scale(errors)
    errors.set(xlabel="epoch", ylabel="test error in %")
    errors.legend(fontsize="small")
    shares.set(xlabel="epoch", ylabel="weights with log α > 3, in %")
    counts.set(yscale="log", xlabel="log α at the end", ylabel="weights")
    counts.axvline(THRESHOLD, color="0.5", linestyle=":")
    return figure


def show(record: Record, note: str = "The paper's initial values are not known.") -> str:
    def pruned(row: Record, name: str) -> str:
        return f"{measured(f'{name}_percent', 1)(row)}: {measured(f'{name}_error')(row)}"

    shown = columns(
        record["summary"],
        ("method", networks.title),
        ("test error in %", measured("test_error")),
        ("mean of the first 10 epochs", measured("early_error")),
        (
            "% with log α > 3 after the first",
            _of_seeds(record, lambda seed: seed["curve"][0]["pruned_percent"], 1),
        ),
        ("after ten", measured("early_pruned_percent", 1)),
        ("% pruned at log α > 3: error", lambda row: pruned(row, "pruned")),
        (
            "by the histogram: threshold; % pruned: error",
            lambda row: f"{number(row['histogram_threshold'], 2)}; {pruned(row, 'histogram')}",
        ),
        ("variance of outputs / sampled", rounded("variance_ratio")),
        ("training", lambda row: f"{row['seconds'] / 3600:.1f} h"),
    )
    return (
        f"{shown}{_histograms(record)}\n\nThe paper's statements about the learning curves "
        f"(section 4). {BY_THE_RULE} {note}\n\n"
        f"{said(statements(record['rows']))}"
    )


def said(found: list[Record]) -> str:
    """Write the table of some statements, with the verdicts."""
    return columns(
        found,
        ("statement", "{statement}"),
        (
            "seed by seed",
            lambda row: "; ".join(" against ".join(f"{v:.2f}" for v in e) for e in row["ours"]),
        ),
        (
            "difference, 95 %",
            lambda row: f"{row['interval'][0]:+.2f} ± {number(row['interval'][1], 2)}",
        ),
        ("our networks", lambda row: of_networks(row["agrees"])[0]),
        ("verdict", lambda row: of_networks(row["agrees"])[1]),
    )


def _histograms(record: Record) -> str:
    """Say between which modes the thresholds lie, and what a higher threshold does."""
    vbp = [seed["by_histogram"] for seed in record["rows"] if seed["method"] == "vbp"]
    so = (
        ", so the last two statements below depend on which modes are meant"
        if all(vbp)
        else ". With VBP not every seed has two modes, so what the paper says of the histogram's "
        "threshold is not judged"
    )
    beyond = [100.0 * seed["histogram"][-1] / sum(seed["histogram"]) for seed in record["rows"]]

    def thresholds_of(row: Record) -> str:
        found = [s["by_histogram"] for s in record["rows"] if s["method"] == row["method"]]
        return "; ".join(number(each["threshold"]) if each else "none" for each in found)

    def at_ten(name: str) -> Callable[[Record], float]:
        return lambda row: next(e[name] for e in row["by_threshold"] if e["threshold"] == 10.0)

    shown = columns(
        record["summary"],
        ("method", networks.title),
        ("threshold, seed by seed", thresholds_of),
        ("% pruned at log α > 10", _of_seeds(record, at_ten("pruned_percent"))),
        ("error in %", _of_seeds(record, at_ten("error_percent"))),
    )
    return (
        "\n\nThe histogram's threshold is the valley between two modes of log α below 12: the "
        "weights that are kept, and weights that are being pruned. The weights above 12, "
        f"{min(beyond):.1f} to {max(beyond):.1f} % at the end, do not count as a mode. A threshold "
        "of 10 separates them from the rest. It prunes less than 3 does, at about the same error"
        f"{so}:\n\n{shown}"
    )


def _of_seeds(record: Record, value: Callable[[Record], float], decimals: int = 2) -> Cell:
    def cell(row: Record) -> str:
        values = [value(seed) for seed in record["rows"] if seed["method"] == row["method"]]
        return with_error(**mean_and_error(values), decimals=decimals)

    return cell


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = parts.by_seed(
        "networks", settings["methods"], settings, train, dataset, parts, without=["methods"]
    )
    return {"summary": list(summarised(rows)), "rows": rows}


TRAINED = ["vbp", "sampled", "vbp_warm"]
FULL = {**networks.FULL, "methods": TRAINED, "epochs": 100, "samples": 500, "images": 200}
QUICK = {**networks.QUICK, "samples": 50, "images": 20}
EXPERIMENT = Experiment(
    __file__,
    measure,
    show,
    FULL,
    QUICK,
    place=2,
    seeds=(1, 2, 3),
    choose=("epochs", "methods"),
    parted=True,
    draw=draw,
)
EXPERIMENT.run(__name__)
