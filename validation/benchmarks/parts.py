"""The time of the parts of a step that run one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise


def timed(
    parts: Mapping[str, Callable[[], object]], wait: Callable[[], object] = lambda: None
) -> dict[str, float]:
    """Run the parts in order, and return the seconds of each and of the whole ``step``.

    ``wait`` returns when the device has done what it was given.
    """
    wait()
    times = [time.perf_counter()]
    for run in parts.values():
        run()
        wait()
        times.append(time.perf_counter())
    took = (after - before for before, after in pairwise(times))
    return {**dict(zip(parts, took, strict=True)), "step": times[-1] - times[0]}
