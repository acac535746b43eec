"""The figures of the pages, each drawn when the page is built.

They are vector graphics within the page. Lines and letters take the colour of the page's text, so
that they are right in light and in dark; curves take the colours of Okabe and Ito, which
colour-blind readers can tell apart.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from IPython.display import HTML
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import logunif_kl as lk
from logunif_kl.methods import METHODS
from validation.tools import trained

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK = "#010203"  # replaced by the colour of the text
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "mathtext.fontset": "dejavusans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": "medium",
    "axes.formatter.min_exponent": 3,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "axes.prop_cycle": mpl.cycler(color=COLOURS),
    "lines.linewidth": 1.8,
}


NARROW = 3.7
"""Inches: at this width a figure has the letters of the page's text on a phone."""


def as_svg(name: str, draw: Callable[[], Figure], text: str) -> str:
    """Draw a figure as a part of a page, with a description."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        out = io.StringIO()
        draw().savefig(out, format="svg", transparent=True, metadata={"Date": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor").replace("#000000", "currentColor")
    # Coordinates have two digits; text, such as a label of an axis, keeps all.
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    # The letters are those of the page.
    svg = re.sub(r" ?font-family: [^;]*;|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) height="[\d.]+pt"', r"\1", svg, count=1)
    return re.sub(r'width="[\d.]+pt"', f'role="img" aria-label="{escape(text)}"', svg, count=1)


def drawn(
    text: str, size: tuple[float, float] = (7.2, 3.6), narrow: float = 2.8
) -> Callable[[Callable[[Figure], None]], Callable[[], HTML]]:
    """Make a function that draws into a figure return it for a page, with a description.

    On a phone the figure has a height of `narrow` inches.
    """

    def decorate(draw: Callable[[Figure], None]) -> Callable[[], HTML]:
        def show() -> HTML:
            wide, phone = (partial(_figure, draw, inches) for inches in (size, (NARROW, narrow)))
            return HTML(for_a_page(draw.__name__, wide, phone, text))

        show.__name__ = draw.__name__
        show.__doc__ = draw.__doc__
        return show

    return decorate


def for_a_page(
    name: str, wide: Callable[[], Figure], narrow: Callable[[], Figure], text: str
) -> str:
    """Return a figure in HTML: a picture for wide screens, one for phones, a description."""
    parts = (
        f'<div class="{width}">{as_svg(f"{name} {width}", draw, text)}</div>'
        for width, draw in (("wide", wide), ("narrow", narrow))
    )
    return f'<figure class="drawn">{"".join(parts)}</figure>'


def stacked(draw: Callable[[], Figure]) -> Figure:
    """Draw a figure for a phone: its panels below one another, or a grid in its columns."""
    figure = draw()
    panels = [axes for axes in figure.axes if axes.get_subplotspec() and axes.axison]
    places = list(dict.fromkeys(axes.get_subplotspec() for axes in panels))
    rows, columns = places[0].get_gridspec().get_geometry()
    if len(places) <= 6:
        rows, columns = len(places), 1
    cells = dict(zip(places, figure.add_gridspec(rows, columns), strict=True))
    for axes in panels:
        axes.set_subplotspec(cells[axes.get_subplotspec()])
        if columns == 1:
            axes.tick_params(labelleft=True, labelbottom=True)
        for label in (axes.title, axes.xaxis.label, axes.yaxis.label):
            width = (28 if label is axes.yaxis.label else 36) // columns
            label.set_text(textwrap.fill(label.get_text(), width, break_long_words=False))
    of_panels = [axes.get_legend() for axes in panels if axes.get_legend()]
    # Among several panels, a legend of one may cover its lines.
    alone = of_panels if len(of_panels) == 1 < len(panels) else []
    for legend in [*figure.legends, *alone]:
        legend.remove()
        texts = [text.get_text() for text in legend.get_texts()]
        figure.legend(legend.legend_handles, texts, fontsize="small", loc="outside lower center")
    figure.set_size_inches(NARROW, rows * (2.6 if columns == 1 else 1.6))
    return figure


def _figure(draw: Callable[[Figure], None], inches: tuple[float, float]) -> Figure:
    figure = Figure(figsize=inches, layout="constrained")
    draw(figure)
    return figure


def two(figure: Figure) -> Any:
    """Return two axes, side by side or, on a phone, one above the other."""
    return figure.subplots(*((2, 1) if figure.get_figwidth() == NARROW else (1, 2)))


@drawn("-KL and its gradient against log alpha", narrow=5.0)
def value_and_gradient(figure: Figure) -> None:
    """Draw -KL, and its gradient, against log alpha."""
    x = np.linspace(-8.0, 8.0, 801)
    left, right = two(figure)
    left.plot(x, lk.neg_kl(x))
    left.set(xlabel="log α", title="−KL, zero at α = ∞")
    right.plot(x, lk.neg_kl_grad(x), color=COLOURS[1])
    right.set(xlabel="log α", title="its gradient in log α", ylim=(0.0, None))


@drawn("-KL with the constants of three papers: three parallel curves")
def constants(figure: Figure) -> None:
    """Draw -KL under three constants."""
    x = np.linspace(-6.0, 6.0, 601)
    axes = figure.subplots()
    for label, constant in (
        ("zero_at=inf (Molchanov et al.)", {}),
        ("zero_at=1.0 (Kingma et al.)", {"zero_at": 1.0}),
        ("log_c=0.0 (Hron et al.)", {"log_c": 0.0}),
    ):
        axes.plot(x, lk.neg_kl(x, **constant), label=label)
    axes.axhline(0.0, color=INK, linewidth=0.6)
    axes.set(xlabel="log α", title="−KL under three constants")
    axes.legend()


@drawn("The remainder of the gap and the sigmoid that approximates it", narrow=5.0)
def remainder(figure: Figure) -> None:
    """Draw what Molchanov's sigmoid approximates."""
    x = np.linspace(-8.0, 8.0, 801)
    exact = -lk.neg_kl(x) - 0.5 * np.logaddexp(0.0, -x)
    sigmoid = -lk.methods.molchanov(x) - 0.5 * np.logaddexp(0.0, -x)
    left, right = two(figure)
    left.plot(x, exact, label="R, exact")
    left.plot(x, sigmoid, "--", label="Molchanov's sigmoid")
    left.set(xlabel="log α", title="the remainder")
    left.legend(loc="upper right")
    right.plot(x, sigmoid - exact, color=COLOURS[1])
    right.axhline(0.0, color=INK, linewidth=0.6)
    right.set(xlabel="log α", title="sigmoid − exact")


@drawn("Errors of value and gradient of the published approximations against log alpha", narrow=5.4)
def errors_of_methods(figure: Figure) -> None:
    """Draw the errors of value and gradient of the closed forms."""
    x = np.linspace(-10.0, 10.0, 2001)
    exact, slope = lk.neg_kl(x), lk.neg_kl_grad(x)
    left, right = two(figure)
    for method in METHODS.values():
        if method.kind != "closed form":
            continue
        inside = (x >= method.domain.low) & (x <= method.domain.high)
        left.plot(x[inside], np.abs(method.function(x[inside]) - exact[inside]), label=method.name)
        assert method.gradient is not None
        right.plot(x[inside], np.abs(method.gradient(x[inside]) / slope[inside] - 1.0))
    left.set(xlabel="log α", yscale="log", ylim=(1e-6, 10), title="error of −KL")
    right.set(xlabel="log α", yscale="log", ylim=(1e-6, 10), title="relative error of the gradient")
    left.legend()


@drawn("Figure 2 of Kingma et al.: -KL, the cubic and the lower bound against log alpha")
def kingma_figure_2(figure: Figure) -> None:
    """Draw Figure 2 of Kingma et al. (2015) again, with the constant that its caption describes."""
    x = np.linspace(np.log(0.05), 0.0, 401)
    axes = figure.subplots()
    axes.plot(x, lk.neg_kl(x, zero_at=1.0), color=INK, linewidth=4, alpha=0.35, label="exact")
    axes.plot(x, lk.methods.kingma(x, zero_at=1.0), "--", label="cubic")
    axes.plot(x, lk.methods.lower_bound(x, zero_at=1.0), ":", label="lower bound")
    axes.set(xlabel="log α", title="−KL, pinned to zero at α = 1")
    axes.legend()


@drawn("How many times as fast the exact form is, at a million elements", size=(7.2, 2.6))
def speed(figure: Figure) -> None:
    """Draw the ratios of the README's table at a million elements."""
    from computed import times_as_fast

    found = {f"{what}\nagainst {other}": ratio for (what, other), ratio in times_as_fast().items()}
    axes = figure.subplots()
    bars = axes.barh([name.replace("`", "") for name in found], list(found.values()))
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize="small")
    axes.set(xlabel="times as fast", xlim=(0.0, 1.1 * max(found.values())))


def _ulp(values: Any, truth: list[Any]) -> Any:
    exact = np.array([float(t) for t in truth])
    away = [float(mine - t) for mine, t in zip(map(_exactly, values), truth, strict=True)]
    return np.array(away) / np.spacing(np.abs(exact))


def _exactly(value: float) -> Any:
    import mpmath

    return mpmath.mpf(float(value))


@drawn("Signed error in ulp of the gradient by this library and by SciPy's Dawson function")
def signed_errors(figure: Figure) -> None:
    """Draw the signed error of the gradient, under the envelope of its conditioning."""
    import mpmath

    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-12.0, 12.0, 700))
    with mpmath.workdps(40):
        truth = [lk.reference.neg_kl_grad(float(v), dps=30) for v in x]
        ours = _ulp(lk.neg_kl_grad(x), truth)
        theirs = _ulp(lk.methods.dawson_grad(x), truth)
    slope = lk.neg_kl_grad(x)
    envelope = np.abs(lk.neg_kl_hess(x)) * np.spacing(np.abs(x)) / 2 / np.spacing(slope)
    axes = figure.subplots()
    wide = np.maximum(0.5, envelope)
    axes.fill_between(x, -wide, wide, color="0.5", alpha=0.3, linewidth=0)
    axes.plot(x, theirs, ".", markersize=3, color=COLOURS[1], label="by SciPy's dawsn")
    axes.plot(x, ours, ".", markersize=3, color=COLOURS[0], label="neg_kl_grad")
    axes.set(xlabel="log α", ylabel="error (ulp)", yscale="symlog")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend()


@drawn(
    "The modules and subpackages of the package by level, from the arithmetic up", size=(7.2, 5.0)
)
def levels(figure: Figure) -> None:
    """Draw the levels that a test holds the imports to."""
    from computed import constant

    rows = constant("tests/test_imports.py", "LEVELS")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, len(rows)))
    for i, parts in enumerate(rows):
        for k, part in enumerate(parts):
            left, width = k / len(parts), 1.0 / len(parts)
            box = (left + 0.005, i + 0.1), width - 0.01, 0.8
            axes.add_patch(Rectangle(*box, facecolor=COLOURS[0], alpha=0.2, linewidth=0))
            axes.text(left + width / 2, i + 0.5, part, ha="center", va="center", fontsize=9)


@drawn("The pieces of the gradient of -KL in float64, each with a polynomial of its own")
def pieces(figure: Figure) -> None:
    """Draw the ranges of the gradient, each in the colour of its form."""
    from logunif_kl._arithmetic.coefficients import TABLES

    forms = {"origin": COLOURS[0], "centre": COLOURS[1], "recip": COLOURS[2]}
    axes = figure.subplots()
    high = 4.0
    for piece in TABLES["neg_kl_grad", "float64"]:
        low = max(piece.bound, -8.0)
        x = np.linspace(low, high, 101)
        axes.plot(x, lk.neg_kl_grad(x), color=forms[piece.form], linewidth=3, label=piece.form)
        axes.axvline(low, color=INK, linewidth=0.5, alpha=0.5)
        high = low
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.set(xlabel="log α", title="gradient of −KL, by the form of each range")
    axes.legend(handles.values(), handles.keys())


@drawn("The weights of a network and its test error while it trains, by epoch", (7.2, 3.2))
def training(figure: Figure) -> None:
    """Draw the number of weights that are kept, and the test error without the others."""
    trained.draw(*two(figure), INK)


@drawn("The test error of a network against the number of weights that thresholds keep")
def thresholds(figure: Figure) -> None:
    """Draw the error of each pruned network against its number of weights."""
    axes = figure.subplots()
    found = [
        (at["kept"], at["test_error_pruned"]["mean"], at["threshold"])
        for at in trained.mean()["by_threshold"]
    ]
    axes.plot([kept for kept, _, _ in found], [error for _, error, _ in found], "o-", markersize=4)
    for kept, error, threshold in found:
        if threshold in (-2.0, 0.0, 3.0):
            axes.annotate(
                f"log α < {threshold:g}".replace("-", "−"),
                (kept, error),
                (6, 6),
                textcoords="offset points",
            )
    axes.set(xlabel="weights that are left", ylabel="test error in %")
    axes.xaxis.set_major_formatter("{x:,.0f}")
