"""``logunif-kl fit``: every option, its text, its JSON, and its refusals."""

import argparse
import json
import sys

import pytest

from logunif_kl.cli import fit as command
from logunif_kl.cli import main
from logunif_kl.fitting import Fit, fit_polynomial, fit_sigmoid


def test_the_table_shows_the_known_figures(capsys):
    assert main(["fit"]) == 0
    out = capsys.readouterr().out
    assert "4.97e-03" in out
    assert "0.6302" in out
    assert "levelled at 4 points" in out
    assert "-inf" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["fit", "polynomial"]) == 0
    out = capsys.readouterr().out
    assert "5.26e-03" in out
    assert "levelled at 5 points" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sigmoid"], lambda: fit_sigmoid(1)),
        (["--fix-limit", "--terms", "1"], lambda: fit_sigmoid(1, fix_limit=True)),
        (["--log-alpha-range", "-5", "1e0"], lambda: fit_sigmoid(1, (-5.0, 1.0))),
        (["--log-alpha-range", "-inf", "2"], lambda: fit_sigmoid(1, (float("-inf"), 2.0))),
        (["--norm", "least_squares"], lambda: fit_sigmoid(1, norm="least_squares")),
        (["--target", "gradient"], lambda: fit_sigmoid(1, target="gradient")),
        (["--weight", "relative"], lambda: fit_sigmoid(1, weight="relative")),
        (["--round", "4"], lambda: fit_sigmoid(1).rounded(4)),
        (["polynomial", "--degree", "4"], lambda: fit_polynomial(4)),
        (["polynomial", "--alpha-range", "0", "1"], lambda: fit_polynomial(3, (0.0, 1.0))),
        (["polynomial", "--fix-constant"], lambda: fit_polynomial(3, free_constant=False)),
        (
            ["polynomial", "--norm", "least_squares", "--grid", "dropout_rate"],
            lambda: fit_polynomial(3, norm="least_squares", grid="dropout_rate"),
        ),
    ],
)
def test_every_option_reaches_the_fit(arguments, expected, capsys):
    assert main(["fit", *arguments, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert Fit.from_json(json.dumps(json.loads(out)["fit"])) == expected()


def test_json_says_where_it_comes_from(tmp_path, capsys):
    path = tmp_path / "out.json"
    assert main(["fit", "--json", str(path)]) == 0
    assert "4.97e-03" in capsys.readouterr().out
    document = json.loads(path.read_text())
    assert document["command"] == f"logunif-kl fit --json {path}"
    assert {"numpy", "scipy", "mpmath", "python", "logunif_kl"} <= set(document["versions"])


@pytest.mark.parametrize("language", ["python", "numpy", "torch", "jax", "c", "latex"])
def test_the_formula_is_all_that_is_printed(language, capsys):
    assert main(["fit", "--formula", language]) == 0
    assert capsys.readouterr().out.strip() == fit_sigmoid(1).formula(language).strip()


def test_the_formula_takes_a_convention(tmp_path, capsys):
    path = tmp_path / "out.json"
    arguments = ["polynomial", "--formula", "python", "--zero-at", "1", "--json", str(path)]
    assert main(["fit", *arguments]) == 0
    names = {}
    exec(capsys.readouterr().out, names)
    fit = fit_polynomial(3)
    assert names["neg_kl"](-1.0) == pytest.approx(fit.neg_kl(-1.0, zero_at=1.0), rel=1e-14)
    assert Fit.from_json(json.dumps(json.loads(path.read_text())["fit"])) == fit
    assert main(["fit", "polynomial", "--formula", "python", "--log-c", "-0.5"]) == 0
    exec(capsys.readouterr().out, names)
    assert names["neg_kl"](-1.0) == pytest.approx(fit.neg_kl(-1.0, log_c=-0.5), rel=1e-14)


def test_the_ladder(tmp_path, capsys):
    path = tmp_path / "ladder.json"
    assert main(["fit", "--ladder", "1", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert "4.97e-03" in out
    assert "molchanov" in out
    assert "9.37e-03" in out
    assert max(map(len, out.splitlines())) <= 80
    (rung,) = json.loads(path.read_text())["rungs"]
    assert Fit.from_json(json.dumps(rung["value"])) == fit_sigmoid(1)
    assert rung["published"]["name"] == "molchanov"
    assert main(["fit", "polynomial", "--ladder", "4"]) == 0
    out = capsys.readouterr().out
    assert "kingma" in out
    assert "5.26e-03" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_picture_is_written(suffix, tmp_path, capsys):
    path = tmp_path / f"figure{suffix}"
    assert main(["fit", "--plot", str(path)]) == 0
    start = path.read_bytes()[:5]
    assert start.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF-"}[suffix])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["spline"], "there is no family 'spline': choose from sigmoid, polynomial"),
        (["--degree", "3"], "--degree belongs to polynomial, but sigmoid is to be fitted"),
        (["polynomial", "--fix-limit"], "--fix-limit belongs to sigmoid"),
        (["--terms", "9"], "terms must be from 1 to 5, but 9 was given"),
        (["--terms", "x"], "argument --terms: invalid int value: 'x'"),
        (["--norm", "l1"], "there is no norm 'l1': choose from minimax, least_squares"),
        (["--target", "kl"], "there is no target 'kl': choose from value, gradient, both"),
        (["--weight", "heavy"], "there is no weight 'heavy': choose from absolute, relative"),
        (["polynomial", "--grid", "x"], "there is no grid 'x'"),
        (["--log-alpha-range", "1", "-1"], "(1, -1) was given, which is empty"),
        (["polynomial", "--alpha-range", "-1", "1"], "which crosses 0"),
        (["polynomial", "--degree", "30"], "degree 30 is too high for double precision"),
        (["--formula", "cobol"], "there is no language 'cobol' to write a formula in"),
        (["--formula", "c", "--json", "-"], "--formula and --json - would both be printed"),
        (["--zero-at", "1", "--log-c", "0"], "both given"),
        (["--zero-at", "-1"], "zero_at must be a positive alpha"),
        (["--round", "0"], "digits must be a whole number from 1 to 17"),
        (["--ladder", "0"], "max_terms must be from 1 to 5, but 0 was given"),
        (["--ladder", "2", "--terms", "2"], "--ladder makes many fits of its own, and --terms"),
        (["--ladder", "2", "--target", "both"], "--ladder makes many fits of its own"),
        (["--json", "no/such/place.json"], "the directory no/such does not exist"),
        (["--plot", "figure.xyz"], "its suffix must name a format"),
        (["--plot", "."], "it is a directory"),
    ],
)
def test_errors_are_one_sentence_and_status_2(arguments, words, capsys):
    assert main(["fit", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("logunif-kl: error: ")
    assert words in err
    assert err.count("\n") == 1


def test_without_rich_the_table_is_refused_and_the_formula_is_not(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["fit"]) == 2
    assert 'pip install "logunif_kl[cli]"' in capsys.readouterr().err
    assert main(["fit", "--formula", "c"]) == 0
    assert "double neg_kl" in capsys.readouterr().out


def test_without_matplotlib_nothing_is_begun(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["fit", "--plot", str(tmp_path / "a.png")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert 'pip install "logunif_kl[plot]"' in err


def test_a_picture_that_fails_loses_nothing_else(monkeypatch, capsys, tmp_path):
    from matplotlib.figure import Figure

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    assert main(["fit", "--plot", str(tmp_path / "a.png")]) == 2
    out, err = capsys.readouterr()
    assert "4.97e-03" in out
    assert "No space left on device" in err


def test_it_can_be_added_to_another_parser():
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    assert parser.parse_args(["fit", "polynomial"]).run is command.run
