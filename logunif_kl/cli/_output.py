"""What every command shares: files, JSON, tables, progress, and errors of one sentence."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

STDOUT = "-"
PATIENCE = 2.0  # seconds before a progress bar appears

UNLIMITED = 1_000_000  # columns; a table is measured in a console of this width

T = TypeVar("T")


class CommandError(Exception):
    """Something the user can mend; its text is the one sentence to print."""

    status = 2


class Failure(CommandError):
    """A check that found what it looks for; its text says what."""

    status = 1


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CommandError(
            f"{purpose} needs {module.partition('.')[0]}, which cannot be imported ({error}): "
            f'install it with pip install "logunif_kl[{extra}]"'
        ) from None


def has_rich() -> bool:
    """Whether tables and progress bars can be shown."""
    try:
        importlib.import_module("rich")
    except ImportError:
        return False
    return True


def check_writable(path: str | None) -> None:
    """Refuse, before any work is done, a file that could not be written after it."""
    if path is None or path == STDOUT:
        return
    target = Path(path)
    if target.is_dir():
        raise CommandError(f"cannot write {path}: it is a directory; name a file")
    if target.exists():
        if not os.access(target, os.W_OK):
            raise CommandError(f"cannot write {path}: permission denied; name another file")
        return
    parent = target.parent
    if not parent.is_dir():
        raise CommandError(
            f"cannot write {path}: the directory {parent} does not exist; create it first"
        )
    if not os.access(parent, os.W_OK):
        raise CommandError(
            f"cannot write {path}: permission denied in {parent}; name another directory"
        )


def write_json(path: str, document: dict[str, Any]) -> None:
    """Write a document as JSON to a file, or to standard output for ``-``."""
    text = json.dumps(_plain(document), indent=2, allow_nan=False) + "\n"
    if path == STDOUT:
        emit(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}; name another file") from None


def _plain(value: Any) -> Any:
    """JSON has no infinity: such a number becomes the string that ``float`` reads back."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def emit(text: str) -> None:
    """Write to standard output; a reader who has gone away stops the writing, not the command."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()


def silence_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush cannot fail."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, sys.stdout.fileno())
    finally:
        os.close(devnull)


def show_tables(tables: Sequence[Any], notes: Sequence[str] = ()) -> None:
    """Print rich tables and notes; a pipe or a file gets every column at its full width."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        boundless = Console(width=UNLIMITED)
        console.width = max(boundless.measure(table).maximum for table in tables)
    with console.capture() as capture:
        for table in tables:
            console.print(table)
    emit(capture.get() + "".join(f"{note}\n" for note in notes))


def new_table(title: str, columns: Sequence[tuple[str, bool]]) -> Any:
    """Start a table with the given columns, each with whether it holds numbers."""
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
    for header, numeric in columns:
        table.add_column(header, justify="right" if numeric else "left", overflow="fold")
    return table


def results(
    command_json: str | None, document: dict[str, Any], tables: Any, notes: Sequence[str] = ()
) -> None:
    """Hand over a command's results: JSON first, so that nothing after it can lose it, then tables.

    ``tables`` is called to make them only when they can be shown: JSON on standard output
    replaces them, and without rich a command that wrote JSON does without them.
    """
    if command_json is not None:
        write_json(command_json, document)
        if command_json == STDOUT:
            return
        if not has_rich():
            sys.stderr.write(
                "logunif-kl: the table is left out, because rich is not installed: "
                'pip install "logunif_kl[cli]"\n'
            )
            return
    show_tables(tables(), notes)


def check_results(command_json: str | None) -> None:
    """Refuse, before any work is done, results that could be neither written nor shown."""
    check_writable(command_json)
    if command_json is None:
        require("rich", "cli", "the table (all but --json)")


def track(items: Iterable[T], description: str, total: int) -> Iterator[T]:
    """Yield the items, with a progress bar on standard error once that has taken two seconds."""
    if not has_rich():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = progress.add_task(description, total=total)
    began = time.monotonic()
    shown = False
    with contextlib.ExitStack() as stack:
        for item in items:
            if not shown and time.monotonic() - began > PATIENCE:
                stack.enter_context(progress)
                shown = True
            yield item
            progress.advance(task)
