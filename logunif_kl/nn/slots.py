"""Numbers for the units of a network, while dead units are looked for."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Slots:
    """Numbers for the units of all layers. Units that must stay or go together are united."""

    def __init__(self) -> None:
        self.count = 0
        self._united: list[tuple[Array, Array]] = []
        self.pins: list[tuple[Array, str]] = []
        """Slots that must stay, with the reasons."""

    def new(self, count: int) -> Array:
        self.count += count
        return np.arange(self.count - count, self.count)

    def unite(self, first: Array, second: Array) -> None:
        self._united.append((first, second))

    def pin(self, ids: Array, why: str) -> None:
        self.pins.append((ids, why))

    def pinned(self) -> Array:
        return _concatenated([ids for ids, _ in self.pins])

    def roots(self) -> Array:
        """Return a number for each slot, which is the same for united ones."""
        found = np.arange(self.count)
        first, second = (_concatenated([pair[i] for pair in self._united]) for i in (0, 1))
        while True:
            one, other = found[first], found[second]
            if (one == other).all():
                return found
            np.minimum.at(found, np.maximum(one, other), np.minimum(one, other))
            while (found != found[found]).any():
                found = found[found]


def keep_some(roots: Array, live: Array, multiple_of: int) -> None:
    """Let dead units of a dimension live, so that one stays, and a multiple of a number."""
    dead = roots[~live[roots]]
    missing = -(len(roots) - len(dead)) % multiple_of
    live[dead[: missing or int(len(dead) == len(roots))]] = True


def _concatenated(arrays: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, int), *arrays])
