"""Plot the errors of a fit's value and gradient, and mark the points in ``extrema``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._atomic_io import new_axes, save_figure
from .._errors import shown
from ._error_measures import NOTHING, fixed
from ._tables import relative, title

COLOURS = {"value": "#0072B2", "gradient": "#D55E00"}
#: The plotted range of log alpha if the range of the fit is infinite.
FARTHEST = 12.0


def draw(fit: Any, path: Any = None, ax: Any = None) -> Any:
    """Plot the errors of the value and of the gradient; save the figure if `path` is given."""
    axes = np.ravel(new_axes("Fit.plot", 9.0, 5.6, path, rows=2) if ax is None else ax)
    if [hasattr(each, "plot") for each in axes] != [True, True]:
        raise TypeError(
            f"ax must be two axes, for the value and for the gradient, but {shown(ax)} was given: "
            "pass those of matplotlib.pyplot.subplots(2)"
        )
    low, high = (min(max(end, -FARTHEST), FARTHEST) for end in fit.log_alpha_range)
    margin = 0.06 * (high - low)
    x = np.linspace(low - margin, high + margin, 2401)
    panels = (
        (fit.max_error, f"Error of the value, at most {fit.max_error:.2e}"),
        (
            fit.max_grad_error,
            f"Relative error of the gradient, at most {relative(fit.max_grad_error)}",
        ),
    )
    quantities = fixed(fit._formula, "both", None)
    for axis, (worst, heading), quantity in zip(axes, panels, quantities, strict=True):
        colour, curve = COLOURS[quantity.name], quantity.error(NOTHING, x)
        axis.axhline(0.0, color="0.6", lw=0.8)
        for sign in (-1.0, 1.0):
            axis.axhline(sign * worst, color="0.6", lw=0.8, ls=(0, (4, 3)))
        axis.plot(x, curve, color=colour, lw=1.6)
        at = np.array([e.log_alpha for e in fit.extrema if e.quantity == quantity.name])
        if at.size:
            # An empty line that is not clipped would disturb the layout of the figure.
            at = np.clip(at, x[0], x[-1])
            axis.plot(at, np.interp(at, x, curve), "o", color=colour, ms=5, clip_on=False)
        axis.set_ylim(-1.25 * worst, 1.25 * worst)
        axis.set_xlim(x[0], x[-1])
        for end, beyond in zip(fit.log_alpha_range, (x[0], x[-1]), strict=True):
            if math.isfinite(end):
                axis.axvspan(*sorted((end, beyond)), color="0.93", lw=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(heading, fontsize=10.5, loc="left")
    axes[0].set_title(f"{title(fit)}\n{panels[0][1]}", fontsize=10.5, loc="left")
    axes[-1].set_xlabel(r"$\log\,\alpha$")
    if path is not None:
        save_figure(axes[0].figure, path, dpi=160)
    return axes
