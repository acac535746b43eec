"""Figures of matplotlib, which need no display."""

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
        raise ImportError(
            f"{purpose} needs matplotlib, which cannot be imported ({error}): "
            'install it with pip install "logunif_kl[plot]"'
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


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
