"""Tables and notes as text, on terminals of any width. No number is broken.

In a pipe or a file every column has its full width. On a terminal that is narrower than a table,
columns of text are narrowed, and the table is printed in parts, each with some of its columns. A
table that would have many parts is printed as a list, row after row. A number that is wider than
the terminal makes its line wider.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

UNLIMITED = 1_000_000  # columns of the console in which the width of a table is measured
MOST_PARTS = 4


def show(tables: Sequence[Any], notes: Sequence[str]) -> str:
    """Write rich tables and notes for the terminal, pipe or file that standard output is."""
    from rich.console import Console

    console, boundless = Console(), Console(width=UNLIMITED)
    with console.capture() as capture:
        if console.is_terminal:
            notes = _wrapped_notes(notes, console.width)
            for table in tables:
                _print_fitted(console, boundless, table, console.width)
        else:
            console.width = max(boundless.measure(table).maximum for table in tables)
            for table in tables:
                console.print(table)
    text = re.sub(" +\n", "\n", capture.get())  # a blank too many would fill another line
    return text + "".join(f"{note}\n" for note in notes)


def wrapped(text: str, width: int) -> str:
    """Wrap a text at its blanks alone; what follows the first line keeps its indentation."""
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.fill(
        text.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _wrapped_notes(notes: Sequence[str], width: int) -> Sequence[str]:
    """Wrap notes as one paragraph, unless each fits on its line."""
    if all(len(note) <= width for note in notes):
        return notes
    return [wrapped(" ".join(notes), width)]


def _print_fitted(console: Any, boundless: Any, table: Any, width: int) -> None:
    """Print a table within a width, in parts or as a list if need be."""
    from rich.text import Text

    def put(part: Any, needed: int) -> None:
        part.title = None
        console.width = max(width, needed)
        console.print(part)

    def head(text: Any) -> None:
        title = Text(wrapped(str(text), width), style=table.title_style)
        console.print(title, soft_wrap=True)

    if table.title:
        head(table.title)
    parts = _parts(copy(table), width, boundless)
    if len(parts) <= MOST_PARTS:
        for part in parts:
            put(part, boundless.measure(part).maximum)
        return
    for name, record in _records(table, width):
        console.print()
        if name:
            head(name)
        put(record, boundless.measure(record).minimum)
    console.print()


def _records(table: Any, width: int) -> Iterator[tuple[str, Any]]:
    """Yield what each row begins with, and a table of its other cells with their headings.

    A heading stands beside its cell, or above it where a number is too wide for that.
    """
    from rich.padding import Padding
    from rich.table import Table

    first, *others = ([" ".join(str(c.header).split()), *map(str, c.cells)] for c in table.columns)
    headings = [column[0] for column in others]
    longest = max(map(len, headings))
    if longest > width // 2:
        longest = max(len(word) for heading in headings for word in heading.split())
    for name, *cells in zip(first[1:], *(column[1:] for column in others), strict=True):
        pairs = [(h, cell) for h, cell in zip(headings, cells, strict=True) if cell]
        beside = max(len(word) for _, cell in pairs for word in cell.split()) <= width - longest - 4
        record = Table(box=None, show_header=False, pad_edge=True, padding=(0, 0, 0, 2))
        record.add_column(width=longest if beside else None, overflow="fold")
        if beside:
            record.add_column(overflow="fold")
        for heading, cell in pairs:
            if beside:
                record.add_row(heading, cell)
            else:
                record.add_row(heading)
                record.add_row(Padding(cell, (0, 0, 0, 2)))
        yield f"{first[0]} {name}".strip() if name else "", record


def _parts(table: Any, width: int, boundless: Any) -> list[Any]:
    """Divide a table by its columns, as far as it is wider than `width`.

    Every part begins with the columns of text that the table begins with, or with its first.
    """
    if boundless.measure(table).maximum <= width:
        return [table]
    columns = list(table.columns)
    keys = max(1, next((i for i, c in enumerate(columns) if c.no_wrap), len(columns)))
    parts = [columns[:keys]]
    for column in columns[keys:]:
        wider = [*parts[-1], column]
        narrow = _with_columns(table, [_narrow(each) for each in wider])
        if boundless.measure(narrow).maximum <= width or len(parts[-1]) == keys:
            parts[-1] = wider
        else:
            parts.append([*columns[:keys], column])
    found = []
    for part in parts:
        made = _with_columns(table, part)
        if boundless.measure(made).maximum > width:
            made = _with_columns(table, [_narrow(each) for each in part])
        found.append(made)
    return found


def _narrow(column: Any) -> Any:
    """Make a column of text as wide as its longest word; one of numbers keeps its width."""
    if column.no_wrap:
        return column
    texts = [str(column.header), *map(str, column.cells)]
    return replace(column, width=max(len(word) for text in texts for word in text.split()))


def _with_columns(table: Any, columns: Sequence[Any]) -> Any:
    part = copy(table)
    part.columns = [replace(column, _index=i) for i, column in enumerate(columns)]
    return part
