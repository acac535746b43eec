"""Files that replace old ones when they are complete. `tests/faults` fills the disk."""

import os
import stat

import pytest

from logunif_kl._atomic_io import replacing


def test_two_writers_of_one_file(tmp_path):
    path = tmp_path / "a.json"
    with replacing(path) as first:
        first.write_text("the first")
        with replacing(path) as second:
            second.write_text("the second")
        assert path.read_text() == "the second"
    assert path.read_text() == "the first"
    assert list(tmp_path.iterdir()) == [path]


def test_the_mode_stays(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o640)
    with replacing(path, flushed=True) as part:
        part.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_read_only_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write any file
    with pytest.raises(PermissionError, match=r"Permission denied: .*a\.json"), replacing(path):
        pytest.fail("the file is to be refused before anything is written")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_link_leads_to_is_replaced(tmp_path):
    path, link = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text("old")
    link.symlink_to(path)
    with replacing(link) as part:
        part.write_text("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
