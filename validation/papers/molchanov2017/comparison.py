"""What the two networks of Table 1 share: training, pruning, masks and the summary.

The networks of one seed have the same initial means and variances. They also see the same examples
in the same order, with noise of the same seed, whatever their penalty. Only the case "exact, other
noise" has another order and noise. It shows how much the kept weights of two runs with one penalty
overlap, to be compared with the overlap between two penalties.
"""

# mypy: allow-untyped-calls
import io
import itertools
import math
import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from logunif_kl._atomic_io import plain_log_scale
from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, listed, measured, number, rounded, table
from validation.papers.molchanov2017 import models
from validation.papers.molchanov2017.models import CASES, TABLE_1, THRESHOLD
from validation.summary import grouped, interval, mean_and_error, means
from validation.training import loop
from validation.training.parts import determining
from validation.verdict import agreement, verdict

LOOK_EVERY = 5  # epochs
THRESHOLDS = [0.5 * step for step in range(-4, 11)]  # `threshold.py` chooses one of them


def run_of(
    name: str, case: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> loop.ScheduledRun:
    kind = CASES[case]
    split = models.centred(dataset).train if kind.centring else dataset.train
    of_noise = seed + 1000 * kind.other_noise
    noise = loop.seeded(of_noise, 1)
    model = models.network(name, case, seed, noise, quick=sizes["quick"])
    return loop.ScheduledRun(
        model,
        noise,
        split,
        loop.Settings(sizes["batch_size"], of_noise, sizes["learning_rate"], averaging=None),
        schedule=loop.Schedule(sizes["epochs"], tuple(sizes["warm_up"]), 0.5 * kind.flat_rate),
        zero_from=THRESHOLD if kind.zeroing else math.inf,
        mask_from=THRESHOLD if kind.masking else None,
        about={"network": name, "case": case},
        file=parts.file(f"{name}-{case}-seed{seed}.pt"),
    )


@loop.flushed()
def train(name: str, case: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    run = run_of(name, case, seed, sizes, dataset, parts)
    if CASES[case].centring:
        dataset = models.centred(dataset)

    def look() -> Record:
        """Test the pruned network after every fifth epoch and after the last."""
        due = run.epoch % LOOK_EVERY == 0 or run.epoch == sizes["epochs"]
        return at_threshold(run.model, THRESHOLD, dataset) if due else {}

    run.finish(sizes["epochs"], look)
    last = run.history[-1]
    found = nn.sparsity(run.model, THRESHOLD)
    return {
        "case": case,
        "seed": seed,
        "test_error": loop.evaluate(run.model, dataset.test)["error_percent"],
        "test_error_pruned": last["test_error_pruned"],
        "kept": found.kept,
        "weights": found.weights,
        "compression": found.compression if found.kept else None,
        "pruned_percent": [100.0 * layer.pruned for layer in found.layers.values()],
        "sizes": {layer: each.weights for layer, each in found.layers.items()},
        "log_likelihood": last["log_likelihood"],
        "neg_kl": last["neg_kl"],
        "seconds": run.seconds,
        "by_threshold": [at_threshold(run.model, each, dataset) for each in THRESHOLDS],
        "by_epoch": [
            {key: record[key] for key in ("epoch", "test_error_pruned", "kept")}
            for record in run.history
            if "kept" in record
        ],
        "sparse": as_sparse(run.model, dataset),
        "masks": models.packed(run.model, THRESHOLD),
    }


def at_threshold(model: torch.nn.Module, threshold: float, dataset: Dataset) -> Record:
    pruned = nn.to_deterministic(model, threshold)
    return {
        "threshold": threshold,
        "test_error_pruned": loop.evaluate(pruned, dataset.test)["error_percent"],
        "kept": nn.sparsity(model, threshold).kept,
    }


@torch.no_grad()
def as_sparse(model: torch.nn.Module, dataset: Dataset) -> Record:
    """Compare the sparse network with the pruned dense one, on the test examples."""
    dense = nn.to_deterministic(model, THRESHOLD).eval()
    sparse = nn.to_sparse(model, THRESHOLD)
    x = loop.Examples(dataset.test).x
    pairs = [(sparse(part), dense(part)) for part in x.split(1000)]
    return {
        "differing_predictions": sum(
            int((ours.argmax(1) != theirs.argmax(1)).sum()) for ours, theirs in pairs
        ),
        "largest_difference": max(float((ours - theirs).abs().max()) for ours, theirs in pairs),
        "largest_output": max(float(theirs.abs().max()) for _, theirs in pairs),
        "bytes": stored(sparse),
        "bytes_dense": stored(dense),
        "shapes": [
            list(weight.shape)
            for module in sparse.modules()
            if isinstance(weight := getattr(module, "weight", None), torch.Tensor)
        ],
    }


def stored(model: torch.nn.Module) -> int:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file.tell()


def summarised(name: str, rows: list[Record]) -> Iterator[Record]:
    for case, several in grouped(rows, "case").items():
        weights, kept = several[0]["weights"], statistics.fmean(row["kept"] for row in several)
        pruned, paper = mean_and_error([r["test_error_pruned"] for r in several]), TABLE_1[name]
        by_threshold = [
            {
                "threshold": each[0]["threshold"],
                "test_error_pruned": mean_and_error([r["test_error_pruned"] for r in each]),
                "kept": statistics.fmean(r["kept"] for r in each),
            }
            for each in zip(*(row["by_threshold"] for row in several), strict=True)
        ]
        yield {
            "case": case,
            "title": CASES[case].title,
            "seeds": len(several),
            "test_error": mean_and_error([row["test_error"] for row in several]),
            "test_error_pruned": pruned,
            "compression": weights / kept if kept else None,
            "pruned_percent": means(several, "pruned_percent"),
            "seconds": statistics.fmean(row["seconds"] for row in several),
            "by_threshold": by_threshold,
            "as_good_as_the_paper": bool(
                kept
                and pruned["mean"] <= paper.error_percent
                and weights / kept >= paper.compression
            ),
        }


def overlaps(rows: list[Record]) -> Record:
    """Compare the overlap of masks between penalties with that between noises and seeds."""
    of = {(row["case"], row["seed"]): models.unpacked(row["masks"], row["sizes"]) for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    found: Record = {"with_exact": [], "between_seeds": None, "statements": []}
    by_case: dict[str, list[float]] = {}
    if ("exact", seeds[0]) not in of:
        return found
    for case in dict.fromkeys(row["case"] for row in rows if row["case"] != "exact"):
        pairs = [models.overlap(of["exact", seed], of[case, seed]) for seed in seeds]
        by_case[case] = [pair["overlap"] for pair in pairs]
        found["with_exact"].append(
            {"case": case, "title": CASES[case].title, **models.mean_overlap(pairs)}
        )
    if len(seeds) > 1:
        pairs = [
            models.overlap(of["exact", a], of["exact", b])
            for a, b in itertools.combinations(seeds, 2)
        ]
        found["between_seeds"] = models.mean_overlap(pairs)
    if "exact_again" in by_case:
        found["statements"] = [
            _decided(case, by_case[case], by_case["exact_again"])
            for case in by_case
            if case != "exact_again"
        ]
    return found


def _decided(case: str, overlap: list[float], of_noise: list[float]) -> Record:
    """Decide whether another penalty changes the kept weights more than other noise does."""
    mean, half = interval([a - b for a, b in zip(overlap, of_noise, strict=True)])
    return {
        "statement": f"{CASES[case].title}: the masks differ from those of the exact divergence by "
        "more than those of two runs of it",
        "difference": mean,
        "half_width": half,
    }


def draw(record: Record) -> Any:
    rows, paper = record["rows"], record["paper"]
    figure, (of_error, of_kept) = subplots((8.0, 4.0), 1, 2)
    for row in rows:
        index = list(CASES).index(row["case"])
        label = CASES[row["case"]].title if row["seed"] == rows[0]["seed"] else None
        epochs = [each["epoch"] for each in row["by_epoch"]]
        for axes, key in ((of_error, "test_error_pruned"), (of_kept, "kept")):
            values = [each[key] for each in row["by_epoch"]]
            axes.plot(epochs, values, f"C{index}", linewidth=1.0, label=label)
    of_error.axhline(paper["error_percent"], color="0.5", linestyle=":")
    of_kept.axhline(rows[0]["weights"] / paper["compression"], color="0.5", linestyle=":")
    of_error.set_ylabel("test error of the pruned network in %")
    of_kept.set_ylabel("weights that are kept")
    for axes in (of_error, of_kept):
        plain_log_scale(axes)
        axes.set(xlabel="epochs")
    of_kept.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    return f"{of_all(record)}\n\n{_by_threshold(record)}\n\n{_overlaps(record['overlaps'])}"


def of_all(record: Record) -> str:
    """Write the means over the seeds next to the paper's numbers, and compare sparse networks."""
    paper = record["paper"]
    of_paper = {
        "title": "the paper",
        "test_error": {"mean": math.nan, "standard_error": math.nan},
        "test_error_pruned": {"mean": paper["error_percent"], "standard_error": math.nan},
        "compression": paper["compression"],
        "pruned_percent": paper["pruned"],
        "seconds": None,
    }
    shown = columns(
        [*record["summary"], of_paper],
        ("divergence", "{title}"),
        ("test error in %", measured("test_error")),
        ("when pruned", measured("test_error_pruned")),
        ("times fewer weights", rounded("compression")),
        ("pruned by layer, %", listed("pruned_percent", 1, " – ")),
        ("minutes", lambda row: number(row["seconds"] and row["seconds"] / 60, 2)),
    )
    sparse = [row["sparse"] for row in record["rows"]]
    made = (
        f"\n\nThe sparse and the pruned dense networks disagree on the digit of "
        f"{sum(each['differing_predictions'] for each in sparse)} test images; their outputs "
        f"differ by {number(max(each['largest_difference'] for each in sparse), 2)} at most. Their "
        f"files have {number(min(each['bytes'] for each in sparse) / 1e3)} to "
        f"{number(max(each['bytes'] for each in sparse) / 1e3)} kB, the dense ones "
        f"{number(sparse[0]['bytes_dense'] / 1e3)} kB."
    )
    return f"After {record['settings']['epochs']} epochs:\n\n{shown}{made}"


def _by_threshold(record: Record) -> str:
    weights, paper = record["rows"][0]["weights"], record["paper"]
    columns = record["summary"]
    rows, as_good = [], []
    for several in zip(*(column["by_threshold"] for column in columns), strict=True):
        cells = []
        for column, at in zip(columns, several, strict=True):
            error, fewer = at["test_error_pruned"]["mean"], weights / max(at["kept"], 1)
            cells.append(f"{error:.2f}, {number(fewer)}")
            if error <= paper["error_percent"] and fewer >= paper["compression"]:
                as_good.append(f"{at['threshold']:.1f} ({column['title']})")
        rows.append([f"{several[0]['threshold']:.1f}", *cells])
    which = ", ".join(as_good) or "none"
    at_paper = ", ".join(c["title"] for c in columns if c["as_good_as_the_paper"]) or "none"
    return (
        "At other thresholds on log α, the test error in % and how many times fewer weights:\n\n"
        + table(["log α", *(column["title"] for column in columns)], rows)
        + "\n\nNetworks that match the paper in both error and sparsity: at its threshold of 3, "
        f"{at_paper}; at others of the table, chosen by the test set, {which}."
    )


def _overlaps(found: Record) -> str:
    between = found["between_seeds"]
    pairs = [{**row, "networks": f"exact and {row['title']}"} for row in found["with_exact"]]
    pairs += [] if between is None else [{**between, "networks": "exact, two seeds"}]
    shown = columns(
        pairs,
        ("networks", "{networks}"),
        ("overlap", rounded("overlap")),
        ("by chance", rounded("by_chance", 2)),
    )
    said = columns(
        found["statements"],
        ("divergence", lambda each: each["statement"].partition(":")[0]),
        (
            "difference of overlaps",
            lambda each: f"{each['difference']:+.3f} ± {number(each['half_width'], 2)}",
        ),
        (
            "more than noise",
            lambda each: verdict(agreement([(each["difference"], each["half_width"])])),
        ),
    )
    decided = (
        "\n\nDoes another divergence change which weights are kept by more than other noise does? "
        "Its overlap with the exact divergence, less that of two runs of the exact divergence that "
        f"differ in noise, with the 95 % interval over the seeds:\n\n{said}"
    )
    return (
        "The weights that two networks of one seed both keep, over those that either keeps, and "
        f"what that would be by chance:\n\n{shown}{decided if found['statements'] else ''}"
    )


def measure(name: str, settings: Record, dataset: Dataset, parts: Parts) -> Record:
    seeds, once = settings["seeds"], settings.get("once", ())
    make = {
        f"{name}-{case}-seed{seed}": partial(train, name, case, seed, settings, dataset, parts)
        for seed, case in itertools.product(seeds, settings["cases"])
        if seed == seeds[0] or case not in once
    }
    rows = parts.rows("training networks", make, **determining(settings, "cases", "once"))
    return {
        "threshold": THRESHOLD,
        "paper": TABLE_1[name]._asdict(),
        "summary": list(summarised(name, rows)),
        "overlaps": overlaps(rows),
        "rows": [{k: v for k, v in row.items() if k != "masks"} for row in rows],
    }


SIZES = {"warm_up": [5, 20], "batch_size": 200, "learning_rate": 1e-3}
FULL = {**SIZES, "cases": models.COMPARED}
QUICK = {"epochs": 6, "warm_up": [0, 1], "batch_size": 50, "learning_rate": 2e-2}


def experiment(
    file: str, network: str, show: Any, full: Record, quick: Record, **options: Any
) -> Experiment:
    options = {"seeds": (1, 2, 3), "choose": ("epochs", "cases"), "parted": True, **options}
    made = partial(measure, network)
    return Experiment(file, made, show, full, {**QUICK, **quick}, draw=draw, **options)
