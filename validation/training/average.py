"""Temporal averaging of parameters: Kingma and Ba 2015 (Adam), section 7.2."""

import contextlib
from collections.abc import Iterator

import torch

from validation.output import Record

DECAY = 0.999


class TemporalAverage:
    """An exponential moving average of a model's parameters, with bias correction.

    After step t the average is theta_bar_t / (1 - decay^t), where theta_bar_0 = 0 and
    theta_bar_t = decay theta_bar_(t-1) + (1 - decay) theta_t.
    """

    def __init__(self, model: torch.nn.Module, decay: float = DECAY) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay must be in [0, 1), got {decay!r}: 0.999 is usual")
        self._model, self._decay, self._steps = model, decay, 0
        self._sums = {
            name: torch.zeros_like(value, memory_format=torch.preserve_format)
            for name, value in model.named_parameters()
        }

    @torch.no_grad()
    def update(self) -> None:
        self._steps += 1
        for name, value in self._model.named_parameters():
            self._sums[name].lerp_(value.detach(), 1.0 - self._decay)

    @contextlib.contextmanager
    def applied(self) -> Iterator[torch.nn.Module]:
        if not self._steps:
            raise ValueError("there is no average before the first step: call update first")
        own = {name: value.detach().clone() for name, value in self._model.named_parameters()}
        correction = 1.0 - self._decay**self._steps
        self._put({name: total / correction for name, total in self._sums.items()})
        try:
            yield self._model
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, values: dict[str, torch.Tensor]) -> None:
        for name, value in self._model.named_parameters():
            value.copy_(values[name])

    def state_dict(self) -> Record:
        return {"steps": self._steps, "decay": self._decay, "sums": self._sums}

    def load_state_dict(self, state: Record) -> None:
        self._steps, self._decay = state["steps"], state["decay"]
        for name, total in self._sums.items():
            total.copy_(state["sums"][name])
