"""What the README shows is what happens."""

import doctest
import json
import re
import shlex
import subprocess
import sys

import pytest

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
    run(blocks("python"), 20)


@pytest.mark.parametrize("framework", ["torch", "jax", "array_api_strict"])
def test_examples_of_a_framework(framework):
    pytest.importorskip(framework)
    run(blocks("python", framework), 3)


def test_the_command_for_torch():
    pytest.importorskip("torch")
    (command,) = (c for c in blocks("bash") if "import torch" in c)
    python, *rest = shlex.split(command)
    assert python == "python"
    done = subprocess.run([sys.executable, *rest], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"tensor\(\[[-+. ,\de]+\]\)\n", done.stdout)


def test_needs_are_those_that_are_tested():
    assert {need for need, _, _ in BLOCK.findall(TEXT)} == {"", "torch", "jax", "array_api_strict"}


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


def test_sections_of_what_was_not_measured_are_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    about = {"versions": {"jax": "1"}, "machine": {"cpu": "c", "architecture": "a"}}
    about |= {"command": "make it", "date": "2026-01-01T00:00"}
    row = {"function": "neg_kl", "dtype": "float32", "kernel": "jax", "ulp": 2.3456}
    row |= {"command": "a part of it", "date": "2026-01-02T00:00"}
    later = row | {"date": "2026-01-03T00:00"}
    spread = {"median": 1.5, "lower_quartile": 1.25, "upper_quartile": 1.75}
    sized = {
        "size": 1000,
        "ratios": [{"what": "a / b", "must": "<= 2", "aim": "", **spread}],
        "nanoseconds_a_weight": {"a": spread, "copy": spread},
        "peak_bytes_a_weight": {"a": 12.0},
    }
    suite = {"framework": "jax", "device": "cpu", "threads": 1, "sizes": [sized]}
    for name, file, report, shown in (
        (
            "frameworks",
            "accuracy/jax",
            {"rows": [later, row]},
            (
                "JAX, jitted, float32",
                "2.346",
                "Made by `python -m validation.accuracy measure jax` "
                "(c, a; jax 1; 2026-01-02 to 2026-01-03).",
            ),
        ),
        (
            "training",
            "bench/bench_jax",
            {"suites": [suite]},
            ("1.50 (1.25 to 1.75) | <= 2", "12  ", "Made by `make it` (c, a; jax 1; 2026-01-01)."),
        ),
    ):
        assert readme.section(name) == ""
        (tmp_path / file).parent.mkdir()
        (tmp_path / f"{file}.json").write_text(json.dumps(about | report))
        text = readme.section(name)
        for cell in shown:
            assert cell in text


def test_one_file_pins_the_frameworks(tree):
    pinned = (tree / "validation" / "frameworks.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^[\w-]+==[\w.]+$", pinned, re.MULTILINE)) >= 7
    for name in ("CONTRIBUTING.md", ".ci/run"):
        text = (tree / name).read_text(encoding="utf-8")
        assert "-r validation/frameworks.txt" in text
        assert re.findall(r"[\w-]+==\d[\w.]*", text) == []
