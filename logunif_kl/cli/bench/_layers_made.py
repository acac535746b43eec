"""The layers that ``logunif-kl bench --layers`` compares: torch's, ours, and those of packages.

Each package's layers are made with its own defaults, and its own KL is added to the loss. The
packages are the extra ``peers``. One that is not installed, or fails at import, is skipped with a
word.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ...torch import nn

# How the noise enters: not at all; drawn for each output (Kingma et al. 2015, Eq. 6), or by signs
# that differ between examples (flipout), either of which takes a second product; one sample of the
# weights for the whole batch.
NONE, EACH_OUTPUT, FLIPOUT, ONE_SAMPLE = "none", "each output", "flipout", "one sample a batch"

Layer = Callable[..., Any]
OURS, OURS_ALONE, OURS_PER_BATCH = "ours", "ours, without its KL", "ours, per_batch"
TORCH = "torch, deterministic"


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """How to make the layers of a package, and its KL of a model."""

    name: str
    noise: str
    linear: Layer
    conv: Layer
    kl: Callable[[Any], Any] | None = None
    # Whether torch.compile must take it as one graph.
    whole: bool = True


def made() -> tuple[list[Made], dict[str, str]]:
    """Return torch's layers, ours and those of each package; and why a package is skipped."""
    linear, conv = nn.VariationalLinear, nn.VariationalConv2d
    found = [
        Made(TORCH, NONE, torch.nn.Linear, torch.nn.Conv2d),
        Made(OURS, EACH_OUTPUT, linear, conv, nn.kl),
        Made(OURS_ALONE, EACH_OUTPUT, linear, conv),
        Made(
            OURS_PER_BATCH,
            ONE_SAMPLE,
            partial(linear, estimator="per_batch"),
            partial(conv, estimator="per_batch"),
            nn.kl,
        ),
    ]
    skipped = {}
    for package, makers in _PEERS.items():
        try:
            found += makers()
        except Exception as error:  # whatever a package raises when it is imported
            skipped[package] = f"{type(error).__name__}: {error}".splitlines()[0]
    return found, skipped


def _cplxmodule() -> list[Made]:
    of = importlib.import_module("cplxmodule.nn.relevance")
    return [
        Made(
            "cplxmodule",
            EACH_OUTPUT,
            of.LinearVD,
            of.Conv2dVD,
            lambda model: sum(of.penalties(model, reduction="sum")),
            whole=False,
        )
    ]


def _bayesian_torch() -> list[Made]:
    layers = importlib.import_module("bayesian_torch.layers")
    models = importlib.import_module("bayesian_torch.models.dnn_to_bnn")

    def plain(kind: Any, *arguments: Any, **options: Any) -> Any:
        layer = kind(*arguments, **options)
        # By this the layer returns its output alone, as after the package's `dnn_to_bnn`.
        layer.dnn_to_bnn_flag = True
        return layer

    return [
        Made(
            f"bayesian-torch, {name}",
            noise,
            partial(plain, getattr(layers, f"Linear{kind}")),
            partial(plain, getattr(layers, f"Conv2d{kind}")),
            models.get_kl_loss,
            whole=False,
        )
        for name, noise, kind in (
            ("flipout", FLIPOUT, "Flipout"),
            ("reparameterization", ONE_SAMPLE, "Reparameterization"),
        )
    ]


def _torchbnn() -> list[Made]:
    of = importlib.import_module("torchbnn")
    prior = (0.0, 0.1)
    return [
        Made(
            "torchbnn",
            ONE_SAMPLE,
            partial(of.BayesLinear, *prior),
            partial(of.BayesConv2d, *prior),
            partial(of.functional.bayesian_kl_loss, reduction="sum"),
            whole=False,
        )
    ]


def _blitz() -> list[Made]:
    modules = importlib.import_module("blitz.modules")
    losses = importlib.import_module("blitz.losses")
    return [
        Made(
            "blitz",
            ONE_SAMPLE,
            modules.BayesianLinear,
            modules.BayesianConv2d,
            losses.kl_divergence_from_nn,
            whole=False,
        )
    ]


# By the names of the distributions.
_PEERS: dict[str, Callable[[], list[Made]]] = {
    "cplxmodule": _cplxmodule,
    "bayesian-torch": _bayesian_torch,
    "torchbnn": _torchbnn,
    "blitz-bayesian-pytorch": _blitz,
}
PEERS = tuple(_PEERS)


def resnet50_shapes() -> list[tuple[int, ...]]:
    """List the shapes of the weights of a ResNet-50: 25.5 million in 54 tensors."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7)]
    before = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            shapes += [(width, before, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            if block == 0:
                shapes.append((4 * width, before, 1, 1))
            before = 4 * width
    return [*shapes, (1000, before)]
