"""Figures of matplotlib, which is imported when one is drawn."""

from typing import Any


def subplots(
    size: tuple[float, float], rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Any, Any]:
    """Return a figure of some inches, and its axes: one, or an array of several."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, **options)
