"""``logunif-kl validate``: compare every method's errors with the errors that it declares."""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..methods import METHODS, Method
from ..methods._dawson import DAWSON
from ._declared_errors import Checked, Compared, check, check_exact
from ._output import (
    CommandError,
    Failure,
    add_json,
    check_known,
    check_results,
    check_writable,
    new_table,
    require,
    results,
    track,
    write_record,
    writing,
)
from .provenance import provenance

RESULTS, ERRORS, FIGURE_2 = "validate.json", "validate_errors.png", "kingma_figure_2.png"
NOTES = (
    "Value: the error of -KL, absolute for closed forms, relative to max(1, |-KL|) for numerical",
    "methods, or the standard error of monte_carlo. Gradient: the relative error of the gradient.",
    "'best' adds the best constant. The errors of 'exact' are measured against the reference.",
)


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "validate",
        help="compare every method with the errors that it declares",
        description="Compare every method with the exact value and gradient over each range that "
        "it declares an error for. The exit status is 1 if any is worse than it declares.",
    )
    parser.add_argument(
        "methods",
        nargs="*",
        metavar="METHOD",
        help=f"which: {', '.join([*METHODS, DAWSON.name])} (default: all)",
    )
    add_json(parser)
    parser.add_argument(
        "--output",
        metavar="DIR",
        help=f"also write {RESULTS} and the figures {ERRORS} and {FIGURE_2} into this directory, "
        "which is created if it does not exist",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, command: str) -> None:
    """Check the options first, then measure, write the results, and report failures."""
    known = {**METHODS, DAWSON.name: DAWSON}
    for name in options.methods:
        check_known("method", name, known)
    methods = [known[name] for name in dict.fromkeys(options.methods or known)]
    check_results(options.json)
    directory = None if options.output is None else _directory(options.output)
    began = time.monotonic()
    work: list[Callable[[], Checked]] = [check_exact]
    work += [partial(check, method, claim) for method in methods for claim in method.claims]
    checked = [job() for job in track(work, "validating", len(work))]
    faults = [fault for row in checked for fault in row.faults()]
    taken = document(checked, faults, time.monotonic() - began, command)
    if directory is not None:
        write_record(str(directory / RESULTS), taken)
    results(options.json, taken, lambda: [table(checked)], NOTES)
    if directory is not None:
        from ._figures import draw_errors, draw_figure_2

        draw_errors([m for m in methods if m is not DAWSON], str(directory / ERRORS))
        draw_figure_2(str(directory / FIGURE_2))
    if faults:
        raise Failure("; ".join(faults))


def _directory(path: str) -> Path:
    """Return the directory of the results. If it does not exist, create it and its parents."""
    require("matplotlib", "plot", "--output")
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise CommandError(f"cannot write into {path}: it is not a directory; name a new one")
    with writing(path, "directory"):
        directory.mkdir(parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK):
        raise CommandError(f"cannot write into {path}: permission denied; name another directory")
    for name in (RESULTS, ERRORS, FIGURE_2):
        check_writable(str(directory / name))
    return directory


def document(
    checked: list[Checked], faults: list[str], seconds: float, command: str
) -> dict[str, Any]:
    """Return the results as a JSON document."""
    return {
        **provenance(command),
        "quantities": {
            "value": "worst error of -KL: of a closed form absolute, of a numerical method "
            "relative to max(1, |-KL|), of a statistical one the largest standard error",
            "value_best_constant": "worst absolute error after the constant that makes it least",
            "gradient": "worst relative error of d(-KL)/d log alpha",
            "honesty": "of a statistical method, the mean over replicates of the squared error in "
            "standard errors, where it strays farthest from 1, and what chance explains",
            "nanoseconds": "an element of the value, in an array, on one thread",
        },
        "seconds": round(seconds, 1),
        "passed": not faults,
        "faults": faults,
        "rows": [_row(row) for row in checked],
    }


def _row(row: Checked) -> dict[str, Any]:
    def plain(part: Any) -> dict[str, Any] | None:
        return None if part is None else {**dataclasses.asdict(part), "holds": part.holds}

    method = row.method
    return {
        "method": method.name,
        "kind": method.kind,
        "formula": method.formula,
        "equation": method.equation,
        "citation": method.citation,
        "interval": dataclasses.asdict(row.interval),
        "is_domain": row.interval == method.domain,
        "value": plain(row.value),
        "value_best_constant": plain(row.best_constant),
        "gradient": plain(row.gradient),
        "honesty": plain(row.honesty),
        "nanoseconds": row.nanoseconds,
    }


def table(checked: list[Checked]) -> Any:
    """Make the table, with a row for each interval of each method."""
    headings = ["method", "equation", "domain"]
    for what in ("value", "best", "gradient"):
        headings += [f"{what}\ndeclared", f"{what}\nmeasured"]
    rows: list[list[str]] = []
    previous = None
    for row in checked:
        method, repeated = row.method, row.method.name == previous
        previous = method.name
        rows.append(
            [
                "" if repeated else method.name,
                "" if repeated else _source(method),
                row.interval.name,
                *_pair(row.value),
                *_pair(row.best_constant),
                *_pair(row.gradient),
                "" if repeated else _three_digits(row.nanoseconds),
                "WORSE" if row.faults() else "ok",
            ]
        )
    return new_table(
        "Worst errors, declared and measured",
        [*headings, "ns an\nelement", ""],
        rows,
        text=["method", "equation", "domain", ""],
        drop_first=["equation"],
    )


def _source(method: Method) -> str:
    """Return the first author and the equation."""
    author = method.citation.replace(",", " ").split()[0]
    return f"{author}, {method.equation}"


def _pair(compared: Compared | None) -> tuple[str, str]:
    if compared is None:
        return "", ""
    return f"{compared.declared:.2e}", f"{compared.measured:.2e}"


def _three_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100.0 else f"{number:.3g}"
