"""``logunif-kl table``: print -KL, KL and the derivatives at given alphas."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from .. import _api, log_alpha
from .._convention import additive_constant
from ._output import CommandError, add_json, check_results, new_table, results, track
from .provenance import provenance

MAX_DPS = 10_000
DOUBLE_DPS = 17  # the digits of a double; with more, `logunif_kl.reference` computes the table
GUARD_DPS = 40  # extra digits of log alpha if it is computed from alpha
SMALLEST, LARGEST = Decimal("5e-324"), Decimal("1.7976931348623157e308")  # of a double
DEFAULT_ALPHAS = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "2", "4", "10", "100")
COLUMNS = ("neg_kl", "kl", "neg_kl_grad", "neg_kl_hess")
HEADERS = ("-KL", "KL", "d(-KL)/dx", "d^2(-KL)/dx^2")

Row = dict[str, Any]
Exact = Fraction | float


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "table",
        help="print -KL, KL and the derivatives in log alpha at given points",
        description="Print -KL (to be maximised), KL (to be added to a loss), and the first two "
        "derivatives of -KL in x = log alpha.",
    )
    parser.add_argument(
        "alphas", nargs="*", metavar="ALPHA", help="alpha = sigma^2/mu^2, a ratio of variances"
    )
    parser.add_argument(
        "--log-alpha", nargs="+", default=[], metavar="X", help="further points, by log alpha"
    )
    parser.add_argument(
        "--dropout-rate",
        nargs="+",
        default=[],
        metavar="P",
        help="further points, by dropout rate: alpha = P/(1 - P)",
    )
    parser.add_argument(
        "--zero-at", metavar="ALPHA", help="the alpha at which -KL is zero (default: inf)"
    )
    parser.add_argument(
        "--log-c", metavar="LOG_C", help="log of the C in the prior C/|w|, instead of --zero-at"
    )
    parser.add_argument(
        "--dps",
        type=int,
        default=10,
        metavar="N",
        help="significant digits (default: 10); above 17 the numbers typed are exact decimals, "
        "and the arbitrary-precision reference computes",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, command: str) -> None:
    """Compute each row, in double precision or by `logunif_kl.reference`, and write the results."""
    if not 1 <= options.dps <= MAX_DPS:
        raise CommandError(
            f"--dps must lie between 1 and {MAX_DPS}, but {options.dps} was given: "
            "give a number in that range"
        )
    check_results(options.json)
    points = [
        *(("alpha", text) for text in options.alphas),
        *(("log_alpha", text) for text in options.log_alpha),
        *(("dropout_rate", text) for text in options.dropout_rate),
    ] or [("alpha", text) for text in DEFAULT_ALPHAS]
    numbers = [(kind, _point(kind, text)) for kind, text in points]
    convention = {
        name: _exact(f"--{name.replace('_', '-')}", getattr(options, name))
        for name in ("zero_at", "log_c")
        if getattr(options, name) is not None
    }
    # Raise the same errors for zero_at and log_c as `logunif_kl.neg_kl`.
    additive_constant(**{name: float(value) for name, value in convention.items()})
    make = _by_reference if options.dps > DOUBLE_DPS else _in_double
    rows = [
        make(kind, number, convention, options.dps)
        for kind, number in track(numbers, "computing", len(numbers))
    ]
    fixed = f"log_c = {options.log_c}" if options.log_c else f"zero_at = {options.zero_at or 'inf'}"
    document = {
        **provenance(command),
        "convention": fixed,
        "computed_by": "reference" if options.dps > DOUBLE_DPS else "float64",
        "rows": rows,
    }
    results(options.json, document, lambda: [_table(rows, fixed, options.dps)])


def _exact(name: str, text: str) -> Exact:
    """Read a decimal number exactly, or an infinity."""
    try:
        size = Decimal(text.strip()).copy_abs()
    except InvalidOperation:
        size = Decimal(0)
    if size and size.is_finite() and not SMALLEST <= size <= LARGEST:
        raise CommandError(
            f"{name} must be 0, infinite, or between {SMALLEST} and {LARGEST} in "
            f"magnitude, but {text.strip()} was given: use logunif_kl.reference for others"
        )
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        pass
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise CommandError(
            f"{name} must be a number, but {text.strip()!r} was given: write it like 0.1 or 1e-3"
        )
    return value


def _point(kind: str, text: str) -> Exact:
    number = _exact(kind.replace("_", " "), text)
    if kind == "alpha" and number < 0:
        raise CommandError(
            f"alpha must not be negative, but {text.strip()} was given: it is sigma^2/mu^2; "
            "pass its logarithm by --log-alpha"
        )
    if kind == "dropout_rate" and not 0 <= number <= 1:
        raise CommandError(
            f"a dropout rate must lie in [0, 1], but {text.strip()} was given: it is the "
            "probability of dropping"
        )
    return number


_FROM: dict[str, Callable[[float], Any]] = {
    "alpha": log_alpha.from_alpha,
    "log_alpha": float,
    "dropout_rate": log_alpha.from_dropout_rate,
}


def _in_double(kind: str, number: Exact, convention: dict[str, Exact], dps: int) -> Row:
    fixed: dict[str, Any] = {name: float(value) for name, value in convention.items()}
    x = float(_FROM[kind](float(number)))
    row = {
        "alpha": float(number) if kind == "alpha" else float(log_alpha.to_alpha(x)),
        "log_alpha": x,
        "dropout_rate": float(number if kind == "dropout_rate" else log_alpha.to_dropout_rate(x)),
        "neg_kl": float(_api.neg_kl(x, **fixed)),
        "kl": float(_api.kl(x, **fixed)),
        "neg_kl_grad": float(_api.neg_kl_grad(x)),
        "neg_kl_hess": float(_api.neg_kl_hess(x)),
    }
    # Round to the digits asked for. Adding 0.0 turns -0 into 0.
    return {name: float(f"{value:.{dps}g}") + 0.0 for name, value in row.items()}


def _by_reference(kind: str, number: Exact, convention: dict[str, Exact], dps: int) -> Row:
    import mpmath

    from .. import reference

    with mpmath.workdps(dps + GUARD_DPS):
        if kind == "log_alpha":
            x = _mpf(number)
            alpha = mpmath.exp(x)
        else:
            exact = number
            if kind == "dropout_rate":
                exact = math.inf if number == 1 else number / (1 - number)
            alpha = _mpf(exact)
            x = mpmath.log(alpha) if alpha > 0 else mpmath.mpf("-inf")
        p = 1 / (1 + 1 / alpha) if alpha > 0 else mpmath.mpf(0)
        if kind != "log_alpha" and convention.get("zero_at", math.inf) == exact:
            value = mpmath.mpf(0)
        else:
            value = reference.neg_kl(number if kind == "log_alpha" else x, dps + 1, **convention)
        row = {
            "alpha": alpha,
            "log_alpha": x,
            "dropout_rate": p,
            "neg_kl": value,
            "kl": -value,
            "neg_kl_grad": reference.neg_kl_grad(x, dps + 1),
            "neg_kl_hess": reference.neg_kl_hess(x, dps + 1),
        }
        return {name: mpmath.nstr(value, dps) for name, value in row.items()}


def _mpf(number: Exact) -> Any:
    import mpmath

    if isinstance(number, Fraction):
        return mpmath.mpf(number.numerator) / number.denominator
    return mpmath.mpf(number)


def _short(value: float | str) -> str:
    """Format a number, given as a double or as text, with six significant digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    import mpmath

    text: str = mpmath.nstr(mpmath.mpf(value), 6)
    return text.removeprefix("+").removesuffix(".0")


def _table(rows: list[Row], fixed: str, dps: int) -> Any:
    cells = [
        (
            *(_short(row[name]) for name in ("alpha", "log_alpha", "dropout_rate")),
            *(
                row[name] if isinstance(row[name], str) else f"{row[name]:.{dps}g}"
                for name in COLUMNS
            ),
        )
        for row in rows
    ]
    return new_table(
        f"-KL(q || p) with {fixed}; x = log alpha",
        ["alpha", "x", "dropout rate", *HEADERS],
        cells,
        drop_first=["x", "KL", "dropout rate"],
    )
