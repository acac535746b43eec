"""Make the tables that ``print(fit)`` and ``logunif-kl fit`` show."""

from __future__ import annotations

import math
from typing import Any

from .._display import Table
from ._formula import POLYNOMIAL


def tables(fit: Any) -> list[Table]:
    """Make the tables of a fit: its constants, its errors, and its largest extrema."""
    constants = [(name, repr(number)) for name, number in _named(fit)]
    ranges = [fit.inside]
    if fit.wide.log_alpha_range != fit.inside.log_alpha_range:
        ranges.append(fit.wide)
    errors = [
        (
            "[{:.4g}, {:.4g}]".format(*found.log_alpha_range),
            f"{found.max_error:.2e}",
            f"{found.max_error_at:.2f}",
            f"{found.rms_error:.2e}",
            relative(found.max_grad_error),
            f"{found.max_grad_error_at:.2f}",
        )
        for found in ranges
    ]
    headings = ("log_alpha in", "value", "at", "rms", "gradient", "at")
    made = [
        Table(title(fit), ("constant", "number"), constants),
        Table("Worst errors", headings, errors),
    ]
    if fit.extrema:
        extrema = [(e.quantity, _place(fit, e.log_alpha), f"{e.error:+.6e}") for e in fit.extrema]
        alternates = fit.target != "both" and len(extrema) > len(fit.coefficients)
        head = "Largest errors"
        if alternates:
            head = f"The error alternates at {len(extrema)} points"
        made.append(Table(head, ("of", "log_alpha", "error"), extrema))
    return made


def title(fit: Any) -> str:
    return description(fit).capitalize()


def description(fit: Any) -> str:
    """Describe a fit in one line: its family, its norm, its target and its range."""
    what = "one sigmoid" if fit.terms == 1 else f"{fit.terms} sigmoids"
    if fit.family == POLYNOMIAL:
        what = f"polynomial of degree {fit.terms}"
    target = "value and gradient" if fit.target == "both" else fit.target
    norm = fit.norm.replace("_", " ")
    return f"{what}, {norm} of the {target}, {over(fit)}"


def over(fit: Any) -> str:
    """Describe the range of a fit."""
    low, high = fit.log_alpha_range
    if fit.family == POLYNOMIAL:
        return f"alpha in [{math.exp(low):.3g}, {math.exp(high):.3g}]"
    if math.isinf(low) and math.isinf(high):
        return "every alpha"
    return f"log alpha in [{low:.3g}, {high:.3g}]"


def relative(error: float) -> str:
    return f"{error:.2e}" if error >= 10.0 else f"{100.0 * error:.3g} %"


def _named(fit: Any) -> list[tuple[str, float]]:
    if fit.family == POLYNOMIAL:
        powers = [(f"c{power}", c) for power, c in enumerate(fit.coefficients, 1)]
        return [("constant", fit.constant), *powers]
    single = fit.terms == 1
    return [
        (f"k{1 + i % 3}" + ("" if single else f" of term {1 + i // 3}"), k)
        for i, k in enumerate(fit.coefficients)
    ]


def _place(fit: Any, log_alpha: float) -> str:
    """Return log alpha as text: "inf" or "-inf" for an extremum at an infinite end of the range."""
    low, high = fit.log_alpha_range
    if log_alpha < -12.0 and math.isinf(low):
        return "-inf"
    if log_alpha > 12.0 and math.isinf(high):
        return "inf"
    return f"{log_alpha:.4f}"
