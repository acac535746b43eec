"""Training by Adam. A run that stops at any step resumes with the same bits."""

# mypy: allow-untyped-calls
import contextlib
import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from logunif_kl.torch import nn
from validation.output import CommandError, Record
from validation.training import checkpoint
from validation.training.data import Split

CHECK_EVERY = 60.0  # seconds between two checkpoints within an epoch
ENTRIES = 6  # in the record of an epoch, before results are added


class TrainingError(CommandError):
    """A run that cannot continue."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Everything that determines a run, except for the network and the data.

    ``averaging`` is the decay of the temporal average, or None for none; ``learning_rate`` is
    Adam's default. ``seed`` seeds two generators: one for the order of the examples and one for the
    noise.
    """

    batch_size: int
    seed: int
    learning_rate: float = 1e-3
    averaging: float | None = 0.999
    kl_weight: float = 1.0

    def about(self) -> Record:
        return dataclasses.asdict(self)


def seeded(seed: int, purpose: int) -> torch.Generator:
    """Make a generator for one purpose: 0 is the order of the examples, 1 the noise."""
    (hashed,) = np.random.SeedSequence([seed, purpose]).generate_state(1)
    return torch.Generator().manual_seed(int(hashed))


class Examples:
    def __init__(self, split: Split) -> None:
        self.x, self.y = map(torch.from_numpy, split)

    def __len__(self) -> int:
        return len(self.y)


class Objective:
    """The variational bound of a network, or its log-likelihood if it has no posterior."""

    def __init__(self, model: torch.nn.Module, examples: int, kl_weight: float) -> None:
        self._model, self._examples = model, examples
        self.elbo: Any = None
        if any(isinstance(m, nn.VariationalLinear) for m in model.modules()):
            self.elbo = nn.ELBO(model, nn.categorical_log_likelihood, examples, kl_weight)

    def __call__(
        self, x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the loss, the estimated log-likelihood of all examples (Eq. 3), and -KL."""
        if self.elbo is not None:
            bound = self.elbo(x, y)
            return bound.loss, bound.expected_log_likelihood.detach(), bound.neg_kl.detach()
        mean = nn.categorical_log_likelihood(self._model(x), y).mean()
        return -mean, self._examples * mean.detach(), torch.zeros_like(mean)


@contextlib.contextmanager
def flushed() -> Iterator[None]:
    """Compute with zeros instead of subnormal numbers, if the processor can.

    Weights that the divergence drives to zero leave subnormal numbers in gradients and in Adam's
    averages, which are many times slower on a processor.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def fingerprint(split: Split) -> str:
    """Hash the examples, so that a run resumes only with the same ones."""
    found = hashlib.sha256()
    for part in (split.x, split.y):
        found.update(f"{tuple(part.shape)} {part.dtype}".encode())
        found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()


class TemporalAverage:
    """The moving average of a model's parameters in Kingma and Ba 2015 (Adam), section 7.2.

    After step t the average is theta_bar_t / (1 - decay^t), where theta_bar_0 = 0 and
    theta_bar_t = decay theta_bar_(t-1) + (1 - decay) theta_t.
    """

    def __init__(self, model: torch.nn.Module, decay: float = 0.999) -> None:
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


class Run:
    """A network in training, and everything that determines how the run continues.

    ``noise`` draws the noise in the network. If the checkpoint ``file`` exists, the run resumes
    from it, and raises an error if it has other settings or another ``about``. A checkpoint is
    written after each epoch, and once a minute or after ``every`` steps.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        noise: torch.Generator,
        split: Split,
        settings: Settings,
        *,
        about: Record | None = None,
        file: Path | None = None,
        every: int | None = None,
    ) -> None:
        self.model, self.settings = model, settings
        self.epoch = self.step = 0
        self.history: list[Record] = []
        self._examples = Examples(split)
        self.noise, self._order = noise, seeded(settings.seed, 0)
        self._objective = Objective(model, len(split.y), settings.kl_weight)
        self._optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
        decay = settings.averaging
        self.average = None if decay is None else TemporalAverage(model, decay)
        self._about = {**settings.about(), "examples": fingerprint(split), **(about or {})}
        self._file, self._every = file, every
        self._begin_epoch()
        if file is not None and (state := checkpoint.load(file, self._about)) is not None:
            self.load_state_dict(state)

    @property
    def seconds(self) -> float:
        """The time of all epochs, whenever they were computed."""
        return round(sum(record["seconds"] for record in self.history), 1)

    def train(self, epochs: int) -> Iterator[Record]:
        while self.epoch < epochs:
            yield self._finish_epoch()

    def finish(self, epochs: int, look: Callable[[], Record] = dict) -> None:
        """Train until the end of epoch ``epochs``; add to each record what ``look`` returns."""
        while True:
            if self.history and len(self.history[-1]) == ENTRIES and (found := look()):
                self.amend(**found)
            if self.epoch >= epochs:
                break
            self._finish_epoch()

    def amend(self, **found: Any) -> None:
        """Add results after an epoch to its record, and save it."""
        self.history[-1].update(found)
        self.save()

    def save(self) -> None:
        if self._file is not None:
            checkpoint.save(self._file, self._about, self.state_dict())

    def state_dict(self) -> Record:
        return {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "noise": self.noise.get_state(),
            "order": self._order_at_start,
            "epoch": self.epoch,
            "step": self.step,
            "in_epoch": self._in_epoch,
            "sums": list(self._sums),
            "seconds": self._seconds,
            "history": self.history,
        }

    def load_state_dict(self, state: Record) -> None:
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.noise.set_state(state["noise"])
        self._order.set_state(state["order"])
        self._begin_epoch()
        self.epoch, self.step = state["epoch"], state["step"]
        self._in_epoch, self._seconds = state["in_epoch"], state["seconds"]
        self._sums, self.history = list(state["sums"]), state["history"]

    def _begin_epoch(self) -> None:
        self._order_at_start = self._order.get_state()
        self._rows = torch.randperm(len(self._examples), generator=self._order)
        self._in_epoch, self._seconds = 0, 0.0
        self._sums = [0.0, 0.0, 0.0]

    def _finish_epoch(self) -> Record:
        self.model.train()
        began, saved = time.monotonic(), time.monotonic()
        before = self._seconds
        while self._in_epoch < len(self._rows):
            self._take_step()
            now = time.monotonic()
            self._seconds = before + now - began
            due = self.step % self._every == 0 if self._every else now - saved > CHECK_EVERY
            if due and self._in_epoch < len(self._rows):
                self.save()
                saved = time.monotonic()
        self.epoch += 1
        loss, likelihood, neg_kl = (total / len(self._rows) for total in self._sums)
        record = {
            "epoch": self.epoch,
            "steps": self.step,
            "loss": loss,
            "log_likelihood": likelihood,
            "neg_kl": neg_kl,
            "seconds": round(self._seconds, 3),
        }
        self.history.append(record)
        self._begin_epoch()
        self.save()
        return record

    def _take_step(self) -> None:
        rows = self._rows[self._in_epoch : self._in_epoch + self.settings.batch_size]
        loss, likelihood, neg_kl = self._objective(self._examples.x[rows], self._examples.y[rows])
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        found = torch.stack([loss.detach(), likelihood, neg_kl]).tolist()
        if not math.isfinite(found[0]):
            raise TrainingError(
                f"the loss is {found[0]} at step {self.step + 1}: lower the learning rate"
            )
        if self.average is not None:
            self.average.update()
        self.step += 1
        self._in_epoch += len(rows)
        for place, value in enumerate(found):
            self._sums[place] += len(rows) * value


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
        if self._objective.elbo is not None:
            weight = self.settings.kl_weight * self._schedule.kl_weight(epoch)
            self._objective.elbo.kl_weight = weight
        super()._take_step()
        if self._zero_from < math.inf:
            nn.zero_means(self.model, self._zero_from)


@torch.no_grad()
def evaluate(model: torch.nn.Module, split: Split, batch_size: int = 1000) -> dict[str, float]:
    """Measure the error in per cent and the mean log-likelihood per example, without noise."""
    was_training = model.training
    model.eval()
    wrong, likelihood = 0, 0.0
    examples = Examples(split)
    for x, y in zip(examples.x.split(batch_size), examples.y.split(batch_size), strict=True):
        output = model(x)
        wrong += int((output.argmax(1) != y).sum())
        likelihood += float(nn.categorical_log_likelihood(output, y).double().sum())
    model.train(was_training)
    return {
        "error_percent": 100.0 * wrong / len(examples),
        "log_likelihood": likelihood / len(examples),
    }


def evaluate_averaged(run: Run, split: Split) -> dict[str, float]:
    if run.average is None:
        return evaluate(run.model, split)
    with run.average.applied() as model:
        return evaluate(model, split)
