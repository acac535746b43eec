"""The networks of Table 1, with each penalty and posterior, and the overlap of kept weights."""

import base64
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from logunif_kl.fitting import Fit
from logunif_kl.torch import nn
from validation.experiment import Dataset
from validation.paths import RESULTS
from validation.training.networks import variational

INITIAL = -10.0  # log sigma^2 of every weight in all cases
THRESHOLD = 3.0  # on log alpha; section 5


class Printed(NamedTuple):
    """Numbers of Table 1 for sparse variational dropout: ``pruned`` in per cent by layer."""

    title: str
    error_percent: float
    pruned: tuple[float, ...]
    compression: float
    """All weights over those that are kept."""


TABLE_1 = {
    "lenet_300_100": Printed("LeNet-300-100", 1.92, (98.9, 97.2, 62.0), 68.0),
    "lenet_5_caffe": Printed("LeNet-5-Caffe", 0.75, (67.0, 98.0, 99.8, 95.0), 280.0),
}


class Case(NamedTuple):
    """A penalty, a posterior and settings of the authors' scripts.

    ``other_noise`` means another order of the examples, too; ``flat_rate`` a constant rate over the
    first half, and ``small_start`` means from N(0, 0.01^2) and biases of zero. ``masking`` leaves
    the means whose log alpha is at least the threshold out of the likelihood, and ``zeroing`` sets
    them to zero. ``relu`` stands after convolutions, and ``centring`` subtracts the mean image.
    """

    title: str
    penalty: str = "exact"
    posterior: str = "additive"
    other_noise: bool = False
    flat_rate: bool = False
    small_start: bool = False
    zeroing: bool = False
    relu: bool = False
    masking: bool = False
    centring: bool = False


AUTHORS = Case("all four", flat_rate=True, small_start=True, masking=True, centring=True)
CASES = {
    "exact": Case("exact"),
    "exact_again": Case("exact, other noise", other_noise=True),
    "molchanov": Case("Molchanov's fit", "molchanov"),
    "refit": Case("refit of four sigmoids", "refit"),
    "multiplicative": Case("exact, N(θ, αθ²)", posterior="multiplicative"),
}
COMPARED = list(CASES)
CASES |= {
    "script": AUTHORS,
    "no_rate": AUTHORS._replace(title="without the rate", flat_rate=False),
    "no_start": AUTHORS._replace(title="without the initial values", small_start=False),
    "no_masking": AUTHORS._replace(title="without masks", masking=False),
    "no_centring": AUTHORS._replace(title="without centring", centring=False),
    "authors": Case(
        "the authors' settings", flat_rate=True, small_start=True, zeroing=True, relu=True
    ),
}


@cache
def refit() -> Fit:
    """Return the four-term sigmoid formula with the least gradient error.

    Read it from the ladder of refits, because the fit takes minutes.
    """
    rungs = json.loads((RESULTS / "ladder" / "ladder.json").read_text(encoding="utf-8"))["rungs"]
    (found,) = (r["gradient"] for r in rungs if (r["family"], r["terms"]) == ("sigmoid", 4))
    return Fit.from_json(json.dumps(found))


def plain(name: str, seed: int, quick: bool, *, relu: bool = False) -> torch.nn.Sequential:
    """Build a network with torch's initial weights of a seed; a small network for quick forms."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = _LAYERS[name](quick)
    for place in reversed(range(len(layers)) if relu else ()):
        if isinstance(layers[place], torch.nn.Conv2d):
            layers.insert(place + 1, torch.nn.ReLU())
    return torch.nn.Sequential(*layers)


def _lenet_300_100(quick: bool) -> list[torch.nn.Module]:
    sizes = (64, 30, 20, 10) if quick else (784, 300, 100, 10)
    return [
        *(torch.nn.Linear(sizes[0], sizes[1]), torch.nn.ReLU()),
        *(torch.nn.Linear(sizes[1], sizes[2]), torch.nn.ReLU(), torch.nn.Linear(*sizes[2:])),
    ]


def _lenet_5_caffe(quick: bool) -> list[torch.nn.Module]:
    side, kernels, channels, hidden = (
        (8, (3, 2), (4, 6), 16) if quick else (28, (5, 5), (20, 50), 500)
    )
    flat = channels[1] * (((side - kernels[0] + 1) // 2 - kernels[1] + 1) // 2) ** 2
    return [
        torch.nn.Unflatten(1, (1, side, side)),
        *(torch.nn.Conv2d(1, channels[0], kernels[0]), torch.nn.MaxPool2d(2)),
        *(torch.nn.Conv2d(*channels, kernels[1]), torch.nn.MaxPool2d(2), torch.nn.Flatten()),
        *(torch.nn.Linear(flat, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10)),
    ]


_LAYERS = {"lenet_300_100": _lenet_300_100, "lenet_5_caffe": _lenet_5_caffe}


def centred(dataset: Dataset) -> Dataset:
    """Subtract the mean of the training images from all images."""
    mean = dataset.train.x.mean(0, dtype=np.float64).astype(np.float32)
    train, test = (split._replace(x=split.x - mean) for split in (dataset.train, dataset.test))
    return dataset._replace(train=train, test=test)


@torch.no_grad()
def fill(model: torch.nn.Module, parameter: str, constant: float, factor: float) -> None:
    """Set a parameter of all layers to a constant plus a multiple of log |weight|."""
    for layer in variational(model):
        layer.get_parameter(parameter).copy_(constant + factor * layer.weight.abs().log())


@torch.no_grad()
def start_small(model: torch.nn.Module, seed: int) -> None:
    """Draw the weights from N(0, 0.01^2), and set the biases to zero."""
    generator = torch.Generator().manual_seed(seed)
    for layer in model.modules():
        if isinstance(layer, (torch.nn.Linear, torch.nn.Conv2d)):
            layer.weight.normal_(std=0.01, generator=generator)
            torch.nn.init.zeros_(layer.bias)  # type: ignore[arg-type]


def network(
    name: str, case: str, seed: int, generator: torch.Generator, *, quick: bool
) -> torch.nn.Module:
    kind = CASES[case]
    penalty: Any = refit() if kind.penalty == "refit" else kind.penalty
    additive = kind.posterior == "additive"
    means = plain(name, seed, quick, relu=kind.relu)
    if kind.small_start:
        start_small(means, seed)
    model = nn.to_variational(
        means,
        posterior=nn.Additive(initial=INITIAL) if additive else nn.Multiplicative(),
        penalty=penalty,
        generator=generator,
    )
    if not additive:
        fill(model, "log_alpha", INITIAL, -2.0)
    # This makes the convolutions of LeNet-5-Caffe a quarter faster on a CPU.
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def packed(model: torch.nn.Module, threshold: float) -> dict[str, str]:
    """Pack the choice of kept weights in each layer, eight weights to a byte."""
    plain, found = nn.to_deterministic(model, threshold), {}
    for name in nn.log_alpha(model):
        layer: Any = plain.get_submodule(name)
        kept = (layer.weight.detach() != 0).numpy().ravel()
        found[name] = base64.b64encode(np.packbits(kept).tobytes()).decode("ascii")
    return found


def unpacked(masks: dict[str, str], sizes: dict[str, int]) -> dict[str, np.ndarray]:
    return {
        name: np.unpackbits(
            np.frombuffer(base64.b64decode(text), np.uint8), count=sizes[name]
        ).astype(bool)
        for name, text in masks.items()
    }


def overlap(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> dict[str, float]:
    """Compare two choices of weights.

    ``overlap`` is the number of weights that both keep over the number that either keeps (Jaccard).
    ``by_chance`` is this ratio of expected numbers for random choices with the same shares by
    layer.
    """
    both = sum(int((a[name] & b[name]).sum()) for name in a)
    either = sum(int((a[name] | b[name]).sum()) for name in a)
    shares = [(len(a[name]), a[name].mean(), b[name].mean()) for name in a]
    both_by_chance = sum(n * p * q for n, p, q in shares)
    either_by_chance = sum(n * (p + q - p * q) for n, p, q in shares)
    return {
        "overlap": both / either if either else 1.0,
        "by_chance": float(both_by_chance / either_by_chance) if either else 1.0,
    }


def mean_overlap(pairs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([pair[key] for pair in pairs])) for key in pairs[0]}
