"""The picture of a fit: the errors of value and gradient, and where they are levelled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._atomic_io import new_figure, save_figure
from ._formula import POLYNOMIAL

COLOURS = {"value": "#0072B2", "gradient": "#D55E00"}


class Panel(NamedTuple):
    """One error of a fit, as it is drawn.

    Attributes
    ----------
    quantity : str
        ``"value"`` or ``"gradient"``.
    title : str
        The heading of the panel.
    error : callable
        The signed error, of an array of log alpha.
    worst : float
        Its largest magnitude over the range of the fit.
    extrema : sequence of float
        The log alphas at which it is levelled.
    """

    quantity: str
    title: str
    error: Callable[[np.ndarray], np.ndarray]
    worst: float
    extrema: Sequence[float]


def draw(
    title: str, log_alpha_range: tuple[float, float], panels: Sequence[Panel], path: Any = None
) -> Any:
    """Draw the panels below each other in a new figure, and save it where a path is given."""
    figure = new_figure("Fit.plot", 9.0, 5.6)
    axes: Any = figure.subplots(len(panels), 1, sharex=True)
    low, high = (min(max(end, -12.0), 12.0) for end in log_alpha_range)
    margin = 0.06 * (high - low)
    x = np.linspace(low - margin, high + margin, 2401)
    for axis, panel in zip(axes, panels, strict=True):
        colour, curve = COLOURS[panel.quantity], panel.error(x)
        axis.axhline(0.0, color="0.6", lw=0.8)
        for sign in (-1.0, 1.0):
            axis.axhline(sign * panel.worst, color="0.6", lw=0.8, ls=(0, (4, 3)))
        axis.plot(x, curve, color=colour, lw=1.6)
        at = np.clip(np.array(panel.extrema), x[0], x[-1])
        axis.plot(at, np.interp(at, x, curve), "o", color=colour, ms=5, clip_on=False)
        axis.set_ylim(-1.25 * panel.worst, 1.25 * panel.worst)
        axis.axvspan(x[0], low, color="0.93", lw=0)
        axis.axvspan(high, x[-1], color="0.93", lw=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(panel.title, fontsize=10.5, loc="left")
    axes[-1].set_xlabel(r"$\log\,\alpha$")
    axes[-1].set_xlim(x[0], x[-1])
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    if path is not None:
        save_figure(figure, path, dpi=160)
    return figure


def title(family: str, terms: int, norm: str, log_alpha_range: tuple[float, float]) -> str:
    """Describe a fit in one line: its family, its norm and its range."""
    low, high = log_alpha_range
    where = f"log alpha in [{low:.3g}, {high:.3g}]"
    what = "one sigmoid" if terms == 1 else f"{terms} sigmoids"
    if family == POLYNOMIAL:
        where = f"alpha in [{math.exp(low):.3g}, {math.exp(high):.3g}]"
        what = f"polynomial of degree {terms}"
    elif math.isinf(low) and math.isinf(high):
        where = "every alpha"
    return f"{what}, {norm.replace('_', ' ')} over {where}".capitalize()
