"""A progress bar for long computations. It needs rich, an optional dependency."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(description: str, total: int, shown: bool) -> Iterator[Callable[[float], None]]:
    """Yield a function that advances a progress bar. If `shown`, rich draws the bar on stderr."""
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
    with bars.Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(description, total=total)
        yield lambda done: progress.advance(task, done)
