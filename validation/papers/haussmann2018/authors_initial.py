"""Figure 2 and Table 2 with the initial values of the published code.

The networks and settings of Figure 2 above, but with means from N(0, 1/n), log σ² near -9 and
biases of 0. Figure 2 above has torch's initial means and our layers' log σ². This run shows how
many weights are lost at once because of them.
"""

from collections.abc import Iterator
from typing import Any

from validation.experiment import Experiment, Record
from validation.markdown import columns, measured
from validation.papers.haussmann2018 import learning_curves, networks
from validation.summary import grouped, named

# After so many epochs the share of lost weights is shown beside that of Figure 2.
SHOWN = (1, 3, 10, 100)


def beside(rows: list[Record]) -> Iterator[Record]:
    for method, several in grouped(rows, "method").items():
        for epoch in SHOWN:
            points = [p for row in several for p in row["curve"] if p["epoch"] == epoch]
            if points:
                yield {
                    "method": method,
                    "epoch": epoch,
                    **named("test_error", [p["test_error"] for p in points]),
                    **named("pruned", [p["pruned_percent"] for p in points]),
                }


def show(record: Record) -> str:
    known = learning_curves.EXPERIMENT.read()
    assert known is not None
    trained = {row["method"] for row in record["rows"]}
    others = [row for row in known["rows"] if row["method"] in trained]
    ours = {(row["method"], row["epoch"]): row for row in beside(others)}

    def of_figure_2(cell: Any) -> Any:
        def shown(row: Record) -> str:
            other = ours.get((row["method"], row["epoch"]))
            return "–" if other is None else str(cell(other))

        return shown

    compared = columns(
        beside(record["rows"]),
        ("method", networks.title),
        ("epochs", "{epoch}"),
        ("test error in %", measured("test_error")),
        ("in Figure 2 above", of_figure_2(measured("test_error"))),
        ("% with log α > 3", measured("pruned", 1)),
        ("in Figure 2 above", of_figure_2(measured("pruned", 1))),
    )
    note = "These initial values are those of the published code of 2019."
    return f"{learning_curves.show(record, note)}\n\nBeside Figure 2 above:\n\n{compared}"


FULL = {
    **learning_curves.FULL,
    "methods": ["vbp", "sampled"],
    "initial": "as in the published code",
}
EXPERIMENT = Experiment(
    __file__,
    learning_curves.measure,
    show,
    FULL,
    learning_curves.QUICK,
    place=9,
    seeds=(1, 2, 3),
    parted=True,
    draw=learning_curves.draw,
)
EXPERIMENT.run(__name__)
