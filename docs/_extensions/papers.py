"""The pages of the papers' experiments, written from the committed records before pages are read.

``papers/_made/PAPER.md`` is included by ``papers/PAPER.md``. It contains the pictures, which are
drawn from the same records.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path

from figures import for_a_page, stacked
from sphinx.application import Sphinx

from validation.experiment import PAPERS, Experiment, experiments
from validation.markdown import table
from validation.record import Record


def how(experiment: Experiment, record: Record | None) -> tuple[str, ...]:
    """Return the row that says how an experiment was run."""
    if record is None:
        return experiment.title, f"`{experiment.command()}`", "not run", "", "", ""
    settings, seconds = record["settings"], record["seconds"]
    time = f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3600:.1f} h"
    seeds = ", ".join(map(str, settings["seeds"]))
    day = f"{record['date'][:10]}, {record['commit']}"
    return experiment.title, f"`{record['command']}`", seeds, time, record["machine"]["cpu"], day


def write(app: Sphinx) -> None:
    """Write the page of each paper, and draw its pictures."""
    folder = Path(app.srcdir, "papers", "_made")
    folder.mkdir(exist_ok=True)
    for paper in PAPERS:
        about = import_module(f"validation.papers.{paper}").__doc__ or ""
        opening, heading, data = about.partition("## How they were run\n")
        parts = [opening]
        rows = []
        for experiment in experiments().values():
            if experiment.paper == paper:
                record, picture = experiment.read(), ""
                if record is not None and experiment.draw is not None:
                    draw = partial(experiment.draw, record)
                    narrow = partial(stacked, draw)
                    figure = for_a_page(experiment.module, draw, narrow, experiment.title)
                    picture = f"```{{raw}} html\n{figure}\n```"
                parts.append(experiment.text(record, picture))
                rows.append(how(experiment, record))
        head = ["experiment", "command", "seeds", "computing time", "processor", "day, commit"]
        parts.append(f"{heading}{data}\n{table(head, rows)}\n")
        page = folder / f"{paper}.md"
        text = "\n".join(parts)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write before the pages are read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
