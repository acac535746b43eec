"""Plot the errors of a fit's value and gradient, and mark the points in ``extrema``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._atomic_io import new_figure, save_figure
from ._error_measures import NOTHING, fixed
from ._tables import title

COLOURS = {"value": "#0072B2", "gradient": "#D55E00"}


def draw(fit: Any, path: Any = None) -> Any:
    """Plot the value's and the gradient's errors in a new figure; save it if `path` is given."""
    figure = new_figure("Fit.plot", 9.0, 5.6)
    axes: Any = figure.subplots(2, 1, sharex=True)
    low, high = (min(max(end, -12.0), 12.0) for end in fit.log_alpha_range)
    margin = 0.06 * (high - low)
    x = np.linspace(low - margin, high + margin, 2401)
    panels = (
        (fit.max_error, f"Error of the value, at most {fit.max_error:.2e}"),
        (fit.max_grad_error, f"Relative error of the gradient, at most {fit.max_grad_error:.2e}"),
    )
    quantities = fixed(fit._formula, "both", None)
    for axis, (worst, heading), quantity in zip(axes, panels, quantities, strict=True):
        colour, curve = COLOURS[quantity.name], quantity.error(NOTHING, x)
        axis.axhline(0.0, color="0.6", lw=0.8)
        for sign in (-1.0, 1.0):
            axis.axhline(sign * worst, color="0.6", lw=0.8, ls=(0, (4, 3)))
        axis.plot(x, curve, color=colour, lw=1.6)
        at = np.array([e.log_alpha for e in fit.extrema if e.quantity == quantity.name])
        at = np.clip(at, x[0], x[-1])
        axis.plot(at, np.interp(at, x, curve), "o", color=colour, ms=5, clip_on=False)
        axis.set_ylim(-1.25 * worst, 1.25 * worst)
        axis.axvspan(x[0], low, color="0.93", lw=0)
        axis.axvspan(high, x[-1], color="0.93", lw=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(heading, fontsize=10.5, loc="left")
    axes[-1].set_xlabel(r"$\log\,\alpha$")
    axes[-1].set_xlim(x[0], x[-1])
    figure.suptitle(title(fit), fontsize=11, x=0.01, ha="left")
    if path is not None:
        save_figure(figure, path, dpi=160)
    return figure
