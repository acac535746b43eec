"""``llms.txt`` beside the front page: a list of all pages in Markdown, with a sentence on each.

The form is that of https://llmstxt.org; each page is named in its source, which is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


def first_sentence(doctree: nodes.document) -> str:
    """Return the first sentence of a page, on one line."""
    texts = (
        SENTENCE.split(" ".join(node.astext().split()), maxsplit=1)[0].rstrip(":")
        for node in doctree.findall(nodes.paragraph)
        if isinstance(node.parent, nodes.section) and "made-by" not in node["classes"]
    )
    return next(texts, "")


def lines(app: Sphinx) -> Iterator[str]:
    """List the pages under the headings of the table of contents."""
    env = app.env
    yield f"# {app.config.project} {app.config.release}"
    yield f"> {first_sentence(env.get_doctree('index'))}"
    for part in env.toctree_includes["index"]:
        yield f"## {env.titles[part].astext()}"
        entries = []
        for name in env.toctree_includes.get(part, []):
            text = first_sentence(env.get_doctree(name))
            source = f"_sources/{name}{Path(env.doc2path(name)).suffix}.txt"
            entry = f"- [{env.titles[name].astext()}]({source})"
            entries.append(f"{entry}: {text}" if text else entry)
        yield "\n".join(entries)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the file when the pages are there."""
    if exception is None and app.builder.format == "html":
        Path(app.outdir, "llms.txt").write_text("\n\n".join(lines(app)) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write at the end of a build."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
