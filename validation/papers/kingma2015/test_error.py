"""Figure 1a: the test error on MNIST against the width, for each kind of dropout.

    python -m validation.papers.kingma2015.test_error [--data FILE] [--quick] [--part 1/2]

Networks with three hidden layers are trained by Adam with its default hyperparameters, minibatches
of 100 and temporal averaging. The last sixth of the training examples is held out. The number of
epochs is the one with the least validation error, of the averaged parameters (early stopping); the
training ends when it has not fallen for a number of epochs. The initial weights and the order of
the examples of a seed are the same for all methods.

Each network is one part with a checkpoint of its own. ``--part 1/2`` trains the first half of the
networks and ``--part 2/2`` the other, as two processes; the command without it then collects them.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

from scipy import stats

from logunif_kl.cli._output import track
from validation.training import networks
from validation.training.data import DataError, Dataset, Split
from validation.training.loop import Run, Settings, evaluate_averaged, seeded
from validation.training.options import Experiment
from validation.training.parts import Parts

EXPERIMENT = Experiment("kingma2015", "test_error", __doc__, seeds=[1, 2, 3])
EXPERIMENT.parser.add_argument(
    "--part", metavar="I/N", help="train every N-th network and write none"
)
EXPERIMENT.parser.add_argument("--plot", metavar="FILE", help="draw the figure")
EXPERIMENT.parser.add_argument("--widths", metavar="N", type=int, nargs="+")
EXPERIMENT.parser.add_argument("--epochs", metavar="N", type=int, help="at most so many")
EXPERIMENT.parser.add_argument("--methods", metavar="NAME", nargs="+", choices=networks.METHODS)

# Variational dropout, and what the paper compares it with.
COUNTERPARTS = {"variational_a": "gaussian_a", "variational_b": "gaussian_b"}


def full_and_quick(options: argparse.Namespace) -> dict[str, Any]:
    """Return the sizes of the experiment."""
    sizes: dict[str, Any] = {"widths": [100, 200, 400], "epochs": 40, "patience": 10}
    sizes["batch_size"] = 100
    if options.quick:
        sizes = {"widths": [24, 48], "epochs": 3, "patience": 3, "batch_size": 24}
    return {
        "methods": options.methods or list(networks.METHODS),
        **sizes,
        **({"widths": options.widths} if options.widths else {}),
        **({"epochs": options.epochs} if options.epochs else {}),
    }


def train(
    method: str, width: int, seed: int, sizes: dict[str, Any], dataset: Dataset, parts: Parts
) -> dict[str, Any]:
    """Train one network, and choose the number of epochs by the validation error."""
    training, validation = dataset.held_out(len(dataset.train.y) // 6)
    noise, name = seeded(seed, 1), f"{method}-{width}-seed{seed}"
    model = networks.network(method, dataset.pixels, [width] * 3, seed=seed, generator=noise)
    settings = Settings(sizes["batch_size"], seed, kl_weight=networks.METHODS[method].kl_weight)
    run = Run(
        model,
        noise,
        training,
        settings,
        about={"method": method, "width": width, "patience": sizes["patience"]},
        file=parts.file(f"{name}.pt"),
    )
    _look(run, validation, dataset.test)
    while not _ended(run, sizes):
        for _ in run.train(run.epoch + 1):
            _look(run, validation, dataset.test)
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
        "seconds": round(sum(record["seconds"] for record in run.history), 1),
        "test_error_by_epoch": [record["test_error"] for record in run.history],
    }


def _look(run: Run, validation: Split, test: Split) -> None:
    """Add the errors of the averaged parameters to the last record, if they are not there."""
    if run.history and "test_error" not in run.history[-1]:
        rates = [layer["mean_dropout_rate"] for layer in networks.learned_alphas(run.model)]
        run.amend(
            validation_error=evaluate_averaged(run, validation)["error_percent"],
            test_error=evaluate_averaged(run, test)["error_percent"],
            mean_dropout_rates=rates,
        )


def _ended(run: Run, sizes: dict[str, Any]) -> bool:
    if run.epoch >= sizes["epochs"]:
        return True
    if not run.history:
        return False
    best = min(run.history, key=lambda record: record["validation_error"])
    return bool(run.epoch - best["epoch"] >= sizes["patience"])


def summarised(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average over the seeds."""
    found = []
    for (method, width), each in itertools.groupby(
        sorted(rows, key=lambda row: (list(networks.METHODS).index(row["method"]), row["width"])),
        key=lambda row: (row["method"], row["width"]),
    ):
        several = list(each)
        errors = [row["test_error"] for row in several]
        deviation = statistics.stdev(errors) if len(errors) > 1 else math.nan
        rates = [statistics.fmean(row["mean_dropout_rates"] or [math.nan]) for row in several]
        found.append(
            {
                "method": method,
                "title": networks.METHODS[method].title,
                "width": width,
                "seeds": len(errors),
                "test_error": statistics.fmean(errors),
                "standard_error": deviation / math.sqrt(len(errors)),
                "epochs": statistics.fmean(row["epoch"] for row in several),
                "mean_dropout_rate": statistics.fmean(rates),
                "seconds": sum(row["seconds"] for row in several),
            }
        )
    return found


def statements(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Decide what section 5 says of Figure 1a.

    The networks of one seed begin alike and see the examples in the same order, so that two methods
    are compared seed by seed: a difference counts beyond its 95 % interval, by Student's t.
    """
    of = {(row["method"], row["width"], row["seed"]): row for row in rows}
    widths = sorted({row["width"] for row in rows})
    seeds = sorted({row["seed"] for row in rows})

    def there(method: str) -> bool:
        return all((method, width, seed) in of for width in widths for seed in seeds)

    pairs = [(a, rival) for a, fixed in COUNTERPARTS.items() for rival in (fixed, "binary")]
    rivals = [m for m in networks.METHODS if m not in ("none", "variational_a2")]
    pairs += [("variational_a2", rival) for rival in rivals]
    found = []
    for better, worse in pairs:
        if there(better) and there(worse):
            errors = {key: row["test_error"] for key, row in of.items()}
            by_width = [
                _interval([errors[better, w, s] - errors[worse, w, s] for s in seeds])
                for w in widths
            ]
            found.append(
                {
                    "statement": f"{networks.METHODS[better].title} is no worse than "
                    + networks.METHODS[worse].title.replace("variational dropout", "variational"),
                    "widths": widths,
                    "differences": [d for d, _ in by_width],
                    "half_widths": [h for _, h in by_width],
                    # By one seed nothing is decided.
                    "holds": all(d <= h for d, h in by_width) if len(seeds) > 1 else None,
                    "better": all(d < -h for d, h in by_width) if len(seeds) > 1 else None,
                }
            )
    for method in ("variational_a", "variational_b") if len(widths) > 1 else ():
        if there(method):
            rates = {
                (w, s): statistics.fmean(of[method, w, s]["mean_dropout_rates"])
                for w in widths
                for s in seeds
            }
            steps = [
                _interval([rates[wide, s] - rates[narrow, s] for s in seeds])
                for narrow, wide in itertools.pairwise(widths)
            ]
            found.append(
                {
                    "statement": f"{networks.METHODS[method].title}: the mean dropout rate is "
                    "lower in smaller networks",
                    "widths": widths,
                    "rates": [statistics.fmean(rates[w, s] for s in seeds) for w in widths],
                    "half_widths": [h for _, h in steps],
                    "holds": all(d > h for d, h in steps) if len(seeds) > 1 else None,
                }
            )
    return found


def _interval(values: list[float]) -> tuple[float, float]:
    """Return the mean, and half the width of its 95 % interval, which one value does not tell."""
    n = len(values)
    if n == 1:
        return values[0], math.nan
    error = statistics.stdev(values) / math.sqrt(n)
    return statistics.fmean(values), float(stats.t.ppf(0.975, n - 1)) * error


def draw(path: str, summary: list[dict[str, Any]]) -> None:
    """Draw the test error against the width."""
    from matplotlib.figure import Figure

    from logunif_kl.cli.provenance import stamp

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    for number, method in enumerate(dict.fromkeys(row["method"] for row in summary)):
        rows = [row for row in summary if row["method"] == method]
        axes.errorbar(
            [row["width"] for row in rows],
            [row["test_error"] for row in rows],
            [0.0 if math.isnan(row["standard_error"]) else row["standard_error"] for row in rows],
            label=rows[0]["title"],
            marker="os^vDPX"[number % 7],
            linestyle="--" if "variational" not in method else "-",
            capsize=2,
        )
    axes.set_xscale("log")
    axes.set_xticks(sorted({row["width"] for row in summary}))
    axes.get_xaxis().set_major_formatter("{x:.0f}")
    axes.minorticks_off()
    axes.set_xlabel("units in each of the three hidden layers")
    axes.set_ylabel("test error in %")
    axes.legend(fontsize="small")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata=stamp(path, "kingma2015_test_error"))


def chosen(text: str | None) -> tuple[int, int]:
    """Read ``I/N``; all is 1/1."""
    number, slash, of = (text or "1/1").partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise DataError(f"--part {text} is no part: write --part 1/2 for the first of two")
    return int(number), int(of)


def measure(options: argparse.Namespace, dataset: Dataset, parts: Parts) -> dict[str, Any] | None:
    """Train all networks, or those of one part, of which there is no record."""
    sizes, (number, of) = full_and_quick(options), chosen(options.part)
    cells = list(itertools.product(options.seeds, sizes["widths"], sizes["methods"]))
    mine = cells[number - 1 :: of]
    rows = []
    for seed, width, method in track(mine, "training networks", len(mine)):
        settings = {key: sizes[key] for key in ("epochs", "patience", "batch_size")}
        rows.append(
            parts.get(
                f"{method}-{width}-seed{seed}",
                partial(train, method, width, seed, sizes, dataset, parts),
                seed=seed,
                **settings,
            )
        )
    if of > 1:
        return None
    summary = summarised(rows)
    if options.plot:
        draw(options.plot, summary)
    return {"sizes": sizes, "summary": summary, "statements": statements(rows), "rows": rows}


if __name__ == "__main__":
    sys.exit(EXPERIMENT.main(measure))
