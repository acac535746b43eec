"""The built site in a browser, as a reader has it, without a network.

``LOGUNIF_KL_SITE=docs/_build/html python -m pytest tests/site`` tests what is built there. It needs
the extra ``docs``, and Chromium: Debian's package, or what ``LOGUNIF_KL_CHROMIUM`` names. Without
Chromium the tests are skipped, and fail where the environment variable ``CI`` is set.
"""

import functools
import http.server
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

import logunif_kl as lk

SITE = os.environ.get("LOGUNIF_KL_SITE")
pytestmark = pytest.mark.skipif(SITE is None, reason="LOGUNIF_KL_SITE names no built site")
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
WIDE = {"width": 1920, "height": 1080}
# What is wider than its place: the page, its text, and all else but what a reader can scroll: a
# table or a displayed formula in its own box, and code.
TOO_WIDE = """() => {
    const box = ".pst-scrollable-table-container, .math, pre, .bd-breadcrumbs";
    const parts = document.querySelectorAll(".bd-article-container *");
    const wide = [document.documentElement, ...parts]
        .filter(e => !e.closest(box) && !e.closest("svg"))
        .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0);
    const right = document.documentElement.clientWidth;
    const pictures = [...document.querySelectorAll(".bd-article-container :is(svg, img)")]
        .filter(e => e.getBoundingClientRect().right > right);
    return [...wide, ...pictures].map(e => `${e.tagName} ${e.className}: ${e.scrollWidth}`);
}"""
WIDE_TABLES = """[...document.querySelectorAll(".pst-scrollable-table-container")]
    .filter(e => e.scrollWidth > e.clientWidth).map(e => e.querySelector("th").innerText)"""
# Pictures that stay light in the dark, or have letters that do not become light.
DARK = """[...document.querySelectorAll(".bd-article img:not(.toggler)")]
    .filter(e => !getComputedStyle(e).filter.includes("invert")).map(e => e.src).concat(
    [...document.querySelectorAll("figure.drawn")].filter(e => getComputedStyle(e.closest("div"))
        .backgroundColor !== "rgba(0, 0, 0, 0)" || !e.outerHTML.includes("currentColor"))
        .map(e => e.querySelector("svg").ariaLabel))"""


def chromium():
    found = os.environ.get("LOGUNIF_KL_CHROMIUM") or shutil.which("chromium")
    if not found:
        said = "Chromium is not found: apt-get install chromium, or name it in LOGUNIF_KL_CHROMIUM"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(said)
    return found


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *said):
        pass


@pytest.fixture(scope="module")
def address():
    serve = functools.partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


@pytest.fixture
def page(browser, address):
    """A page on which every error, and every request to another site, fails the test."""
    # Without transitions, the colours are final at once.
    context = browser.new_context(reduced_motion="reduce")
    opened = context.new_page()
    complaints = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    opened.on("response", lambda r: complaints.append(r.url) if r.status >= 400 else None)
    here = (address, "data:")
    opened.on("request", lambda r: r.url.startswith(here) or complaints.append(r.url))
    yield opened
    context.close()
    assert not complaints


def pages():
    if SITE is None:
        return []
    found = [path.relative_to(SITE).as_posix() for path in Path(SITE).rglob("*.html")]
    return sorted(name for name in found if not name.startswith(("_static", "_modules")))


def violations(page, contrast):
    """The violations that axe finds. Contrast takes most of the time."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"runOnly": ["wcag2a", "wcag2aa"], "preload": False, "resultTypes": ["violations"]}
    options["rules"] = {"color-contrast": {"enabled": contrast}}
    found = Axe().run(page, options=options)
    return found.generate_report() if found.violations_count else ""


@pytest.mark.parametrize("name", pages())
def test_every_page(page, address, name):
    """It opens without an error, is accessible in light and dark, and fits windows of three widths.

    Colours are looked at on the desk, where every part of a page is shown, and but once on a page
    of the reference: these have one template.
    """
    once = "/generated/" in name
    for window in (DESK, PHONE, WIDE):
        page.set_viewport_size(window)
        page.emulate_media(color_scheme="light")
        page.goto(address + name)
        page.evaluate("async () => { await window.MathJax?.startup?.promise; }")
        assert page.evaluate(TOO_WIDE) == [], f"in a window of {window}"
        if window is WIDE or (once and window is PHONE):
            continue
        if window is DESK and name.startswith("guide/"):
            assert page.evaluate(WIDE_TABLES) == []
        for scheme in ("dark",) if once else ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
            if window is DESK or scheme == "dark":
                assert not violations(page, contrast=window is DESK), f"{scheme}, {window}"
        assert page.evaluate(DARK) == []


@pytest.mark.parametrize("word", ["alpha", "ELBO"])
def test_search(page, address, word):
    page.goto(f"{address}search.html?q={word}")
    page.wait_for_selector("#search-results li")
    assert page.locator("#search-results li").count() > 3


class TestExplore:
    @pytest.fixture
    def open(self, page, address):
        page.goto(f"{address}theory/explore.html")
        return page

    @staticmethod
    def part(page, name):
        return page.locator(f"[data-part='{name}']")

    def number(self, page, name):
        return float(self.part(page, name).inner_text())

    @pytest.mark.parametrize("x", [None, -30.0, -1.5067, 7.0, 600.0])
    def test_as_the_library(self, open, x):
        """Also at alpha = 1, with which the page opens."""
        if x is not None:
            self.part(open, "log-alpha-number").fill(str(x))
        for part, function in (
            ("value", lk.neg_kl),
            ("slope", lk.neg_kl_grad),
            ("bend", lk.neg_kl_hess),
        ):
            exact = float(function(x or 0.0))
            found = self.number(open, f"{part}-exact")
            assert abs(found - exact) <= 2 * abs(exact) * 2.0**-52, part

    def test_the_slider_moves_the_numbers_and_the_curves(self, open):
        before = self.number(open, "value-exact")
        slider = self.part(open, "log-alpha")
        slider.focus()
        for _ in range(20):
            open.keyboard.press("ArrowLeft")
        assert float(slider.input_value()) == pytest.approx(-0.2)
        assert self.number(open, "value-exact") < before
        curve = self.part(open, "values").locator("path").first
        drawn = curve.get_attribute("d")
        self.part(open, "low").fill("-2")
        assert curve.get_attribute("d") != drawn
        self.part(open, "low").fill("7")
        said = "The range is empty: its low end must be below its high end."
        assert self.part(open, "message").inner_text() == said

    @pytest.mark.parametrize(("x", "dashes"), [("1000", True), ("-1000", False)])
    def test_what_double_precision_does_not_hold_is_a_dash(self, open, x, dashes):
        self.part(open, "log-alpha-number").fill(x)
        text = open.locator(".explore").inner_text()
        assert ("–" in text) is dashes
        assert "NaN" not in text
        assert "Infinity" not in text

    def test_the_pointer_shows_the_values(self, open):
        self.part(open, "values").hover()
        shown = self.part(open, "values-hover").inner_text()
        words = r"at log α = (\S+): exact (\S+), cubic \S+, sigmoid (\S+), bound"
        at, exact, sigmoid = map(float, re.match(words, shown).groups())
        assert abs(at) < 1.0
        # Four digits are shown. The two curves differ by 1 %.
        assert exact == pytest.approx(lk.neg_kl(at), rel=1e-3)
        assert sigmoid == pytest.approx(lk.methods.molchanov(at), rel=1e-3)
        assert sigmoid != pytest.approx(exact, rel=2e-3)

    def test_every_method_is_in_the_legend_and_can_be_hidden(self, open):
        legend = open.locator(".explore p:has(.exact)").inner_text()
        assert " ".join(legend.split()) == "exact Kingma's cubic Molchanov's sigmoid lower bound"
        curves = self.part(open, "values").locator("path.curve")
        assert curves.count() == 4
        self.part(open, "show-kingma").uncheck()
        assert curves.count() == 3
