"""One command makes a release, and refuses until the repository's address is set."""

import shutil
import subprocess

import pytest

from validation.paths import ROOT
from validation.tools import release


@pytest.fixture
def tree(tmp_path):
    for name in [*release.edits("", ""), "pyproject.toml"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    user = "config user.name A", "config user.email a@example.com"
    for command in ("init -q", *user, "add .", "commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    return tmp_path


def commit_address(tree):
    path = tree / "pyproject.toml"
    text = path.read_text(encoding="utf-8").replace("repository.invalid", "example.org")
    path.write_text(text, encoding="utf-8")
    release.git(tree, "commit", "-qam", "second")


def test_it_refuses_a_placeholder(tree, capsys):
    assert release.main(["1.0.0rc1"], tree) == 1
    assert "is a placeholder: set the real address" in capsys.readouterr().err
    assert "Release" not in release.git(tree, "log", "--format=%s")


def test_two_releases(tree):
    commit_address(tree)
    assert release.main(["1.0.0rc1"], tree) == 0
    assert release.main(["--check", "v1.0.0rc1"], tree) == 0
    assert release.main(["--check", "v1.0.0"], tree) == 1
    changes = tree / "CHANGELOG.md"
    text = changes.read_text(encoding="utf-8")
    changes.write_text(text.replace("# Changelog\n", "# Changelog\n\n## Unreleased\n", 1), "utf-8")
    assert release.main(["1.0.0"], tree) == 1  # the working tree has changes
    release.git(tree, "commit", "-qam", "a change")
    assert release.main(["1.0.0"], tree) == 0
    assert release.git(tree, "tag").split() == ["v1.0.0", "v1.0.0rc1"]
    assert "\n## 1.0.0rc1 (" in changes.read_text(encoding="utf-8")
    for name in ("README.md", "docs/start/install.md"):
        text = (tree / name).read_text(encoding="utf-8")
        assert text.count("with `pip install logunif_kl`, or from a clone") == 1
    assert "\nversion: 1.0.0\n" in (tree / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [[], ["1.0"], ["--check"], ["1.0.0", "1.0.1"]])
def test_it_takes_one_version(tree, arguments, capsys):
    commit_address(tree)
    assert release.main(arguments, tree) == 1
    assert "give one version" in capsys.readouterr().err


def test_the_notes_are_those_of_the_version(tmp_path):
    text = "# Changelog\n\n## 1.1.0 (2027-01-01)\n\n- b\n\n## 1.1.0rc1 (2026-12-01)\n\n- a\n"
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    assert release.notes(tmp_path, "1.1.0").split("\n") == [
        "## 1.1.0 (2027-01-01)",
        "",
        "- b",
        "",
        "",
    ]
    assert release.notes(tmp_path, "1.1.0rc1").endswith("- a\n")


def test_a_trial_takes_an_empty_folder(tmp_path, capsys):
    (tmp_path / "mine").touch()
    assert release.main(["--dry-run", "1.0.0rc1", str(tmp_path)]) == 1
    assert "an empty folder" in capsys.readouterr().err
