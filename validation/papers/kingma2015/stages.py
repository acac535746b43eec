"""Networks after several numbers of epochs, to be measured by an experiment."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from validation.output import Record, track
from validation.training import checkpoint, networks
from validation.training.data import Dataset
from validation.training.gradient_pairs import Pairs
from validation.training.loop import Examples, Run, Settings, TrainingError, evaluate
from validation.training.parts import Parts, determining

FULL: Record = {"hidden": [1024] * 3, "batch_size": 1000, "epochs": [10, 100]}
QUICK: Record = {"hidden": [32] * 3, "batch_size": 100, "epochs": [3, 10]}


class Stages:
    """A network after several numbers of epochs, trained only if a measurement is missing.

    The checkpoints are called ``name``, and ``method`` is a name of `networks.METHODS`.
    """

    def __init__(
        self,
        name: str,
        method: str,
        settings: Settings,
        hidden: list[int],
        dataset: Dataset,
        parts: Parts,
        describe: Callable[[Run, Dataset], Record] | None = None,
    ) -> None:
        self.name, self._dataset, self._parts = name, dataset, parts
        self._describe = describe or errors_and_rates
        about = {"method": method, "hidden": hidden}
        self.about = {**settings.about(), "data": dataset.sha256, **about}
        self._network = partial(networks.network, method, dataset.pixels, hidden)
        file = parts.file(f"{name}.pt")
        self._run = networks.run_of(method, dataset.train, hidden, settings, about=about, file=file)

    def measured(self, settings: Record, measure: Callable[[int], Record]) -> list[Record]:
        """Measure the network after each of ``settings["epochs"]``, and describe it."""
        about = {**determining(settings), **self._run.settings.about()}

        def made(epochs: int) -> Record:
            return {**measure(epochs), "network": self.described_after(epochs)}

        return [
            self._parts.get(f"{self.name}-epoch{epochs}", partial(made, epochs), **about)
            for epochs in settings["epochs"]
        ]

    def pairs(self, epochs: int) -> Pairs:
        settings, examples = self._run.settings, Examples(self._dataset.train)
        return Pairs(*self.after(epochs), examples, settings.batch_size, settings.seed)

    def after(self, epochs: int) -> tuple[torch.nn.Module, torch.Generator]:
        kept = checkpoint.load(self._file(epochs), self.about)
        noise = torch.Generator()
        model = self._network(seed=self._run.settings.seed, generator=noise)
        model.load_state_dict(self._train(epochs) if kept is None else kept)
        return model, noise

    def described_after(self, epochs: int) -> Record:
        """Describe the network after some epochs, once, and keep the description as a part."""
        name = f"{self.name}-epoch{epochs}-trained"
        if (kept := self._parts.kept(name, **self.about)) is not None:
            return dict(kept[0])
        self._train(epochs)
        said = self._describe(self._run, self._dataset)
        self._parts.keep(name, said, **self.about)
        return said

    def _train(self, epochs: int) -> Record:
        run, path = self._run, self._file(epochs)
        if run.epoch > epochs:
            raise TrainingError(f"{path} is missing, and the run is past it: remove its folder")
        steps = run.train(epochs)
        for _ in track(steps, f"{self.name} to {epochs} epochs", epochs - run.epoch):
            pass
        held = copy.deepcopy(run.model.state_dict())
        checkpoint.save(path, self.about, held)
        return held

    def _file(self, epochs: int) -> Path:
        return self._parts.file(f"{self.name}-epoch{epochs}.pt")


def errors_and_rates(run: Run, dataset: Dataset) -> Record:
    return {
        "epochs": run.epoch,
        "test_error_percent": evaluate(run.model, dataset.test)["error_percent"],
        "mean_dropout_rates": [
            each["mean_dropout_rate"] for each in networks.learned_alphas(run.model)
        ],
        "seconds_of_training": run.seconds,
    }
