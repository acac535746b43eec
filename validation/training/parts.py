"""A long computation in parts, each of which is computed once and kept in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from validation.training import checkpoint

T = TypeVar("T")


class Parts:
    """The results of the parts of an experiment, as JSON files in a folder.

    A file holds the settings that its part was computed with; those of another run are refused.
    With no folder, nothing is kept. ``seconds`` is what all parts took, whenever they were
    computed.
    """

    def __init__(self, folder: Path | None, about: dict[str, Any]) -> None:
        self._folder, self._about = folder, about
        self.seconds = 0.0

    def get(self, name: str, make: Callable[[], T], **settings: Any) -> T:
        """Return what the part's file holds, or else compute the part and write the file."""
        (found,) = self.growing(name, 1, lambda _: make(), **settings)
        return found

    def growing(self, name: str, count: int, make: Callable[[int], T], **settings: Any) -> list[T]:
        """Return results 0, 1, ..., count - 1 of ``make``, each kept as soon as it is there."""
        path = None if self._folder is None else self._folder / f"{name}.json"
        about = {**self._about, **settings}
        kept = None if path is None else checkpoint.load_json(path, about)
        found, seconds = kept or ([], 0.0)
        while len(found) < count:
            began = time.monotonic()
            found.append(make(len(found)))
            seconds += time.monotonic() - began
            if path is not None:
                checkpoint.save_json(path, about, found, seconds)
        self.seconds += seconds
        return found[:count]

    def file(self, name: str) -> Path | None:
        """Give the path of another file of a part, such as a checkpoint."""
        return None if self._folder is None else self._folder / name
