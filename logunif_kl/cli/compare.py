"""``logunif-kl compare``: measure methods against the exact value and gradient."""

from __future__ import annotations

import argparse
import dataclasses
import math
from typing import Any

from ..methods import METHODS, WIDE, Interval, Measurement, Method, measure
from ._output import CommandError, add_json, check_plot, check_results, new_table, results, track
from .provenance import provenance

# A statistical method has no single error to show; logunif-kl validate checks it instead.
_NAMES = [name for name, method in METHODS.items() if method.kind != "statistical"]
_CLOSED_FORMS = [name for name in _NAMES if METHODS[name].kind == "closed form"]
NOTES = (
    "Errors are method minus exact: absolute for -KL, relative for its gradient.",
    "Means are uniform in log alpha; for an unbounded range, within [-10, 10].",
    "'best constant' is the error after adding the constant that makes it smallest.",
)


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "compare",
        help="measure each published approximation against the exact value and gradient",
        description="Measure each method against the exact value and gradient, over the ranges "
        "that its paper names and over a range of log alpha common to all.",
    )
    parser.add_argument(
        "methods",
        nargs="*",
        metavar="METHOD",
        help=f"which: {', '.join(_NAMES)} (default: {', '.join(_CLOSED_FORMS)})",
    )
    parser.add_argument("--all", action="store_true", help="all of these methods")
    parser.add_argument(
        "--range",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        default=(WIDE.low, WIDE.high),
        help="the common range of log alpha (default: -10 10)",
    )
    add_json(parser)
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="also draw Kingma's Figure 2 and the errors (.png, .pdf, .svg)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, command: str) -> None:
    """Check the options first, then measure, and write the JSON, the tables and the picture."""
    methods = [_method(name) for name in dict.fromkeys(_chosen(options))]
    common = _common(*options.range)
    check_results(options.json)
    check_plot(options.plot)
    work = [(method, interval) for method in methods for interval in intervals(method, common)]
    rows = [
        (method, measure(method, interval))
        for method, interval in track(work, "comparing", len(work))
    ]
    results(options.json, document(rows, command), lambda: tables(rows), NOTES)
    if options.plot is not None:
        from ._figures import draw_comparison

        draw_comparison(methods, common, options.plot)


def _chosen(options: argparse.Namespace) -> list[str]:
    if options.all and options.methods:
        raise CommandError(
            f"--all and {' '.join(options.methods)} were both given: leave out one of them"
        )
    return _NAMES if options.all else options.methods or _CLOSED_FORMS


def _method(name: str) -> Method:
    if name not in METHODS:
        raise CommandError(f"there is no method {name!r}: choose from {', '.join(_NAMES)}")
    return METHODS[name]


def _common(low: float, high: float) -> Interval:
    if (low, high) == (WIDE.low, WIDE.high):
        return WIDE
    if not (math.isfinite(low) and math.isfinite(high)):
        raise CommandError(f"--range must be finite, but {low} {high} was given: pass two numbers")
    return Interval(f"log_alpha in [{low:g}, {high:g}]", low, high)


def intervals(method: Method, common: Interval = WIDE) -> list[Interval]:
    """List the intervals, other than [-10, 10], that a method declares, and add ``common``."""
    own = [claim.interval for claim in method.claims if claim.interval is not WIDE]
    return [*own, common]


def document(rows: list[tuple[Method, Measurement]], command: str) -> dict[str, Any]:
    """Return the comparison as a JSON document."""
    return {
        **provenance(command),
        "quantities": {
            "value": "signed absolute error of -KL (method minus exact) of largest magnitude",
            "gradient": "signed relative error of d(-KL)/d log alpha of largest magnitude",
            "mean": "mean magnitude, uniform in log alpha; of an unbounded range within [-10, 10]",
            "best_constant": "the constant that, added to the method, makes its worst error least",
        },
        "rows": [_row(method, found) for method, found in rows],
    }


def _row(method: Method, found: Measurement) -> dict[str, Any]:
    return {
        "method": method.name,
        "formula": method.formula,
        "equation": method.equation,
        "citation": method.citation,
        "constant": method.constant,
        "outside": method.outside,
        "interval": dataclasses.asdict(found.interval),
        "value": {
            "worst": found.value.error,
            "log_alpha": found.value.log_alpha,
            "mean": found.value_mean,
            "best_constant": found.best_constant,
            "worst_with_best_constant": found.value_best_constant,
        },
        "gradient": None
        if found.gradient is None
        else {
            "worst": found.gradient.error,
            "log_alpha": found.gradient.log_alpha,
            "mean": found.gradient_mean,
        },
    }


def tables(rows: list[tuple[Method, Measurement]]) -> list[Any]:
    """Make one table for the value and one for the gradient, each with a row per measurement."""
    value, gradient = [], []
    previous = None
    for method, found in rows:
        name = "" if method.name == previous else method.name
        previous = method.name
        value.append(
            (
                name,
                found.interval.name,
                f"{found.value.error:+.2e}",
                f"{found.value.log_alpha:.2f}",
                f"{found.value_mean:.2e}",
                f"{found.value_best_constant:.2e}",
            )
        )
        if found.gradient is not None and found.gradient_mean is not None:
            gradient.append(
                (
                    name,
                    found.interval.name,
                    _relative(found.gradient.error, "+"),
                    f"{found.gradient.log_alpha:.2f}",
                    _relative(found.gradient_mean),
                )
            )
    text = ["method", "range"]
    headings = [*text, "worst", "at\nlog_alpha", "mean"]
    title = "Relative error of the gradient d(-KL)/d log alpha"
    return [
        new_table("Error of the value -KL", [*headings, "best\nconstant"], value, text=text),
        new_table(title, headings, gradient, text=text),
    ]


def _relative(error: float, sign: str = "") -> str:
    if abs(error) >= 10.0 or abs(error) < 1e-6:
        return f"{error:{sign}.2e}"
    return f"{100.0 * error:{sign}.2f} %"
