"""Links that lead nowhere, for the files that a command writes. `tests/faults` fills disks."""

import os

import pytest

from logunif_kl.cli import _output


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need a privilege elsewhere")
@pytest.mark.parametrize(
    ("to", "name", "reason"),
    [
        ("loop", "loop", "its symbolic links form a loop"),
        ("loop", "loop/there.json", "its symbolic links form a loop"),
        ("no/there.json", "loop", "the directory .* does not"),
    ],
)
def test_links_that_lead_nowhere_are_one_sentence_before_any_work(to, name, reason, tmp_path):
    path = tmp_path / "loop"
    path.symlink_to(tmp_path / to)
    with pytest.raises(_output.CommandError, match=f"cannot write .*{name}: {reason}"):
        _output.check_writable(str(tmp_path / name))
    assert path.is_symlink()
