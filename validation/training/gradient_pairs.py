"""The variance of stochastic gradients, from pairs of minibatches.

Half the squared difference of the gradients of two disjoint minibatches, with independent noise,
has the variance of one gradient as its mean. No mean gradient is needed. Pairs are independent
except for the order of the examples, so their spread gives a standard error.
"""

# mypy: allow-untyped-calls
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from logunif_kl.torch import nn
from validation.output import Record, track
from validation.training import networks
from validation.training.loop import Examples, seeded

AT_ONCE = 5  # examples with separate weight samples; so few stay in the cache and are fastest


def gradients(
    model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, examples: int, at_once: int
) -> dict[str, torch.Tensor]:
    """Differentiate Eq. 3 in the top and the bottom weights, for one minibatch."""
    matrices = networks.weights(model)
    wanted = {"bottom": matrices[0], "top": matrices[-1]}
    total = {name: torch.zeros_like(weight) for name, weight in wanted.items()}
    for some_x, some_y in zip(x.split(at_once), y.split(at_once), strict=True):
        likelihood = nn.categorical_log_likelihood(model(some_x), some_y).sum()
        found = torch.autograd.grad(likelihood * (examples / len(y)), list(wanted.values()))
        for gradient, part in zip(total.values(), found, strict=True):
            gradient += part
    return total


class Pairs:
    """Pairs of disjoint minibatches; pair k is the same in every call."""

    def __init__(
        self,
        model: torch.nn.Module,
        noise: torch.Generator,
        examples: Examples,
        batch: int,
        seed: int,
    ) -> None:
        self._model, self._noise, self._examples = model, noise, examples
        self._batch, self._seed = batch, seed
        self.in_a_pass = len(examples) // (2 * batch)

    def rows(self, counts: Mapping[str, int], label: str, **entry: Any) -> list[Record]:
        found = []
        for estimator, count in counts.items():
            numbers = track(range(count), f"{label}, {estimator}", count)
            halves = [self.half_squared_difference(estimator, number) for number in numbers]
            found += by_layer(halves, estimator=estimator, **entry)
        return found

    def half_squared_difference(self, estimator: str, number: int) -> dict[str, float]:
        """Estimate the variance from pair ``number``, as a mean over each layer's weights."""
        self._choose(estimator)
        self._noise.set_state(seeded(self._seed, 1000 + number).get_state())
        first, second = (self._gradients(rows, estimator) for rows in self._rows(number))
        return {
            name: 0.5 * float((first[name].double() - second[name].double()).square().mean())
            for name in first
        }

    def _choose(self, estimator: str) -> None:
        self._model.train(estimator != "none")
        for layer in networks.variational(self._model) if estimator != "none" else ():
            layer.estimator = estimator

    def _rows(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        around, place = divmod(number, self.in_a_pass)
        order = torch.randperm(len(self._examples), generator=seeded(self._seed, 10 + around))
        first, second = order[2 * place * self._batch :][: 2 * self._batch].split(self._batch)
        return first, second

    def _gradients(self, rows: torch.Tensor, estimator: str) -> dict[str, torch.Tensor]:
        at_once = AT_ONCE if estimator == "per_example" else self._batch
        x, y = self._examples.x[rows], self._examples.y[rows]
        return gradients(self._model, x, y, len(self._examples), at_once)


def by_layer(halves: Sequence[dict[str, float]], **entry: Any) -> list[Record]:
    """Summarise the variance estimates of each layer; ``entry`` describes them."""
    layers = ("top", "bottom")
    return [{**entry, "layer": name, **summary([half[name] for half in halves])} for name in layers]


def summary(values: Sequence[float], counted: str = "pairs") -> dict[str, float]:
    return {
        "variance": statistics.fmean(values),
        "standard_error": statistics.stdev(values) / math.sqrt(len(values)),
        counted: len(values),
    }
