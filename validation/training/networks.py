"""Fully connected networks with each kind of dropout of Kingma et al. 2015, section 5.

All have rectified linear units and the paper's dropout rates: 0.2 at the input and 0.5 at the
hidden layers. Variational dropout starts from these, with alpha = p/(1 - p).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch

from logunif_kl.torch import nn
from validation.output import Record
from validation.training.data import CLASSES, Split
from validation.training.loop import Run, Settings, seeded

RATE_INPUT, RATE_HIDDEN = 0.2, 0.5


class Method(NamedTuple):
    """A kind of dropout; ``posterior`` is that of variational layers, if there are any."""

    title: str
    posterior: nn.Multiplicative | None = None
    kl_weight: float = 1.0


METHODS = {
    "none": Method("no dropout"),
    "binary": Method("binary dropout"),
    "gaussian_a": Method("Gaussian dropout A"),
    "gaussian_b": Method("Gaussian dropout B"),
    "variational_a": Method("variational dropout A", nn.Correlated(max_log_alpha=0.0)),
    "variational_a2": Method("variational dropout A2", nn.Correlated(max_log_alpha=0.0), 1.0 / 3.0),
    "variational_b": Method("variational dropout B", nn.Multiplicative("input", 0.0)),
}


class BinaryDropout(torch.nn.Module):
    """Zero each input with probability ``p`` in training, and divide the others by 1 - p.

    `torch.nn.Dropout` draws from the global generator; this module has its own.
    """

    def __init__(self, p: float, generator: torch.Generator | None) -> None:
        super().__init__()
        self.p, self.generator = p, generator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        kept = torch.empty_like(x).bernoulli_(1.0 - self.p, generator=self.generator)
        return x * kept / (1.0 - self.p)


def rate_to_log_alpha(p: float) -> float:
    """Return log alpha = log(p/(1 - p)), as in Kingma et al. 2015 before section 3.1."""
    return math.log(p) - math.log1p(-p)


def network(
    method: str,
    pixels: int,
    hidden: Sequence[int],
    *,
    seed: int,
    generator: torch.Generator | None,
    **posterior: Any,
) -> torch.nn.Sequential:
    """Build a network from ``pixels`` through layers of ``hidden`` units to the ten classes.

    The initial weights of a seed are the same for every method. ``posterior`` holds options of the
    variational layers that replace the usual ones: one alpha for each input unit, alpha <= 1, the
    exact divergence as the ``penalty``, and the layers' default ``estimator``.
    """
    sizes = [pixels, *hidden, CLASSES]
    layers: list[torch.nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for number, (n_in, n_out) in enumerate(pairwise(sizes)):
            rate = RATE_HIDDEN if number else RATE_INPUT
            layers += _linear(method, n_in, n_out, rate, generator, posterior)
            if number < len(hidden):
                layers.append(torch.nn.ReLU())
    return torch.nn.Sequential(*layers)


def run_of(
    method: str,
    split: Split,
    hidden: Sequence[int],
    settings: Settings,
    *,
    about: Record | None = None,
    file: Path | None = None,
    **posterior: Any,
) -> Run:
    """Return a `Run` of a `network`; the settings' seed determines its weights and noise."""
    seed, noise = settings.seed, seeded(settings.seed, 1)
    pixels = split.x.shape[1]
    model = network(method, pixels, hidden, seed=seed, generator=noise, **posterior)
    return Run(model, noise, split, settings, about=about, file=file)


def _linear(
    method: str,
    n_in: int,
    n_out: int,
    rate: float,
    generator: torch.Generator | None,
    posterior: Record,
) -> list[torch.nn.Module]:
    if method == "gaussian_b":
        return [nn.GaussianDropoutLinear(n_in, n_out, rate, generator=generator)]
    plain = partial(torch.nn.Linear, n_in, n_out)
    made = partial(nn.VariationalLinear, n_in, n_out)
    return with_dropout(method, plain, made, rate, generator, **posterior)


def with_dropout(
    method: str,
    plain: Callable[[], torch.nn.Module],
    variational: Callable[..., torch.nn.Module],
    rate: float,
    generator: torch.Generator | None,
    **posterior: Any,
) -> list[torch.nn.Module]:
    """Make a layer whose inputs have a kind of dropout: a variational one, or a plain one."""
    usual = METHODS[method].posterior
    if usual is not None:
        changed = {"initial": rate_to_log_alpha(rate), **posterior}
        options = {name: changed.pop(name) for name in ("penalty", "estimator") if name in changed}
        return [variational(posterior=replace(usual, **changed), generator=generator, **options)]
    if method == "binary":
        return [BinaryDropout(rate, generator), plain()]
    if method == "gaussian_a":
        return [nn.GaussianDropoutA(rate, generator=generator), plain()]
    return [plain()]


def variational(model: torch.nn.Module) -> list[Any]:
    """Return the variational layers of a network, from the bottom."""
    return [layer for layer in model.modules() if isinstance(layer, nn.VariationalLayer)]


def weights(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    found = (m.weight for m in model.modules() if isinstance(m, torch.nn.Linear))
    return [weight for weight in found if isinstance(weight, torch.nn.Parameter)]


def learned_alphas(model: torch.nn.Module) -> list[dict[str, float]]:
    """Summarise alpha in each variational layer, over its weights and as dropout rates."""

    def summary(layer: nn.VariationalLinear) -> dict[str, float]:
        log_alpha = layer.log_alpha_of_weights().detach().double().flatten()
        low, median, high = torch.quantile(
            log_alpha[:: max(1, log_alpha.numel() // 2**20)],
            torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64),
        ).tolist()
        return {
            "mean_dropout_rate": float(torch.sigmoid(log_alpha).mean()),
            "log_alpha_5_percent": low,
            "log_alpha_median": median,
            "log_alpha_95_percent": high,
            "at_most_1": float((log_alpha <= 0.0).double().mean()),
            # Use the bounded values, as in training.
            "greatest_parameter": float(layer.get_parameter("log_alpha").detach().max()),
        }

    return list(map(summary, variational(model)))
