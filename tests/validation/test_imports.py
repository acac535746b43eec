"""Which module of `validation` may import which: one way, and in no circle."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests import test_imports as of_the_package
from validation.paths import PACKAGE, ROOT

# From the lowest level up. A module imports modules of lower levels only.
LEVELS = (
    ("__init__", "paths"),
    ("output", "generated"),
    ("record", "markdown", "summary", "verdict"),
    ("training",),
    ("experiment",),
    ("coefficients", "golden", "papers", "accuracy", "monte_carlo", "ladder", "fuzz", "studies"),
    ("codegen", "benchmarks", "cuda", "proofs"),
    ("tools",),
    ("reproduce",),
)
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
# The lowest imports nothing of the package either.
ALONE = ("paths",)
# These may import the command line of the package; all others take it from `output`.
OF_THE_COMMAND_LINE = ("output", "ladder", "benchmarks")


@cache
def modules(root: Path = ROOT) -> dict[str, set[str]]:
    """Each file of `validation`, relative to it, and what it imports."""
    folder = root / "validation"
    files = (path for path in folder.rglob("*.py") if "results" not in path.parts)
    return {
        path.relative_to(folder).as_posix(): of_the_package.imports_of(path, root) for path in files
    }


def breaches(files: dict[str, set[str]]) -> list[str]:
    """Say which file imports what it should not."""
    found = []
    for file, names in files.items():
        first = file.removesuffix(".py").split("/")[0]
        if first not in LEVEL:
            found.append(f"{file} has no level")
            continue
        if first in ALONE and any(name.split(".")[0] == "logunif_kl" for name in names):
            found.append(f"{file} imports the package")
        if first not in OF_THE_COMMAND_LINE and any(n.startswith("logunif_kl.cli") for n in names):
            found.append(f"{file} imports the command line")
        others = {name.split(".")[1] for name in names if name.startswith("validation.")}
        found += [
            f"{file} imports {other}, which is not on a lower level"
            for other in sorted(others - {first})
            if LEVEL.get(other, 0) >= LEVEL[first]
        ]
    return found


def test_one_way():
    assert breaches(modules()) == []


def test_no_circle():
    assert of_the_package.circle(modules(), "validation") == []


def test_every_module_has_a_level():
    assert {file.removesuffix(".py").split("/")[0] for file in modules()} == set(LEVEL)


def names_in_code(text: str) -> list[str]:
    """Strings of code that name `validation`, but for docstrings and sentences."""
    return [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"\bvalidation[./]", node.value)
        and " " not in node.value.strip()
    ]


def test_the_package_neither_imports_validation_nor_names_its_paths():
    assert names_in_code('x = "validation/results"') == ["validation/results"]
    assert names_in_code('raise E("it moved to python -m validation.x")') == []
    for path in PACKAGE.rglob("*.py"):
        names = {name.split(".")[0] for name in of_the_package.imports_of(path, ROOT)}
        assert not names & {"validation", "tests"}, path
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bvalidation[./]", text) or names_in_code(text) == [], path


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("paths.py", "import logunif_kl"),
        ("record.py", "from logunif_kl.cli._output import emit"),
        ("papers/statement.py", "def f():\n    from validation.accuracy import ulp"),
        ("papers/statement.py", "from ..accuracy import ulp"),
        ("tools/readme.py", "from validation.reproduce import work"),
        ("elsewhere/a.py", ""),
    ],
)
def test_a_breach_is_found(file, code, tmp_path):
    path = tmp_path / "validation" / file
    path.parent.mkdir(parents=True)
    path.write_text(code)
    assert len(breaches(modules(tmp_path))) == 1
