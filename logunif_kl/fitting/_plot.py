"""The picture of a fit: the errors of value and gradient, and where they are levelled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _api
from ._formula import POLYNOMIAL

if TYPE_CHECKING:
    from ._fit import Fit

COLOURS = {"value": "#0072B2", "gradient": "#D55E00"}


def draw(fit: Fit, path: Any = None) -> Any:
    """Draw a fit on a figure of its own, and into a file where one is named."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"Fit.plot needs matplotlib, which cannot be imported ({error}): "
            'install it with pip install "logunif_kl[plot]"'
        ) from None
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(2, 1, sharex=True)
    low, high = (min(max(end, -12.0), 12.0) for end in fit.log_alpha_range)
    margin = 0.06 * (high - low)
    x = np.linspace(low - margin, high + margin, 2401)
    exact = _api.neg_kl_grad(x)
    curves = {
        "value": fit.neg_kl(x) - _api.neg_kl(x),
        "gradient": (fit.neg_kl_grad(x) - exact) / exact,
    }
    worst = {"value": fit.max_error, "gradient": fit.max_grad_error}
    for axis, (name, curve) in zip(axes, curves.items(), strict=True):
        axis.axhline(0.0, color="0.6", lw=0.8)
        for sign in (-1.0, 1.0):
            axis.axhline(sign * worst[name], color="0.6", lw=0.8, ls=(0, (4, 3)))
        axis.plot(x, curve, color=COLOURS[name], lw=1.6)
        at = np.array([e.log_alpha for e in fit.extrema if e.quantity == name])
        at = np.clip(at, x[0], x[-1])
        axis.plot(at, np.interp(at, x, curve), "o", color=COLOURS[name], ms=5, clip_on=False)
        axis.set_ylim(-1.25 * worst[name], 1.25 * worst[name])
        axis.axvspan(x[0], low, color="0.93", lw=0)
        axis.axvspan(high, x[-1], color="0.93", lw=0)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_title(f"Error of the value, at most {fit.max_error:.2e}", fontsize=10.5, loc="left")
    axes[1].set_title(
        f"Relative error of the gradient, at most {fit.max_grad_error:.2e}",
        fontsize=10.5,
        loc="left",
    )
    axes[1].set_xlabel(r"$\log\,\alpha$")
    axes[1].set_xlim(x[0], x[-1])
    figure.suptitle(_title(fit), fontsize=11, x=0.01, ha="left")
    if path is not None:
        figure.savefig(path, dpi=160)
    return figure


def _title(fit: Fit) -> str:
    low, high = fit.log_alpha_range
    where = f"log alpha in [{low:.3g}, {high:.3g}]"
    what = "one sigmoid" if fit.terms == 1 else f"{fit.terms} sigmoids"
    if fit.family == POLYNOMIAL:
        where = f"alpha in [{math.exp(low):.3g}, {math.exp(high):.3g}]"
        what = f"polynomial of degree {fit.terms}"
    elif math.isinf(low) and math.isinf(high):
        where = "every alpha"
    return f"{what}, {fit.norm.replace('_', ' ')} over {where}".capitalize()
