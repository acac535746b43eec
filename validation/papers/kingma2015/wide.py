"""Figure 1a with 800 units.

The networks and settings of Figure 1a above, with 800 units in each hidden layer. The statements
compare all widths of both runs.
"""

from typing import Any

from validation.experiment import Experiment, Record
from validation.papers.kingma2015 import test_error


def with_narrower(record: Record) -> Record:
    """Return a record of these widths and those of Figure 1a, for the same methods and seeds.

    Of Figure 1a, take what was trained with the same settings.
    """
    known, own = test_error.EXPERIMENT.read(), record["settings"]
    assert known is not None
    alike = all(known["settings"][key] == own[key] for key in ("epochs", "patience", "batch_size"))
    chosen = [
        row
        for row in known["rows"]
        if alike and row["method"] in own["methods"] and row["seed"] in own["seeds"]
    ]
    rows = [*chosen, *record["rows"]]
    widths = sorted({row["width"] for row in rows})
    return {
        "settings": {**own, "widths": widths},
        "rows": rows,
        "summary": list(test_error.summarised(rows)),
    }


def show(record: Record) -> str:
    return test_error.show(with_narrower(record))


def draw(record: Record) -> Any:
    return test_error.draw(with_narrower(record))


FULL = {**test_error.FULL, "widths": [800]}
EXPERIMENT = Experiment(
    __file__,
    test_error.measure,
    show,
    FULL,
    test_error.QUICK,
    place=15,
    seeds=(1, 2, 3),
    parted=True,
    draw=draw,
)
EXPERIMENT.run(__name__)
