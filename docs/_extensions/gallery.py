"""Directives for notebooks: ``gallery`` makes cards, and ``section`` shows sections in tabs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Gallery(SphinxDirective):
    """Cards of the notebooks that the content names, in this order."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        lines = ["::::{grid} 1 2 2 3", ":gutter: 3", ""]
        for name in self.content:
            path = Path(self.env.doc2path(self.env.docname)).with_name(f"{name}.ipynb")
            self.env.note_dependency(str(path))
            lines += _card(name, json.loads(path.read_text(encoding="utf-8")))
        container = nodes.container()
        self.state.nested_parse(StringList([*lines, "::::"], "gallery"), 0, container)
        return [container]


def _card(name: str, notebook: Any) -> list[str]:
    cells = notebook["cells"]
    title, about = "".join(cells[0]["source"]).split("\n\n")[:2]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    picture = next(o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {}))
    return [
        f":::{{grid-item-card}} {title.removeprefix('# ')}",
        f":link: {name}",
        ":link-type: doc",
        f":img-top: data:image/png;base64,{picture.strip()}",
        ":img-alt: A picture of the notebook.",
        about,
        "```{card-footer}",
        f"{{download}}`Download the notebook <{name}.ipynb>`",
        "```",
        ":::",
    ]


class Section(SphinxDirective):
    """The cells below a heading, its argument, of notebooks: lines ``tab: notebook``."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        lines = [":::::{tab-set}", ":sync-group: framework", ""]
        for line in self.content:
            tab, name = line.split(": ")
            file, path = self.env.relfn2path(f"{name}.ipynb")
            self.env.note_dependency(file)
            cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
            lines += [f"::::{{tab-item}} {tab}", f":sync: {tab}", ""]
            lines += [*_below(cells, self.arguments[0]), "::::", ""]
        container = nodes.container()
        self.state.nested_parse(StringList([*lines, ":::::"], "section"), 0, container)
        return [container]


def _below(cells: Any, heading: str) -> list[str]:
    """Return Markdown of the text, the code and the outputs below a heading of a notebook."""
    sources = ["".join(cell["source"]) for cell in cells]
    start = next(i for i, text in enumerate(sources) if text.split("\n")[0] == f"## {heading}")
    lines = sources[start].split("\n")[1:]
    for cell, text in zip(cells[start + 1 :], sources[start + 1 :], strict=True):
        if cell["cell_type"] == "markdown":
            break
        lines += ["", "```python", *text.split("\n"), "```", ""]
        for output in cell["outputs"]:
            if "text" in output:
                lines += ["```text", *"".join(output["text"]).rstrip().split("\n"), "```", ""]
            else:
                picture = "".join(output["data"]["image/png"]).strip()
                lines += [
                    f"```{{image}} data:image/png;base64,{picture}",
                    ":alt: The picture that the code draws.",
                    "```",
                    "",
                ]
    return lines


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("gallery", Gallery)
    app.add_directive("section", Section)
    return {"parallel_read_safe": True}
