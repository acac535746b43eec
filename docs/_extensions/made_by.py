"""At the end of each page: which command makes its numbers, and which tests its examples."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from validation import record
from validation.paths import ROOT

BUILD = "python -m sphinx -W --keep-going docs docs/_build/html"
EXAMPLES = "python -m pytest tests/site/test_examples.py"
DOCSTRINGS = "python -m pytest logunif_kl"


def dependencies(app: Sphinx, docname: str) -> set[str]:
    """Return the files behind a page, as paths from the root of the repository."""
    found = (Path(app.srcdir, name).resolve() for name in app.env.dependencies[docname])
    return {path.relative_to(ROOT).as_posix() for path in found if path.is_relative_to(ROOT)}


def sentences(
    doctree: nodes.document, files: set[str], docname: str
) -> list[tuple[str, list[str]]]:
    """Say what is on a page, with the commands that make it."""
    found = []
    shown = [node.astext() for node in doctree.findall(nodes.literal_block)]
    typed = any(text.lstrip().startswith(">>>") for text in shown)
    if typed or any(doctree.findall(nodes.doctest_block)):
        found.append(
            ("Examples are run by", [DOCSTRINGS if docname.startswith("api/") else EXAMPLES])
        )
    records = {ROOT / file for file in files if file.startswith("validation/results/")}
    measured = {record.read(path)["command"] for path in records if path.exists()}
    made = {Path(file) for file in files if file.startswith("docs/papers/_made/")}
    papers = {path.stem for path in made if path.suffix == ".md"}
    measured |= {f"python -m validation.reproduce {paper}" for paper in papers}
    if measured:
        found.append(("Tables are made by", sorted(measured)))
    if any(
        "computed" in node.get("classes", ()) or node.get("nb_element") == "cell_code"
        for node in doctree.findall(nodes.Element)
    ):
        found.append(("Figures, and numbers in sentences, are computed by", [BUILD]))
    return found


def append(app: Sphinx, doctree: nodes.document) -> None:
    """Append the commands to a page that has numbers."""
    docname = app.env.docname
    said = sentences(doctree, dependencies(app, docname), docname)
    if not said:
        return
    paragraph = nodes.paragraph(classes=["made-by"])
    for what, commands in said:
        paragraph += nodes.Text(f"{what} ")
        for i, command in enumerate(commands):
            paragraph += [nodes.Text(", " if i else ""), nodes.literal(text=command)]
        paragraph += nodes.Text(". ")
    opened = "<details><summary>How this page is made and tested</summary>"
    html = (nodes.raw("", text, format="html") for text in (opened, "</details>"))
    next(doctree.findall(nodes.section)).extend([next(html), paragraph, next(html)])


def setup(app: Sphinx) -> dict[str, bool]:
    """Append when a page has been read."""
    app.connect("doctree-read", append)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
