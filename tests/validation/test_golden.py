import hashlib
import math

import numpy as np
import pytest

from tests import golden
from validation.golden import make, points


@pytest.mark.parametrize("name", golden.NAMES)
class TestTable:
    def test_its_header_and_its_points(self, name):
        table = golden.load(name)
        header = table.header
        assert header["sha256"] == table.sha256
        assert int(header["rows"]) == len(table.inputs) >= 380
        assert header["command"] == f"python -m validation.golden.make {name}"
        assert "mpmath" in header["versions"]
        assert not header["commit"].endswith(("with changes", "+"))
        assert [[v.hex() for v in row] for row in table.inputs] == [
            [v.hex() for v in row] for row in points.of(name)
        ]

    def test_every_tenth_row_again(self, name):
        table = golden.load(name)
        lines = table.text.splitlines(keepends=True)
        for row, line in list(zip(table.inputs, lines, strict=True))[::10]:
            values = make.truth(name, row)
            assert line.split()[len(row) :] == [make.decimal(value) for value in values]

    @pytest.mark.slow
    def test_the_command_again(self, name, capsys):
        pytest.importorskip("flint")
        assert make.main(["--check", name]) == 0
        assert capsys.readouterr().out == f"{name}: the same\n"


def test_sha256_is_of_the_rows_alone():
    table = golden.load("kl_gap")
    assert table.text.startswith("0x0.0p+0 0.0\n")
    assert hashlib.sha256(table.text.encode()).hexdigest() == table.header["sha256"]


U_EDGES = (0.0, 5e-324, 2.0**-1022, 0.5, 1e308, math.inf, -1.0)
X_EDGES = (-math.inf, -1e308, -745.0, 0.0, 745.0, 1e308, math.inf)


@pytest.mark.parametrize("name", [name for name in golden.NAMES if name != "neg_kl_normal"])
def test_inputs_reach_the_edges(name):
    (inputs,) = golden.load(name).args()
    assert np.isin(U_EDGES if name.startswith("kl_gap") else X_EDGES, inputs).all()
    assert np.isnan(inputs).any()


def test_check_finds_a_difference(monkeypatch, capsys):
    monkeypatch.setattr(points, "of", lambda name: [(0.5,)])
    assert make.main(["--check", "kl_gap"]) == 1
    assert capsys.readouterr().out == "kl_gap: DIFFERS\n"


def test_a_value_outside_its_ball_is_refused():
    pytest.importorskip("flint")
    wrong = make.truth("kl_gap", (1.0,))[0] * (1 + 1e-10)
    with pytest.raises(AssertionError):
        make.check("kl_gap", (1.0,), wrong)
