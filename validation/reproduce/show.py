"""Pages in Markdown, as far as the pages of the experiments use it, laid out for a terminal."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logunif_kl.cli._layout import wrapped
from logunif_kl.cli._output import emit, has_rich, new_table, show_tables
from validation.reproduce.work import Work
from validation.tools import tables
from validation.tools.experiments import page
from validation.tools.markdown import Results, table

_IMAGE = re.compile(r"^!\[[^]]*\]\([^)]*\)$")
_CELLS = re.compile(r"(?<!\\)\|")
_NUMBER = re.compile(r"[-+−–]?[\d.,]*( ± [\d.]+)?( ?%)?([·e][-+\d^]+)?")


def results(work: Work, record: Path) -> str:
    """Write the results of a work beside the paper's, as its page has them."""
    if work.name in tables.SECTIONS:
        return tables.section(work.name)
    if work.name == "ladder":
        return _ladder(json.loads(record.read_text(encoding="utf-8")))
    for section in page.sections().get(work.paper or "", ()):
        if f"{work.paper}.{section.name}" == work.name:
            return section.text(json.loads(record.read_text(encoding="utf-8")))
    return ""


def _ladder(record: Results) -> str:
    """Tabulate the worst errors of the fits, and those of the published formula of the form."""
    rows = []
    for rung in record["rungs"]:
        theirs = rung["published"]
        errors = [rung["value_text_error"]["value"], rung["gradient_text_error"]["gradient"]]
        printed = [theirs["max_error"], theirs["max_grad_error"]] if theirs else []
        rows.append(
            [
                f"{rung['family']}, {rung['terms']}",
                *(f"{error:.2e}" for error in errors),
                theirs["name"] if theirs else "",
                *([f"{error:.2e}" for error in printed] or ["", ""]),
            ]
        )
    head = ["formula, terms", "worst error of −KL", "of the gradient, relative"]
    return table([*head, "published", "worst error of −KL", "of the gradient, relative"], rows)


def put(markdown: str) -> None:
    """Print a page: tables fitted to the terminal, text wrapped, no pictures."""
    if not has_rich():
        emit(markdown)
        return
    for kind, lines in itertools.groupby(_lines(markdown), lambda line: line.startswith("|")):
        if kind:
            show_tables([_table(list(lines))])
        else:
            width = shutil.get_terminal_size().columns
            emit("".join(f"{wrapped(_plain(line), width)}\n" for line in lines))


def _lines(markdown: str) -> Iterator[str]:
    before = ""
    for line in markdown.splitlines():
        if _IMAGE.match(line) or (not line and not before):
            continue
        yield line
        before = line


def _table(lines: list[str]) -> Any:
    """Make a table of rich; a bar in a cell is written with a backslash before it."""
    header, _, *rows = [
        [_plain(cell.strip()) for cell in _CELLS.split(line.strip())[1:-1]] for line in lines
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    numeric = [all(_NUMBER.fullmatch(cell) for cell in column) for column in columns]
    made = new_table("", list(zip(header, numeric, strict=True)))
    for row in rows:
        made.add_row(*map(_literal, row))
    return made


def _literal(cell: str) -> Any:
    """Return a text of rich, in which brackets are no markup."""
    from rich.text import Text

    return Text(cell)


def _plain(text: str) -> str:
    """Leave the marks out."""
    return re.sub(r"\*\*|`|^#+ ", "", text).replace(r"\|", "|")
