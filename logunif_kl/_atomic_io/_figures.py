"""Figures of matplotlib. Those that are saved to a file need no display."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from ._files import replacing


def new_figure(purpose: str, width: float, height: float) -> Any:
    """Make an empty figure of a size in inches. An ImportError names the ``purpose``."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise _no_matplotlib(purpose, error) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_axes(purpose: str, width: float, height: float, path: Any = None, rows: int = 1) -> Any:
    """Make a figure, and return its axes: one, or an array of several with one horizontal axis.

    The figure is the current figure of pyplot, which shows and saves it. If it is saved to `path`,
    pyplot does not know it: then it needs no display, and is freed after use.
    """
    if path is not None:
        return new_figure(purpose, width, height).subplots(rows, sharex=True)
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise _no_matplotlib(purpose, error) from None
    figure = pyplot.figure(figsize=(width, height), layout="constrained")
    return figure.subplots(rows, sharex=True)


def _no_matplotlib(purpose: str, error: ImportError) -> ImportError:
    return ImportError(
        f"{purpose} needs matplotlib, which cannot be imported ({error}): "
        'install it with pip install "logunif_kl[plot]"'
    )


def plain_log_scale(axes: Any) -> None:
    """Make the vertical axis logarithmic, with ticks like 0.5, 1 and 2, not 10^0 and 2 x 10^0."""
    from matplotlib.ticker import LogLocator

    axes.set_yscale("log")
    # Where these ticks would be too few or too many, the locators choose others or none.
    axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")


def save_figure(figure: Any, path: Any, dpi: int) -> None:
    """Write a figure as ``figure.savefig`` does; if that fails, the old file is unchanged.

    The figure is drawn in memory, because matplotlib leaves files open if the disk is full.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        figure.savefig(path, dpi=dpi)
        return
    target = Path(path)
    suffix = target.suffix.removeprefix(".").lower()
    if not suffix:
        suffix = figure.canvas.get_default_filetype()
        target = Path(f"{os.fspath(path).rstrip('.')}.{suffix}")
    drawn = io.BytesIO()
    figure.savefig(drawn, format=suffix, dpi=dpi)
    with replacing(target) as part:
        part.write_bytes(drawn.getbuffer())
