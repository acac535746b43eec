"""What can be run: the experiments of the papers, and the studies that decide statements."""

import difflib
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from validation import record
from validation.experiment import Experiment, experiments, names
from validation.output import CommandError
from validation.tools import tables


@dataclass(frozen=True)
class Study:
    """A command, with a small form that writes no committed file.

    ``section`` names the table of its record in `tables.SECTIONS`. The words of both forms follow
    ``python -m``; FOLDER is a temporary folder.
    """

    title: str
    section: str
    words: str
    small: str

    paper: ClassVar[None] = None
    images: ClassVar[None] = None

    def command(self) -> str:
        return f"python -m {self.words}"

    def quick_command(self, folder: Path) -> list[str]:
        words = self.small.replace("FOLDER", shlex.quote(str(folder)))
        return [sys.executable, "-m", *shlex.split(words)]


STUDIES = {
    "papers": Study(
        "what the papers state, decided",
        "papers",
        "validation.papers",
        "validation.papers kingma-sign-and-magnitude kingma-float-ranges "
        "kingma-cubic-accurate hron-equation-1 hron-u molchanov-tight",
    ),
    "validate": Study(
        "every method against the errors that it declares",
        "validate",
        "validation.studies validate",
        "logunif_kl validate kingma molchanov lower_bound dawson",
    ),
    # With fewer seeds, the intervals would cover more or less than 95 % by chance.
    "monte_carlo": Study(
        "the coverage of Monte Carlo's intervals",
        "coverage",
        "validation.monte_carlo",
        "validation.monte_carlo --seeds 1000 --samples 1000000",
    ),
    "ladder": Study(
        "refitted formulae by the number of terms",
        "refits",
        "validation.ladder",
        "validation.ladder --sigmoids 2 --degree 3 --out FOLDER/ladder.json",
    ),
}
Work = Experiment | Study


def chosen(wanted: Sequence[str]) -> list[str]:
    """Return the names that are wanted, each once; a paper stands for its experiments.

    Without a name, return all. The experiments are not imported.
    """
    known = [*STUDIES, *names()]
    papers = dict.fromkeys(_paper(name) for name in known if name not in STUDIES)
    for name in wanted:
        if name not in known and name not in papers:
            near = difflib.get_close_matches(name, [*papers, *known], n=3, cutoff=0.5)
            every = ", ".join([*papers, *STUDIES])
            hint = f"did you mean {' or '.join(near)}?" if near else f"name {every}"
            raise CommandError(f"there is no experiment or paper {name!r}: {hint}")
    return [name for name in known if not wanted or {name, _paper(name)} & {*wanted}]


def works(wanted: Sequence[str] = ()) -> dict[str, Work]:
    everything: dict[str, Work] = {**STUDIES, **experiments()}
    return {name: everything[name] for name in chosen(wanted)}


def full_command(work: Work, files: Mapping[str, str]) -> list[str]:
    """Return the arguments of the full form, given the path of each kind of images."""
    words = shlex.split(work.command())[1:]
    return [sys.executable, *(files[str(work.images)] if w == "FILE" else w for w in words)]


def record_of(name: str) -> str:
    """Return the path of the record in the repository."""
    folder, _, file = name.rpartition(".")
    return f"validation/results/{folder or file}/{file}.json"


def results(work: Work, folder: Path | None = None) -> str:
    """Write the results as Markdown, of a quick form in a folder or of the committed record."""
    if isinstance(work, Study):
        return "" if folder else tables.section(work.section)
    return work.text(record.read(work.path if folder is None else work.quick_record(folder)))


def _paper(name: str) -> str:
    return name.partition(".")[0]
