"""Training by Adam with a falling learning rate and a rising weight of the KL."""

import dataclasses
import math
from typing import Any

from logunif_kl.torch import nn
from validation.output import Record
from validation.training.loop import Run


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """The learning rate falls linearly to 0 over ``epochs``; the KL has a warm-up.

    The weight of the KL rises linearly from 0 to 1 between the epochs ``warm_up[0]`` and
    ``warm_up[1]``, as in Molchanov et al. (2017), section 5. The rate is constant over the first
    part ``flat`` of the epochs.
    """

    epochs: int
    warm_up: tuple[float, float]
    flat: float = 0.0

    def rate(self, epoch: float) -> float:
        return min(max(1.0 - epoch / self.epochs, 0.0) / (1.0 - self.flat), 1.0)

    def kl_weight(self, epoch: float) -> float:
        begin, end = self.warm_up
        return nn.linear_warm_up(epoch, begin, end)

    def about(self) -> Record:
        flat = {"flat": self.flat} if self.flat else {}
        return {"epochs": self.epochs, "warm_up": list(self.warm_up), **flat}


class ScheduledRun(Run):
    """A `Run` that follows a `Schedule`; the step determines its state, so it can resume.

    After each step it sets the means to zero whose log alpha is at least ``zero_from``.
    ``mask_from`` is that of `logunif_kl.torch.nn.ELBO`.
    """

    def __init__(
        self,
        *given: Any,
        schedule: Schedule,
        about: Record,
        zero_from: float = math.inf,
        mask_from: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*given, about={**about, "schedule": schedule.about()}, **options)
        self._schedule, self._zero_from = schedule, zero_from
        if mask_from is not None:
            self._objective.elbo.mask_from = mask_from

    def _take_step(self) -> None:
        epoch = self.epoch + self._in_epoch / len(self._examples)
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * self._schedule.rate(epoch)
        weight = self.settings.kl_weight * self._schedule.kl_weight(epoch)
        self._objective.elbo.kl_weight = weight
        super()._take_step()
        if self._zero_from < math.inf:
            nn.zero_means(self.model, self._zero_from)
