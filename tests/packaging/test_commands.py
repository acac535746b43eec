"""Commands in the documentation name files that exist, and CI runs the affected lanes."""

import re
import runpy
import shutil
import subprocess

import pytest

PATH = re.compile(r"(?<![\w/.{-])((?:tests|validation|logunif_kl)/[\w.*/-]*\w\*?)((?:::\w+)*)")
PLACEHOLDER = re.compile(r"(?<=/)[A-Z]+\b")  # PAPER, FUNCTION
ALL = "kernels packaging slow-core slow-frameworks browser experiments mutants"


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


@pytest.fixture
def lanes(tree):
    return runpy.run_path(str(tree / ".ci" / "lanes"))


@pytest.mark.parametrize(
    ("path", "affected"),
    [
        (".ci/passed", ""),
        ("logunif_kl/torch/nn/_linear.py", "browser experiments mutants"),
        ("docs/logunif_kl/torch/nn/_linear.py", "browser"),  # only its docstrings changed
        ("docs/guide/choose.md", "browser"),
        ("tests/torch/nn/test_elbo.py", ""),
        ("validation/papers/kingma2015/test_error.py", "browser experiments mutants"),
        ("validation/results/kingma2015/test_error.json", "browser experiments mutants"),
        ("tests/validation/test_papers.py", "experiments"),
        (".ci/lanes", "browser"),
        ("validation/runs/a/part.json", ""),
        ("validation/tools/tables.py", "browser"),
        ("README.md", "packaging browser"),
        ("logunif_kl/torch/_cpu.py", ALL.replace("slow-core ", "")),
        ("logunif_kl/_numpy/c/targets.h", ALL),
        ("pyproject.toml", ALL),
        ("a/new/file", ALL),
    ],
)
def test_lanes_that_a_change_can_affect(lanes, path, affected):
    assert lanes["affected"]([path]) == affected.split()
    assert lanes["affected"]([path, ".ci/passed"]) == affected.split()


def test_a_change_of_several_files(lanes):
    found = lanes["affected"](["docs/index.md", "logunif_kl/torch/nn/_linear.py"])
    assert found == ["browser", "experiments", "mutants"]


def test_a_pattern_that_names_nothing(lanes):
    assert lanes["missing"]() == []
    assert lanes["missing"]({"kernels": ("docs/*", "moved/*")}) == ["moved/*"]


def test_what_changed_since_the_commit(lanes, tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("git is not here")

    def git(*words):
        who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        command = ["git", *who, *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)

    changed = lanes["changed"]
    monkeypatch.setitem(changed.__globals__, "ROOT", tmp_path)
    git("init", "-q")
    for name in ("kept", "edited", "moved"):
        (tmp_path / name).write_text(name)
    source = 'def f(x):\n    """Double it.\n\n    >>> f(1)\n    2\n    """\n    return 2 * x\n'
    for name in ("words.py", "example.py", "code.py", "wrong.py"):
        (tmp_path / name).write_text(source)
    git("add", ".")
    git("commit", "-qm", "first")
    assert changed() is None

    passed = tmp_path / ".ci" / "passed"
    passed.parent.mkdir()
    passed.write_text(git("rev-parse", "HEAD").stdout)
    git("add", ".")
    git("mv", "moved", "here")
    git("commit", "-qm", "second")
    (tmp_path / "edited").write_text("again")
    (tmp_path / "words.py").write_text("# Why\n" + source.replace("Double it", "Twice"))
    (tmp_path / "example.py").write_text(source.replace("f(1)\n    2", "f(2)\n    4"))
    (tmp_path / "code.py").write_text(source.replace("2 * x", "x + x"))
    (tmp_path / "wrong.py").write_text(source.replace("return", "retrun"))
    (tmp_path / "new").touch()
    assert sorted(changed()) == [
        *(".ci/passed", "code.py", "docs/words.py", "edited", "example.py", "here", "moved", "new"),
        "wrong.py",
    ]

    passed.write_text("0" * 40)
    assert changed() is None
