"""Draw how a network loses its weights while it trains: ``python -m validation.tools.trained``.

It writes the picture of the README, from the record of LeNet-300-100. The site draws its own.
"""

from pathlib import Path
from typing import Any

from validation import record
from validation.output import Record
from validation.paths import RESULTS, ROOT

CASE = "no_rate"
PICTURE = ROOT / "docs" / "_static" / "trained.png"


def result() -> Record:
    return record.read(RESULTS / "molchanov2017" / "authors_settings.json")


def mean(case: str = CASE) -> Record:
    """Return the means over the seeds."""
    return dict(next(row for row in result()["summary"] if row["case"] == case))


def draw(weights: Any, error: Any, ink: str) -> None:
    """Draw the number of weights that are left, and the test error, against the epochs."""
    made = result()
    for row in (row for row in made["rows"] if row["case"] == CASE):
        epochs = [0, *(each["epoch"] for each in row["by_epoch"])]
        weights.plot(epochs, [row["weights"], *(each["kept"] for each in row["by_epoch"])])
        error.plot(epochs[1:], [each["test_error_pruned"] for each in row["by_epoch"]])
    weights.set(yscale="log", xlabel="epochs", title="weights that are left")
    weights.yaxis.set_major_formatter("{x:,.0f}")
    error.set(ylim=(0.0, 4.0), xlabel="epochs", title="test error in %")
    error.axhline(made["paper"]["error_percent"], color=ink, linewidth=0.8, linestyle=":")


def save(path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    weights, error = figure.subplots(1, 2)
    draw(weights, error, "black")
    for axes in (weights, error):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    save(PICTURE)
