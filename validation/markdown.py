"""Tables in Markdown, and the numbers in their cells."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

Results = dict[str, Any]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table with padded columns."""
    rows = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *rows]) for i in range(len(header))]
    ruled = [list(header), ["-" * width for width in widths], *rows]
    lines = (" | ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in ruled)
    return "\n".join(f"| {line} |" for line in lines)


def number(value: object, digits: int = 3) -> str:
    """Write a number of a record to some digits; a missing one is a dash."""
    if value is None or math.isnan(float(str(value))):
        return "–"
    text = f"{float(str(value)):.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}·10^{int(exponent)}" if e else mantissa


def with_error(value: object, error: object, decimals: int = 2) -> str:
    """Write a value with its standard error, if that is known."""
    mean, spread = float(str(value)), float(str(error))
    if math.isnan(mean):
        return "–"
    return f"{mean:.{decimals}f}" + ("" if math.isnan(spread) else f" ± {spread:.{decimals}f}")


def yes(value: object) -> str:
    """Write a verdict; None means that one seed cannot decide."""
    return {True: "yes", False: "**no**", None: "not decided"}[value]  # type: ignore[index]


def with_quartiles(row: Results) -> str:
    """Write a median with its quartiles."""
    return f"{row['median']:.2f} ({row['lower_quartile']:.2f} to {row['upper_quartile']:.2f})"


def threads(results: Results) -> str:
    """Say on how many threads."""
    return "one thread" if results["threads"] == 1 else f"{results['threads']} threads"


def processor(results: Results) -> str:
    """Name the processor, and the instruction set of the kernel."""
    kernel = f" ({results['kernel']})" if "kernel" in results else ""
    return f"{results['machine']['cpu']}{kernel}"
