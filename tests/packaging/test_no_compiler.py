"""Without a compiler the installation succeeds and says so, and the package works."""

import os
import sys
from pathlib import Path

import pytest

from validation.tools.elsewhere import TESTS, pip_install, python

pytestmark = pytest.mark.slow

# These folders take most of the time, and the compiler affects only the functions that the other
# folders test.
ELSEWHERE = ("arithmetic", "fitting", "posteriors", "reference", "scale", "validation")
SHOW = "import logunif_kl as lk; print(lk.__file__); lk.show_config(); print(lk.neg_kl(0.0))"


@pytest.fixture
def hidden_compiler() -> dict[str, str]:
    """An environment without a C compiler."""
    nowhere = os.path.join(os.sep, "nonexistent", "cc")
    return {"CC": nowhere, "LDSHARED": nowhere, "PATH": str(Path(sys.executable).parent)}


def test_install_without_compiler(source, elsewhere, tmp_path, hidden_compiler):
    target = tmp_path / "target"
    installed = pip_install(source, target, env=hidden_compiler)
    assert installed.returncode == 0, installed.stdout
    assert installed.stdout.count("C extensions were not built") == 1
    said = ("_numpy._exact", "_numpy._float32", "torch._library", "jax._ffi")
    assert ", ".join(f"logunif_kl.{name}" for name in said) in installed.stdout
    assert not list(target.rglob("*.so"))

    shown = python(["-W", "error", "-c", SHOW], target, cwd=elsewhere)
    assert shown.returncode == 0, shown.stdout
    assert str(target) in shown.stdout
    assert "python" in shown.stdout
    assert "-0.4266856042960448" in shown.stdout


def test_fast_math_in_cflags_does_not_reach_the_process(source, elsewhere, tmp_path):
    """Older GCCs link code for -Ofast that flushes subnormal numbers wherever it is loaded."""
    target = tmp_path / "target"
    installed = pip_install(source, target, env={"CFLAGS": "-Ofast"})
    assert installed.returncode == 0, installed.stdout
    shown = python(["-c", "import logunif_kl; print(float('5e-324') * 1.0)"], target, cwd=elsewhere)
    assert shown.stdout == "5e-324\n"


def test_fallback_passes_the_tests(source, elsewhere, tmp_path, hidden_compiler):
    target = tmp_path / "target"
    assert pip_install(source, target, env=hidden_compiler).returncode == 0
    ignored = [f"--ignore=tests/{room}" for room in ELSEWHERE]
    tested = python(["-m", "pytest", "-q", *ignored, *TESTS], target, cwd=elsewhere)
    assert tested.returncode == 0, tested.stdout


def test_extension_left_out_on_request(source, tmp_path):
    target = tmp_path / "target"
    installed = pip_install(source, target, env={"LOGUNIF_KL_NO_EXTENSION": "1"})
    assert installed.returncode == 0, installed.stdout
    assert "building 'logunif_kl." not in installed.stdout
    assert not list(target.rglob("*.so"))


@pytest.mark.parametrize("required", ["LOGUNIF_KL_SANITIZE", "LOGUNIF_KL_RELEASE"])
def test_required_extensions_do_not_fall_back(source, tmp_path, hidden_compiler, required):
    env = {**hidden_compiler, required: "1"}
    assert pip_install(source, tmp_path / "target", env=env).returncode != 0
