"""Figure 1a: test error.

Three hidden layers of each width, early stopping on the last sixth of the training set, temporal
averaging; the mean over the seeds, with its standard error. α is one for each input unit, starts
from the rates 0.2 and 0.5, and is at most 1.

All methods of a seed have the same initial weights and the same order of the examples.
"""

import math
import statistics
from collections.abc import Iterator
from typing import Any

from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import number, table, with_error
from validation.summary import grouped, interval, mean_and_error
from validation.training import networks
from validation.training.data import Split
from validation.training.loop import Run, Settings, evaluate_averaged
from validation.verdict import BY_THE_RULE, agreement, of_networks

# Variational dropout, and the methods that the paper compares it with.
COUNTERPARTS = {"variational_a": "gaussian_a", "variational_b": "gaussian_b"}
FAR = 0.1  # difference of mean dropout rates that counts as "far lower"


def train(
    method: str, width: int, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> Record:
    training, validation = dataset.held_out(len(dataset.train.y) // 6)
    run = networks.run_of(
        method,
        training,
        [width] * 3,
        Settings(sizes["batch_size"], seed, kl_weight=networks.METHODS[method].kl_weight),
        about={"method": method, "width": width, "patience": sizes["patience"]},
        file=parts.file(f"{method}-{width}-seed{seed}.pt"),
    )
    cell = {"method": method, "width": width, "seed": seed}
    return {**cell, **stopped_early(run, validation, dataset.test, sizes)}


def stopped_early(run: Run, validation: Split, test: Split, sizes: Record) -> Record:
    """Train until the validation error has not fallen for ``sizes["patience"]`` epochs."""

    def look() -> Record:
        rates = [layer["mean_dropout_rate"] for layer in networks.learned_alphas(run.model)]
        errors = {
            "validation_error": evaluate_averaged(run, validation)["error_percent"],
            "test_error": evaluate_averaged(run, test)["error_percent"],
        }
        return {**errors, "mean_dropout_rates": rates}

    run.finish(run.epoch, look)
    while not _ended(run, sizes):
        run.finish(run.epoch + 1, look)
    best = min(run.history, key=lambda record: record["validation_error"])
    return {
        "epoch": best["epoch"],
        "epochs_run": run.epoch,
        "validation_error": best["validation_error"],
        "test_error": best["test_error"],
        "test_error_at_the_end": run.history[-1]["test_error"],
        "log_likelihood": best["log_likelihood"],
        "neg_kl": best["neg_kl"],
        "mean_dropout_rates": best["mean_dropout_rates"],
        "seconds": run.seconds,
        "test_error_by_epoch": [record["test_error"] for record in run.history],
    }


def _ended(run: Run, sizes: Record) -> bool:
    first = {"epoch": run.epoch}
    best = min(run.history, key=lambda record: record["validation_error"], default=first)
    return bool(run.epoch >= sizes["epochs"] or run.epoch - best["epoch"] >= sizes["patience"])


def summarised(rows: list[Record]) -> Iterator[Record]:
    order = list(networks.METHODS)
    rows = sorted(rows, key=lambda row: (order.index(row["method"]), row["width"]))
    for (method, width), several in grouped(rows, "method", "width").items():
        test_error = mean_and_error([row["test_error"] for row in several])
        rates = [statistics.fmean(row["mean_dropout_rates"] or [math.nan]) for row in several]
        yield {
            "method": method,
            "title": networks.METHODS[method].title,
            "width": width,
            "seeds": len(several),
            "test_error": test_error["mean"],
            "standard_error": test_error["standard_error"],
            "epochs": statistics.fmean(row["epoch"] for row in several),
            "mean_dropout_rate": statistics.fmean(rates),
            "seconds": sum(row["seconds"] for row in several),
        }


def differences(rows: list[Record], better: str, worse: str) -> list[tuple[float, float]]:
    """Compare two methods at each width, seed by seed, by the interval of the mean difference."""
    of = {(row["method"], row["width"], row["seed"]): row["test_error"] for row in rows}
    widths, seeds = (sorted({row[name] for row in rows}) for name in ("width", "seed"))
    return [interval([of[better, w, s] - of[worse, w, s] for s in seeds]) for w in widths]


def statements(rows: list[Record]) -> Iterator[Record]:
    """Measure the statements of section 5 and of the caption of Figure 1a, in the paper's words."""
    present = {row["method"] for row in rows}
    titles = {name: method.title for name, method in networks.METHODS.items()}
    narrow, wide = (f(row["width"] for row in rows) for f in (min, max))
    of = {(row["method"], row["width"], row["seed"]): row for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    rivals = [m for m in networks.METHODS if m not in ("none", "variational_a2")]
    pairs = [(a, b) for a, fixed in COUNTERPARTS.items() for b in (fixed, "binary")]
    pairs += [("variational_a2", rival) for rival in rivals]
    for ours, other in pairs:
        if {ours, other} <= present:
            does = "beats" if ours == "variational_a2" else "performs equal or better than"
            yield _measured(
                f"{titles[ours]} {does} {titles[other]}", differences(rows, ours, other)
            )
    for ours, fixed in COUNTERPARTS.items():
        if {ours, fixed} <= present and narrow < wide:
            gains = {
                (width, s): of[ours, width, s]["test_error"] - of[fixed, width, s]["test_error"]
                for width in (narrow, wide)
                for s in seeds
            }
            more = interval([gains[narrow, s] - gains[wide, s] for s in seeds])
            said = f"{titles[ours]}: the difference is especially large with smaller models"
            yield _measured(said, [more])
    for ours in COUNTERPARTS:
        if ours in present and narrow < wide:
            rates = {
                (width, s): statistics.fmean(of[ours, width, s]["mean_dropout_rates"])
                for width in (narrow, wide)
                for s in seeds
            }
            less = interval([rates[narrow, s] - rates[wide, s] for s in seeds])
            said = f"{titles[ours]}: the dropout rates are on average far lower in smaller networks"
            yield _measured(said, [less], -FAR)


def _measured(statement: str, intervals: list[tuple[float, float]], high: float = 0.0) -> Record:
    agrees = agreement(intervals, high=high)
    return {"statement": statement, "intervals": intervals, "agrees": agrees}


def draw(record: Record) -> Any:
    summary = record["summary"]
    figure, axes = subplots((6.4, 4.4))
    for index, method in enumerate(dict.fromkeys(row["method"] for row in summary)):
        rows = [row for row in summary if row["method"] == method]
        axes.errorbar(
            [row["width"] for row in rows],
            [row["test_error"] for row in rows],
            [0.0 if math.isnan(row["standard_error"]) else row["standard_error"] for row in rows],
            label=rows[0]["title"],
            marker="os^vDPX"[index % 7],
            linestyle="--" if "variational" not in method else "-",
            capsize=2,
        )
    axes.set_xscale("log")
    axes.set_xticks(sorted({row["width"] for row in summary}))
    axes.get_xaxis().set_major_formatter("{x:.0f}")
    axes.minorticks_off()
    axes.set(xlabel="units in each of the three hidden layers", ylabel="test error in %")
    axes.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    widths = sorted({row["width"] for row in record["summary"]})
    by = {(row["method"], row["width"]): row for row in record["summary"]}
    rows = [
        [
            next(row["title"] for (name, _), row in by.items() if name == method),
            *(_error_of(by.get((method, width))) for width in widths),
        ]
        for method in dict.fromkeys(name for name, _ in by)
    ]
    first = "test error in % ± standard error (epochs; mean dropout rate)"
    head = [first, *(f"{w} units" for w in widths)]
    return (
        f"{table(head, rows)}\n\nWhat the paper says of the figure (section 5 and its caption). "
        "Errors are compared at each width, the less wide networks first. “Especially large” "
        f"compares the difference in the narrowest networks with that in the widest, and {FAR:g} "
        f"or more in the mean rate counts as far lower. {BY_THE_RULE}\n\n{said(record['rows'])}\n\n"
        f"{_rates(record)}{_limits(record)}"
    )


def said(rows: list[Record]) -> str:
    """Write the table of the statements, with the verdicts."""
    return table(
        ["statement", "differences with 95 % intervals", "our networks", "verdict"],
        [
            (
                found["statement"],
                ", ".join(f"{d:+.2f} ± {h:.2f}" for d, h in found["intervals"]),
                *of_networks(found["agrees"]),
            )
            for found in statements(rows)
        ],
    )


def _rates(record: Record) -> str:
    """Say in which layers the narrowest networks of B learned other rates than the bound."""
    narrow = min(record["settings"]["widths"])
    several = [
        row["mean_dropout_rates"]
        for row in record["rows"]
        if (row["method"], row["width"]) == ("variational_b", narrow)
    ]
    if not several:
        return ""
    *others, last = map(statistics.fmean, zip(*several, strict=True))
    return (
        f"With {narrow} units variational dropout B learned the mean rate {last:.2f} in the output "
        f"layer, and {min(others):.2f} or more in the others, whose bound is 0.5: it is the output "
        "layer alone that adapts to the width. "
    )


def _limits(record: Record) -> str:
    """Say what this run cannot show."""
    rows, settings = record["rows"], record["settings"]
    cut = sum(row["epochs_run"] - row["epoch"] < settings["patience"] for row in rows)
    by_width = zip(settings["widths"], differences(rows, "binary", "none"), strict=True)
    worse = [str(width) for width, (mean, half) in by_width if mean > half]
    widths = [h for found in statements(rows) for _, h in found["intervals"]]
    seen = statistics.median(widths) if widths else math.nan
    return (
        f"With {' and '.join(worse) or 'no number of'} units binary dropout errs more "
        "often than no dropout, by the 95 % interval. "
        f"{cut} of {len(rows)} runs reached the limit of {settings['epochs']} epochs before early "
        f"stopping ended them, so they may have improved further. With {len(settings['seeds'])} "
        f"seeds the median half width of the intervals is {number(seen, 2)}."
    )


def _error_of(row: Record | None) -> str:
    if row is None:
        return "–"
    rate = number(row["mean_dropout_rate"], 2)
    rate = "" if rate == "–" else f"; {rate}"
    return f"{with_error(row['test_error'], row['standard_error'])} ({row['epochs']:.0f}{rate})"


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    cells = [(method, width) for width in settings["widths"] for method in settings["methods"]]
    rows = parts.by_seed("networks", cells, settings, train, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


FULL = {
    "methods": list(networks.METHODS),
    "widths": [100, 200, 400],
    "epochs": 40,
    "patience": 10,
    "batch_size": 100,
}
QUICK = {"widths": [24, 48], "epochs": 3, "patience": 3, "batch_size": 24}
EXPERIMENT = Experiment(
    __file__, measure, show, FULL, QUICK, place=6, seeds=(1, 2, 3), parted=True, draw=draw
)
EXPERIMENT.run(__name__)
