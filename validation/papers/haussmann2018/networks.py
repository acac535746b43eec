"""The strided LeNet-5, and its training by moments or by samples.

Two convolutions of stride 2 and two linear layers, with rectifiers between them, and a log sigma^2
for each weight.
"""

import math
from typing import Any, NamedTuple

import torch

from logunif_kl.torch import nn
from validation.output import Record
from validation.training.data import CLASSES
from validation.training.loop import Schedule, ScheduledRun

# From the published code, github.com/manuelhaussmann/vbp: a strided LeNet-5 for MNIST, and C of the
# relaxed step.
CHANNELS, KERNEL, STRIDE, HIDDEN = (20, 50), 5, 2, 500
STEEPNESS = 100.0
WARM_UP = 15  # epochs
FULL = {"epochs": 10, "batch_size": 100, "learning_rate": 1e-3, "kl_weight": 1.0}
# With so few examples the divergence, at full weight, would remove all weights.
QUICK = {"epochs": 6, "batch_size": 24, "kl_weight": 0.02}


class Method(NamedTuple):
    """How the expected log-likelihood is computed: by a form of the bound, or by samples.

    Over the first ``warm_up`` epochs the weight of the divergence rises linearly from 0.
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
    # The variants that the paper leaves out (section 4).
    "vbp_warm": Method("VBP, tilted bound, warm-up", "tilted", warm_up=WARM_UP),
    "sampled_warm": Method("sampled variational dropout, warm-up", warm_up=WARM_UP),
}


def network(pixels: int, seed: int, generator: torch.Generator) -> torch.nn.Sequential:
    """Build the paper's network for MNIST, and a small one for small images.

    The initial weights are torch's for this seed, whatever the method.
    """
    side = math.isqrt(pixels)
    (first, second), kernel, padding, hidden = (
        (CHANNELS, KERNEL, 0, HIDDEN) if side == 28 else ((8, 16), 3, 1, 64)
    )
    left = side
    for _ in range(2):
        left = (left + 2 * padding - kernel) // STRIDE + 1
    options: Record = {"stride": STRIDE, "padding": padding, "generator": generator}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, side, side)),
            nn.VariationalConv2d(1, first, kernel, **options),
            torch.nn.ReLU(),
            nn.VariationalConv2d(first, second, kernel, **options),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            nn.VariationalLinear(second * left * left, hidden, generator=generator),
            torch.nn.ReLU(),
            nn.VariationalLinear(hidden, CLASSES, generator=generator),
        )


def bound(model: torch.nn.Module, examples: int, method: Method) -> nn.ELBO:
    if method.form is None:
        return nn.ELBO(model, nn.categorical_log_likelihood, examples)
    form = method.form

    def expected(output: nn.Moments, target: torch.Tensor) -> torch.Tensor:
        return nn.expected_categorical_log_likelihood(output, target, form)

    return nn.ELBO(nn.VBP(model, method.steepness), expected, examples)


class Annealed(ScheduledRun):
    """A training run whose learning rate falls linearly to zero over a number of epochs."""

    def __init__(
        self, method: Method, epochs: int, *given: Any, about: Record, **options: Any
    ) -> None:
        # A warm-up that ends at epoch 0 is the same as no warm-up.
        warm_up = (0.0, float(method.warm_up)) if method.warm_up else (-1.0, 0.0)
        schedule, about = Schedule(epochs, warm_up), {**about, **method._asdict()}
        super().__init__(*given, schedule=schedule, about=about, **options)
        self._objective.elbo = bound(self.model, len(self._examples), method)
