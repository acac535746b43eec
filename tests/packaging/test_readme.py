"""What the README shows is what happens."""

import doctest
import re
import shlex
import subprocess
import sys

import pytest

from validation import readme
from validation.elsewhere import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = dict(re.findall(r"<!-- command: (\w+) -->\n```bash\n(.*?)\n```", TEXT, re.DOTALL))


def blocks(language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(TEXT) if found == language]


def test_python_examples():
    """All of them in turn, in one namespace, as a reader would type them."""
    examples = "".join(blocks("python"))
    test = doctest.DocTestParser().get_doctest(examples, {}, "README.md", "README.md", 0)
    assert len(test.examples) > 5
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)


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


def test_figures_are_those_of_the_results():
    assert readme.rewritten(TEXT) == TEXT
