"""Pictures of Kingma's Figure 2 and of errors, for ``compare --plot`` and ``validate --output``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _api
from .._atomic_io import new_figure, save_figure
from ..methods import METHODS, Interval, Method
from ..methods._lower_bound import LOG_ALPHA_STAR
from ..methods._measure import gradient_error, value_error
from ._output import writing

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "0.35", "#F0E442")
MARKERS = ("v", "D", "o", "P", "s", "^", "X", "<")
FIGURE_2 = Interval("dropout rates from 0.05 to 0.5", math.log(0.05 / 0.95), 0.0)
SHOWN = Interval("log_alpha in [-12, 12]", -12.0, 12.0)
FLOOR = 1e-17  # a logarithmic axis shows an error of 0 as this
SEED = 0


def draw_comparison(methods: Sequence[Method], common: Interval, path: str) -> None:
    """Plot -KL by every method, the exact curve, and the errors of value and gradient."""
    figure = new_figure("--plot", 11.0, 5.2)
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.15, 1.0))
    left, right = parts
    _draw_curves(left.subplots(), methods)
    value, gradient = right.subplots(2, 1, sharex=True)
    # An even number of points leaves out the middle, where an error of 0 would be a vertical line.
    x, few = (np.linspace(common.low, common.high, size) for size in (4000, 160))
    for index, method in enumerate(methods):
        errors = [(value, value_error(method))]
        if method.gradient is not None:
            errors.append((gradient, gradient_error(method)))
        for axes, error in errors:
            if method.kind == "closed form":
                _draw(axes, x, np.abs(error(x)), method, index)
            else:
                _draw_rounding(axes, few, np.abs(error(few)), method, index)
    least = 1e-5 if all(method.kind == "closed form" for method in methods) else FLOOR / 2.0
    for axes, title in (
        (value, "Error of the value, absolute"),
        (gradient, "Error of the gradient, relative"),
    ):
        axes.set(yscale="log", ylim=(least, 3.0), xlim=(common.low, common.high))
        _tidy(axes, title)
    gradient.set_xlabel(r"$\log\,\alpha$")
    gradient.locator_params(axis="x", nbins=6, integer=True)
    save(figure, path)


def _draw_curves(axes: Any, methods: Sequence[Method]) -> None:
    x = np.linspace(-4.5, 3.5, 1601)
    _draw_exact(axes, x)
    for index, method in enumerate(methods):
        width = max(3.2 - 1.6 * index, 1.4)
        _draw(axes, x, method.function(x, zero_at=1.0), method, index, width)
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
    _tidy(axes, "Negative KL, exact and approximate")


def draw_errors(methods: Sequence[Method], path: str) -> None:
    """Plot the errors of the value and the gradient of every method, including rounding errors."""
    figure = new_figure("--output", 11.0, 5.2)
    value, gradient = figure.subplots(1, 2, sharey=True)
    for index, method in enumerate(methods):
        smooth = method.kind == "closed form"
        x = np.linspace(SHOWN.low, SHOWN.high, 1601 if smooth else 161)
        x = x[(x >= method.domain.low) & (x <= method.domain.high)]
        if method.kind == "statistical":
            found = method.function(x, rng=SEED)[0]
        else:
            found = method.function(x)
        exact, slope = _api.neg_kl(x), _api.neg_kl_grad(x)
        errors = [(value, np.abs(found - exact) / np.maximum(1.0, np.abs(exact)))]
        if method.gradient is not None:
            errors.append((gradient, np.abs(method.gradient(x) - slope) / slope))
        for axes, error in errors:
            if smooth:
                colour = COLOURS[index % len(COLOURS)]
                error = np.where(error < FLOOR, np.nan, error)
                axes.plot(x, error, color=colour, lw=1.6, label=method.name)
            else:
                _draw_rounding(axes, x, error, method, index)
    for axes, title in (
        (value, "Error of the value, relative to max(1, |-KL|); 0 is at the bottom"),
        (gradient, "Error of the gradient, relative"),
    ):
        axes.set(yscale="log", ylim=(FLOOR / 2.0, 30.0), xlim=(SHOWN.low, SHOWN.high))
        axes.set_xlabel(r"$\log\,\alpha$")
        _tidy(axes, title)
    figure.legend(
        *value.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(methods),
        frameon=False,
        fontsize=9,
    )
    save(figure, path)


def draw_figure_2(path: str) -> None:
    """Draw Kingma's Figure 2, with its domain shaded, and the error of the cubic."""
    figure = new_figure("--output", 11.0, 4.8)
    curves, gaps = figure.subplots(1, 2)
    cubic, bound = METHODS["kingma"], METHODS["lower_bound"]
    x = np.linspace(-4.0, 2.0, 1201)
    _draw_exact(curves, x)
    for method, index in ((cubic, 0), (bound, 2)):
        _draw(curves, x, method.function(x, zero_at=1.0), method, index, 1.6)
    curves.axvline(LOG_ALPHA_STAR, color="0.35", lw=0.8)
    curves.text(LOG_ALPHA_STAR + 0.06, -1.9, "the bound\nfails from here", fontsize=8, color="0.35")
    curves.legend(loc="upper left", frameon=False)
    _tidy(curves, "Kingma et al. 2015, Figure 2 (its domain is shaded)")
    x = np.linspace(-6.0, 0.0, 1201)
    away = cubic.function(x) - _api.neg_kl(x)
    at_zero = away - (cubic.function(-40.0) - _api.neg_kl(-40.0))
    gaps.axvspan(FIGURE_2.low, FIGURE_2.high, color="0.93", lw=0, zorder=0)
    gaps.axhline(0.0, color="0.35", lw=0.8)
    for y, colour, label in (
        (away, COLOURS[0], "equal at $\\alpha = 1$, as in the caption"),
        (at_zero, COLOURS[1], "exact as $\\alpha \\to 0$, as in the text"),
    ):
        gaps.plot(x, y, color=colour, lw=1.6, label=label)
    gaps.set(xlim=(x[0], x[-1]), ylim=(-0.04, 0.055))
    gaps.set(xlabel=r"$\log\,\alpha$", ylabel="cubic minus exact")
    gaps.legend(loc="upper left", frameon=False, fontsize=9)
    _tidy(gaps, "The cubic with either constant: neither does both")
    save(figure, path)


def _draw_exact(axes: Any, x: np.ndarray) -> None:
    """Draw the exact curve at log alpha = x, and shade the domain of Kingma's Figure 2."""
    axes.axvspan(FIGURE_2.low, FIGURE_2.high, color="0.93", lw=0, zorder=0)
    exact = _api.neg_kl(x, zero_at=1.0)
    axes.plot(x, exact, color="0.6", lw=6.5, label="exact", solid_capstyle="butt")
    axes.set(
        xlim=(x[0], x[-1]),
        ylim=(-2.2, 0.9),
        xlabel=r"$\log\,\alpha$",
        ylabel=r"$-\mathrm{KL}\,[\,q(w)\,\|\,p(w)\,]$, zero at $\alpha = 1$",
    )


def _draw(
    axes: Any, x: np.ndarray, y: np.ndarray, method: Method, index: int, width: float = 1.4
) -> None:
    """Draw a curve of a method, dashed outside its domain."""
    inside = (x >= method.domain.low) & (x <= method.domain.high)
    colour = COLOURS[index % len(COLOURS)]
    axes.plot(x, np.where(inside, y, np.nan), color=colour, lw=width, label=method.name)
    axes.plot(x, np.where(inside, np.nan, y), color=colour, lw=1.4, ls=(0, (2, 2)))


def _draw_rounding(axes: Any, x: np.ndarray, y: np.ndarray, method: Method, index: int) -> None:
    """Draw the errors of a method that are not smooth as points, with an error of 0 at `FLOOR`."""
    seed = ", one seed" if method.kind == "statistical" else ""
    at = index % len(COLOURS)
    style = {"color": COLOURS[at], "marker": MARKERS[at], "label": f"{method.name}{seed}"}
    axes.plot(x, np.maximum(y, FLOOR), ls="none", ms=3.2, **style)


def _tidy(axes: Any, title: str) -> None:
    """Add a title and a grid to axes, and remove the frame on two sides."""
    axes.grid(color="0.85", lw=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=10.5, loc="left")


def save(figure: Any, path: str) -> None:
    with writing(path):
        save_figure(figure, path, dpi=160)
