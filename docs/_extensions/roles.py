"""Roles of accessibility that docutils gives to references, in their current form."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def mend(
    app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Make the entries of a list of references items of a list; doc-biblioentry is deprecated."""
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def setup(app: Sphinx) -> dict[str, bool]:
    """Mend each page as it is written."""
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
