"""Run the package's tests away from its source tree.

    python -m validation.tools.elsewhere [pytest arguments]

The command tests the installed package. A test run inside the clone imports the clone, so it cannot
tell whether an installed wheel is complete. The functions install the package into one directory,
copy the tests to another, and set PYTHONPATH to the first. The dependencies come from the running
interpreter's environment.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from validation.paths import ROOT

_BUILD = ["pyproject.toml", "setup.py", "setup.cfg", "MANIFEST.in", "README.md", "LICENSE"]
_SOURCE = [*_BUILD, "conftest.py", "logunif_kl"]
_TESTS = ["pyproject.toml", "README.md", "tests", "validation"]
_FRAMEWORKS = ("torch", "jax", "tensorflow")
# Leave out tests of validation, which no wheel holds, and of faults and widths, which take minutes.
# Frameworks run in separate processes, because TensorFlow and Triton each load an LLVM, and abort.
TESTS = (
    "tests",
    "--ignore=tests/validation",
    "--ignore=tests/faults",
    "--ignore=tests/cli/test_widths.py",
    *(f"--ignore=tests/{name}" for name in _FRAMEWORKS),
    *(
        f"--ignore-glob=/*/logunif_kl/{name}/*"
        for name in (*_FRAMEWORKS, "_adapters", "nn", "_priors")
    ),
    *(f"--ignore-glob=/*/logunif_kl/cli/bench/_{name}.py" for name in _FRAMEWORKS),
    "--pyargs",
    "logunif_kl",
)

EXTENSIONS = ("_numpy/_exact", "_numpy/_float32", "torch/_library", "jax/_ffi")

_IGNORED = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info")


def copy(names: Sequence[str], destination: Path) -> Path:
    destination.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, destination / name, ignore=_IGNORED)
        else:
            shutil.copy(ROOT / name, destination / name)
    return destination


def copy_source(destination: Path) -> Path:
    return copy(_SOURCE, destination)


def copy_tests(destination: Path) -> Path:
    return copy(_TESTS, destination)


def run(
    command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def pip_install(
    what: Path, target: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "install", "--verbose", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--target", str(target), str(what)]
    return run(command, cwd=target.parent, env=env)


def python(
    arguments: Sequence[str], target: Path, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(target), **(env or {})}
    return run([sys.executable, *arguments], cwd=cwd, env=environment)


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as temporary:
        tests = copy_tests(Path(temporary).resolve() / "elsewhere")
        command = [sys.executable, "-m", "pytest", "-q", *(arguments or TESTS)]
        return subprocess.run(command, cwd=tests, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
