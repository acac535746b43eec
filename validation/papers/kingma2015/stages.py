"""A training that stops after some numbers of epochs, for something to be measured there."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from logunif_kl.cli._output import track
from validation.training import networks
from validation.training.data import Dataset
from validation.training.loop import Run, Settings, TrainingError, evaluate, seeded
from validation.training.parts import Parts


class Stages:
    """A network in training, and copies of it after some numbers of epochs.

    Parameters
    ----------
    name : str
        Name of the checkpoint.
    method : str
        A name of `networks.METHODS`.
    settings : Settings
    hidden : list of int
        Units of the hidden layers.
    """

    def __init__(
        self,
        name: str,
        method: str,
        settings: Settings,
        hidden: list[int],
        dataset: Dataset,
        parts: Parts,
    ) -> None:
        self._name, self._dataset = name, dataset
        self._make = partial(networks.network, method, dataset.pixels, hidden, seed=settings.seed)
        noise = seeded(settings.seed, 1)
        self._run = Run(
            self._make(generator=noise),
            noise,
            dataset.train,
            settings,
            about={"method": method, "hidden": hidden},
            file=parts.file(f"{name}.pt"),
        )

    def after(self, epochs: int) -> tuple[torch.nn.Module, torch.Generator]:
        """Train to a number of epochs, and return a copy of the network with noise of its own."""
        if self._run.epoch > epochs:
            raise TrainingError(
                f"the checkpoint {self._name}.pt is past {epochs} epochs, and what was to be "
                "measured there is missing: remove its folder"
            )
        steps = self._run.train(epochs)
        for _ in track(steps, f"{self._name} to {epochs} epochs", epochs - self._run.epoch):
            pass
        noise = torch.Generator()
        model = self._make(generator=noise)
        model.load_state_dict(self._run.model.state_dict())
        return model, noise

    def said(self) -> dict[str, Any]:
        """Say what the network is like now."""
        return {
            "epochs": self._run.epoch,
            "test_error_percent": evaluate(self._run.model, self._dataset.test)["error_percent"],
            "mean_dropout_rates": [
                each["mean_dropout_rate"] for each in networks.learned_alphas(self._run.model)
            ],
            "seconds_of_training": round(sum(each["seconds"] for each in self._run.history), 1),
        }
