"""The examples, commands and numbers of the README are right."""

import re
import shlex

import pytest

from tests.site.test_examples import failures, wrong
from validation import generated
from validation.paths import ROOT
from validation.tools import readme

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NEEDS = r"(?:^<!-- needs: (\w+) -->\n)?"
BLOCK = re.compile(NEEDS + r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = dict(re.findall(r"<!-- command: (\w+) -->\n```bash\n(.*?)\n```", TEXT, re.DOTALL))


def blocks(language: str, needs: str = "") -> list[str]:
    return [body for need, found, body in BLOCK.findall(TEXT) if (need, found) == (needs, language)]


@pytest.mark.parametrize(("framework", "at_least"), [("", 5), ("torch", 3), ("jax", 3)])
def test_examples(framework, at_least):
    """All of them in turn, in one namespace, as a reader would type them."""
    if framework:
        pytest.importorskip(framework)
    text = "".join(blocks("python", framework))
    assert text.count(">>> ") >= at_least
    assert failures(text, "README.md") == ""


def test_needs_and_commands():
    assert {need for need, _, _ in BLOCK.findall(TEXT)} == {"", "torch", "jax"}
    assert set(COMMANDS) == {"main", "test"}
    assert COMMANDS["main"].endswith("logunif-kl compare")
    assert COMMANDS["test"].endswith("-m pytest")
    for command in (*blocks("bash"), *re.findall(r"logunif-kl \w+", TEXT)):
        assert shlex.split(command.replace("&&", "\n"), comments=True)
        assert wrong(command) == [], command


def run_readme(*arguments):
    return generated.main(readme.COMMAND, readme.sources, arguments)


def test_its_figures_are_those_of_the_results_and_a_stale_one_is_found(
    tmp_path, monkeypatch, capsys
):
    assert run_readme("--check") == 0
    assert capsys.readouterr().err == ""
    *_, digits = re.findall(r"^\| `?(?:neg_kl|training).* (\d+\.\d+) ", TEXT, re.M)
    stale = tmp_path / "README.md"
    stale.write_text(TEXT.replace(f" {digits} ", f" 9{digits[1:]}1 "), encoding="utf-8")
    monkeypatch.setattr(readme, "README", stale)
    assert run_readme("--check") == 1
    assert "run python -m validation.tools.readme" in capsys.readouterr().err
    assert run_readme() == 0
    assert stale.read_text(encoding="utf-8") == TEXT


def test_a_person_reads_it_in_one_go_and_links_lead_to_files(tree):
    assert len(TEXT.splitlines()) <= 150
    links = set(re.findall(r"\]\((?!https:)([^)#]+)\)", TEXT))
    assert len(links) >= 10
    assert [link for link in sorted(links) if not (tree / link).exists()] == []


def test_the_readme_the_site_and_the_file_name_the_same_papers_to_cite(tree):
    read = lambda name: (tree / name).read_text(encoding="utf-8")  # noqa: E731
    paper = r"https://arxiv\.org/abs/[\d.]+"
    of_file = set(re.findall(paper, read("CITATION.cff")))
    assert set(re.findall(paper, TEXT.partition("To cite")[2])) == of_file
    keys = set(re.findall(r"{cite:t}`(\w+)`", read("docs/project/cite.md")))
    entries = re.findall(r"^@\w+{(\w+),(.*?)^}", read("docs/references.bib"), re.M | re.S)
    assert {
        url for key, text in entries if key in keys for url in re.findall(paper, text)
    } == of_file


def test_one_file_pins_the_frameworks(tree):
    pinned = (tree / "validation" / "frameworks.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^[\w-]+==[\w.]+$", pinned, re.MULTILINE)) >= 7
    for name in ("CONTRIBUTING.md", ".ci/steps"):
        text = (tree / name).read_text(encoding="utf-8")
        assert "-r validation/frameworks.txt" in text
        assert re.findall(r"[\w-]+==\d[\w.]*", text) == []
