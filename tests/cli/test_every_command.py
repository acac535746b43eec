"""What all commands do alike: figures, refusals, pictures, and no rich or matplotlib.

Values that the functions refuse are tried with the functions, and places where no file can be
written in `tests/faults`.
"""

import json
import sys

import pytest

from logunif_kl.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("nonsense", "invalid choice: 'nonsense'"),
        ("--nonsense table", "unrecognized arguments: --nonsense; see logunif-kl --help"),
        ("compare --nonsense", "arguments: --nonsense; see logunif-kl compare --help"),
        ("table -1", "alpha must not be negative, but -1 was given"),
        ("table x", "alpha must be a number, but 'x' was given"),
        ("table nan", "alpha must be a number, but 'nan' was given"),
        ("table --log-alpha 1/0", "log alpha must be a number, but '1/0' was given"),
        ("table --dropout-rate 1.5", "a dropout rate must lie in [0, 1], but 1.5 was given"),
        ("table --dps 0", "--dps must lie between 1 and 10000, but 0 was given"),
        ("table 1e400", "alpha must be 0, infinite, or between 5E-324 and"),
        ("table --log-alpha 1e1000000000", "log alpha must be 0, infinite, or between"),
        ("table --zero-at 1e-400 1", "--zero-at must be 0, infinite, or between"),
        ("table --zero-at 1 --log-c 0", "were both given"),
        ("compare nothing", "there is no method 'nothing': choose from kingma, molchanov"),
        ("compare monte_carlo", "monte_carlo gives an estimate with a standard error"),
        ("compare --all kingma", "--all and kingma were both given: leave out one of them"),
        ("compare --range 3 1", "an interval of log_alpha needs low < high"),
        ("compare --range 0 inf", "--range must be finite"),
        ("compare --range -1000 0", "a finite end must lie in [-100, 100], but log_alpha = -1"),
        ("compare --plot figure.xyz", "its suffix must name a format"),
        ("fit spline", "there is no family 'spline': choose from sigmoid, polynomial"),
        ("fit --degree 3", "--degree belongs to polynomial, but sigmoid is to be fitted"),
        ("fit polynomial --fix-limit", "--fix-limit belongs to sigmoid"),
        ("fit --terms 9", "terms must be between 1 and 5, but 9 was given"),
        ("fit --weight heavy", "there is no weight 'heavy': choose from absolute, relative"),
        ("fit --formula cobol", "there is no language 'cobol' to write a formula in"),
        ("fit --formula c --json -", "--formula and --json - would both be printed"),
        ("fit --gradient", "--gradient writes the derivative as source code: add --formula c"),
        ("fit --max-error 1e-3 --terms 2", "--terms and --max-error were both given"),
        ("fit --max-error 5e-3 --round 2", "--round 2 raises the error to 0.0088, but --max"),
        ("fit --max-error 5e-3 --dtype half", "there is no dtype 'half': choose from float64"),
        ("fit --dtype float32", "--dtype needs --formula c or --max-error: add one"),
        ("fit --ladder 2 --max-error 1e-3", "--ladder makes many fits, but --max-error"),
        ("fit --name f", "--name is the name of a function in source code: add --formula c"),
        ("fit --ladder 2 --terms 2", "--ladder makes many fits, but --terms"),
        ("fit --plot figure.xyz", "its suffix must name a format"),
        ("validate nothing", "there is no method 'nothing': choose from kingma"),
        ("bench --size 0", "--size must be at least 1, but 0 was given: ask for more"),
        ("bench --jax --size 5 0", "--size must be at least 1, but 0 was given: ask for more"),
        ("bench --rounds 1", "--rounds must be at least 2, but 1 was given: ask for more"),
        ("bench --threads -2", "--threads must be at least 1, but -2 was given: ask for more"),
        ("bench --cuda", "--cuda says where --torch is to run: give --torch as well"),
        ("bench --jax --threads 2", "--threads cannot be chosen with --jax: leave it out, and"),
        ("bench --size 1 2", "several sizes need --torch or --jax: give --size one number"),
    ],
)
def test_errors_are_one_sentence_and_status_2(arguments, words, capsys):
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("logunif-kl: error: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compare", ["molchanov every alpha -9.37e-03 -3.51", "2.02e-02", "6.64e-03"]),
        ("compare", ["+3.76 %", "+14.87 %"]),
        ("fit", ["4.97e-03", "0.6302", "alternates at 4 points", "-inf"]),
        ("fit polynomial", ["5.26e-03", "alternates at 5 points"]),
        ("fit --ladder 1", ["4.97e-03", "molchanov", "9.37e-03"]),
        ("fit polynomial --ladder 4", ["kingma", "5.26e-03"]),
    ],
)
def test_the_tables_show_the_known_figures(command, words, capsys):
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert all(word in " ".join(out.split()) for word in words)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_help_shows_choices(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for choices in ("--norm {minimax,least_squares}", "--dtype {float64,float32}"):
        assert choices in shown
    assert "{python,numpy,torch,jax,c,latex}" in shown


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_a_picture_that_fails_loses_nothing_else(command, monkeypatch, capsys, tmp_path):
    from matplotlib.figure import Figure

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    path = tmp_path / "out.json"
    assert main([command, "--json", str(path), "--plot", str(tmp_path / "a.png")]) == 2
    out, err = capsys.readouterr()
    assert "molchanov" in out or "4.97e-03" in out
    assert json.loads(path.read_text())["command"].startswith(f"logunif-kl {command} ")
    assert str(path.parent) not in path.read_text()
    assert "No space left on device" in err


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [("compare", "--plot", "a.png"), ("fit", "--plot", "a.png"), ("validate", "--output", "")],
)
def test_without_matplotlib_nothing_is_begun(
    command, option, name, monkeypatch, capsys, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("empty")
    json_too = ["--json", str(folder / "out.json")]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([command, *json_too, option, str(folder / name)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert 'pip install "logunif_kl[plot]"' in err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ["table", "compare", "fit"])
def test_without_rich_the_table_is_refused_and_json_is_not(command, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main([command]) == 2
    assert 'pip install "logunif_kl[cli]"' in capsys.readouterr().err
    path = tmp_path / "out.json"
    assert main([command, "--json", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "the table is left out" in err
    assert main([command, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == json.loads(path.read_text()).keys()
    assert main(["fit", "--formula", "c"]) == 0
    assert "double neg_kl" in capsys.readouterr().out
