"""Files are replaced when they are complete; what is said where nothing can be printed."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from logunif_kl.cli import main


@pytest.mark.skipif(os.name != "posix", reason="shells of other systems cannot close it")
def test_closed_output():
    command = [sys.executable, "-m", "logunif_kl", "table"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "logunif-kl: error: standard output is closed: leave it open, or send it to a file\n"
    )


INTERRUPTED = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "logunif_kl.cli.compare":
            raise KeyboardInterrupt

from logunif_kl.cli import main
sys.meta_path.insert(0, Interrupting())
sys.exit(main(["table"]))
"""


def test_interrupted_while_it_starts():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "logunif-kl: error: interrupted\n")


# Python runs a module of this name when it starts.
INTERRUPTED_BY_NUMPY = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
"""
SCRIPT = "import sys\nfrom logunif_kl.cli import main\nsys.exit(main())\n"


class TestInterruptedWhileThePackageIsImported:
    @pytest.fixture
    def run(self, tmp_path):
        (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_BY_NUMPY)
        (tmp_path / "logunif-kl").write_text(SCRIPT)
        paths = (str(tmp_path), str(Path(__file__).parents[2]))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

        def run(*arguments):
            command = [sys.executable, *arguments]
            return subprocess.run(
                command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
            )

        return run

    @pytest.mark.parametrize("command", [["-m", "logunif_kl"], ["-mlogunif_kl"], ["logunif-kl"]])
    def test_the_command(self, run, command):
        done = run(*command, "table")
        assert (done.returncode, done.stderr) == (130, "logunif-kl: error: interrupted\n")

    @pytest.mark.parametrize("command", [["-c", "import logunif_kl"], ["-m", "logunif_kl.methods"]])
    def test_a_program_hears_of_it(self, run, command):
        done = run(*command)
        assert done.returncode not in (0, 130)
        assert done.stderr.endswith("\nKeyboardInterrupt\n")


class TestFiles:
    def test_a_file_is_replaced_when_the_new_one_is_complete(self, tmp_path, monkeypatch, capsys):
        path = tmp_path / "table.json"
        path.write_text("old")
        path.chmod(0o640)
        write = Path.write_text

        def fill(self, text, **keywords):
            write(self, text[:10], **keywords)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(Path, "write_text", fill)
        assert main(["table", "1", "--json", str(path)]) == 2
        assert capsys.readouterr().err == (
            f"logunif-kl: error: cannot write {path}: No space left on device; name another file\n"
        )
        assert os.listdir(tmp_path) == ["table.json"]
        assert path.read_text() == "old"
        monkeypatch.undo()
        assert main(["table", "1", "--json", str(path)]) == 0
        assert json.loads(path.read_text())["command"].startswith("logunif-kl table")
        assert os.listdir(tmp_path) == ["table.json"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_the_old_file_is_not_written_to(self, tmp_path):
        """A disk could fill up while it is; another name of it still leads to what was there."""
        path, other = tmp_path / "table.json", tmp_path / "other.json"
        path.write_text("old")
        os.link(path, other)
        assert main(["table", "1", "--json", str(path)]) == 0
        assert other.read_text() == "old"
        assert path.read_text() != "old"

    def test_a_link_stays_one(self, tmp_path):
        (tmp_path / "there").mkdir()
        link = tmp_path / "link.json"
        link.symlink_to(tmp_path / "there" / "table.json")
        assert main(["table", "1", "--json", str(link)]) == 0
        assert link.is_symlink()
        assert (tmp_path / "there" / "table.json").is_file()

    @pytest.mark.parametrize("command", [["compare"], ["fit", "polynomial"]], ids=" ".join)
    def test_a_picture(self, command, tmp_path, monkeypatch, capsys):
        pytest.importorskip("matplotlib")
        path = tmp_path / "picture.png"
        path.write_bytes(b"old")

        write = Path.write_bytes

        def fill(self, data):
            write(self, data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", fill)
            assert main([*command, "--plot", str(path)]) == 2
        assert f"cannot write {path}: No space left on device" in capsys.readouterr().err
        assert path.read_bytes() == b"old"
        assert main([*command, "--plot", str(path)]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")
        assert os.listdir(tmp_path) == ["picture.png"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_full_output():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "logunif_kl", "table"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == (
        "logunif-kl: error: cannot write to standard output: No space left on device; "
        "send it elsewhere\n"
    )
