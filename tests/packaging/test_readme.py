"""What the README shows is what happens."""

import doctest
import re
import shlex
import subprocess
import sys

import pytest

from validation import generated
from validation.paths import ROOT
from validation.tools import readme

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NEEDS = r"(?:^<!-- needs: (\w+) -->\n)?"
BLOCK = re.compile(NEEDS + r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = dict(re.findall(r"<!-- command: (\w+) -->\n```bash\n(.*?)\n```", TEXT, re.DOTALL))


def blocks(language: str, needs: str = "") -> list[str]:
    return [body for need, found, body in BLOCK.findall(TEXT) if (need, found) == (needs, language)]


def run(examples: list[str], at_least: int) -> None:
    """All of them in turn, in one namespace, as a reader would type them."""
    parser = doctest.DocTestParser()
    test = parser.get_doctest("".join(examples), {}, "README.md", "README.md", 0)
    assert len(test.examples) >= at_least
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)


def test_python_examples():
    run(blocks("python"), 5)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_examples_of_a_framework(framework):
    pytest.importorskip(framework)
    run(blocks("python", framework), 3)


def test_needs_are_those_that_are_tested():
    assert {need for need, _, _ in BLOCK.findall(TEXT)} == {"", "torch", "jax"}


def test_the_two_commands_are_there():
    assert set(COMMANDS) == {"main", "test"}
    assert COMMANDS["main"].endswith("logunif-kl compare")
    assert COMMANDS["test"].endswith("-m pytest")


@pytest.mark.parametrize("command", blocks("bash"))
def test_command_parses(command):
    """Each piece is shell, and each extra that it installs is declared."""
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for piece in command.replace("&&", "\n").splitlines():
        words = shlex.split(piece, comments=True)
        for extras in re.findall(r"^\.\[([\w,]+)\]$", "\n".join(words), re.MULTILINE):
            for extra in extras.split(","):
                assert re.search(rf"^{extra} = \[", metadata, re.MULTILINE), extra


SHOWN = sorted(set(re.findall(r"logunif-kl (\w+)", TEXT)))


@pytest.mark.parametrize("subcommand", SHOWN)
def test_subcommand_exists(subcommand):
    command = [sys.executable, "-m", "logunif_kl", subcommand, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def run_readme(*arguments):
    return generated.main(readme.COMMAND, readme.sources, arguments)


def test_figures_are_those_of_the_results(capsys):
    assert run_readme("--check") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "digits", re.findall(r"^\| `?(?:neg_kl|training).* (\d+\.\d+) ", TEXT, re.M)
)
def test_a_stale_figure_is_found(digits, tmp_path, monkeypatch, capsys):
    stale = tmp_path / "README.md"
    stale.write_text(TEXT.replace(f" {digits} ", f" 9{digits[1:]}1 "), encoding="utf-8")
    monkeypatch.setattr(readme, "README", stale)
    assert run_readme("--check") == 1
    assert "run python -m validation.tools.readme" in capsys.readouterr().err
    assert run_readme() == 0
    assert stale.read_text(encoding="utf-8") == TEXT


def test_a_person_reads_it_in_one_go():
    assert len(TEXT.splitlines()) <= 150


def test_links_lead_to_files(tree):
    links = set(re.findall(r"\]\((?!https:)([^)#]+)\)", TEXT))
    assert len(links) >= 10
    assert [link for link in sorted(links) if not (tree / link).exists()] == []


def test_one_file_pins_the_frameworks(tree):
    pinned = (tree / "validation" / "frameworks.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^[\w-]+==[\w.]+$", pinned, re.MULTILINE)) >= 7
    for name in ("CONTRIBUTING.md", ".ci/run"):
        text = (tree / name).read_text(encoding="utf-8")
        assert "-r validation/frameworks.txt" in text
        assert re.findall(r"[\w-]+==\d[\w.]*", text) == []
