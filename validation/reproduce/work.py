"""What there is to run: the experiments of the papers, and the studies beside them."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from logunif_kl.cli._output import CommandError
from validation.reports import REPORTS
from validation.tools.experiments import page

_MODULES = {"python": [sys.executable], "logunif-kl": [sys.executable, "-m", "logunif_kl"]}

# The small forms of the studies; none writes a file of the repository. FOLDER is a temporary one.
# The intervals of fewer seeds would cover more or less than they are to, by chance.
_QUICK = {
    "papers": (
        "python -m validation.papers kingma-sign-and-magnitude kingma-float-ranges "
        "kingma-cubic-accurate hron-equation-1 hron-u molchanov-tight"
    ),
    "validate": "logunif-kl validate kingma molchanov lower_bound dawson",
    "monte_carlo": "python -m validation.monte_carlo --seeds 1000 --samples 1000000",
    "ladder": "python -m validation.ladder --sigmoids 2 --degree 3 --out FOLDER/ladder.json",
}
_TITLES = {
    "papers": "what the papers state, decided",
    "validate": "every method against the errors that it declares",
    "monte_carlo": "the coverage of Monte Carlo's intervals",
    "ladder": "refitted formulae by the number of terms",
}


class Work(NamedTuple):
    """One command, and the record that it writes.

    ``command`` has FILE in the place of the data, and is as `validation.reports` has it.
    """

    name: str
    title: str
    record: str
    command: str

    @property
    def paper(self) -> str | None:
        """The folder of its paper; None for a study."""
        paper, dot, _ = self.name.partition(".")
        return paper if dot else None

    @property
    def takes_data(self) -> bool:
        return "FILE" in shlex.split(self.command)

    @property
    def takes_torch(self) -> bool:
        """Whether it needs PyTorch, as every experiment does and no study."""
        return self.paper is not None

    def full(self, data: str | None) -> list[str]:
        """Return the arguments of the command that writes the record."""
        words = shlex.split(self.command)
        return _argv([data if word == "FILE" and data else word for word in words])

    def quick(self, folder: Path) -> list[str]:
        """Return the arguments of the small form, whose files go to a folder; it draws nothing."""
        if self.paper is None:
            return _argv(shlex.split(_QUICK[self.name].replace("FOLDER", shlex.quote(str(folder)))))
        words = shlex.split(self.command)
        options = ["--quick", "--out", str(self.quick_record(folder))]
        options += ["--work", str(folder / "work" / self.name)]
        return _argv([*words[:3], *options])

    def quick_record(self, folder: Path) -> Path:
        """Return the record of the small form of an experiment."""
        return folder / f"{self.name}.json"


def _argv(words: Sequence[str]) -> list[str]:
    return [*_MODULES[words[0]], *words[1:]]


def everything() -> dict[str, Work]:
    """Return all there is by its name: the studies first, which take minutes."""
    records = {
        name: (title, f"validation/results/{name}/{name}.json") for name, title in _TITLES.items()
    }
    for paper, sections in page.sections().items():
        for section in sections:
            path = f"validation/results/{paper}/{section.name}.json"
            records[f"{paper}.{section.name}"] = section.title, path
    return {
        name: Work(name, title, path, REPORTS[path].command)
        for name, (title, path) in records.items()
    }


def chosen(names: Sequence[str]) -> list[Work]:
    """Return the named works in their own order, each once; all if none is named."""
    known = everything()
    papers = dict.fromkeys(work.paper for work in known.values() if work.paper)
    for name in names:
        if name not in known and name not in papers:
            near = difflib.get_close_matches(name, [*papers, *known], n=3, cutoff=0.5)
            every = ", ".join([*papers, *(each for each in known if not known[each].paper)])
            hint = f"did you mean {' or '.join(near)}?" if near else f"name {every}"
            raise CommandError(f"there is no experiment or paper {name!r}: {hint}")
    wanted = set(names)
    return [w for w in known.values() if not wanted or wanted & {w.name, w.paper}]
