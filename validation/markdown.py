"""Tables in Markdown, and the numbers in their cells."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from validation.output import Record

Cell = str | Callable[[Any], str]
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table with padded columns."""
    rows = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *rows]) for i in range(len(header))]
    ruled = [list(header), ["-" * width for width in widths], *rows]
    lines = (" | ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in ruled)
    return "\n".join(f"| {line} |" for line in lines)


def columns(records: Iterable[Record], *cells: tuple[str, Cell]) -> str:
    """Write a table with a row for each record, from a heading and a cell for each column.

    A cell is a format string, such as ``"{mean:.2f}"``, or a function of the record.
    """
    rows = (
        [cell.format(**record) if isinstance(cell, str) else cell(record) for _, cell in cells]
        for record in records
    )
    return table([heading for heading, _ in cells], rows)


def rounded(name: str, digits: int = 3) -> Callable[[Any], str]:
    """Return the cell of `columns` that writes a number of each record."""
    return lambda record: number(record[name], digits)


def measured(name: str, decimals: int = 2, factor: float = 1.0) -> Callable[[Any], str]:
    """Return the cell of `columns` that writes a mean and its error.

    The mean is a column next to ``NAME_standard_error`` or ``standard_error``, or holds both
    numbers.
    """

    def cell(record: Record) -> str:
        found = record[name]
        if not isinstance(found, dict):
            error = record.get(f"{name}_standard_error", record.get("standard_error"))
            found = {"mean": found, "standard_error": error}
        return with_error(found["mean"], found["standard_error"], decimals, factor)

    return cell


def listed(name: str, decimals: int = 2, between: str = ", ") -> Callable[[Any], str]:
    """Return the cell of `columns` that writes a list of numbers; an empty one is a dash."""
    return lambda record: between.join(f"{v:.{decimals}f}" for v in record[name]) or "–"


def number(value: object, digits: int = 3) -> str:
    """Write a number of a record to some digits; a missing one is a dash."""
    if value is None or math.isnan(float(str(value))):
        return "–"
    text = f"{float(str(value)):.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    if not e:
        return mantissa
    if 0 <= int(exponent) < 6:
        return f"{float(text):,.0f}"
    return f"{mantissa}·10{str(int(exponent)).translate(RAISED)}"


def with_error(mean: Any, standard_error: Any, decimals: int = 2, factor: float = 1.0) -> str:
    """Write a mean with its standard error, leaving out None and NaN."""
    if mean is None or math.isnan(mean):
        return "–"
    text = f"{factor * mean:.{decimals}f}"
    if standard_error is None or math.isnan(standard_error):
        return text
    return f"{text} ± {factor * standard_error:.{decimals}f}"


def yes(value: bool) -> str:
    """Write whether something is so. A statement of a paper has a `validation.verdict` instead."""
    return "yes" if value else "**no**"


def threads(results: Record) -> str:
    return "one thread" if results["threads"] == 1 else f"{results['threads']} threads"


def processor(results: Record) -> str:
    kernel = f" ({results['kernel']})" if "kernel" in results else ""
    return f"{results['machine']['cpu']}{kernel}"
