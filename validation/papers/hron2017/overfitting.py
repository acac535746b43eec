"""Section 3: whether θ overfits under correlated noise.

784-200-200-200-10 on few examples of MNIST, 6000 steps of Adam with minibatches of 100 and no early
stopping. With a prior over the scales s alone, nothing regularises θ, and the paper expects that it
can overfit: it would lose test log-likelihood as training goes on.

The mean log-likelihood of training and test examples is measured without noise. A network overfits
if its test log-likelihood at the end is below the best that it had.
"""

# mypy: allow-untyped-calls
from collections.abc import Iterator
from typing import Any

from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, measured, rounded
from validation.summary import grouped, interval, mean_and_error
from validation.training import networks
from validation.training.data import Split
from validation.training.loop import Settings, evaluate, flushed

LEAST = 0.05  # nats per example, since the best of many looks exceeds the last by chance
METHODS = ["none", "binary", "gaussian_a", "variational_a", "variational_b"]


@flushed()
def train(
    method: str, examples: int, seed: int, sizes: Record, dataset: Dataset, parts: Parts
) -> Record:
    some = slice((seed - 1) * examples, seed * examples)
    few = Split(dataset.train.x[some], dataset.train.y[some])
    run = networks.run_of(
        method,
        few,
        sizes["hidden"],
        Settings(sizes["batch_size"], seed, averaging=None),
        about={"method": method, "examples": examples},
        file=parts.file(f"{method}-{examples}-seed{seed}.pt"),
    )
    per_epoch = -(-examples // sizes["batch_size"])
    while run.step < sizes["steps"]:
        run.finish(run.epoch + 1)
        if run.step % sizes["look_every"] < per_epoch:
            fit, test = evaluate(run.model, few), evaluate(run.model, dataset.test)
            run.amend(training=fit["log_likelihood"], **{f"test_{k}": v for k, v in test.items()})
    looks = [each for each in run.history if "training" in each]
    best = max(looks, key=lambda each: each["test_log_likelihood"])
    return {
        "method": method,
        "examples": examples,
        "seed": seed,
        "steps": [each["steps"] for each in looks],
        "training": [each["training"] for each in looks],
        "test": [each["test_log_likelihood"] for each in looks],
        "best_step": best["steps"],
        "lost": best["test_log_likelihood"] - looks[-1]["test_log_likelihood"],
        "test_error": looks[-1]["test_error_percent"],
        "seconds": run.seconds,
    }


def summarised(rows: list[Record]) -> Iterator[Record]:
    for (method, examples), several in grouped(rows, "method", "examples").items():
        lost, half = interval([row["lost"] for row in several])
        yield {
            "title": networks.METHODS[method].title,
            "method": method,
            "examples": examples,
            "lost": mean_and_error([row["lost"] for row in several]),
            "overfits": lost - half > LEAST if len(several) > 1 else None,
            "training": mean_and_error([row["training"][-1] for row in several]),
            "test": mean_and_error([row["test"][-1] for row in several]),
            "test_error": mean_and_error([row["test_error"] for row in several]),
            "best_step": sum(row["best_step"] for row in several) / len(several),
        }


def draw(record: Record) -> Any:
    sizes = sorted({row["examples"] for row in record["rows"]})
    figure, panels = subplots((9.0, 3.6), 1, len(sizes), squeeze=False)
    for axes, examples in zip(panels[0], sizes, strict=True):
        for index, method in enumerate(METHODS):
            rows = [r for r in record["rows"] if (r["method"], r["examples"]) == (method, examples)]
            for row in rows:
                label = networks.METHODS[method].title if row is rows[0] else None
                losses = [-value for value in row["test"]]
                axes.loglog(row["steps"], losses, f"C{index}", linewidth=1.0, label=label)
        axes.set(title=f"{examples} examples", xlabel="steps")
        axes.xaxis.set_minor_formatter("")
    panels[0][0].set_ylabel("-log p per test example in nats")
    panels[0][-1].legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    return (
        columns(
            record["summary"],
            ("dropout", "{title}"),
            ("examples", "{examples}"),
            ("training log p", measured("training", 4)),
            ("test log p", measured("test", 3)),
            ("lost since its best", measured("lost", 3)),
            ("best at step", rounded("best_step")),
            ("test error in %", measured("test_error")),
        )
        + "\n\nLog-likelihoods are means per example in nats, without noise, after the last step. "
        + _verdict(record)
    )


def _verdict(record: Record) -> str:
    def sizes(rows: list[Record]) -> str:
        return ", ".join(str(row["examples"]) for row in rows if row["overfits"]) or "no number of"

    by_method = grouped(record["summary"], "title")
    said = "; ".join(f"{title} with {sizes(rows)} examples" for title, rows in by_method.items())
    fewest = min(row["examples"] for row in record["summary"])
    first = [row for row in record["summary"] if row["examples"] == fewest]
    lost = {row["method"]: row["lost"]["mean"] for row in first}
    less = sum(lost["variational_a"] < each for each in lost.values())
    return (
        "The paper expects variational dropout A to overfit, since its prior does not regularise "
        f"θ. With {fewest} examples {less} of the {len(lost) - 1} other methods lose more than it. "
        f"By the 95 % interval over the seeds, these lose more than {LEAST} nats: {said}."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    cells = [(method, count) for count in settings["examples"] for method in settings["methods"]]
    rows = parts.by_seed("networks", cells, settings, train, dataset, parts)
    return {"summary": list(summarised(rows)), "rows": rows}


FULL = {
    "methods": METHODS,
    "examples": [300, 1000, 5000],
    "hidden": [200] * 3,
    "steps": 6000,
    "look_every": 150,
    "batch_size": 100,
}
QUICK = {"examples": [150], "hidden": [20] * 2, "steps": 240, "look_every": 30, "batch_size": 50}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=7, seeds=(1, 2, 3), draw=draw)
EXPERIMENT.run(__name__)
