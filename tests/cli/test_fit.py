"""``logunif-kl fit``: every option, its text and its JSON."""

import json

import pytest

from logunif_kl.cli import main
from logunif_kl.fitting import Fit, fit_polynomial, fit_sigmoid


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
        (["--max-error", "2e-3", "--dtype", "float32"], lambda: fit_sigmoid(2)),
        (["polynomial", "--max-error", "1e-3"], lambda: fit_polynomial(6)),
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


@pytest.mark.parametrize(
    "words",
    ["python", "numpy", "torch", "jax", "c", "latex", "c --gradient", "c --dtype float32"],
)
def test_the_formula_is_all_that_is_printed(words, capsys):
    language, *options = words.split()
    assert main(["fit", "--formula", language, *options]) == 0
    dtype = "float32" if "float32" in options else "float64"
    written = fit_sigmoid(1).formula(language, gradient="--gradient" in options, dtype=dtype)
    assert capsys.readouterr().out.strip() == written.strip()


def test_the_name_of_the_function(capsys):
    assert main(["fit", "--formula", "c", "--name", "penalty"]) == 0
    assert "double penalty(double log_alpha)" in capsys.readouterr().out


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


def test_the_ladder(capsys):
    range_given = ["--log-alpha-range", "-5", "inf"]
    assert main(["fit", "--ladder", "1", *range_given, "--json", "-"]) == 0
    (rung,) = json.loads(capsys.readouterr().out)["rungs"]
    assert Fit.from_json(json.dumps(rung["value"])) == fit_sigmoid(1, (-5.0, float("inf")))
    assert rung["published"]["name"] == "molchanov"
