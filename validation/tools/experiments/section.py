"""A part of the page of a paper's experiments."""

from __future__ import annotations

from collections.abc import Callable

from validation.tools.experiments.tables import PAPER
from validation.tools.markdown import Results


class Section:
    """A part of the page: an experiment, and how its record is shown."""

    def __init__(
        self,
        name: str,
        title: str,
        about: str,
        options: str,
        show: Callable[[Results], str],
        paper: str = PAPER,
        *,
        data: bool = True,
    ) -> None:
        self.name, self.title, self.about, self.show = name, title, about, show
        named = " --data FILE" if data else ""
        self.command = f"python -m validation.papers.{paper}.{name}{named}{options}"

    def text(self, record: Results | None) -> str:
        body = "There is no record yet." if record is None else self.show(record)
        return f"## {self.title}\n\n{self.about}\n\n{body}\n"
