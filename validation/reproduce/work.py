"""What can be run: the experiments of the papers, and the studies that decide statements."""

import difflib
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from validation.experiment import Experiment, experiments, names
from validation.output import CommandError

# By name, the title of each study, its command, and a small form that writes no committed file.
# FOLDER is a temporary folder. With fewer seeds, the intervals of Monte Carlo would cover more or
# less than 95 % by chance.
STUDIES = {
    "papers": (
        "what the papers state, decided",
        "python -m validation.papers",
        "python -m validation.papers kingma-sign-and-magnitude kingma-float-ranges "
        "kingma-cubic-accurate hron-equation-1 hron-u molchanov-tight",
    ),
    "validate": (
        "every method against the errors that it declares",
        "python -m validation.studies validate",
        "python -m logunif_kl validate kingma molchanov lower_bound dawson",
    ),
    "monte_carlo": (
        "the coverage of Monte Carlo's intervals",
        "python -m validation.monte_carlo",
        "python -m validation.monte_carlo --seeds 1000 --samples 1000000",
    ),
    "ladder": (
        "refitted formulae by the number of terms",
        "python -m validation.ladder",
        "python -m validation.ladder --sigmoids 2 --degree 3 --out FOLDER/ladder.json",
    ),
}


class Work(NamedTuple):
    """A command and the record that it writes: an experiment ``PAPER.NAME``, or a study."""

    name: str

    @property
    def paper(self) -> str | None:
        """The folder of the paper, or None for a study."""
        paper, dot, _ = self.name.partition(".")
        return paper if dot else None

    @property
    def record(self) -> str:
        folder, _, name = self.name.rpartition(".")
        return f"validation/results/{folder or name}/{name}.json"

    @property
    def experiment(self) -> Experiment:
        return experiments()[self.name]

    @property
    def title(self) -> str:
        return self.experiment.title if self.paper else STUDIES[self.name][0]

    @property
    def images(self) -> str | None:
        """The images that it takes, MNIST or Fashion-MNIST, or None."""
        return self.experiment.images if self.paper and self.experiment.takes_data else None

    @property
    def command(self) -> str:
        return self.experiment.command() if self.paper else STUDIES[self.name][1]

    def full(self, files: Mapping[str, str]) -> list[str]:
        """Return the arguments of the full form, given the path of each kind of images."""
        words = shlex.split(self.command)
        if self.images is not None:
            words = [files[self.images] if word == "FILE" else word for word in words]
        return _argv(words)

    def quick(self, folder: Path) -> list[str]:
        """Return the arguments of the small form, which writes to a folder and makes no figures."""
        if self.paper is None:
            text = STUDIES[self.name][2].replace("FOLDER", shlex.quote(str(folder)))
            return _argv(shlex.split(text))
        options = ["--quick", "--out", str(self.quick_record(folder))]
        return _argv([*shlex.split(self.command)[:3], *options, "--work", f"{folder}/{self.name}"])

    def quick_record(self, folder: Path) -> Path:
        return folder / f"{self.name}.json"


def _argv(words: Sequence[str]) -> list[str]:
    return [sys.executable, *words[1:]]


def everything() -> dict[str, Work]:
    return {name: Work(name) for name in (*STUDIES, *names())}


def chosen(wanted: Sequence[str]) -> list[Work]:
    """Return the named works in their own order, each once; all if no name is given."""
    known = everything()
    papers = dict.fromkeys(work.paper for work in known.values() if work.paper)
    for name in wanted:
        if name not in known and name not in papers:
            near = difflib.get_close_matches(name, [*papers, *known], n=3, cutoff=0.5)
            every = ", ".join([*papers, *STUDIES])
            hint = f"did you mean {' or '.join(near)}?" if near else f"name {every}"
            raise CommandError(f"there is no experiment or paper {name!r}: {hint}")
    return [w for w in known.values() if not wanted or {w.name, w.paper} & {*wanted}]
