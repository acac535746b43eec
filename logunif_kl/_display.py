"""Show results: in one line, as tables of text, and as tables of HTML for notebooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from ._errors import shown


class Table(NamedTuple):
    """A title, which may be empty, the headings of the columns, and the rows.

    The first column and the columns that `text` names hold words. The others hold numbers.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: Sequence[str] = ()

    def is_text(self) -> list[bool]:
        """Say for each column whether it holds words."""
        return [not i or name in self.text for i, name in enumerate(self.headings)]


def as_text(tables: Iterable[Table]) -> str:
    """Write tables with padded columns, and an empty line between two tables."""
    return "\n\n".join(map(_lines, tables))


def _lines(table: Table) -> str:
    rows = [table.headings, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pad = [str.ljust if text else str.rjust for text in table.is_text()]
    lines = [
        "  ".join(p(cell, width) for p, cell, width in zip(pad, row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([table.title, *lines] if table.title else lines)


def as_html(tables: Iterable[Table]) -> str:
    """Write tables as HTML, which Jupyter shows in place of the repr."""
    return "\n".join(map(_markup, tables))


def _markup(table: Table) -> str:
    sides = ["left" if text else "right" for text in table.is_text()]

    def row(tag: str, cells: Sequence[str]) -> str:
        marked = (
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(marked)}</tr>"

    title = f"<caption>{escape(table.title)}</caption>\n" if table.title else ""
    rows = "\n".join(row("td", cells) for cells in table.rows)
    head = row("th", table.headings)
    return f"<table>\n{title}<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


class Tabular:
    """The base of results that `print` and notebooks show as tables."""

    __slots__ = ()

    def _tables(self) -> Sequence[Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(self._tables())

    def _repr_html_(self) -> str:
        return as_html(self._tables())


def in_short(result: Any) -> str:
    """Write a named tuple or a dataclass on one line: arrays by dtype and shape.

    Fields that have their default value are left out.
    """
    if dataclasses.is_dataclass(result):
        defaults = {field.name: field.default for field in dataclasses.fields(result)}
    else:
        defaults = {
            name: result._field_defaults.get(name, dataclasses.MISSING) for name in result._fields
        }
    given = {name: getattr(result, name) for name in defaults}
    described = (
        f"{name}={described_briefly(value)}"
        for name, value in given.items()
        if not _is_same(value, defaults[name])
    )
    return f"{type(result).__name__}({', '.join(described)})"


def _is_same(value: Any, default: Any) -> bool:
    # An array that is compared with a number gives an array.
    return value is default or (not hasattr(value, "shape") and value == default)


def described_briefly(value: Any) -> str:
    """Write an array by its dtype and shape, such as float32[3, 2], and one number by its digits.

    A number that is not known yet, as inside `jax.jit`, is an array without dimensions.
    """
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return shown(value)
    if not value.shape:
        try:
            return f"{value.item():.6g}"
        except (AttributeError, RuntimeError, TypeError, ValueError):
            pass
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype}[{', '.join(map(str, value.shape))}]"


def statistics(array: Any) -> list[str]:
    """Return the least, the mean and the greatest element; nothing where they are not known."""
    try:
        found = [each.item() for each in (array.min(), array.mean(), array.max())]
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return ["", "", ""]
    return [f"{number:.4g}" for number in found]


def shown_few(names: list[str]) -> str:
    """List at most five names, and the number of the others."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}"
