"""Training by Adam with a falling learning rate and a rising weight of the KL."""

import dataclasses
from typing import Any

from logunif_kl.torch import nn
from validation.output import Record
from validation.training.loop import Run


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """The learning rate falls linearly to 0 over ``epochs``; the KL has a warm-up.

    The weight of the KL rises linearly from 0 to 1 between the epochs ``warm_up[0]`` and
    ``warm_up[1]``, as in Molchanov et al. (2017), section 5.
    """

    epochs: int
    warm_up: tuple[float, float]

    def rate(self, epoch: float) -> float:
        return max(1.0 - epoch / self.epochs, 0.0)

    def kl_weight(self, epoch: float) -> float:
        begin, end = self.warm_up
        return nn.linear_warm_up(epoch, begin, end)

    def about(self) -> Record:
        return {"epochs": self.epochs, "warm_up": list(self.warm_up)}


class ScheduledRun(Run):
    """A `Run` that follows a `Schedule`; the step determines its state, so it can resume."""

    def __init__(self, *given: Any, schedule: Schedule, about: Record, **options: Any) -> None:
        super().__init__(*given, about={**about, "schedule": schedule.about()}, **options)
        self._schedule = schedule

    def _take_step(self) -> None:
        epoch = self.epoch + self._in_epoch / len(self._examples)
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * self._schedule.rate(epoch)
        weight = self.settings.kl_weight * self._schedule.kl_weight(epoch)
        self._objective.elbo.kl_weight = weight
        super()._take_step()
