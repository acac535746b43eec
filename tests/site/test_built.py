"""Contents of the built site, in the folder ``LOGUNIF_KL_SITE``."""

import html
import importlib
import json
import os
import re
from pathlib import Path

import pytest

from validation.paths import RESULTS, ROOT

SITE = Path(os.environ.get("LOGUNIF_KL_SITE", ""))
there = "LOGUNIF_KL_SITE" in os.environ
pytestmark = pytest.mark.skipif(not there, reason="LOGUNIF_KL_SITE names no built site")


def source(name):
    return (SITE / name).read_text(encoding="utf-8")


def words(text):
    """The words of a page or of a sentence, without tags, spaces and curled quotation marks."""
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    return re.sub(r"\s", "", text.translate(str.maketrans("“”‘’", "\"\"''")))


def test_llms_lists_every_page():
    text = source("llms.txt")
    listed = re.findall(r"\]\((_sources/\S+\.md\.txt)\)", text)
    pages = {path.relative_to(SITE).as_posix() for path in SITE.glob("_sources/*/*.md.txt")}
    assert set(listed) == {page for page in pages if not page.endswith("/index.md.txt")}
    assert len(listed) == len(set(listed)) > 40
    assert text.startswith("# logunif_kl ")


def test_pages_of_numbers_say_what_makes_them():
    for path in SITE.glob("*/*.html"):
        text = path.read_text(encoding="utf-8")
        if path.parent.name not in ("guide", "theory", "papers") or path.stem == "explore":
            continue
        if 'class="drawn"' in text or 'class="numbers' in text or ">>>" in words(text):
            assert re.search(r'class="made-by">.*?<code', text, re.DOTALL), path


def test_every_claim_is_there_with_its_verdict():
    text = words(source("papers/claims.html"))
    for claim in json.loads((RESULTS / "papers/papers.json").read_text("utf-8"))["claims"]:
        assert words(claim["claim"]) + claim["verdict"] in text, claim["name"]


def test_docstrings_lead_to_their_source():
    text = source("api/functions.html")
    assert re.search(r'href="\.\./_modules/logunif_kl/_api\.html#neg_kl"', text)
    assert "defneg_kl(" in words(source("_modules/logunif_kl/_api.html"))


def test_snippets_can_be_copied():
    assert "copybutton.js" in source("start/numpy.html")


def test_numbers_in_sentences_are_computed():
    text = source("theory/mathematics.html")
    computed = re.findall(r'<span class="computed">(.*?)</span>', text)
    assert computed == ["0.64237", "-1.50671", "0.6351814227"]


FIGURES = ROOT / "docs" / "figures.py"


@pytest.mark.parametrize(
    "name", re.findall(r"^@drawn\([^@]*?^def (\w+)", FIGURES.read_text("utf-8"), re.M)
)
def test_figures_are_drawn_without_warnings(name, monkeypatch):
    """Sphinx does not see what matplotlib warns of."""
    monkeypatch.syspath_prepend(FIGURES.parent)
    monkeypatch.syspath_prepend(FIGURES.parent / "_extensions")
    svg = getattr(importlib.import_module("figures"), name)().data
    assert svg.count("<path") > 2
    assert "\\times" not in svg
    assert "×" not in svg
