"""Full, read-only and vanishing directories for every file that a command writes.

The command ends with status 2 and one sentence that names the file. Old files stay unchanged, and
no new ones remain.
"""

import contextlib
import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from logunif_kl.cli import main, provenance
from logunif_kl.fitting import fit_polynomial
from logunif_kl.nn.sparsity import Sparsity
from logunif_kl.nn.threshold_curve import ThresholdCurve
from tests.child import run

pytest.importorskip("rich")

# The command, and the name of the file that it writes; None for a directory of several.
WRITERS = {
    "table": ("table 1 --json", "table.json"),
    "compare": ("compare kingma --json", "compare.json"),
    "compare, a picture": ("compare kingma --plot", "compare.png"),
    "compare, a drawing": ("compare kingma --plot", "compare.svg"),
    "fit": ("fit polynomial --json", "fit.json"),
    "fit, a formula": ("fit polynomial --formula c --json", "fit.json"),
    "fit, a picture": ("fit polynomial --plot", "fit.pdf"),
    "fit, a ladder": ("fit polynomial --ladder 1 --json", "ladder.json"),
    "validate": ("validate lower_bound --json", "validate.json"),
    "validate, all": ("validate lower_bound --output", None),
    "bench": ("bench --size 100 --rounds 2 --json", "bench.json"),
}
OLD = b"what was there\n" * 3000  # more than any limit below
STARTS = {"json": b"{", "png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF-"}
BY_VALIDATE = {"validate.json", "validate_errors.png", "kingma_figure_2.png"}


@contextlib.contextmanager
def largest_file(size):
    """Limit the size of files that this process writes, as on a full disk."""
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise Python would leave incomplete bytecode of modules that are imported here or in
        # a process that starts here.
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def arguments_of(writer):
    """The command and the name of its file; skip the test of a picture without matplotlib."""
    command, name = WRITERS[writer]
    if "--plot" in command or name is None:
        pytest.importorskip("matplotlib")
    return command.split(), name


def refused(writer, place, capsys):
    """Run a command whose file cannot be written, and return its sentence."""
    command, name = arguments_of(writer)
    path = place if name is None else place / name
    capsys.readouterr()
    assert main([*command, str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("logunif-kl: error: ")
    assert err.count("\n") == 1
    assert str(path) in err
    return err


@pytest.mark.parametrize("writer", WRITERS)
def test_a_disk_that_fills(writer, tmp_path, capsys):
    """The old files stay until there is room."""
    command, name = arguments_of(writer)
    names = {name} if name else BY_VALIDATE
    for each in names:
        (tmp_path / each).write_bytes(OLD)
    for size in (0, 100):
        with largest_file(size):
            err = refused(writer, tmp_path, capsys)
        assert "File too large; name another file" in err
        assert files(tmp_path) == dict.fromkeys(names, OLD)
    assert main([*command, str(tmp_path / name if name else tmp_path)]) == 0
    written = files(tmp_path)
    assert set(written) == names
    for each, content in written.items():
        if each.endswith(".json"):
            assert json.loads(content)["command"].startswith("logunif-kl")
        assert content.startswith(STARTS[each.rpartition(".")[2]])


@pytest.mark.parametrize("writer", WRITERS)
class TestPlaces:
    def test_no_directory(self, writer, tmp_path, capsys):
        """Nor one for a file of one name; a command that writes several files makes it."""
        place = tmp_path / "nowhere" / "new"
        command, name = arguments_of(writer)
        if name is None:
            assert main([*command, str(place)]) == 0
            assert set(files(place)) == BY_VALIDATE
        else:
            assert "create it first" in refused(writer, place, capsys)
            assert list(tmp_path.iterdir()) == []

    def test_a_file_for_a_directory_and_a_directory_for_a_file(self, writer, tmp_path, capsys):
        (tmp_path / "file").write_bytes(OLD)
        assert "is not a directory" in refused(writer, tmp_path / "file", capsys)
        _, name = arguments_of(writer)
        (tmp_path / (name or "validate.json")).mkdir()
        assert "it is a directory; name a file" in refused(writer, tmp_path, capsys)
        assert files(tmp_path) == {"file": OLD}

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has such a /proc")
    def test_a_directory_where_nobody_may_write(self, writer, tmp_path, capsys):
        """Root cannot write there either."""
        assert "cannot write" in refused(writer, Path("/proc"), capsys)
        assert "cannot write /proc/new" in refused(writer, Path("/proc/new"), capsys)

    def test_a_directory_that_vanishes(self, writer, tmp_path, capsys, monkeypatch):
        """The directory is removed while the command computes."""
        place = tmp_path / "there"
        place.mkdir()
        module, name = provenance, "cpu_name"
        if "--plot" in WRITERS[writer][0]:
            module, name = pytest.importorskip("matplotlib.figure").Figure, "savefig"
        begun = getattr(module, name)

        def vanish(*arguments, **options):
            shutil.rmtree(place, ignore_errors=True)
            return begun(*arguments, **options)

        monkeypatch.setattr(module, name, vanish)
        assert "No such file or directory" in refused(writer, place, capsys)
        assert list(tmp_path.iterdir()) == []


def interrupted(write):
    """A method that writes the first ten characters or bytes, and is interrupted."""

    def begun(self, content, **keywords):
        write(self, content[:10])
        raise KeyboardInterrupt

    return begun


def test_an_interrupt_while_a_file_is_written(tmp_path, monkeypatch, capsys):
    path = tmp_path / "table.json"
    path.write_bytes(OLD)
    monkeypatch.setattr(type(path), "write_text", interrupted(type(path).write_text))
    assert main(["table", "1", "--json", str(path)]) == 130
    assert capsys.readouterr().err == "logunif-kl: error: interrupted\n"
    assert files(tmp_path) == {"table.json": OLD}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_table_that_cannot_be_printed_costs_no_file(tmp_path):
    """The file is written before the table is printed."""
    path = tmp_path / "table.json"
    code = "import sys; from logunif_kl.cli import main; sys.stdout = open('/dev/full', 'w')\n"
    done = run(f"{code}sys.exit(main(['table', '1', '--json', sys.argv[1]]))", str(path))
    assert done.returncode == 2
    assert "cannot write to standard output" in done.stderr
    assert json.loads(path.read_text())["rows"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_device_is_one_sentence(capsys):
    assert main(["table", "1", "--json", "/dev/full"]) == 2
    assert "cannot write /dev/full: No space left on device" in capsys.readouterr().err


CURVE = ThresholdCurve((0.0, 3.0), (2.0, 1.0), (Sparsity(2, 100), Sparsity(5, 100)))


@pytest.mark.parametrize("figure", [CURVE, fit_polynomial(3)], ids=["curve", "fit"])
def test_a_figure_of_the_library(figure, tmp_path, monkeypatch):
    """A full disk and an interrupt leave the old file; matplotlib chooses the suffix."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "figure.png"
    path.write_bytes(OLD)
    with largest_file(100), pytest.raises(OSError, match="File too large"):
        figure.plot(path)
    assert files(tmp_path) == {"figure.png": OLD}
    with monkeypatch.context() as patch:
        patch.setattr(type(path), "write_bytes", interrupted(type(path).write_bytes))
        with pytest.raises(KeyboardInterrupt):
            figure.plot(path)
    assert files(tmp_path) == {"figure.png": OLD}
    figure.plot(tmp_path / "figure")
    (found,) = files(tmp_path).items()
    assert found[0] == "figure.png"
    assert found[1].startswith(b"\x89PNG")
    inside = io.BytesIO()
    figure.plot(inside)
    assert inside.getvalue().startswith(b"\x89PNG")
