"""The directive ``gallery``: a card for each notebook, with its first picture and a download."""

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


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True}
