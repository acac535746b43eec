"""``logunif-kl table``: values at given points, in double precision or any other."""

import json
import math

import mpmath
import pytest

import logunif_kl as lk
from logunif_kl.cli import main


def rows(capsys, arguments):
    assert main(["table", *arguments.split(), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


def test_points_by_alpha_log_alpha_and_dropout_rate_agree(capsys):
    points = "0.25 --log-alpha -1.3862943611198906 --dropout-rate 0.2"
    by_alpha, by_log, by_rate = rows(capsys, points)
    for row in (by_log, by_rate):
        for name, value in by_alpha.items():
            assert row[name] == pytest.approx(value, rel=1e-9)


def test_seventeen_digits_are_the_doubles(capsys):
    (row,) = rows(capsys, "--log-alpha 0.3 --dps 17 --log-c 0")
    assert row["neg_kl"] == lk.neg_kl(0.3, log_c=0.0)
    (row,) = rows(capsys, "--log-alpha 0.3 --dps 17 --zero-at 1")
    assert row["neg_kl"] == lk.neg_kl(0.3, zero_at=1.0)
    assert row["kl"] == -row["neg_kl"]
    assert (row["neg_kl_grad"], row["neg_kl_hess"]) == (lk.neg_kl_grad(0.3), lk.neg_kl_hess(0.3))


def test_more_digits_come_from_the_reference(capsys):
    (row,) = rows(capsys, "1 --dps 20")
    assert row["neg_kl"] == "-0.42668560429604480579"
    (row,) = rows(capsys, "1 --log-c 0 --dps 20")
    assert row["neg_kl"] == "1.627434351639367021"  # Hron's raw value
    (row,) = rows(capsys, "0.1 --dps 40")
    with mpmath.workdps(60):
        exact = -lk.reference.kl_gap(5, 45)
        assert abs(mpmath.mpf(row["neg_kl"]) / exact - 1) < mpmath.mpf(10) ** -39
        exact = 5 * lk.reference.kl_gap_grad(5, 45)
        assert abs(mpmath.mpf(row["neg_kl_grad"]) / exact - 1) < mpmath.mpf(10) ** -39


def test_the_zero_is_exact_where_it_was_asked_for(capsys):
    for digits in ("12", "30"):
        by_alpha, by_rate = rows(capsys, f"0.25 --dropout-rate 0.2 --zero-at 0.25 --dps {digits}")
        assert float(by_alpha["neg_kl"]) == 0.0
        assert abs(float(by_rate["neg_kl"])) < 1e-15


@pytest.mark.parametrize("digits", ["10", "30"])
def test_limits(capsys, digits):
    by = rows(capsys, f"0 inf --log-alpha -inf -1e3 --dropout-rate 0 1 --dps {digits}")
    numbers = [{name: float(value) for name, value in row.items()} for row in by]
    zero, infinite, minus, far, never, always = numbers
    for row in (zero, minus, never):
        assert (row["neg_kl"], row["neg_kl_grad"], row["dropout_rate"]) == (-math.inf, 0.5, 0.0)
    for row in (infinite, always):
        assert row["neg_kl"] == row["neg_kl_grad"] == row["neg_kl_hess"] == 0.0
        assert (row["log_alpha"], row["dropout_rate"]) == (math.inf, 1.0)
    assert far["neg_kl"] == pytest.approx(-500.0 - (math.log(2.0) + 0.5772156649) / 2.0)


def test_the_terminal_table_names_the_convention_and_keeps_every_digit(capsys):
    assert main(["table", "0.1", "1", "--zero-at", "1", "--dps", "15"]) == 0
    out = capsys.readouterr().out
    assert "zero_at = 1;" in out
    assert f"{lk.neg_kl(math.log(0.1), zero_at=1.0):.15g}" in out
    assert main(["table"]) == 0
    assert "zero_at = inf;" in capsys.readouterr().out
