"""Section 3.4: without α ≤ 1.

Variational dropout B with 200 units in each of three hidden layers, averaged parameters; the exact
divergence and the paper's cubic, with and without the bound.

A run that starts at a large alpha shows whether alpha decreases again.
"""

import math
import statistics
from collections.abc import Iterator
from typing import Any

from logunif_kl._atomic_io import plain_log_scale
from validation.experiment import Dataset, Experiment, Record, subplots
from validation.markdown import columns, listed, measured, rounded
from validation.summary import grouped, mean_and_error, means
from validation.training import networks
from validation.training.loop import Settings, TrainingError, evaluate, evaluate_averaged
from validation.training.parts import Parts, slug

# The penalty, the bound on log alpha, and the initial log alpha; None is as in the paper.
COLUMNS = ("penalty", "max_log_alpha", "initial")
CASES = {
    "exact, alpha at most 1": ("exact", 0.0, None),
    "exact, no bound": ("exact", None, None),
    "exact, no bound, from a large alpha": ("exact", None, 4.0),
    "cubic, alpha at most 1": ("kingma", 0.0, None),
    "cubic, no bound": ("kingma", None, None),
}


def train(name: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    case = dict(zip(COLUMNS, CASES[name], strict=True))
    posterior = case if case["initial"] is not None else {k: case[k] for k in COLUMNS[:2]}
    run = networks.run_of(
        "variational_b",
        dataset.train,
        sizes["hidden"],
        Settings(sizes["batch_size"], seed),
        about={"case": name, "hidden": sizes["hidden"], **case},
        file=parts.file(f"{slug(name)}-seed{seed}.pt"),
        **posterior,
    )
    stopped = None

    def look() -> Record:
        test_error = evaluate(run.model, dataset.test)["error_percent"]
        return {"alphas": networks.learned_alphas(run.model), "test_error": test_error}

    try:
        run.finish(sizes["epochs"], look)
    except TrainingError as error:
        stopped = str(error)
    last = run.history[-1] if run.history else {}
    return {
        "case": name,
        **case,
        "seed": seed,
        "stopped": stopped,
        "epochs_run": run.epoch,
        "test_error": last.get("test_error", math.nan),
        "test_error_averaged": (
            evaluate_averaged(run, dataset.test)["error_percent"] if stopped is None else math.nan
        ),
        "log_likelihood": last.get("log_likelihood", math.nan),
        "neg_kl": last.get("neg_kl", math.nan),
        "alphas": last.get("alphas", []),
        "test_error_by_epoch": [record["test_error"] for record in run.history],
        "greatest_median_log_alpha_by_epoch": [
            max(layer["log_alpha_median"] for layer in record["alphas"]) for record in run.history
        ],
        "seconds": run.seconds,
    }


def summarised(rows: list[Record]) -> Iterator[Record]:
    for name, several in grouped(rows, "case").items():
        error = mean_and_error([row["test_error_averaged"] for row in several])
        stopped = [row["stopped"] for row in several if row["stopped"] is not None]
        whole = [row["alphas"] for row in several if row["stopped"] is None]
        medians = ({"medians": [a["log_alpha_median"] for a in alphas]} for alphas in whole)
        shares = [a["at_most_1"] for row in several for a in row["alphas"]]
        complete = all(row["alphas"] for row in several)
        yield {
            "case": name,
            "seeds": len(several),
            "stopped": stopped,
            "test_error": error["mean"],
            "standard_error": math.nan if stopped else error["standard_error"],
            "median_log_alpha_by_layer": means(medians, "medians"),
            "at_most_1": statistics.fmean(shares) if complete else math.nan,
        }


def draw(record: Record) -> Any:
    rows = record["rows"]
    figure, (of_alpha, of_error) = subplots((8.0, 4.0), 1, 2)
    series = {"greatest_median_log_alpha_by_epoch": of_alpha, "test_error_by_epoch": of_error}
    for row in rows:
        colour = f"C{list(CASES).index(row['case'])}"
        label = row["case"] if row["seed"] == rows[0]["seed"] else None
        for key, axes in series.items():
            epochs = range(1, len(row[key]) + 1)
            axes.plot(epochs, row[key], colour, linewidth=1.0, label=label)
    of_alpha.set(xlabel="epochs", ylabel="median log α, greatest of all layers")
    plain_log_scale(of_error)
    of_error.set(xlabel="epochs", ylabel="test error in %")
    # Inside the axes it would hide curves.
    labels = of_error.get_legend_handles_labels()
    figure.legend(*labels, loc="outside lower center", ncols=3, fontsize="small")
    return figure


def show(record: Record) -> str:
    return columns(
        record["summary"],
        ("divergence and bound", "{case}"),
        ("test error in %", measured("test_error")),
        ("median log α by layer", listed("median_log_alpha_by_layer")),
        ("α ≤ 1", rounded("at_most_1", 2)),
        ("stopped", lambda row: "; ".join(dict.fromkeys(row["stopped"])) or "no"),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = parts.by_seed("networks", list(CASES), settings, train, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


FULL = {"hidden": [200] * 3, "epochs": 40, "batch_size": 100}
QUICK = {"hidden": [24] * 3, "epochs": 5}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=8, seeds=(1, 2, 3), draw=draw)
EXPERIMENT.run(__name__)
