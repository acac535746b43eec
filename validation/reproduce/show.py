"""Lay out Markdown pages for a terminal."""

import re
from pathlib import Path

from validation import record as records
from validation.output import emit, has_rich
from validation.reproduce.work import Work
from validation.tools import tables

_IMAGE = re.compile(r"^!\[[^]]*\]\([^)]*\)$", re.MULTILINE)


def results(work: Work, record: Path) -> str:
    if work.name in tables.SECTIONS:
        return tables.section(work.name)
    if work.paper:
        return work.experiment.text(records.read(record))
    return tables.ladder(records.read(record)) if work.name == "ladder" else ""


def put(markdown: str) -> None:
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
