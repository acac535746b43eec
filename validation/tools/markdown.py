"""What the tables of the README have in common."""

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
