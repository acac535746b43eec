"""A long computation in parts, each of which is computed once and kept in a folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from validation.training import checkpoint

T = TypeVar("T")


class Parts:
    """The results of the parts of an experiment, as JSON files in a folder.

    A file holds the settings that its part was computed with; those of another run are refused.
    With no folder, nothing is kept. A part that the folder lacks is taken from ``begun``, a folder
    of parts that were computed elsewhere, if it was computed with the same settings; ``elsewhere``
    names those. ``seconds`` is what all parts took, whenever they were computed: a part that was
    taken up from a checkpoint says itself, in ``"seconds"``, what it took before.
    """

    def __init__(
        self, folder: Path | None, about: dict[str, Any], begun: Path | None = None
    ) -> None:
        self._folder, self._about, self._begun = folder, about, begun
        self.seconds = 0.0
        self.elsewhere: list[str] = []

    def get(self, name: str, make: Callable[[], T], **settings: Any) -> T:
        """Return what the part's file holds, or else compute the part and write the file."""
        (found,) = self.growing(name, 1, lambda _: make(), **settings)
        return found

    def growing(self, name: str, count: int, make: Callable[[int], T], **settings: Any) -> list[T]:
        """Return results 0, 1, ..., count - 1 of ``make``, each kept as soon as it is there."""
        found, seconds = self.kept(name, **settings) or ([], 0.0)
        while len(found) < count:
            began = time.monotonic()
            found.append(make(len(found)))
            seconds += max(time.monotonic() - began, _own_seconds(found[-1]))
            self.keep(name, found, seconds, **settings)
        self.seconds += seconds
        return found[:count]

    def kept(self, name: str, **settings: Any) -> tuple[Any, float] | None:
        """Return what is on file of a part, and how long it took; None if nothing is."""
        about = {**self._about, **settings}
        if self._folder is not None:
            found = checkpoint.load_json(self._folder / f"{name}.json", about)
            if found is not None:
                return found
        if self._begun is not None:
            with contextlib.suppress(checkpoint.OtherSettings):
                found = checkpoint.load_json(self._begun / f"{name}.json", about)
                if found is not None and name not in self.elsewhere:
                    self.elsewhere.append(name)
                return found
        return None

    def keep(self, name: str, found: Any, seconds: float = 0.0, **settings: Any) -> None:
        """Write what there is of a part."""
        if self._folder is not None:
            about = {**self._about, **settings}
            checkpoint.save_json(self._folder / f"{name}.json", about, found, seconds)

    def file(self, name: str) -> Path | None:
        """Give the path of another file of a part, such as a checkpoint."""
        return None if self._folder is None else self._folder / name


def _own_seconds(result: Any) -> float:
    own = result.get("seconds") if isinstance(result, dict) else None
    return float(own) if isinstance(own, (int, float)) else 0.0
