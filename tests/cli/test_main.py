"""The program as a process: entry points, interrupts, progress. `tests/faults` has the streams."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import logunif_kl as lk
from logunif_kl.cli import _output, main
from logunif_kl.methods import _progress


def python(*arguments, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([sys.executable, *arguments], text=True, check=False, **pipes)


def run(*arguments, **options):
    return python("-m", "logunif_kl", *arguments, **options)


def test_the_module_runs_the_command_line():
    done = run("table", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "-0.426685604" in done.stdout
    done = run("compare", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("logunif-kl: error: there is no method 'nothing'")
    assert done.stderr.count("\n") == 1


def test_a_plain_ascii_terminal_will_do():
    done = run("compare", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_version_and_help(capsys):
    for arguments, words in (
        (["--version"], f"logunif-kl {lk.__version__}"),
        (["--help"], "compare"),
        (["compare", "--help"], "--plot FILE"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert words in capsys.readouterr().out


# Python runs a module of the name sitecustomize when it starts.
INTERRUPTED = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "MODULE":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
"""
SCRIPT = "import sys\nfrom logunif_kl.cli import main\nsys.exit(main())\n"


class TestInterruptedWhileAModuleIsImported:
    @pytest.fixture(params=["numpy", "logunif_kl.cli.compare"])
    def interrupted(self, request, tmp_path):
        """Run Python, which is interrupted when it comes to this module."""
        (tmp_path / "sitecustomize.py").write_text(INTERRUPTED.replace("MODULE", request.param))
        (tmp_path / "logunif-kl").write_text(SCRIPT)
        # The package itself may be on PYTHONPATH.
        paths = (str(tmp_path), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", ""))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        return lambda *arguments: python(*arguments, env=environment, cwd=tmp_path)

    @pytest.mark.parametrize("command", [["-m", "logunif_kl"], ["-mlogunif_kl"], ["logunif-kl"]])
    def test_the_command(self, interrupted, command):
        done = interrupted(*command, "table")
        assert (done.returncode, done.stderr) == (130, "logunif-kl: error: interrupted\n")

    @pytest.mark.parametrize("command", [["-c", "import logunif_kl"], ["-m", "logunif_kl.methods"]])
    @pytest.mark.parametrize("interrupted", ["numpy"], indirect=True)
    def test_a_program_hears_of_it(self, interrupted, command):
        done = interrupted(*command)
        assert done.returncode not in (0, 130)
        assert done.stderr.endswith("\nKeyboardInterrupt\n")


def test_progress_stays_away_from_short_work_and_from_pipes(monkeypatch, terminal):
    shown = terminal()
    monkeypatch.setattr(_progress, "PATIENCE", 2.0)
    assert list(_output.track(range(3), "working", 3)) == [0, 1, 2]
    assert shown.getvalue() == ""
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert list(_output.track(range(3), "working", 3)) == [0, 1, 2]
    with _progress.progress_bar("working", 3, shown=True) as advance:
        advance(3)
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("command", "words"), [("fit", "fitting"), ("compare molchanov", "comparing")]
)
def test_progress_of_commands(command, words, terminal, capsys):
    shown = terminal()
    assert main(command.split()) == 0
    assert words in shown.getvalue()
