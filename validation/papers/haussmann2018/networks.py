"""The strided LeNet-5, and a run of training by moments or by samples.

Two convolutions of stride 2 and two linear layers, with rectifiers between them, and a log sigma^2
for each weight.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from logunif_kl.torch import nn
from validation.papers.haussmann2018.printed import (
    CHANNELS,
    HIDDEN,
    KERNEL,
    STEEPNESS,
    STRIDE,
)
from validation.training.data import CLASSES
from validation.training.loop import Run

WARM_UP = 15  # epochs


class Method(NamedTuple):
    """How the expected log-likelihood is computed: by a form of the bound, or by samples.

    Over the first epochs, ``warm_up`` of them, the weight of the divergence rises linearly from 0.
    """

    title: str
    form: str | None = None
    steepness: float = math.inf
    warm_up: int = 0


METHODS = {
    "vbp": Method("VBP, tilted bound", "tilted"),
    "vbp_taylor": Method("VBP, as the authors' code", "taylor", STEEPNESS),
    "vbp_quadratic": Method("VBP, quadratic bound", "quadratic"),
    "sampled": Method("sampled variational dropout"),
    # What the paper does without (section 4).
    "vbp_warm": Method("VBP, tilted bound, warm-up", "tilted", warm_up=WARM_UP),
    "sampled_warm": Method("sampled variational dropout, warm-up", warm_up=WARM_UP),
}


class Sizes(NamedTuple):
    """The side of the images, and what the network is made of."""

    side: int
    channels: tuple[int, int]
    kernel: int
    padding: int
    hidden: int


def sizes(pixels: int) -> Sizes:
    """Return the paper's network for MNIST, and a small one for small images."""
    side = math.isqrt(pixels)
    if side == 28:
        return Sizes(side, (CHANNELS[0], CHANNELS[1]), KERNEL, 0, HIDDEN)
    return Sizes(side, (8, 16), 3, 1, 64)


def network(pixels: int, seed: int, generator: torch.Generator) -> torch.nn.Sequential:
    """Build the network; its initial weights are torch's, of this seed, for every method."""
    made = sizes(pixels)
    first, second = made.channels
    side = made.side
    for _ in range(2):
        side = (side + 2 * made.padding - made.kernel) // STRIDE + 1
    options: dict[str, Any] = {"stride": STRIDE, "padding": made.padding, "generator": generator}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, made.side, made.side)),
            nn.VariationalConv2d(1, first, made.kernel, **options),
            torch.nn.ReLU(),
            nn.VariationalConv2d(first, second, made.kernel, **options),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            nn.VariationalLinear(second * side * side, made.hidden, generator=generator),
            torch.nn.ReLU(),
            nn.VariationalLinear(made.hidden, CLASSES, generator=generator),
        )


class Objective:
    """The bound of a method on a minibatch, as `validation.training.loop.Run` asks for it."""

    def __init__(self, model: torch.nn.Module, examples: int, method: Method) -> None:
        self.kl_weight = 1.0
        if method.form is None:
            self._elbo = nn.ELBO(model, nn.categorical_log_likelihood, examples)
            return
        form = method.form

        def expected(output: nn.Moments, target: torch.Tensor) -> torch.Tensor:
            return nn.expected_categorical_log_likelihood(output, target, form)

        self._elbo = nn.ELBO(nn.VBP(model, method.steepness), expected, examples)

    def __call__(
        self, x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        bound = self._elbo(x, y, kl_weight=self.kl_weight)
        return bound.loss, bound.expected_log_likelihood.detach(), bound.neg_kl.detach()


class Annealed(Run):
    """A run whose learning rate falls linearly to zero over a number of epochs."""

    def __init__(self, method: Method, epochs: int, *given: Any, about: Any, **named: Any) -> None:
        self._method, self._epochs = method, epochs
        super().__init__(*given, about={**about, "epochs": epochs, **method._asdict()}, **named)
        self._bound = Objective(self.model, len(self._examples), method)
        self._objective = self._bound  # type: ignore[assignment]

    def _take_step(self) -> None:
        epoch = self.epoch + self._in_epoch / len(self._examples)
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * (1.0 - epoch / self._epochs)
        warm_up = self._method.warm_up
        rising = nn.linear_warm_up(epoch, 0, warm_up) if warm_up else 1.0
        self._bound.kl_weight = self.settings.kl_weight * rising
        super()._take_step()
