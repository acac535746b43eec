"""``logunif-kl fit``: find the best constants of Kingma's or Molchanov's formula."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from .._convention import ZERO_AT_INFINITY, additive_constant
from ..fitting import Fit, Rung, fit_polynomial, fit_sigmoid, ladder
from ..fitting._arguments import DTYPES, GRIDS, NORMS, TARGETS, WEIGHTS
from ..fitting._formula import NAME, POLYNOMIAL, SIGMOID, WRITERS
from ..fitting._precision import error_of
from ..fitting._tables import over, relative, tables
from ._output import (
    STDOUT,
    CommandError,
    add_json,
    check_known,
    check_plot,
    check_results,
    check_writable,
    has_terminal,
    new_table,
    one_of,
    results,
    track,
    write_record,
    writing,
)
from ._process import emit
from .provenance import provenance

# Options that only one family of formulas takes.
ONLY: dict[str, tuple[str, ...]] = {
    SIGMOID: ("--terms", "--log-alpha-range", "--fix-limit"),
    POLYNOMIAL: ("--degree", "--alpha-range", "--grid", "--fix-constant"),
}
# Options for a single fit. --ladder accepts neither these nor --target.
SINGLE = [
    *("--terms", "--degree", "--max-error", "--formula", "--dtype", "--plot", "--round"),
    *("--weight", "--fix-limit", "--fix-constant", "--grid", "--zero-at", "--log-c", "--gradient"),
]
NOTES = (
    "Errors are fit minus exact: absolute for -KL, relative for its gradient.",
    "Errors are the same for every zero_at; the constant is for zero_at=inf.",
)
LADDER_NOTES = (
    "'value' and 'gradient' are the smallest worst errors, from two different fits;",
    "'published' is a formula from the literature that costs as much.",
)


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "fit",
        help="refit Kingma's or Molchanov's formula, and write it in another language",
        description="Find the constants that make Molchanov's sum of sigmoids, or Kingma's "
        "polynomial, as good as it can be, and measure the result.",
    )
    parser.add_argument(
        "family",
        nargs="?",
        default=SIGMOID,
        metavar=one_of(ONLY),
        help="which formula (default: sigmoid)",
    )

    def add_choice(group: Any, option: str, names: Iterable[str], help: str, **more: Any) -> None:
        group.add_argument(option, metavar=one_of(names), help=help, **more)

    default = {"default": NORMS[0]}
    add_choice(parser, "--norm", NORMS, "what to minimise (default: minimax)", **default)
    default = {"default": TARGETS[0]}
    add_choice(parser, "--target", TARGETS, "whose error (default: value)", **default)
    scale = "of the error (default: of -KL absolute, of its gradient relative)"
    add_choice(parser, "--weight", WEIGHTS, scale)
    parser.add_argument(
        "--max-error",
        type=float,
        metavar="X",
        help="find the fewest terms whose error is at most X, instead of --terms or --degree",
    )
    computed = "compute in this type, with --max-error or --formula c (default: float64)"
    add_choice(parser, "--dtype", DTYPES, computed)

    def add_range(group: Any, option: str, default: str) -> None:
        place = ("LOW", "HIGH")
        group.add_argument(
            option, nargs=2, type=float, metavar=place, help=f"where (default: {default})"
        )

    def add_flag(group: Any, option: str, help: str) -> None:
        group.add_argument(option, action="store_true", default=None, help=help)

    sigmoid = parser.add_argument_group("sigmoid")
    sigmoid.add_argument("--terms", type=int, help="how many (default: 1)")
    add_range(sigmoid, "--log-alpha-range", "-inf inf")
    exact = "exact as alpha -> 0"
    add_flag(sigmoid, "--fix-limit", f"hold sum k1 to (gamma + log 2)/2, {exact}")
    polynomial = parser.add_argument_group("polynomial")
    polynomial.add_argument("--degree", type=int, help="in alpha (default: 3)")
    add_range(polynomial, "--alpha-range", "0.05 1")
    add_choice(polynomial, "--grid", GRIDS, "for least squares: uniform in (default: log)")
    add_flag(polynomial, "--fix-constant", f"hold the constant to -(gamma + log 2)/2, {exact}")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--ladder", type=int, metavar="N", help="fit 1, 2, ... N terms, for value and for gradient"
    )
    output.add_argument("--round", type=int, metavar="DIGITS", help="round the constants")
    output.add_argument(
        "--zero-at", type=float, help="the alpha where the written formula vanishes (default: inf)"
    )
    output.add_argument("--log-c", type=float, help="log of the prior's C, instead of --zero-at")
    add_choice(output, "--formula", WRITERS, "print the formula instead of the table")
    add_flag(output, "--gradient", "with --formula: print its derivative in log alpha too")
    output.add_argument("--name", help=f"with --formula: name of the function (default: {NAME})")
    add_json(output)
    output.add_argument("--plot", metavar="FILE", help="also draw the errors (.png, .pdf, .svg)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, command: str) -> None:
    """Check the options, fit, and write the JSON, the tables or the text, and the picture."""
    _check(options)
    if options.ladder is not None:
        _climb(options, command)
        return
    fit = _fit(options)
    if options.round is not None:
        fit = fit.rounded(options.round)
        _check_rounded(fit, options)
    if options.formula is None:

        def shown() -> list[Any]:
            return [
                new_table(t.title, t.headings, t.rows, text=t.headings[:1]) for t in tables(fit)
            ]

        results(options.json, document(fit, command), shown, NOTES)
    else:
        zero_at, log_c = _convention(options)
        written = fit.formula(
            options.formula,
            zero_at=zero_at,
            log_c=log_c,
            gradient=bool(options.gradient),
            dtype=options.dtype if options.formula == "c" and options.dtype else DTYPES[0],
            name=NAME if options.name is None else options.name,
        )
        if options.json is not None:
            write_record(options.json, document(fit, command))
        emit(written.rstrip("\n") + "\n")
    if options.plot is not None:
        with writing(options.plot):
            fit.plot(options.plot)


def _given(options: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Return the names of the options that the user gave."""
    return [n for n in names if getattr(options, n[2:].replace("-", "_")) is not None]


def _check(options: argparse.Namespace) -> None:
    check_known("family", options.family, ONLY)
    other = POLYNOMIAL if options.family == SIGMOID else SIGMOID
    for option in _given(options, ONLY[other]):
        raise CommandError(
            f"{option} belongs to {other}, but {options.family} is to be fitted: "
            f"leave it out, or ask for logunif-kl fit {other}"
        )
    if options.weight is not None:
        check_known("weight", options.weight, WEIGHTS)
    if options.dtype is not None:
        check_known("dtype", options.dtype, DTYPES)
        if options.max_error is None and options.formula != "c":
            raise CommandError("--dtype needs --formula c or --max-error: add one, or leave it out")
    counts = _given(options, ("--terms", "--degree"))
    if options.max_error is not None and counts:
        raise CommandError(
            f"{counts[0]} and --max-error were both given, but --max-error chooses the number of "
            "terms: leave one out"
        )
    if options.formula is not None:
        check_known("language", options.formula, WRITERS, " to write a formula in")
        if options.json == STDOUT:
            raise CommandError(
                "--formula and --json - would both be printed: name a file for one of them"
            )
    if options.gradient and options.formula in (None, "latex"):
        raise CommandError(
            "--gradient writes the derivative as source code: add --formula c, or another "
            "programming language"
        )
    if options.name is not None and options.formula is None:
        raise CommandError("--name is the name of a function in source code: add --formula c")
    if options.ladder is not None:
        given = _given(options, SINGLE) + ["--target"] * (options.target != TARGETS[0])
        if given:
            raise CommandError(
                f"--ladder makes many fits, but {given[0]} is for a single fit: leave one out"
            )
    _convention(options)
    if options.formula is None:
        check_results(options.json)
    check_writable(options.json)
    check_plot(options.plot)


def _convention(options: argparse.Namespace) -> tuple[float, float | None]:
    """Return zero_at and log_c, with the defaults for options that were not given."""
    zero_at = ZERO_AT_INFINITY if options.zero_at is None else options.zero_at
    additive_constant(zero_at, options.log_c)
    return zero_at, options.log_c


def _check_rounded(fit: Fit, options: argparse.Namespace) -> None:
    """Raise an error if --round made the error larger than --max-error."""
    if options.max_error is None:
        return
    reached = error_of(fit, options.dtype or DTYPES[0], options.weight)
    if reached > options.max_error:
        raise CommandError(
            f"--round {options.round} raises the error to {reached:.3g}, but --max-error is "
            f"{options.max_error:g}: keep more digits"
        )


def _fit(options: argparse.Namespace) -> Fit:
    common = {"norm": options.norm, "target": options.target, "weight": options.weight}
    if options.max_error is not None:
        common |= {"max_error": options.max_error, "dtype": options.dtype or DTYPES[0]}
    if options.family == SIGMOID:
        return fit_sigmoid(
            options.terms,
            tuple(options.log_alpha_range or (-math.inf, math.inf)),
            fix_limit=bool(options.fix_limit),
            progress=has_terminal(),
            **common,
        )
    return fit_polynomial(
        options.degree,
        tuple(options.alpha_range or (0.05, 1.0)),
        grid=options.grid or GRIDS[0],
        free_constant=not options.fix_constant,
        **common,
    )


def document(fit: Fit, command: str) -> dict[str, Any]:
    """Return a fit as a JSON document. `Fit.from_json` can read the entry ``fit``."""
    return {**provenance(command), "fit": json.loads(fit.to_json())}


def _climb(options: argparse.Namespace, command: str) -> None:
    def progress(steps: Sequence[int]) -> Any:
        return track(steps, "climbing", len(steps))

    ranges = {
        name: tuple(given)
        for name in ("log_alpha_range", "alpha_range")
        if (given := getattr(options, name)) is not None
    }
    rungs = ladder(options.ladder, options.family, norm=options.norm, progress=progress, **ranges)
    made = {**provenance(command), **ladder_document(rungs)}
    results(options.json, made, lambda: [_ladder_table(rungs)], LADDER_NOTES)


def ladder_document(rungs: Sequence[Rung]) -> dict[str, Any]:
    """Return the fits of --ladder as a JSON document. `Fit.from_json` can read each fit."""
    return {
        "rungs": [
            {
                "family": rung.family,
                "terms": rung.terms,
                "constants": rung.constants,
                "transcendentals": rung.transcendentals,
                "published": None if rung.published is None else dataclasses.asdict(rung.published),
                "value": json.loads(rung.value.to_json()),
                "gradient": json.loads(rung.gradient.to_json()),
            }
            for rung in rungs
        ]
    }


def _ladder_table(rungs: Sequence[Rung]) -> Any:
    """Make the table of --ladder, with a row for each number of terms."""
    sigmoid = rungs[0].family == SIGMOID
    rows = []
    for rung in rungs:
        published = ("", "", "")
        if rung.published is not None:
            theirs = rung.published
            published = (theirs.name, f"{theirs.max_error:.2e}", relative(theirs.max_grad_error))
        rows.append(
            (
                str(rung.terms),
                str(rung.constants),
                str(rung.transcendentals),
                f"{rung.value.max_error:.2e}",
                relative(rung.gradient.max_grad_error),
                *published,
            )
        )
    return new_table(
        f"{'Sums of sigmoids' if sigmoid else 'Polynomials'}, for {over(rungs[0].value)}",
        ["terms" if sigmoid else "degree", "constants", "exp, log", "value", "gradient",
         "published", "value", "gradient"],
        rows,
        text=["published"],
        drop_first=["constants", "exp, log"],
    )  # fmt: skip
