"""The pictures of ``validate --output``: every method's errors, and Kingma's Figure 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _api
from .._atomic_io import new_figure
from ..methods import METHODS, Interval, Method
from ..methods._lower_bound import LOG_ALPHA_STAR
from ._figure import COLOURS as FIRST_COLOURS
from ._figure import DASHED, FIGURE_2, draw_exact, save, tidy

COLOURS = (*FIRST_COLOURS, "0.35", "#F0E442")
SHOWN = Interval("log_alpha in [-12, 12]", -12.0, 12.0)
FLOOR = 1e-17  # where an error of 0 of a numerical method is drawn, on a logarithmic axis
MARKERS = ("v", "D", "o", "P", "s", "^", "X", "<")
SEED = 0


def draw_errors(methods: Sequence[Method], path: str) -> None:
    """Draw the errors of value and gradient of all methods, from a unit in the last place up."""
    figure = new_figure("--output", 11.0, 5.2)
    value, gradient = figure.subplots(1, 2, sharey=True)
    for index, method in enumerate(methods):
        label = f"{method.name}, one seed" if method.kind == "statistical" else method.name
        style = _style(index, method.kind == "closed form") | {"label": label}
        x = _points(method)
        exact = _api.neg_kl(x)
        error = np.abs(_value(method, x) - exact) / np.maximum(1.0, np.abs(exact))
        value.plot(x, _drawn(error, method), **style)
        if method.gradient is not None:
            slope = _api.neg_kl_grad(x)
            gradient.plot(x, _drawn(np.abs(method.gradient(x) - slope) / slope, method), **style)
    for axes, title in (
        (value, "Error of the value, relative to max(1, |-KL|); none at the bottom"),
        (gradient, "Error of the gradient, relative"),
    ):
        axes.set(yscale="log", ylim=(FLOOR / 2.0, 30.0), xlim=(SHOWN.low, SHOWN.high))
        axes.set_xlabel(r"$\log\,\alpha$")
        tidy(axes, title)
    figure.legend(
        *value.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(methods),
        frameon=False,
        fontsize=9,
    )
    save(figure, path)


def _style(index: int, smooth: bool) -> dict[str, Any]:
    colour = COLOURS[index % len(COLOURS)]
    if smooth:
        return {"color": colour, "lw": 1.6}
    return {"color": colour, "ls": "none", "marker": MARKERS[index % len(MARKERS)], "ms": 3.2}


def _points(method: Method) -> np.ndarray:
    x = np.linspace(SHOWN.low, SHOWN.high, 1601 if method.kind == "closed form" else 161)
    return x[(x >= method.domain.low) & (x <= method.domain.high)]


def _drawn(error: np.ndarray, method: Method) -> np.ndarray:
    """Leave out the zeros of a smooth error; draw zeros of rounding errors at the bottom."""
    least = np.nan if method.kind == "closed form" else FLOOR
    return np.asarray(np.where(error < FLOOR, least, error))


def _value(method: Method, x: np.ndarray) -> Any:
    if method.kind == "statistical":
        return method.function(x, rng=SEED)[0]
    return method.function(x)


def draw_figure_2(path: str) -> None:
    """Draw Kingma's Figure 2 with the domain it shows, and the distance of its curves."""
    figure = new_figure("--output", 11.0, 4.8)
    curves, gaps = figure.subplots(1, 2)
    cubic, bound = METHODS["kingma"], METHODS["lower_bound"]
    x = np.linspace(-4.0, 2.0, 1201)
    draw_exact(curves, x)
    for method, colour in ((cubic, COLOURS[0]), (bound, COLOURS[2])):
        y = method.function(x, zero_at=1.0)
        inside = x <= method.domain.high
        curves.plot(x[inside], y[inside], lw=1.6, label=method.name, color=colour)
        curves.plot(x[~inside], y[~inside], lw=1.6, ls=DASHED, color=colour)
    curves.axvline(LOG_ALPHA_STAR, color="0.35", lw=0.8)
    curves.text(LOG_ALPHA_STAR + 0.06, -1.9, "the bound\nfails from here", fontsize=8, color="0.35")
    curves.legend(loc="upper left", frameon=False)
    tidy(curves, "Kingma et al. 2015, Figure 2 (its domain is shaded)")
    x = np.linspace(-6.0, 0.0, 1201)
    away = cubic.function(x) - _api.neg_kl(x)
    gaps.axvspan(FIGURE_2.low, FIGURE_2.high, color="0.93", lw=0)
    gaps.axhline(0.0, color="0.35", lw=0.8)
    at_one = "equal at $\\alpha = 1$, as the caption pins it"
    gaps.plot(x, away, color=COLOURS[0], lw=1.6, label=at_one)
    at_zero = away - (cubic.function(-40.0) - _api.neg_kl(-40.0))
    gaps.plot(
        x, at_zero, color=COLOURS[1], lw=1.6, label="exact as $\\alpha \\to 0$, as it says too"
    )
    gaps.set(
        xlim=(x[0], x[-1]),
        ylim=(-0.04, 0.055),
        xlabel=r"$\log\,\alpha$",
        ylabel="cubic minus exact",
    )
    gaps.legend(loc="upper left", frameon=False, fontsize=9)
    tidy(gaps, "The cubic with either constant: both cannot be had")
    save(figure, path)
