"""Draw signed errors in ulp, as Boost.Math does: several implementations in one picture.

The dashed envelope is max(1/2, condition number / 2). A correctly rounded result may have an error
of 1/2 ulp. An exact result for an argument that is wrong by half an ulp may have the other error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from scipy.special import dawsn

from logunif_kl._numpy import ufuncs

from .doubledouble import Array
from .functions import FUNCTIONS, UNARY
from .implementations import implementation
from .truth import Truth, truth
from .ulp import signed_error

_POINTS = 20_000
_SLOPE = {
    "kl_gap": "kl_gap_grad",
    "kl_gap_grad": "kl_gap_hess",
    "neg_kl": "neg_kl_grad",
    "neg_kl_grad": "neg_kl_hess",
}


def _grad(u: Array) -> Array:
    root = np.sqrt(u)
    slope: Array = dawsn(root) / root
    return slope


def _textbook(name: str) -> Callable[[Array], Array] | None:
    """Return the formula of the papers in float64, if SciPy has the functions it needs."""
    formulas: dict[str, Callable[[Array], Array]] = {
        "kl_gap_grad": _grad,
        "kl_gap_hess": lambda u: (1 - (1 + 2 * u) * _grad(u)) / (2 * u),
        "neg_kl_grad": lambda x: np.exp(-x) / 2 * _grad(np.exp(-x) / 2),
    }
    return formulas.get(name)


def _value(t: Truth) -> Array:
    scaled: Array = np.ldexp(t.hi, t.scale.astype(np.int32))
    return scaled


def _envelope(name: str, at: Array) -> Array:
    slope = _SLOPE.get(name)
    if slope is None:
        step = 1e-4
        derivative = (_value(truth(name, at + step)) - _value(truth(name, at - step))) / (2 * step)
    else:
        derivative = _value(truth(slope, at))
    condition: Array = np.abs(at * derivative / _value(truth(name, at)))
    return np.maximum(0.5, condition / 2)


def _panel(axes: Any, name: str, rng: np.random.Generator) -> None:
    if FUNCTIONS[name].domain == "u":
        low, high, label = 2.0**-4, 2.0**6, "u"
        at = np.sort(np.exp2(rng.uniform(-4, 6, _POINTS)))
        grid = np.exp2(np.linspace(-4, 6, 800))
        axes.set_xscale("log", base=2)
    else:
        low, high, label = -10.0, 10.0, "log α"
        at = np.sort(rng.uniform(low, high, _POINTS))
        grid = np.linspace(low, high, 800)
    exact = truth(name, at)
    textbook = _textbook(name)
    if textbook is not None:
        axes.plot(at, signed_error(textbook(at), exact, "float64"), ",", color="0.7")
    for kernel, colour in (("python", "tab:orange"), (ufuncs.kernel_name(), "tab:blue")):
        got = implementation(FUNCTIONS[name], kernel)(at)
        error = signed_error(got, exact, "float64")
        axes.plot(at, error, ",", color=colour)
        axes.plot([], [], "s", color=colour, label=f"{kernel}: {np.abs(error).max():.2f}")
    if textbook is not None:
        axes.plot([], [], "s", color="0.7", label="textbook formula")
    for sign in (1, -1):
        axes.plot(grid, sign * _envelope(name, grid), "k--", linewidth=0.7)
    axes.set(title=name, xlabel=label, ylabel="error, ulp", ylim=(-4, 4), xlim=(low, high))
    axes.legend(loc="lower right", fontsize="small", title="worst shown, ulp")


def plot(path: Path, seed: int) -> None:
    """Draw every function of one argument in float64 and write the picture."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rng = np.random.default_rng(seed)
    figure, grid = pyplot.subplots(2, 3, figsize=(15, 8), layout="constrained")
    for axes, name in zip(grid.flat, UNARY, strict=True):
        _panel(axes, name, rng)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
