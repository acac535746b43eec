"""The tables, notes and help of every command on terminals of 40, 80 and 200 columns."""

import json
import re
from collections import Counter

import pytest

from logunif_kl.cli import _output, main
from validation.paths import RESULTS

pytest.importorskip("rich")

COLUMNS = (40, 80, 200)
RUN = (
    "table 0 1e-300 1e300 inf --zero-at 0.25 --dps 17",
    "table 0.1 --dps 22",
    "compare kingma kummer",
    "fit --log-alpha-range -5 1 --target both",
    "fit polynomial --degree 4",
    "fit polynomial --ladder 2",
    "validate kingma lower_bound molchanov dawson",
    "bench --size 1000 --rounds 2",
    *(
        pytest.param(command, marks=pytest.mark.slow)
        for command in (
            *("validate", "compare --all", "fit --terms 2 --fix-limit", "fit --ladder 2"),
            *("bench --torch --size 1000 --rounds 2", "bench --jax --size 1000 --rounds 2"),
        )
    ),
)
COMMANDS = ("", "table", "compare", "fit", "validate", "bench")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")


@pytest.fixture
def terminal(monkeypatch):
    """Make standard output count as a terminal of so many columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    return lambda columns: monkeypatch.setenv("COLUMNS", str(columns))


def shown_by(command, monkeypatch):
    """Run a command, and take what it has to show instead of showing it."""
    taken = []

    def take(tables, notes=()):
        taken.append((tables, notes))

    with monkeypatch.context() as patched:
        patched.setattr(_output, "show_tables", take)
        assert main(command.split()) == 0
    ((tables, notes),) = taken
    return tables, notes


def words_of(tables, notes, left_out):
    """Every word of the titles, notes, headings and cells, without the columns left out."""
    texts = [str(table.title or "") for table in tables] + list(notes)
    for table in tables:
        for column in table.columns:
            heading = " ".join(str(column.header).split())
            droppable = column.no_wrap or column.header in table.drop_first
            if not droppable or f"{heading}," not in left_out:
                texts += [heading, *map(str, column.cells)]
    return Counter(word for text in texts for word in text.split())


def assert_readable(tables, notes, terminal, capsys):
    for columns in COLUMNS:
        terminal(columns)
        _output.show_tables(tables, notes)
        shown = COLOUR.sub("", capsys.readouterr().out)
        assert max(map(len, shown.split("\n"))) <= columns
        assert "…" not in shown
        _, _, left_out = " ".join(shown.split()).partition("Left out at this width: ")
        left_out = left_out.replace(". --json has every number.", ",")
        missing = words_of(tables, notes, left_out) - Counter(shown.split())
        assert not missing, shown
        assert not left_out or columns < 200


@pytest.mark.parametrize("command", RUN)
def test_tables(command, terminal, monkeypatch, capsys):
    for framework in ("torch", "jax"):
        if framework in command:
            pytest.importorskip(framework)
    assert_readable(*shown_by(command, monkeypatch), terminal, capsys)


def test_the_notes_of_the_bench(terminal, capsys):
    from logunif_kl.cli.bench.command import note

    document = json.loads((RESULTS / "bench" / "bench.json").read_text(encoding="utf-8"))
    table = _output.new_table("Times", ["", "ns"], [], text=[""])
    assert_readable([table], [note(document)], terminal, capsys)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, columns, terminal, capsys):
    def printed(columns):
        terminal(columns)
        with pytest.raises(SystemExit) as caught:
            main([*command.split(), "--help"])
        assert caught.value.code == 0
        return COLOUR.sub("", capsys.readouterr().out)

    shown = printed(columns)
    assert max(map(len, shown.split("\n"))) <= columns
    assert Counter(NUMBER.findall(shown)) == Counter(NUMBER.findall(printed(1000)))


def test_a_number_wider_than_the_terminal_is_whole(terminal, capsys):
    terminal(40)
    assert main(["table", "1", "--dps", "60"]) == 0
    shown = COLOUR.sub("", capsys.readouterr().out)
    numbers = [word for word in shown.split() if word.startswith("-0.42668560429604480579")]
    assert [len(number) for number in numbers] == [63]
    assert main(["table", "1", "2", "--dps", "40"]) == 0
    assert len(max(COLOUR.sub("", capsys.readouterr().out).split("\n"), key=len)) == 52


@pytest.mark.parametrize(
    ("columns", "shown", "left_out"),
    [(40, "alpha -KL d(-KL)/dx", "KL, dropout rate, x, d^2(-KL)/dx^2"),
     (80, "alpha x -KL d(-KL)/dx d^2(-KL)/dx^2", "KL, dropout rate")],
)  # fmt: skip
def test_columns_are_left_out_by_their_priority(columns, shown, left_out, terminal, capsys):
    terminal(columns)
    assert main(["table"]) == 0
    lines = COLOUR.sub("", capsys.readouterr().out).splitlines()
    assert [" ".join(line.split()) for line in lines if line.startswith(" alpha ")] == [shown]
    note = " ".join(lines[lines.index("") :]).split("Left out")[1]
    assert " ".join(note.split()) == f"at this width: {left_out}. --json has every number."
