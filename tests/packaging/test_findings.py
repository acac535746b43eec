"""Each script in ``findings/`` is of the form that its README describes. None is run."""

import re
import subprocess

import pytest

from validation.paths import ROOT

SCRIPTS = sorted((ROOT / "findings").glob("*.sh"))
MINE = re.compile(r"logunif_kl|/root/|/home/|index-url|https?://")


@pytest.mark.parametrize("path", [*SCRIPTS, ROOT / "findings/run"], ids=lambda path: path.name)
def test_bash_can_read_it(path):
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert path.stat().st_mode & 0o111
    assert not MINE.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_it_is_of_the_form(path):
    text = path.read_text(encoding="utf-8")
    first, sentence, *_ = text.splitlines()
    assert first == "#!/usr/bin/env bash"
    assert re.fullmatch(r"# [A-Z].{20,}\.", sentence)
    assert "work=$(mktemp -d)\ntrap 'rm -rf \"$work\"' EXIT\n" in text
    ((installer, packages),) = re.findall(
        r"(pip|npm) install --(?:quiet|silent.* --no-fund) (.+)", text
    )
    exact = {"pip": r"[\w.-]+==[\w.]+", "npm": r"[\w./@-]+@[\w.]+"}[installer]
    for package in packages.split():
        assert re.fullmatch(exact, package), package


def test_there_are_scripts():
    assert SCRIPTS
