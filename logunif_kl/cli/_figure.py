"""The picture of ``compare --plot``: Kingma's Figure 2, and the errors beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _api
from .._atomic_io import new_figure, save_figure
from ..methods import Interval, Method
from ..methods._measure import gradient_error, value_error
from ._output import writing

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHED = (0, (2, 2))
FIGURE_2 = Interval("dropout rates from 0.05 to 0.5", math.log(0.05 / 0.95), 0.0)


def draw_comparison(methods: Sequence[Method], common: Interval, path: str) -> None:
    """Draw -KL by every method against the exact curve, and both errors, into a file."""
    figure = new_figure("--plot", 11.0, 5.2)
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.15, 1.0))
    left, right = parts
    curves = left.subplots()
    value, gradient = right.subplots(2, 1, sharex=True)
    colours = dict(zip((m.name for m in methods), COLOURS * len(methods), strict=False))
    _draw_curves(curves, methods, colours)
    _draw_errors(value, gradient, methods, colours, common)
    save(figure, path)


def draw_exact(axes: Any, x: np.ndarray) -> None:
    """Draw the exact curve at some log alphas, and shade the domain of Kingma's Figure 2."""
    axes.axvspan(FIGURE_2.low, FIGURE_2.high, color="0.93", lw=0)
    exact = _api.neg_kl(x, zero_at=1.0)
    axes.plot(x, exact, color="0.6", lw=6.5, label="exact", solid_capstyle="butt")
    axes.set(
        xlim=(x[0], x[-1]),
        ylim=(-2.2, 0.9),
        xlabel=r"$\log\,\alpha$",
        ylabel=r"$-\mathrm{KL}\,[\,q(w)\,\|\,p(w)\,]$, zero at $\alpha = 1$",
    )


def _draw_curves(axes: Any, methods: Sequence[Method], colours: dict[str, str]) -> None:
    x = np.linspace(-4.5, 3.5, 1601)
    draw_exact(axes, x)
    for index, method in enumerate(methods):
        width = max(3.2 - 1.6 * index, 1.4)
        y = method.function(x, zero_at=1.0)
        inside = (x >= method.domain.low) & (x <= method.domain.high)
        colour = colours[method.name]
        axes.plot(x[inside], y[inside], color=colour, lw=width, label=method.name)
        if not inside.all():
            axes.plot(x, np.where(inside, np.nan, y), color=colour, lw=1.4, ls=DASHED)
    axes.text(
        (FIGURE_2.low + FIGURE_2.high) / 2.0,
        0.83,
        "Kingma's Figure 2:\ndropout rates 0.05 to 0.5",
        ha="center",
        va="top",
        fontsize=8,
        color="0.35",
    )
    axes.legend(
        loc="lower right", frameon=False, title="dashed: outside its domain", title_fontsize=8
    )
    tidy(axes, "Negative KL, exact and approximate")


def _draw_errors(
    value: Any, gradient: Any, methods: Sequence[Method], colours: dict[str, str], common: Interval
) -> None:
    x = np.linspace(common.low, common.high, 4001)
    least = 1e-5 if all(method.kind == "closed form" for method in methods) else 1e-17
    for method in methods:
        inside = (x >= method.domain.low) & (x <= method.domain.high)
        errors = [(value, value_error(method)(x))]
        if method.gradient is not None:
            errors.append((gradient, gradient_error(method)(x)))
        for axes, error in errors:
            size = np.abs(error)
            colour = colours[method.name]
            axes.plot(x, np.where(inside, size, np.nan), color=colour, lw=1.4, label=method.name)
            axes.plot(x, np.where(inside, np.nan, size), color=colour, lw=1.4, ls=DASHED)
    for axes, title in (
        (value, "Error of the value, absolute"),
        (gradient, "Error of the gradient, relative"),
    ):
        axes.set(yscale="log", ylim=(least, 3.0), xlim=(common.low, common.high))
        tidy(axes, title)
    gradient.set_xlabel(r"$\log\,\alpha$")
    gradient.locator_params(axis="x", nbins=6, integer=True)


def save(figure: Any, path: str) -> None:
    """Write a figure into a file."""
    with writing(path):
        save_figure(figure, path, dpi=160)


def tidy(axes: Any, title: str) -> None:
    """Give axes a title and a grid, and take the frame away on two sides."""
    axes.grid(color="0.85", lw=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=10.5, loc="left")
