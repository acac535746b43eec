"""What the pages of the site show in Python is what happens."""

import doctest
import re

import pytest

from validation.paths import ROOT

DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?:^<!-- needs: (\w+) -->\n)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and ">>>" in path.read_text(encoding="utf-8")
)


def examples(page):
    """The frameworks that a page needs, and its examples."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    typed = [(needs, body) for needs, body in found if body.startswith(">>>")]
    return {needs for needs, _ in typed} - {""}, typed


@pytest.mark.parametrize("page", PAGES)
def test_examples(page):
    """All of a page in turn, in one namespace, as a reader would type them."""
    needed, typed = examples(page)
    for name in sorted(needed):
        pytest.importorskip(name)
    text = "".join(body for _, body in typed)
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert test.examples
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)


def test_every_example_is_found():
    for page in PAGES:
        shown = (DOCS / page).read_text(encoding="utf-8").count("```python\n>>>")
        assert shown == len(examples(page)[1]), page
