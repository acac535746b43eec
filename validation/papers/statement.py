"""A statement of a paper, as a function that measures and decides whether it holds."""

from collections.abc import Callable
from typing import NamedTuple

from validation.output import Record
from validation.verdict import verdict

# The prefixes of the names of their statements.
PAPERS = {
    "kingma": "Kingma, Salimans and Welling 2015, arXiv:1506.02557",
    "hron": "Hron, Matthews and Ghahramani 2017, arXiv:1711.02989",
    "molchanov": "Molchanov, Ashukha and Vetrov 2017, arXiv:1701.05369",
    "vbp": "Haussmann, Hamprecht and Kandemir 2018, arXiv:1805.07654",
    "gal": "Blog post after Gal 2016, “Dropout as Bayesian neural networks”",
}


# Errors of the value and, relative, of the gradient that count as accurate or tight.
ACCURATE, STEEP = 1e-2, 0.05
# How many times the least error counts as about as good.
ABOUT = 1.5


class Found(NamedTuple):
    """Whether what was measured agrees with a statement; the numbers, and what they mean.

    ``networks`` says that they are of networks that are not trained as the paper's.
    """

    holds: bool | None
    measured: Record
    note: str
    networks: bool = False

    def record(self) -> Record:
        decided = verdict(self.holds, networks=self.networks)
        return {"verdict": decided, "measured": self.measured, "note": self.note}


STATEMENTS: dict[str, Callable[[], Record]] = {}
"""Functions that decide the statements and return their records, by name."""


def statement(
    name: str, where: str, text: str, *, stated: bool = True
) -> Callable[[Callable[[], Found]], Callable[[], Found]]:
    """Enter a statement: one that a paper makes or, if not ``stated``, one that it suggests."""
    paper = PAPERS[name.partition("-")[0]]
    about = {"name": name, "paper": paper, "where": where, "claim": text}

    def enter(decide: Callable[[], Found]) -> Callable[[], Found]:
        if name in STATEMENTS:
            raise ValueError(f"the claim {name!r} is entered twice: name one of them differently")
        STATEMENTS[name] = lambda: {
            **about,
            "stated_by_the_paper": stated,
            **decide().record(),
            "command": f"python -m validation.papers {name}",
        }
        return decide

    return enter
