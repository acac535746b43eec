"""Pages in Markdown, laid out for a terminal."""

import re
from pathlib import Path

from validation import record as records
from validation.markdown import Results, table
from validation.output import emit, has_rich
from validation.reproduce.work import Work
from validation.tools import tables

_IMAGE = re.compile(r"^!\[[^]]*\]\([^)]*\)$", re.MULTILINE)


def results(work: Work, record: Path) -> str:
    """Write the results of a work beside the paper's, as its page has them."""
    if work.name in tables.SECTIONS:
        return tables.section(work.name)
    if work.paper:
        return work.experiment.text(records.read(record))
    return _ladder(records.read(record)) if work.name == "ladder" else ""


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
    """Print a page without its pictures."""
    text = _IMAGE.sub("", markdown)
    if not has_rich():
        emit(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.capture() as captured:
        console.print(Markdown(text))
    emit(captured.get())
