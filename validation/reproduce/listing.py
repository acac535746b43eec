"""The list of the papers' systems and claims, and the parts of the library that show each."""

import itertools
import json
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from validation.output import Record, emit
from validation.paths import ROOT
from validation.reproduce.work import record_of

FILE = Path(__file__).with_name("systems.toml")
SECTIONS = FILE.with_name("sections.toml")
PAPERS = {
    "kingma2015": "Kingma, Salimans and Welling 2015, arXiv:1506.02557",
    "kingma2015_slides": "slides about Kingma et al. 2015",
    "hron2017": "Hron, Matthews and Ghahramani 2017, arXiv:1711.02989",
    "haussmann2018": "Haussmann, Hamprecht and Kandemir 2018, arXiv:1805.07654",
    "gal2016": "a blog post after Gal 2016, and Gal and Ghahramani, arXiv:1506.02142",
    "molchanov2017": "Molchanov, Ashukha and Vetrov 2017, arXiv:1701.05369, as those use it",
}
STATEMENTS = "validation/results/papers/papers.json"


class System(NamedTuple):
    """A system or a claim of a paper.

    ``library`` names the implementation, as one would import it. Experiments and studies (``run``),
    statements of ``python -m validation.papers`` (``claims``) and ``tests`` show it. ``without``
    says what is missing, and why, and ``cost`` what it would take to try it.
    """

    paper: str
    where: str
    what: str
    library: Sequence[str] = ()
    run: Sequence[str] = ()
    claims: Sequence[str] = ()
    tests: Sequence[str] = ()
    without: str = ""
    cost: str = ""

    def shown_by(self) -> list[str]:
        lines = [f"{record_of(name)} ({name})" for name in self.run]
        lines += [f"{STATEMENTS} (papers): {name} {_verdict(name)}" for name in self.claims]
        missing = f"missing: {self.without}" + (f" (cost: {self.cost})" if self.cost else "")
        return [*lines, *self.tests, *([missing] if self.without else [])]


@cache
def sections() -> dict[str, dict[str, list[str]]]:
    """Return the sections of each source, with the places that the systems name in them."""
    return tomllib.loads(SECTIONS.read_text(encoding="utf-8"))


@cache
def systems() -> tuple[System, ...]:
    entries: list[Record] = tomllib.loads(FILE.read_text(encoding="utf-8"))["system"]
    return tuple(System(**entry) for entry in entries)


def put(names: Sequence[str] = ()) -> None:
    wanted = set(names)
    there = [s for s in systems() if not wanted or wanted & _names(s)]
    if not there:
        emit(f"No system in {FILE.name} names {', '.join(sorted(wanted))}.\n")
        return
    for paper, entries in itertools.groupby(there, lambda system: system.paper):
        emit(f"\n{PAPERS[paper]}\n\n")
        for each in entries:
            lines = [f"{each.where}: {each.what}"]
            lines += [f"    in {', '.join(each.library)}"] if each.library else []
            lines += [f"    {line}" for line in each.shown_by()]
            emit("".join(f"{line}\n" for line in lines))


def _names(system: System) -> set[str]:
    about = system.paper.partition("_")[0]  # the slides are about a paper
    return {system.paper, about, *system.run, *(["papers"] if system.claims else [])}


@cache
def _verdicts() -> dict[str, str]:
    found = json.loads((ROOT / STATEMENTS).read_text(encoding="utf-8"))
    return {each["name"]: each["verdict"] for each in found["claims"]}


def _verdict(name: str) -> str:
    verdict = _verdicts().get(name)
    undecided = verdict in (None, "not decided")
    return "is not decided" if undecided else f"(the statement {verdict})"
