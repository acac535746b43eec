"""Where AArch64 cannot be emulated, the tool says why in one sentence, with a status of its own."""

import os
import platform
import shutil
import sys

import pytest

from validation.tools import emulated


@pytest.fixture
def elsewhere(monkeypatch):
    """An x86-64 machine where everything is found and root runs the tool."""
    found = {name: f"/bin/{name}" for name in (*emulated.EMULATORS, emulated.COMPILER)}
    found["debootstrap"] = "/sbin/debootstrap"
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: found.get(name))
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    return found


def refusal(capsys, call=lambda: emulated.main([])):
    with pytest.raises(SystemExit) as ended:
        call()
    assert ended.value.code == emulated.UNAVAILABLE == 77
    return capsys.readouterr().err


def test_what_is_missing_is_named(elsewhere, capsys):
    packages = "qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross debootstrap"
    elsewhere.clear()
    assert refusal(capsys) == (
        "emulated: AArch64 cannot be emulated here, because qemu-aarch64-static, "
        f"aarch64-linux-gnu-gcc, debootstrap cannot be found: apt-get install {packages}.\n"
    )


def test_another_machine(elsewhere, capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert refusal(capsys) == "emulated: debootstrap must be run by root: start this as root.\n"
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "this machine is AArch64 itself: run the tests by pytest" in refusal(capsys)


def test_a_command_that_fails_is_shown(capsys):
    script = 'import sys; print("no mirror"); sys.exit(3)'
    said = refusal(capsys, lambda: emulated.checked([sys.executable, "-c", script], "debootstrap"))
    assert said == "emulated: debootstrap failed with the exit status 3, as shown above.\n"


def test_the_tests_are_there():
    for name in {name for names in emulated.TESTS.values() for name in names}:
        assert (emulated.ROOT / name.partition("::")[0]).exists(), name
