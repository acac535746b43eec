"""A long computation in parts; each is computed once and kept in a folder."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from validation.output import CommandError, Record, track
from validation.training import checkpoint

T = TypeVar("T")


class Incomplete(Exception):
    """The parts of this process are complete, but other parts are missing."""


class Parts:
    """The results of an experiment's parts, as JSON files in a folder.

    Files of other settings raise an error. ``seconds`` is the total time of all parts, whenever
    they were computed; a part that resumed a checkpoint reports the time before it in
    ``"seconds"``. ``part`` is ``I/N`` for a process that shares the work with others.
    """

    def __init__(self, folder: Path, about: Record, *, part: str | None = None) -> None:
        self._folder, self._about = folder, about
        self._number, self._of = _chosen(part)
        self.seconds = 0.0

    def rows(self, title: str, make: Mapping[str, Callable[[], T]], **settings: Any) -> list[T]:
        return self.share(make, lambda name: self.get(name, make[name], **settings), title)

    def by_seed(
        self,
        title: str,
        names: Iterable[str | tuple[Any, ...]],
        settings: Record,
        make: Callable[..., T],
        *given: Any,
        without: Sequence[str] = (),
    ) -> list[T]:
        """Return ``make(*name, seed, settings, *given)`` for each seed and name, or names."""
        each = [name if isinstance(name, tuple) else (name,) for name in names]
        cells = {
            slug("-".join(map(str, (*name, f"seed{seed}")))): partial(
                make, *name, seed, settings, *given
            )
            for seed in settings["seeds"]
            for name in each
        }
        return self.rows(title, cells, **determining(settings, *without))

    def share(self, items: Iterable[str], do: Callable[[str], T], title: str = "parts") -> list[T]:
        """Call a function for each item, or for every N-th item and then raise `Incomplete`."""
        mine = list(items)[self._number - 1 :: self._of]
        found = [do(item) for item in track(mine, title, len(mine))]
        if self._of > 1:
            raise Incomplete
        return found

    def get(self, name: str, make: Callable[[], T], **settings: Any) -> T:
        """Return the content of the part's file, or compute the part and write the file."""
        (found,) = self.growing(name, 1, lambda _: make(), **settings)
        return found

    def growing(self, name: str, count: int, make: Callable[[int], T], **settings: Any) -> list[T]:
        """Return results 0, ..., count - 1 of ``make``, and keep each as soon as it is computed."""
        found, seconds = self.kept(name, **settings) or ([], 0.0)
        while len(found) < count:
            began = time.monotonic()
            found.append(make(len(found)))
            own = found[-1].get("seconds", 0.0) if isinstance(found[-1], dict) else 0.0
            seconds += max(time.monotonic() - began, own)
            self.keep(name, found, seconds, **settings)
        self.seconds += seconds
        return found[:count]

    def kept(self, name: str, **settings: Any) -> tuple[Any, float] | None:
        """Return the stored result of a part and its time, or None."""
        return checkpoint.load_json(self._folder / f"{name}.json", {**self._about, **settings})

    def keep(self, name: str, found: Any, seconds: float = 0.0, **settings: Any) -> None:
        about = {**self._about, **settings}
        checkpoint.save_json(self._folder / f"{name}.json", about, found, seconds)

    def file(self, name: str) -> Path:
        return self._folder / name


def determining(settings: Record, *without: str) -> Record:
    """Return the settings that determine a part: without those that only choose the parts."""
    return {k: v for k, v in settings.items() if k not in ("quick", "seeds", "threads", *without)}


def slug(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def _chosen(text: str | None) -> tuple[int, int]:
    """Read ``I/N``; 1/1 means all."""
    number, slash, of = (text or "1/1").partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise CommandError(f"--part {text} is not a part: write --part 1/2 for the first of two")
    return int(number), int(of)
