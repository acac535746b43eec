"""A wheel built from the source archive is complete: it passes the tests from elsewhere."""

import os
import sys
import sysconfig
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

import pytest

import logunif_kl
from validation.tools.elsewhere import TESTS, copy_source, pip_install, python, run

pytestmark = pytest.mark.slow

WANTED = (
    *("py.typed", "special/__init__.py", "cli/__init__.py"),
    *(
        "_api/_kl.pyi",
        "_api/_neg_kl.pyi",
        "_types.pyi",
        "log_alpha.pyi",
        "isotropic/_api.pyi",
        "special/array_api.pyi",
    ),
    *("torch/__init__.py", "torch/_cpu.py", "torch/_triton/launch.py", "torch/pyro.py"),
    *("jax/__init__.py", "jax/_rules.py", "jax/numpyro.py", "jax/tfp.py"),
    *("tensorflow/__init__.py", "tensorflow/_rules.py"),
)

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def last_line(text: str) -> str:
    return text.rstrip().splitlines()[-1]


def built(kind: str, source: Path, room: Path) -> Path:
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(room)!r}))"
    done = run([sys.executable, "-c", code], cwd=source)
    assert done.returncode == 0, done.stdout
    return room / last_line(done.stdout)


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the unpacked source archive."""
    tmp_path = tmp_path_factory.mktemp("wheel")
    source, unpacked = copy_source(tmp_path / "source"), tmp_path / "unpacked"
    archive = built("sdist", source, tmp_path)
    run([sys.executable, "-m", "tarfile", "-e", str(archive), str(unpacked)], cwd=tmp_path)
    (tree,) = unpacked.iterdir()
    assert (tree / "conftest.py").exists()
    return built("wheel", tree, tmp_path)


def test_two_source_archives_have_the_same_bytes(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    archives = []
    for name, time in (("first", 1_600_000_000), ("second", 1_650_000_000)):
        source = copy_source(tmp_path / name / "source")
        for path in source.rglob("*"):
            os.utime(path, (time, time))
        archives.append(built("sdist", source, tmp_path / name))
    first, second = (archive.read_bytes() for archive in archives)
    assert first == second


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"logunif_kl"}
    for wanted in WANTED:
        assert f"logunif_kl/{wanted}" in names
    assert not [name for name in names if name.endswith((".c", ".h"))]
    assert not [name for name in names if name.endswith(EXTENSION_SUFFIXES[0])] or FREE_THREADED
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_wheel_passes_the_tests_from_elsewhere(wheel, elsewhere, tmp_path):
    target = tmp_path / "target"
    installed = pip_install(wheel, target)
    assert installed.returncode == 0, installed.stdout
    where = python(["-c", "import logunif_kl; print(logunif_kl.__file__)"], target, cwd=elsewhere)
    assert Path(last_line(where.stdout)).is_relative_to(target)
    tested = python(["-m", "pytest", "-q", *TESTS], target, cwd=elsewhere)
    assert tested.returncode == 0, tested.stdout


@pytest.mark.parametrize(
    "extension", ["_numpy/_exact", "_numpy/_float32", "torch/_library", "jax/_ffi"]
)
def test_wheel_has_the_extension_where_this_environment_has_it(wheel, extension):
    # The extension is not imported, because that would import its framework.
    room, _, module = extension.partition("/")
    if PathFinder.find_spec(module, [str(Path(logunif_kl.__file__).parent / room)]) is None:
        pytest.skip("the extension is not built here either")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.startswith(f"logunif_kl/{extension}.") for name in names)
