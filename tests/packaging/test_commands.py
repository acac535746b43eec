"""The commands that are written in the tree name files and tests that exist."""

import re

import pytest

PATH = re.compile(r"(?<![\w/.{-])((?:tests|validation|logunif_kl)/[\w.*/-]*\w\*?)((?:::\w+)*)")
PLACEHOLDER = re.compile(r"(?<=/)[A-Z]+\b")  # PAPER, FUNCTION


@pytest.mark.parametrize(("name", "at_least"), [(".ci/run", 25), ("CONTRIBUTING.md", 10)])
def test_paths_and_tests_exist(tree, name, at_least):
    named = set(PATH.findall((tree / name).read_text(encoding="utf-8")))
    assert len(named) >= at_least
    missing = [path for path, _ in named if not list(tree.glob(PLACEHOLDER.sub("*", path)))]
    assert missing == []
    for path, inside in sorted(named):
        for each in inside.split("::")[1:]:
            text = (tree / path).read_text(encoding="utf-8")
            assert re.search(rf"^ *(def|class) {each}\b", text, re.MULTILINE), (path, each)
