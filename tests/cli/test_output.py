"""Files are replaced when they are complete."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from logunif_kl.cli import _output, main


def test_a_file_is_replaced_when_the_new_one_is_complete(tmp_path, monkeypatch, capsys):
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


def test_the_old_file_is_not_written_to(tmp_path):
    """A disk could fill up while it is; another name of it still leads to what was there."""
    path, other = tmp_path / "table.json", tmp_path / "other.json"
    path.write_text("old")
    os.link(path, other)
    assert main(["table", "1", "--json", str(path)]) == 0
    assert other.read_text() == "old"
    assert path.read_text() != "old"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "there" / "table.json")
    assert main(["table", "1", "--json", str(link)]) == 0
    assert link.is_symlink()
    assert (tmp_path / "there" / "table.json").is_file()


@pytest.mark.parametrize("command", [["compare"], ["fit", "polynomial"]], ids=" ".join)
def test_a_picture(command, tmp_path, monkeypatch, capsys):
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


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need a privilege elsewhere")
@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("loop.json", "its symbolic links form a loop"),
        ("no/there.json", "the directory .* does not"),
    ],
)
def test_links_that_lead_nowhere_are_one_sentence_before_any_work(to, reason, tmp_path):
    path = tmp_path / "loop.json"
    path.symlink_to(tmp_path / to)
    with pytest.raises(_output.CommandError, match=f"cannot write .*loop.json: {reason}"):
        _output.check_writable(str(path))
    assert path.is_symlink()


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need a privilege elsewhere")
def test_a_directory_that_is_a_loop_of_links(tmp_path):
    path = tmp_path / "loop"
    path.symlink_to(path)
    with pytest.raises(_output.CommandError, match="its symbolic links form a loop"):
        _output.check_writable(str(path / "there.json"))
