"""Random numbers that a trace draws, without effects on those that are drawn elsewhere."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class OwnRandomState(TorchDispatchMode):
    """Leave the states of the global generators as they are.

    A fork around the whole trace would take back the numbers that other threads draw meanwhile.
    The trace goes on with a state of its own, because it may draw until it likes a number.
    """

    _states: list[torch.Tensor] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **(kwargs or {}))
        cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        with torch.random.fork_rng(devices=cuda):
            if self._states is not None:
                torch.set_rng_state(self._states[0])
                for device, state in zip(cuda, self._states[1:], strict=False):
                    torch.cuda.set_rng_state(state, device)
            found = func(*args, **(kwargs or {}))
            self._states = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, cuda)]
        return found
