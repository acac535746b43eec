"""The strided LeNet-5, its training by moments or by samples, and what a threshold prunes.

Two convolutions of stride 2 and two linear layers, with rectifiers between them, and a log sigma^2
for each weight. The histogram of log alpha places another threshold.
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d

from logunif_kl.torch import nn
from validation.output import Record
from validation.training.data import CLASSES, Split
from validation.training.loop import Schedule, ScheduledRun, evaluate
from validation.training.networks import variational

# From the published code, github.com/manuelhaussmann/vbp: a strided LeNet-5 for MNIST, and C of the
# relaxed step.
CHANNELS, KERNEL, STRIDE, HIDDEN = (20, 50), 5, 2, 500
COLOUR = (32, 64)  # channels for CIFAR-10; section 4: "more filters per layer"
STEEPNESS = 100.0
WARM_UP = 15  # epochs
FULL = {"epochs": 10, "batch_size": 100, "learning_rate": 1e-3, "kl_weight": 1.0}
LOWEST, HIGHEST, BINS = -12.0, 12.0, 96
THRESHOLDS = [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
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
    "vbp_taylor": Method("VBP, Taylor expansion, C = 100", "taylor", STEEPNESS),
    "vbp_quadratic": Method("VBP, quadratic bound", "quadratic"),
    "sampled": Method("sampled variational dropout"),
    # The variants that the paper leaves out (section 4).
    "vbp_warm": Method("VBP, tilted bound, warm-up", "tilted", warm_up=WARM_UP),
    "sampled_warm": Method("sampled variational dropout, warm-up", warm_up=WARM_UP),
}


def title(row: Record) -> str:
    """Return the title of a row's method. Records also hold the title that it had at their time."""
    return METHODS[row["method"]].title


def network(
    shape: tuple[int, int, int], seed: int, generator: torch.Generator
) -> torch.nn.Sequential:
    """Build the paper's network for MNIST or for images of its size in colour, or a small one.

    The initial weights are torch's for this seed, whatever the method.
    """
    channels, side, _ = shape
    (first, second), kernel, padding, hidden = (8, 16), 3, 1, 64
    if side >= 28:
        kernel, padding, hidden = KERNEL, 0, HIDDEN
        first, second = CHANNELS if channels == 1 else COLOUR
    left = side
    for _ in range(2):
        left = (left + 2 * padding - kernel) // STRIDE + 1
    options: Record = {"stride": STRIDE, "padding": padding, "generator": generator}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Unflatten(1, shape),
            nn.VariationalConv2d(channels, first, kernel, **options),
            torch.nn.ReLU(),
            nn.VariationalConv2d(first, second, kernel, **options),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            nn.VariationalLinear(second * left * left, hidden, generator=generator),
            torch.nn.ReLU(),
            nn.VariationalLinear(hidden, CLASSES, generator=generator),
        )


@torch.no_grad()
def as_the_authors(model: torch.nn.Module, noise: torch.Generator) -> None:
    """Draw the initial values of the published code: means from N(0, 1/n), log sigma^2 near -9.

    The biases are 0, and n is the number of a unit's inputs. For a convolution the code takes
    (kernel - 1)! for each channel, so 24 instead of 25 here.
    """
    for layer in variational(model):
        shape = layer.weight.shape
        of_kernel = math.factorial(shape[2] - 1) if len(shape) > 2 else 1
        layer.weight.normal_(0.0, (shape[1] * of_kernel) ** -0.5, generator=noise)
        layer.get_parameter("log_sigma2").normal_(-9.0, 0.001, generator=noise)
        layer.bias.zero_()


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


def log_alphas(model: torch.nn.Module) -> torch.Tensor:
    found = [layer.log_alpha_of_weights().detach().flatten() for layer in variational(model)]
    return torch.cat(found).double()


def histogram(model: torch.nn.Module) -> list[int]:
    """Count the weights in bins of log alpha; the outer bins include all beyond."""
    values = log_alphas(model).clamp(LOWEST, HIGHEST).numpy()
    counts, _ = np.histogram(values, bins=BINS, range=(LOWEST, HIGHEST))
    return [int(n) for n in counts]


def valley(counts: list[int], smoothing: float = 2.0) -> float | None:
    """Return the log alpha of the lowest bin between the two highest modes.

    The counts are smoothed by a normal kernel of ``smoothing`` bins, and compared by their
    logarithms, so that a mode of few weights counts. The outer bins hold all weights beyond the
    range and do not count as modes. The result is None if there are fewer than two modes.
    """
    within = np.asarray(counts[1:-1], float)
    heights = np.log1p(gaussian_filter1d(within, smoothing, mode="nearest"))
    padded = np.concatenate(([-1.0], heights, [-1.0]))
    peaks = [i for i in range(len(heights)) if padded[i] < padded[i + 1] >= padded[i + 2]]
    valleys = []
    for first, second in itertools.combinations(peaks, 2):
        lowest = first + int(np.argmin(heights[first : second + 1]))
        valleys.append((min(heights[first], heights[second]) - heights[lowest], lowest))
    # Choose the valley that is the deepest below its lower mode.
    depth, lowest = max(valleys, key=lambda valley: valley[0], default=(0.0, 0))
    return None if depth < 0.1 else LOWEST + (lowest + 1.5) * (HIGHEST - LOWEST) / BINS


def pruned(model: torch.nn.Module, threshold: float, split: Split) -> Record:
    log_alpha = log_alphas(model)
    share = float((log_alpha > threshold).double().mean())
    found = evaluate(nn.to_deterministic(model, threshold=threshold), split)
    return {
        "threshold": threshold,
        "pruned_percent": 100.0 * share,
        "error_percent": found["error_percent"],
    }
