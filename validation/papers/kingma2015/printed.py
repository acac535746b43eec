"""The numbers that Kingma et al. 2015 print, for tables that compare them with ours.

A key of a table is (estimator, layer, epochs). Figure 1 prints no numbers; `test_error` has the
statements of its caption and the text.
"""

from collections.abc import Mapping

LAYERS, EPOCHS = ("top", "bottom"), (10, 100)

# Each row: top layer after 10 and after 100 epochs, bottom layer after 10 and after 100.
_TABLE_1 = {
    "local": (7.8e3, 1.2e3, 1.9e2, 1.1e2),
    "per_example": (1.4e4, 2.6e3, 4.3e2, 2.5e2),
    "per_batch": (4.9e4, 4.3e3, 8.5e2, 3.3e2),
    "none": (2.8e3, 5.9e1, 1.3e2, 9.0e0),
}
_TABLE_2 = {
    "local": (2.9e4, 5.8e3, 8.8e2, 5.3e2),
    "per_batch": (3.1e5, 2.0e4, 5.0e3, 1.1e3),
    "none": (7.1e3, 9.8e2, 4.3e2, 1.2e2),
}


def keyed(rows: Mapping[str, tuple[float, ...]]) -> dict[tuple[str, str, int], float]:
    columns = [(layer, epochs) for layer in LAYERS for epochs in EPOCHS]
    return {
        (name, layer, epochs): value
        for name, values in rows.items()
        for (layer, epochs), value in zip(columns, values, strict=True)
    }


GRADIENT_VARIANCE = {"independent": keyed(_TABLE_1), "correlated": keyed(_TABLE_2)}
TEST_ERROR_AFTER = {10: 3.0, 100: 1.3}  # per cent; section 5, "Variance"
SECONDS_AN_EPOCH = {"per_example": 1635.0, "local": 7.4}  # section 5, "Speed"
