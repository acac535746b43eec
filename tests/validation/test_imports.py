"""Which module of `validation` may import which: one way, and in no circle."""

import ast
from pathlib import Path

import pytest

from tests import test_imports as of_the_package
from validation.paths import PACKAGE, ROOT

# From the lowest floor up. A room imports rooms of lower floors alone.
FLOORS = (
    ("__init__", "paths", "reports"),
    ("training",),
    ("coefficients", "golden", "papers", "accuracy", "monte_carlo", "ladder", "fuzz"),
    ("traced", "tools", "cuda"),
    ("reproduce",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# The lowest imports nothing of the package either.
ALONE = ("paths", "reports")


def modules(root: Path = ROOT) -> dict[str, set[str]]:
    """Each file of `validation`, relative to it, and what it imports."""
    folder = root / "validation"
    files = (path for path in folder.rglob("*.py") if "results" not in path.parts)
    return {path.relative_to(folder).as_posix(): imports_of(path, root) for path in files}


def imports_of(path: Path, root: Path) -> set[str]:
    """Absolute names of the modules that a file imports, at the top or anywhere else."""
    package = path.relative_to(root).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *(node.module.split(".") if node.module else ())))
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def breaches(files: dict[str, set[str]]) -> list[str]:
    """Say which file imports what it should not."""
    found = []
    for file, names in files.items():
        room = file.removesuffix(".py").split("/")[0]
        if room not in FLOOR:
            found.append(f"{file} is on no floor")
            continue
        if room in ALONE and any(name.split(".")[0] == "logunif_kl" for name in names):
            found.append(f"{file} imports the package")
        others = {name.split(".")[1] for name in names if name.startswith("validation.")}
        found += [
            f"{file} imports {other}, which is no lower floor"
            for other in sorted(others - {room})
            if FLOOR.get(other, 0) >= FLOOR[room]
        ]
    return found


def test_one_way():
    assert breaches(modules()) == []


def test_no_circle():
    assert of_the_package.circle(modules(), "validation") == []


def test_every_floor_is_there():
    names = {file.removesuffix(".py").split("/")[0] for file in modules()}
    assert names == set(FLOOR)


def test_the_package_does_not_import_validation():
    for path in PACKAGE.rglob("*.py"):
        names = {name.split(".")[0] for name in imports_of(path, ROOT)}
        assert not names & {"validation", "tests"}, path


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("paths.py", "from validation.tools import readme"),
        ("reports.py", "from logunif_kl.cli import sources"),
        ("papers/record.py", "def f():\n    from validation.accuracy import ulp"),
        ("papers/record.py", "from ..accuracy import ulp"),
        ("accuracy/claims.py", "from validation.tools.stale import main"),
        ("tools/stale.py", "from validation.reproduce import work"),
        ("elsewhere/a.py", ""),
    ],
)
def test_a_breach_is_found(file, code, tmp_path):
    path = tmp_path / "validation" / file
    path.parent.mkdir(parents=True)
    path.write_text(code)
    assert len(breaches(modules(tmp_path))) == 1


def test_a_circle_is_found(tmp_path):
    folder = tmp_path / "validation" / "accuracy"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("from .b import g")
    (folder / "b.py").write_text("def f():\n    from .a import h")
    assert len(of_the_package.circle(modules(tmp_path), "validation")) == 3
