"""Functions that all commands use: for files, JSON, tables, progress bars and errors."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from .._atomic_io import replacing
from ..methods._progress import progress_bar
from ._process import complain, emit, lacks_memory

STDOUT = "-"
UNLIMITED = 1_000_000  # the width of a console on which no table wraps, used to measure tables
_NUMBERS = re.compile(r"\[\s+((?:[-+.\deE]+,\s+)*[-+.\deE]+)\s+\]")

T = TypeVar("T")


class CommandError(Exception):
    """An error that the user can correct. Its text is printed."""

    status = 2


class Failure(CommandError):
    """A failed check. Its text says what failed."""

    status = 1


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or raise an error that names the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if lacks_memory(error):
            raise
        raise CommandError(
            f"{purpose} needs {module.partition('.')[0]}, which cannot be imported ({error}): "
            f'install it with pip install "logunif_kl[{extra}]"'
        ) from None


def has_rich() -> bool:
    try:
        require("rich", "cli", "the table")
    except CommandError:
        return False
    return True


def check_writable(path: str | None) -> None:
    """Raise an error if `path` cannot be written. Commands call this before they do any work."""
    if path is None or path == STDOUT:
        return
    target, reason = Path(os.path.realpath(path)), ""
    parent = target.parent if target != Path(path).absolute() else Path(path).parent
    # `realpath` resolves every link except in a loop of links.
    if any(each.is_symlink() for each in (target, *target.parents)):
        reason = "its symbolic links form a loop; name another file"
    elif target.is_dir():
        reason = "it is a directory; name a file"
    elif target.exists():
        if not os.access(target, os.W_OK):
            reason = "permission denied; name another file"
    elif not parent.exists():
        reason = f"the directory {parent} does not exist; create it first"
    elif not parent.is_dir():
        reason = f"{parent} is not a directory; name one"
    elif not os.access(parent, os.W_OK):
        reason = f"permission denied in {parent}; name another directory"
    if reason:
        raise CommandError(f"cannot write {path}: {reason}")


def check_plot(path: str | None) -> None:
    """Raise an error if a plot cannot be saved to `path`. Commands call this before any work."""
    check_writable(path)
    if path is None:
        return
    require("matplotlib", "plot", "--plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if Path(path).suffix.removeprefix(".").lower() not in known:
        raise CommandError(
            f"cannot draw {path}: its suffix must name a format, such as .png, .svg or .pdf"
        )


def check_known(what: str, name: str, names: Iterable[str], purpose: str = "") -> None:
    if name not in names:
        raise CommandError(f"there is no {what} {name!r}{purpose}: choose from {', '.join(names)}")


def one_of(names: Iterable[str]) -> str:
    """Write the choices of an option for its help."""
    return "{" + ",".join(names) + "}"


def add_json(parser: Any) -> None:
    parser.add_argument(
        "--json", metavar="FILE", help="also write the results as JSON; - instead prints them"
    )


def write_record(path: str, document: dict[str, Any], *, finite: bool = False) -> None:
    """Write a result as `write_json` does, and add a hash, which reveals later changes.

    With ``finite``, raise ValueError for an infinite number or NaN.
    """
    from .provenance import SEAL, seal

    plain = document if finite else _plain(document)
    write_json(path, {**plain, SEAL: seal(plain)})


def write_json(path: str, document: dict[str, Any]) -> None:
    """Write a document as JSON to a file, or to standard output for ``-``."""
    text = json.dumps(_plain(document), indent=2, allow_nan=False)
    text = _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"
    if path == STDOUT:
        emit(text)
        return
    with writing(path), replacing(path) as part:
        part.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def writing(path: str, kind: str = "file") -> Iterator[None]:
    """Turn an error from writing into a `CommandError` that says what to do."""
    try:
        yield
    except OSError as error:
        if lacks_memory(error):
            raise
        reason = error.strerror or error
        raise CommandError(f"cannot write {path}: {reason}; name another {kind}") from None


def _plain(value: Any) -> Any:
    """Replace inf and NaN, which JSON does not have, by strings that ``float`` can read."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def show_tables(tables: Sequence[Any], notes: Sequence[str] = ()) -> None:
    """Print rich tables and notes. `_narrowed` fits the tables to the width of a terminal."""
    from rich.console import Console

    console, boundless = Console(), Console(width=UNLIMITED)
    width = console.width if console.is_terminal else UNLIMITED
    left_out: list[str] = []
    with console.capture() as capture:
        for table in tables:
            fitted, names = _narrowed(table, width, boundless)
            left_out += [name for name in names if name not in left_out]
            console.width = min(max(width, boundless.measure(fitted).minimum), UNLIMITED)
            console.print(fitted)
    if any(len(note) > width for note in notes):
        notes = [wrapped(" ".join(notes), width)]
    if left_out:
        note = f"Left out at this width: {', '.join(left_out)}. --json has every number."
        notes = [*notes, wrapped(note, width)]
    text = re.sub(" +\n", "\n", capture.get())  # trailing blanks could make a line wrap
    emit(text + "".join(f"{note}\n" for note in notes))


def _narrowed(table: Any, width: int, boundless: Any) -> tuple[Any, list[str]]:
    """Make a table of at most `width` characters, and name the columns that are left out.

    Text wraps between words. Numbers are never cut. Instead whole columns are left out: first the
    columns in `drop_first`, then columns of numbers from the right. At least two columns stay.
    """
    columns = [
        replace(c, min_width=_longest(c, "\n" if c.no_wrap else None)) for c in table.columns
    ]
    first = table.drop_first
    droppable = [column for column in columns if column.no_wrap or column.header in first]
    droppable.sort(key=lambda column: column.header in first)
    left_out: list[str] = []
    while True:
        made = copy(table)
        made.columns = [replace(column, _index=i) for i, column in enumerate(columns)]
        if boundless.measure(made).minimum <= width or len(droppable) == 1 or len(columns) == 2:
            break
        dropped = droppable.pop()
        columns = [column for column in columns if column is not dropped]
        left_out.append(" ".join(str(dropped.header).split()))
    for column in made.columns:
        if boundless.measure(made).maximum > width:
            column.width = column.min_width
    return made, left_out


def _longest(column: Any, separator: str | None) -> int:
    texts = [str(column.header), *map(str, column.cells)]
    return max(len(part) for text in texts for part in text.split(separator) or [""])


def wrapped(text: str, width: int) -> str:
    """Wrap a text between words, and keep the indentation as far as the longest word allows."""
    longest = max(map(len, text.split()), default=0)
    indent = text[: len(text) - len(text.lstrip())][: max(0, width - longest)]
    return textwrap.fill(
        text.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def new_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text: Sequence[str] = (),
    drop_first: Sequence[str] = (),
) -> Any:
    """Make a table. Columns whose headings are in `text` hold text, and the others hold numbers.

    If the terminal is too narrow, the columns in `drop_first` are left out first.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.drop_first = drop_first  # type: ignore[attr-defined]
    for heading in headings:
        if heading in text:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def results(
    command_json: str | None, document: dict[str, Any], tables: Any, notes: Sequence[str] = ()
) -> None:
    """Write a command's results as JSON if asked to, then print the tables that `tables` returns.

    Print no table if the JSON goes to standard output, or if it goes to a file and rich is missing.
    """
    if command_json is not None:
        write_record(command_json, document)
        if command_json == STDOUT:
            return
        if not has_rich():
            complain(
                "logunif-kl: the table is left out, because rich is not installed: "
                'pip install "logunif_kl[cli]"\n'
            )
            return
    show_tables(tables(), notes)


def check_results(command_json: str | None) -> None:
    """Raise an error if JSON cannot be written, or if there is no --json and rich is missing."""
    check_writable(command_json)
    if command_json is None:
        require("rich", "cli", "the table (all but --json)")


def has_terminal() -> bool:
    """Return whether a progress bar can be shown: standard error is a terminal, and rich exists."""
    return sys.stderr is not None and sys.stderr.isatty() and has_rich()


def track(items: Iterable[T], description: str, total: int) -> Iterator[T]:
    """Yield the items. After two seconds, show a progress bar on a terminal."""
    with progress_bar(description, total, has_terminal()) as advance:
        for item in items:
            yield item
            advance(1)
