"""The networks of the experiments on digits, trained once for all of them, and their predictions.

The networks are fully connected, with two hidden layers and the rates of
`validation.training.networks`: without dropout, with binary and Gaussian dropout of fixed rates,
and with variational dropout, which learns its rates. There is no weight decay, as for Gal's prior
in the limit of infinite variance.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from logunif_kl.torch import nn
from validation import summary
from validation.experiment import Experiment, Record
from validation.training import networks
from validation.training.data import Dataset
from validation.training.loop import Settings, evaluate, seeded
from validation.training.parts import Parts

METHODS = {
    method: networks.METHODS[method].title
    for method in ("none", "binary", "gaussian_a", "variational_b")
}
FULL = {"hidden": [256] * 2, "epochs": 10, "batch_size": 200, "samples": 30, "images": 1000}
QUICK = {"hidden": [64] * 2, "epochs": 25, "batch_size": 50, "samples": 20, "images": 100}
SCORES = ("mutual_information", "entropy", "entropy_without_noise")

Rows = list[Record]

# These experiments share the networks and their checkpoints.
experiment = partial(Experiment, seeds=(1, 2, 3), full=FULL, quick=QUICK, folder="digits")


class Trained:
    """A trained network, and its predictions with and without the noise."""

    def __init__(
        self, method: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts
    ) -> None:
        run = networks.run_of(
            method,
            dataset.train,
            sizes["hidden"],
            Settings(sizes["batch_size"], seed, averaging=None),
            about={"method": method, "hidden": sizes["hidden"]},
            file=parts.file(f"{method}-seed{seed}.pt"),
        )
        run.finish(sizes["epochs"])
        self.model = run.model.eval()
        self.draws = method != "none"
        self.training_seconds = run.seconds
        self.test_error = evaluate(self.model, dataset.test)["error_percent"]
        self._samples, self._seed = sizes["samples"], seed

    def with_noise(self, x: npt.NDArray[np.float32]) -> nn.Prediction | None:
        """Predict from samples, or return None for a network without dropout."""
        if not self.draws:
            return None
        return nn.predict(
            self.model,
            torch.from_numpy(np.ascontiguousarray(x)),
            self._samples,
            modules=networks.BinaryDropout,
            batch_size=10_000,
            generator=seeded(self._seed, 2),
        )

    @torch.no_grad()
    def without_noise(self, x: npt.NDArray[np.float32]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the probabilities of the network in evaluation mode, and their entropy."""
        p = self.model(torch.from_numpy(np.ascontiguousarray(x))).double().softmax(1)
        return p, torch.special.entr(p).sum(1)


def scores(sampled: nn.Prediction | None, entropy: torch.Tensor) -> dict[str, torch.Tensor]:
    found = {}
    if sampled is not None:
        found = {"mutual_information": sampled.mutual_information, "entropy": sampled.entropy}
    return {**found, "entropy_without_noise": entropy}


def of_each(
    name: str, measure: Callable[..., Record], settings: Record, dataset: Dataset, parts: Parts
) -> Rows:
    def make(cell: str, seed: int, _: Record) -> Record:
        method = cells[cell]
        trained = Trained(method, seed, settings, dataset, parts)
        return {
            "method": method,
            "seed": seed,
            "test_error": trained.test_error,
            "training_seconds": trained.training_seconds,
            **measure(trained, settings, dataset),
        }

    cells = {f"{name}-{method}": method for method in METHODS}
    return parts.by_seed("networks", [*cells], settings, make)


def mean_and_error(values: Iterable[float | None]) -> dict[str, float | None]:
    """Average over the seeds, with the standard error of the mean, or return None if unknown."""
    found = summary.mean_and_error([value for value in values if value is not None])
    return {name: None if math.isnan(value) else value for name, value in found.items()}


def error_percent(p: torch.Tensor, y: torch.Tensor) -> float:
    return 100.0 * float((p.argmax(1) != y).double().mean())


def auroc(of_digits: torch.Tensor, of_others: torch.Tensor) -> float:
    """Return how often the score of another image is above that of a test digit."""
    from sklearn.metrics import roc_auc_score

    scores = torch.cat([of_digits, of_others]).double().numpy()
    others = np.repeat([0, 1], [len(of_digits), len(of_others)])
    return float(roc_auc_score(others, scores))
