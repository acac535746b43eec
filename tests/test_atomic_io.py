"""Files that replace old ones when they are complete. `tests/faults` fills the disk."""

import os
import stat

import pytest

from logunif_kl._atomic_io import replacing


@pytest.fixture
def path(tmp_path):
    old = tmp_path / "a.json"
    old.write_text("old")
    return old


def test_two_writers_of_one_file(path):
    with replacing(path) as first:
        first.write_text("the first")
        with replacing(path) as second:
            second.write_text("the second")
        assert path.read_text() == "the second"
    assert path.read_text() == "the first"
    assert list(path.parent.iterdir()) == [path]


def test_the_mode_stays(path):
    path.chmod(0o640)
    with replacing(path, flushed=True) as part:
        part.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_read_only_file_is_refused(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write any file
    with pytest.raises(PermissionError, match=r"Permission denied: .*a\.json"), replacing(path):
        pytest.fail("the file is to be refused before anything is written")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_leads_to_is_replaced(path, there):
    link = path.parent / "b.json"
    link.symlink_to(path)
    if not there:
        path.unlink()
    with replacing(link) as part:
        part.write_text("new")
    assert link.is_symlink()
    assert path.read_text() == "new"


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="pipes have no names here")
def test_a_pipe_of_the_shell():
    """As in ``--json >(command)``: its link in /dev/fd leads to no path."""
    read, write = os.pipe()
    with os.fdopen(read) as received, os.fdopen(write, "w"):
        with replacing(f"/dev/fd/{write}") as part:
            part.write_text("new")
        assert received.read(3) == "new"
