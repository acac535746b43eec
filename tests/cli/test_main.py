"""The program as a process: entry points, pipes, interrupts, progress."""

import io
import os
import subprocess
import sys

import pytest

import logunif_kl as lk
from logunif_kl.cli import _output, main


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "logunif_kl", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_the_module_runs_the_command_line():
    done = run("table", "1")
    assert done.returncode == 0
    assert "-0.426685604" in done.stdout
    assert done.stderr == ""


def test_a_process_fails_with_status_2_and_one_sentence():
    done = run("compare", "nothing")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("logunif-kl: error: there is no method 'nothing'")
    assert done.stderr.count("\n") == 1


def test_a_reader_who_leaves_is_no_error(tmp_path):
    path = tmp_path / "out.json"
    command = [sys.executable, "-m", "logunif_kl", "compare", "--json", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert error == b""
    assert path.read_text().startswith("{")


@pytest.mark.parametrize("command", ["table", "compare"])
def test_a_plain_ascii_terminal_will_do(command):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run(command, env=environment)
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["compare", "--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_what_argparse_refuses_is_one_sentence_and_status_2(arguments, words, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.startswith("logunif-kl: error: ")
    assert err.count("\n") == 1


def test_an_interrupt_is_one_line(monkeypatch, capsys):
    from logunif_kl.cli import table

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "_in_double", interrupt)
    assert main(["table", "1"]) == 130
    assert capsys.readouterr().err == "logunif-kl: error: interrupted\n"


def test_a_file_that_fills_the_disk_is_one_sentence(capsys):
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux has /dev/full")
    assert main(["table", "1", "--json", "/dev/full"]) == 2
    assert "cannot write /dev/full: No space left on device" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_appears_on_standard_error_after_a_while(monkeypatch):
    monkeypatch.setattr(_output, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(_output.track(iter(range(3)), "working", 3)) == [0, 1, 2]
    assert "working" in terminal.getvalue()


def test_progress_stays_away_from_short_work_and_from_pipes(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(_output.track(range(3), "working", 3)) == [0, 1, 2]
    assert terminal.getvalue() == ""
    monkeypatch.setattr(_output, "PATIENCE", -1.0)
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert list(_output.track(range(3), "working", 3)) == [0, 1, 2]
    assert pipe.getvalue().strip() == ""
