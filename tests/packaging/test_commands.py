"""Commands in the documentation and in CI name files, tests and steps that exist."""

import re

import pytest

PATH = re.compile(r"(?<![\w/.{-])((?:tests|validation|logunif_kl)/[\w.*/-]*\w\*?)((?:::\w+)*)")
PLACEHOLDER = re.compile(r"(?<=/)[A-Z]+\b")  # PAPER, FUNCTION


@pytest.mark.parametrize(("name", "at_least"), [(".ci/steps", 25), ("CONTRIBUTING.md", 10)])
def test_paths_and_tests_exist(tree, name, at_least):
    named = set(PATH.findall((tree / name).read_text(encoding="utf-8")))
    assert len(named) >= at_least
    missing = [path for path, _ in named if not list(tree.glob(PLACEHOLDER.sub("*", path)))]
    assert missing == []
    for path, inside in sorted(named):
        for each in inside.split("::")[1:]:
            text = (tree / path).read_text(encoding="utf-8")
            assert re.search(rf"^ *(def|class) {each}\b", text, re.MULTILINE), (path, each)


def test_the_lists_of_steps(tree):
    """Every name is that of a step, and .ci/all runs every step."""
    text = {
        name: (tree / name).read_text(encoding="utf-8")
        for name in (".ci/steps", ".ci/run", ".ci/all", "CONTRIBUTING.md")
    }
    steps = {
        name
        for name, body in re.findall(r"^(\w+)\(\) \{$(.*?)^\}$", text[".ci/steps"], re.M | re.S)
        if re.search(r"^    copy", body, re.M)
    }
    short = re.search(r"run_steps \$\{\*:-([\w ]+)\}", text[".ci/run"])[1].split()
    every = re.search(r'every="([\w\s]+)"', text[".ci/all"])[1].split()
    named = " ".join(re.findall(r"`\.ci/all ([\w ]+)`", text["CONTRIBUTING.md"])).split()
    assert len(named) > 10
    assert {*short, *named} <= steps
    # `capability` runs the tests of each framework, and `experiments` checks all records.
    assert sorted(every) == sorted(steps - {"torch", "jax", "tensorflow", "records"})
