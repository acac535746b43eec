"""Figure 1a: test error.

Three hidden layers of each width, early stopping on the last sixth of the training set, temporal
averaging; the mean over the seeds, with its standard error. α is one for each input unit, starts
from the rates 0.2 and 0.5, and is at most 1.

All methods of a seed have the same initial weights and the same order of the examples.
"""

import itertools
import math
import statistics
from collections.abc import Iterator
from typing import Any

from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import number, table, with_error, yes
from validation.summary import grouped, interval, mean_and_error
from validation.training import networks
from validation.training.loop import Run, Settings, evaluate_averaged

# Variational dropout, and the methods that the paper compares it with.
COUNTERPARTS = {"variational_a": "gaussian_a", "variational_b": "gaussian_b"}


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

    def look() -> Record:
        rates = [layer["mean_dropout_rate"] for layer in networks.learned_alphas(run.model)]
        errors = {
            "validation_error": evaluate_averaged(run, validation)["error_percent"],
            "test_error": evaluate_averaged(run, dataset.test)["error_percent"],
        }
        return {**errors, "mean_dropout_rates": rates}

    run.finish(run.epoch, look)
    while not _ended(run, sizes):
        run.finish(run.epoch + 1, look)
    best = min(run.history, key=lambda record: record["validation_error"])
    return {
        "method": method,
        "width": width,
        "seed": seed,
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
    """Decide the statements of section 5 about Figure 1a by 95 % intervals over the seeds."""
    of = {(row["method"], row["width"], row["seed"]): row for row in rows}
    widths = sorted({row["width"] for row in rows})
    seeds = sorted({row["seed"] for row in rows})

    def there(method: str) -> bool:
        return all((method, width, seed) in of for width in widths for seed in seeds)

    pairs = [(a, rival) for a, fixed in COUNTERPARTS.items() for rival in (fixed, "binary")]
    rivals = [m for m in networks.METHODS if m not in ("none", "variational_a2")]
    pairs += [("variational_a2", rival) for rival in rivals]
    for better, worse in pairs:
        if there(better) and there(worse):
            by_width = differences(rows, better, worse)
            yield {
                "statement": f"{networks.METHODS[better].title} is no worse than "
                + networks.METHODS[worse].title.replace("variational dropout", "variational"),
                "widths": widths,
                "differences": [d for d, _ in by_width],
                "half_widths": [h for _, h in by_width],
                # One seed is not enough to decide.
                "holds": all(d <= h for d, h in by_width) if len(seeds) > 1 else None,
                "better": all(d < -h for d, h in by_width) if len(seeds) > 1 else None,
            }
    for method in ("variational_a", "variational_b") if len(widths) > 1 else ():
        if there(method):
            rates = {
                (w, s): statistics.fmean(of[method, w, s]["mean_dropout_rates"])
                for w in widths
                for s in seeds
            }
            steps = [
                interval([rates[wide, s] - rates[narrow, s] for s in seeds])
                for narrow, wide in itertools.pairwise(widths)
            ]
            yield {
                "statement": f"{networks.METHODS[method].title}: the mean dropout rate is "
                "lower in smaller networks",
                "widths": widths,
                "rates": [statistics.fmean(rates[w, s] for s in seeds) for w in widths],
                "half_widths": [h for _, h in steps],
                "holds": all(d > h for d, h in steps) if len(seeds) > 1 else None,
            }


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
    said = [_said(found) for found in record["statements"]]
    return (
        table(head, rows)
        + "\n\nThe paper's statements about the figure, tested by the 95 % interval over the seeds "
        "at each width:\n\n"
        + table(["statement", "differences with 95 % intervals, or rates", "holds"], said)
        + f"\n\n{_limits(record)}"
    )


def _said(found: Record) -> tuple[str, str, str]:
    """The paper says that A2 beats all others, and that A and B are equal or better."""
    if "rates" in found:
        return (
            found["statement"],
            ", ".join(f"{v:.2f}" for v in found["rates"]),
            yes(found["holds"]),
        )
    differences = ", ".join(
        f"{d:+.2f} ± {h:.2f}"
        for d, h in zip(found["differences"], found["half_widths"], strict=True)
    )
    statement = found["statement"]
    if _of_a2(found):
        statement = statement.replace("is no worse than", "beats")
    return statement, differences, yes(holds(found))


def _of_a2(found: Record) -> bool:
    return bool(found["statement"].startswith(networks.METHODS["variational_a2"].title))


def holds(found: Record) -> bool | None:
    """Say whether the paper's statement holds: "beats" of A2, and else "no worse"."""
    held: bool | None = found["better" if _of_a2(found) else "holds"]
    return held


def _limits(record: Record) -> str:
    """Say what this run cannot show."""
    rows, settings = record["rows"], record["settings"]
    cut = sum(row["epochs_run"] - row["epoch"] < settings["patience"] for row in rows)
    by_width = zip(settings["widths"], differences(rows, "binary", "none"), strict=True)
    worse = [str(width) for width, (mean, half) in by_width if mean > half]
    widths = [h for found in record["statements"] for h in found.get("half_widths", ())]
    seen = statistics.median(widths) if widths else math.nan
    return (
        f"With {' and '.join(worse) or 'no number of'} units binary dropout errs more "
        "often than no dropout, by the 95 % interval. "
        f"{cut} of {len(rows)} runs reached the limit of {settings['epochs']} epochs before early "
        f"stopping ended them, so they may have improved further. With {len(settings['seeds'])} "
        f"seeds the median half width of the intervals is {number(seen, 2)} points of error: "
        "“no worse” means that no larger difference was seen."
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
    return {"summary": list(summarised(rows)), "statements": list(statements(rows)), "rows": rows}


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
