"""The Python examples and the commands on the pages of the site are right."""

import doctest
import re
import shlex
import subprocess
import sys
import tomllib
from argparse import _SubParsersAction
from importlib.util import find_spec

import pytest

from logunif_kl.cli._main import build_parser
from validation.paths import ROOT

DOCS = ROOT / "docs"
METADATA = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
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


TRAINED = doctest.register_optionflag("TRAINED")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.(\d*)(?:e([+-]\d+))?)?")


def near(shown, found, trained):
    """Whether numbers agree to the digits shown; those of a trained network within a third."""
    a, b = float(shown[0]), float(found[0])
    unit = 0.0 if shown[1] is None else 1.01 * 10.0 ** (int(shown[2] or 0) - len(shown[1]))
    return abs(a - b) <= max(unit, abs(a) / 3 if trained else 0.0)


class Checker(doctest.OutputChecker):
    """Accept numbers with other digits behind those that a page shows."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        shown, found = (list(NUMBER.finditer(text)) for text in (want, got))
        texts = (NUMBER.sub("0", text) for text in (want, got))
        return (
            len(shown) == len(found)
            and all(near(a, b, optionflags & TRAINED) for a, b in zip(shown, found, strict=True))
            and super().check_output(*texts, optionflags)
        )


def failures(text, page):
    """Run examples in one namespace, and return the report of failures."""
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert test.examples
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(Checker(), optionflags=flags).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("page", PAGES)
def test_examples(page):
    """All of a page in turn, in one namespace, as a reader would type them."""
    needed, typed = examples(page)
    for name in sorted(needed):
        pytest.importorskip(name)
    text = "".join(body for _, body in typed)
    if needed:  # in a new process, because some frameworks conflict
        call = "import sys; from tests.site.test_examples import failures; "
        call += "sys.exit(failures(sys.stdin.read(), sys.argv[1]) or None)"
        done = subprocess.run(
            [sys.executable, "-c", call, page],
            cwd=ROOT,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    else:
        assert not failures(text, page)


def test_every_example_and_a_wrong_one_are_found():
    for page in PAGES:
        shown = (DOCS / page).read_text(encoding="utf-8").count("```python\n>>>")
        assert shown == len(examples(page)[1]), page
    assert "Got:\n    2\n" in failures(">>> 1 + 1\n3\n", "page.md")
    assert "Got:\n    2.03\n" in failures(">>> 2.03\n2.01\n", "page.md")
    assert not failures(">>> 2 / 3, 3e8 / 7\n(0.667, 42857142.857)\n", "page.md")
    assert not failures(">>> 9, 0.21  # doctest: +TRAINED\n(11, 0.25)\n", "page.md")


COMMAND = re.compile(r"^```bash\n(.*?)^```$|`((?:logunif-kl|python -m) [^`]+)`", re.M | re.S)
COMMANDS = sorted(
    {
        (path.relative_to(DOCS).as_posix(), block or inline)
        for path in DOCS.rglob("*.md")
        if "_build" not in path.parts
        for block, inline in COMMAND.findall(path.read_text(encoding="utf-8"))
    }
)


def wrong(command):
    """The extras, subcommands and modules in a command that do not exist."""
    extras = set(tomllib.loads(METADATA)["project"]["optional-dependencies"])
    (commands,) = (a.choices for a in build_parser()._actions if isinstance(a, _SubParsersAction))
    named = re.findall(r"\.\[([\w,]+)\]", command)
    found = [extra for each in named for extra in each.split(",") if extra not in extras]
    found += [name for name in re.findall(r"logunif-kl (\w+)", command) if name not in commands]
    modules = re.findall(r"-m (validation[\w.]*)", command)
    return found + [name for name in modules if "PAPER" not in name and find_spec(name) is None]


def test_commands_are_there():
    for page, command in COMMANDS:
        assert shlex.split(command.replace("&&", "\n"), comments=True), (page, command)
        assert wrong(command) == [], (page, command)


def test_a_command_that_is_not_there_is_found():
    for command in ("pip install -e '.[jaxx]'", "logunif-kl comparison", "python -m validation.a"):
        assert len(wrong(command)) == 1
