"""Contents of the built site, in the folder ``LOGUNIF_KL_SITE``."""

import ast
import html
import importlib
import json
import os
import re
from pathlib import Path

import pytest

from validation.paths import RESULTS, ROOT
from validation.tools import tables

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
    listed = re.findall(r"\]\((_sources/\S+\.(?:md|ipynb)\.txt)\)", text)
    pages = {path.relative_to(SITE).as_posix() for path in SITE.glob("_sources/*/*.txt")}
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
        assert words(tables.claim(claim) + claim["verdict"]) in text, claim["name"]


ENTRY = re.compile(r'<dt class="sig[^"]*" id="([\w.]+)">(.*?)</dt>', re.DOTALL)
PARAMETER = re.compile(r'<em class="sig-param">(.*?)</em>', re.DOTALL)


def parameters(signature):
    """The parameters in a signature of ``tests/golden/public.txt``, as the reference shows them."""
    (function,) = ast.parse(f"def f{signature.replace('<factory>', '0')}: 0").body
    of = function.args
    plain = [a.arg for a in of.posonlyargs] + ["/"] * bool(of.posonlyargs)
    plain += [a.arg for a in of.args if a.arg not in ("self", "cls")]
    star = [f"*{of.vararg.arg}"] if of.vararg else ["*"] * bool(of.kwonlyargs)
    named = [a.arg for a in of.kwonlyargs]
    return [*plain, *star, *named, *([f"**{of.kwarg.arg}"] if of.kwarg else [])]


def test_signatures_are_those_with_the_frameworks():
    """That is, the stand-ins of the frameworks do not show in the reference."""
    shown = {}
    for path in SITE.glob("api/**/*.html"):
        for name, signature in ENTRY.findall(path.read_text(encoding="utf-8")):
            shown[name] = [words(p).partition("=")[0] for p in PARAMETER.findall(signature)]
    public = (ROOT / "tests/golden/public.txt").read_text(encoding="utf-8")
    there = {
        name: parameters(s) for name, s in re.findall(r"^([\w.]+)(\(.*)$", public, re.MULTILINE)
    }
    compared = [name for name in there if name in shown and not name.endswith(".cls_to_become")]
    assert len(compared) > 270
    for name in compared:
        # A base class, which only its subclasses can make, has no signature.
        expected = [] if there[name] == ["*args", "**kwargs"] else there[name]
        assert shown[name] == expected, name
    free = [name for name, names in shown.items() if "*args" in names]
    assert free == ["logunif_kl.jax.nn.to_compact"]


def test_docstrings_lead_to_their_source_and_to_references():
    """The references of docstrings are [1], not [R8db564d66a23-1]."""
    for path in SITE.glob("api/**/*.html"):
        assert "[R" not in words(path.read_text(encoding="utf-8")), path
    text = source("api/generated/logunif_kl.neg_kl.html")
    assert re.search(r'href="\.\./\.\./_modules/logunif_kl/_api/_neg_kl\.html#neg_kl"', text)
    assert "defneg_kl(" in words(source("_modules/logunif_kl/_api/_neg_kl.html"))


def test_snippets_can_be_copied_and_numbers_in_sentences_are_computed():
    assert "copybutton.js" in source("start/numpy.html")
    text = source("theory/mathematics.html")
    computed = re.findall(r'<span class="computed">(.*?)</span>', text)
    assert computed == ["0.64237", "-1.50671", "0.6351814227"]


FIGURES = ROOT / "docs" / "figures.py"
DRAWN = FIGURES.read_text(encoding="utf-8") if there else ""


@pytest.mark.parametrize("name", re.findall(r"^@drawn\([^@]*?^def (\w+)", DRAWN, re.M))
def test_figures_are_drawn_without_warnings(name, monkeypatch):
    """Sphinx does not see what matplotlib warns of."""
    monkeypatch.syspath_prepend(FIGURES.parent)
    monkeypatch.syspath_prepend(FIGURES.parent / "_extensions")
    svg = getattr(importlib.import_module("figures"), name)().data
    assert svg.count("<path") > 2
    assert "\\times" not in svg
    assert "×" not in svg
    for axis in re.split(r'id="matplotlib.axis_', svg)[1:]:
        ticks = re.findall(r'id="[xy]tick_\d+">.*?<text[^>]*>([^<]+)</text>', axis, re.S)
        assert len(set(ticks)) == len(ticks), ticks
