"""The layers that are compared: torch's, ours, and those of other packages.

Each package's layers have its own defaults, and its own KL is added to the loss. Install the
packages with the extra ``peers``. A package that is missing, or fails at import, is skipped with a
note.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import torch

from logunif_kl.torch import nn
from validation.output import Record

# How the noise enters: not at all; drawn for each output (Kingma et al. 2015, Eq. 6) or by signs
# that differ between examples (flipout), which both take a second product; or one sample of the
# weights for the whole batch.
NONE, EACH_OUTPUT, FLIPOUT, ONE_SAMPLE = "none", "each output", "flipout", "one sample a batch"
OURS, OURS_ALONE, OURS_PER_BATCH = "ours", "ours, without its KL", "ours, per_batch"
TORCH = "torch, deterministic"

Layer = Callable[..., Any]


class Made(NamedTuple):
    """Functions that make the layers of a package, and its KL of a model."""

    name: str
    noise: str
    linear: Layer
    conv: Layer
    kl: Callable[[Any], Any] | None = None
    # Whether it must run, and torch.compile must take it as one graph.
    whole: bool = False


def made() -> tuple[list[Made], dict[str, str]]:
    """Return torch's layers, ours and those of each package, and why packages are skipped."""
    ours = (nn.VariationalLinear, nn.VariationalConv2d)
    linear, conv = (partial(layer, estimator="per_batch") for layer in ours)
    found = [
        Made(TORCH, NONE, torch.nn.Linear, torch.nn.Conv2d, whole=True),
        Made(OURS, EACH_OUTPUT, *ours, nn.kl, whole=True),
        Made(OURS_ALONE, EACH_OUTPUT, *ours, whole=True),
        Made(OURS_PER_BATCH, ONE_SAMPLE, linear, conv, nn.kl, whole=True),
    ]
    skipped = {}
    for package, makers in PEERS.items():
        try:
            found += makers()
        except Exception as error:  # a package may raise anything when it is imported
            skipped[package] = why(error)
    return found, skipped


def notes(found: Record) -> list[str]:
    """Say which packages were skipped, and how to install them."""
    said = [f"{name} is skipped: {reason}" for name, reason in found["skipped"].items()]
    how = 'the packages to compare with: pip install "logunif_kl[peers]"'
    return [*said, how] if said else []


def why(error: Exception) -> str:
    """Return the first line of an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _cplxmodule() -> list[Made]:
    of = import_module("cplxmodule.nn.relevance")

    def kl(model: Any) -> Any:
        return sum(of.penalties(model, reduction="sum"))

    return [Made("cplxmodule", EACH_OUTPUT, of.LinearVD, of.Conv2dVD, kl)]


def _bayesian_torch() -> list[Made]:
    layers = import_module("bayesian_torch.layers")
    kl = import_module("bayesian_torch.models.dnn_to_bnn").get_kl_loss

    def plain(kind: str, *arguments: Any, **options: Any) -> Any:
        layer = getattr(layers, kind)(*arguments, **options)
        # With this setting the layer returns only its output, as after the package's `dnn_to_bnn`.
        layer.dnn_to_bnn_flag = True
        return layer

    return [
        Made(
            f"bayesian-torch, {kind.lower()}",
            noise,
            partial(plain, f"Linear{kind}"),
            partial(plain, f"Conv2d{kind}"),
            kl,
        )
        for noise, kind in ((FLIPOUT, "Flipout"), (ONE_SAMPLE, "Reparameterization"))
    ]


def _torchbnn() -> list[Made]:
    of = import_module("torchbnn")
    linear, conv = (partial(layer, 0.0, 0.1) for layer in (of.BayesLinear, of.BayesConv2d))
    kl = partial(of.functional.bayesian_kl_loss, reduction="sum")
    return [Made("torchbnn", ONE_SAMPLE, linear, conv, kl)]


def _blitz() -> list[Made]:
    of, kl = import_module("blitz.modules"), import_module("blitz.losses").kl_divergence_from_nn
    return [Made("blitz", ONE_SAMPLE, of.BayesianLinear, of.BayesianConv2d, kl)]


# Keys are the names of the distributions.
PEERS: dict[str, Callable[[], list[Made]]] = {
    "cplxmodule": _cplxmodule,
    "bayesian-torch": _bayesian_torch,
    "torchbnn": _torchbnn,
    "blitz-bayesian-pytorch": _blitz,
}
