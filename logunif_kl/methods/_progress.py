"""A progress bar for long computations. It needs rich, an optional dependency."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator

PATIENCE = 2.0  # seconds before a progress bar appears


@contextlib.contextmanager
def progress_bar(description: str, total: float, shown: bool) -> Iterator[Callable[[float], None]]:
    """Yield a function that advances a progress bar.

    If `shown`, rich draws the bar on a terminal, as standard error, or in a notebook. The bar
    appears after two seconds, and vanishes at the end.
    """
    if not shown:
        yield lambda done: None
        return
    try:
        bars = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
    except ImportError:
        raise ImportError(
            "progress=True needs rich, which cannot be imported: install it with "
            'pip install "logunif_kl[cli]", or pass progress=False'
        ) from None
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeRemainingColumn(),
    )
    progress = bars.Progress(*columns, console=console, transient=True)
    task = progress.add_task(description, total=total)
    waits, began = console.is_terminal or console.is_jupyter, time.monotonic()
    with contextlib.ExitStack() as stack:

        def advance(done: float) -> None:
            nonlocal waits
            progress.advance(task, done)
            if waits and time.monotonic() - began > PATIENCE:
                waits = False
                stack.enter_context(progress)

        yield advance
