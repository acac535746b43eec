"""What is printed on terminals of every width, and where there is nothing to print on."""

import os
import re
import subprocess
import sys

import pytest

from logunif_kl.cli import main

NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")
COMMANDS = (["table"], ["compare"], ["fit", "polynomial"], ["table", "1e-300", "1e300"])


def printed(command, columns, monkeypatch, capsys, terminal=True):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    else:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert main(command) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_number_is_broken(command, columns, monkeypatch, capsys):
    pytest.importorskip("rich")
    whole = printed(command, 80, monkeypatch, capsys, terminal=False)
    shown = printed(command, columns, monkeypatch, capsys)
    tables = [line for line in shown.split("\n") if "  " in line or "─" in line]
    assert max(map(len, tables)) <= columns
    assert set(NUMBER.findall(whole)) == set(NUMBER.findall(shown))


@pytest.mark.parametrize("columns", [40, 80])
def test_every_part_has_the_column_of_names(columns, monkeypatch, capsys):
    pytest.importorskip("rich")
    shown = printed(["table"], columns, monkeypatch, capsys)
    heads = [line for line in shown.splitlines() if line.startswith(" alpha ")]
    assert len(heads) == {40: 3, 80: 2}[columns]
    assert " ".join(heads).count("d(-KL)/dx ") == 1


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
