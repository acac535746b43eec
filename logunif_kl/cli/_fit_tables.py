"""The tables of ``logunif-kl fit``: of one fit, and of a ladder of fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..fitting import Errors, Fit, Rung
from ..fitting._formula import POLYNOMIAL, SIGMOID
from ._output import new_table


def tables(fit: Fit) -> list[Any]:
    """Make the tables of a fit: its constants, its errors, and its levelled extrema."""
    low, high = fit.log_alpha_range
    constants = new_table(
        f"{fit.family.capitalize()}, {fit.norm.replace('_', ' ')} of the "
        f"{'value and gradient' if fit.target == 'both' else fit.target}",
        [("constant", False), ("number", True)],
    )
    for name, number in _named(fit):
        constants.add_row(name, repr(number))
    errors = new_table(
        "Worst errors",
        [("log_alpha in", False), ("value", True), ("at", True), ("rms", True),
         ("gradient", True), ("at", True)],
    )  # fmt: skip
    for found in (fit.inside, fit.wide):
        errors.add_row(*_row(found))
    made = [constants, errors]
    if fit.extrema:
        extrema = new_table(
            f"The error is levelled at {len(fit.extrema)} points",
            [("log_alpha", True), ("error", True), ("of", False)],
        )
        for e in fit.extrema:
            extrema.add_row(_where(e.log_alpha, low, high), f"{e.error:+.6e}", e.quantity)
        made.append(extrema)
    return made


def ladder_table(rungs: Sequence[Rung]) -> Any:
    """Make the table of a ladder, with a row for each number of terms."""
    sigmoid = rungs[0].family == SIGMOID
    table = new_table(
        "Sums of sigmoids, for every alpha" if sigmoid else "Polynomials, for alpha in [0.05, 1]",
        [("terms" if sigmoid else "degree", True), ("constants", True), ("exp, log", True),
         ("value", True), ("gradient", True), ("published", False), ("value", True),
         ("gradient", True)],
        drop_first=("constants", "exp, log"),
    )  # fmt: skip
    for rung in rungs:
        published = ("", "", "")
        if rung.published is not None:
            theirs = rung.published
            published = (theirs.name, f"{theirs.max_error:.2e}", _relative(theirs.max_grad_error))
        table.add_row(
            str(rung.terms),
            str(rung.constants),
            str(rung.transcendentals),
            f"{rung.value.max_error:.2e}",
            _relative(rung.gradient.max_grad_error),
            *published,
        )
    return table


def _named(fit: Fit) -> list[tuple[str, float]]:
    if fit.family == POLYNOMIAL:
        powers = [(f"c{power}", c) for power, c in enumerate(fit.coefficients, 1)]
        return [("constant", fit.constant), *powers]
    single = fit.terms == 1
    return [
        (f"k{1 + i % 3}" + ("" if single else f" of term {1 + i // 3}"), k)
        for i, k in enumerate(fit.coefficients)
    ]


def _row(found: Errors) -> tuple[str, ...]:
    low, high = found.log_alpha_range
    return (
        f"[{low:.4g}, {high:.4g}]",
        f"{found.max_error:.2e}",
        f"{found.max_error_at:.2f}",
        f"{found.rms_error:.2e}",
        _relative(found.max_grad_error),
        f"{found.max_grad_error_at:.2f}",
    )


def _where(log_alpha: float, low: float, high: float) -> str:
    """Write a log alpha, or the infinite end at which an error is only approached."""
    if log_alpha < -12.0 and math.isinf(low):
        return "-inf"
    if log_alpha > 12.0 and math.isinf(high):
        return "inf"
    return f"{log_alpha:.4f}"


def _relative(error: float) -> str:
    return f"{error:.2e}" if error >= 10.0 else f"{100.0 * error:.3g} %"
