"""The tables, notes and help of every command on terminals of 40, 80 and 200 columns."""

import json
import re
from collections import Counter

import pytest

from logunif_kl.cli import _output, main
from logunif_kl.cli.bench import functions
from validation.paths import RESULTS

pytest.importorskip("rich")

COLUMNS = (40, 80, 200)
RUN = (
    "table",
    "table 0 1e-300 1e300 inf --zero-at 0.25 --digits 17",
    "table 0.1 --digits 22",
    "compare",
    "compare kingma kummer",
    "fit",
    "fit --log-alpha-range -5 1 --target both",
    "fit polynomial --degree 4",
    "fit polynomial --ladder 2",
    "validate kingma lower_bound molchanov dawson",
    "bench --size 1000 --rounds 2",
)
LONG = ("validate", "compare --all", "fit --terms 2 --fix-limit", "fit --ladder 2")
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
        patched.setattr(functions, "IMPORT_ROUNDS", 2)
        assert main(command.split()) == 0
    ((tables, notes),) = taken
    return tables, notes


def words_of(tables, notes):
    """Every word of the titles, headings, cells and notes."""
    texts = [str(table.title or "") for table in tables] + list(notes)
    for table in tables:
        for column in table.columns:
            texts += [str(column.header), *map(str, column.cells)]
    return Counter(word for text in texts for word in text.split())


def assert_readable(tables, notes, terminal, capsys):
    for columns in COLUMNS:
        terminal(columns)
        _output.show_tables(tables, notes)
        shown = COLOUR.sub("", capsys.readouterr().out)
        assert max(map(len, shown.split("\n"))) <= columns
        assert "…" not in shown
        # The columns of names are repeated with every part of a table.
        missing = words_of(tables, notes) - Counter(shown.split())
        assert not missing, shown


@pytest.mark.parametrize("command", RUN)
def test_tables(command, terminal, monkeypatch, capsys):
    assert_readable(*shown_by(command, monkeypatch), terminal, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("command", LONG)
def test_tables_that_take_longer(command, terminal, monkeypatch, capsys):
    assert_readable(*shown_by(command, monkeypatch), terminal, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_tables_of_a_framework(framework, terminal, monkeypatch, capsys):
    pytest.importorskip(framework)
    command = f"bench --{framework} --size 1000 --rounds 2"
    assert_readable(*shown_by(command, monkeypatch), terminal, capsys)


def test_the_notes_of_the_bench(terminal, capsys):
    from logunif_kl.cli.bench.command import note

    document = json.loads((RESULTS / "bench" / "bench.json").read_text(encoding="utf-8"))
    table = _output.new_table("Times", [("", False), ("ns", True)])
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
    assert main(["table", "1", "--digits", "60"]) == 0
    shown = COLOUR.sub("", capsys.readouterr().out)
    assert "-0.42668560429604480579" in shown
    numbers = [word for word in shown.split() if word.startswith("-0.42668")]
    assert [len(number) for number in numbers] == [63]
    terminal(40)
    assert main(["table", "1", "2", "--digits", "40"]) == 0
    assert len(max(COLOUR.sub("", capsys.readouterr().out).split("\n"), key=len)) == 47


@pytest.mark.parametrize("columns", [40, 80])
def test_every_part_has_the_column_of_names(columns, terminal, capsys):
    terminal(columns)
    assert main(["table"]) == 0
    shown = COLOUR.sub("", capsys.readouterr().out)
    heads = [line for line in shown.splitlines() if line.startswith(" alpha ")]
    assert len(heads) == {40: 3, 80: 2}[columns]
    assert " ".join(heads).count("d(-KL)/dx ") == 1


def test_many_parts_become_a_list(terminal, capsys):
    """With the columns of names before each number, it would be hard to read."""
    names = ["method", "its equation", "which domain"]
    table = _output.new_table("Errors", [*((n, False) for n in names), *(("x", True),) * 9])
    table.add_row("kingma", "section 3.3", "everywhere", *(f"{i}.5e-10" for i in range(9)))
    table.add_row("", "", "alpha in (0, 1]", *(f"{i}.5e-11" for i in range(9)))
    terminal(40)
    _output.show_tables([table])
    lines = [line.rstrip() for line in COLOUR.sub("", capsys.readouterr().out).splitlines()]
    assert lines[:7] == [
        "Errors",
        "",
        "method kingma",
        "  its equation  section 3.3",
        "  which domain  everywhere",
        "  x             0.5e-10",
        "  x             1.5e-10",
    ]
    assert lines[14:17] == ["", "  which domain  alpha in (0, 1]", "  x             0.5e-11"]
    assert_readable([table], [], terminal, capsys)
