"""The directive ``results``: a table of committed results, made as the page is built.

The tables are those of `validation.tools.tables`. A record that was changed by hand is a warning.
"""

from __future__ import annotations

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from validation.paths import ROOT
from validation.record import is_sealed
from validation.tools import tables

logger = logging.getLogger(__name__)


class Results(SphinxDirective):
    """``{results} NAME``: one of `validation.tools.tables.SECTIONS`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        if name not in tables.SECTIONS:
            raise self.error(f"{name} is none of {', '.join(tables.SECTIONS)}")
        _, files = tables.SECTIONS[name]
        for file in map(tables.path, files):
            self.env.note_dependency(str(ROOT / file))
            if (ROOT / file).exists() and not is_sealed(ROOT / file):
                logger.warning("%s was changed by hand", file, location=self.get_location())
        container = nodes.container(classes=["results"])
        text = StringList(tables.section(name).splitlines(), source=f"results: {name}")
        self.state.nested_parse(text, self.content_offset, container)
        return [container]


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Mark the tables whose cells are numbers, and these cells, which a page does not fold."""
    for table in doctree.findall(nodes.table):
        rows = [row.children for body in table.findall(nodes.tbody) for row in body]
        numbers = [cell for row in rows for cell in row[1:] if _is_number(cell.astext())]
        if 2 * len(numbers) > sum(len(row) - 1 for row in rows):
            table["classes"].append("numbers")
            for cell in numbers:
                cell["classes"].append("number")


VERDICTS = {"holds": "holds", "yes": "holds", "fails": "fails", "no": "fails", "not decided": ""}


def colour(app: Sphinx, doctree: nodes.document) -> None:
    """Give each verdict on a paper its colour."""
    if app.env.docname.startswith("papers/"):
        for cell in doctree.findall(nodes.entry):
            word = cell.astext()
            if word in VERDICTS:
                cell.children = [nodes.inline("", word, classes=["verdict", VERDICTS[word]])]


def _is_number(text: str) -> bool:
    return len(text) <= 32 and any(map(str.isdigit, text))


def setup(app: Sphinx) -> dict[str, bool]:
    """Enter the directive."""
    app.add_directive("results", Results)
    app.connect("doctree-read", mark)
    app.connect("doctree-read", colour)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
