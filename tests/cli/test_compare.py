"""``logunif-kl compare``: the figures a stranger sees first."""

import json

import numpy as np
import pytest

from logunif_kl.cli import _figures, main
from logunif_kl.methods import METHODS, WIDE


def test_json_on_standard_output_is_all_there_is(capsys):
    assert main(["compare", "--json", "-", "molchanov"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert {row["method"] for row in document["rows"]} == {"molchanov"}
    first = document["rows"][0]
    assert float(first["interval"]["low"]) == float("-inf")
    assert first["value"]["worst"] == pytest.approx(-9.3745719e-3, rel=1e-7)
    assert document["command"] == "logunif-kl compare --json - molchanov"
    assert {"numpy", "scipy", "mpmath", "python", "logunif_kl"} <= set(document["versions"])
    assert set(document["machine"]) == {"cpu", "architecture", "system", "cpus_usable"}
    assert document["date"].endswith("+00:00")


def test_all_takes_the_numerical_methods_too(capsys, tmp_path):
    path = tmp_path / "figure.png"
    assert main(["compare", "--all", "--plot", str(path)]) == 0
    out = capsys.readouterr().out
    for name, method in METHODS.items():
        assert (name in out) == (method.kind != "statistical")
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_in_the_picture_rounding_errors_are_points(monkeypatch, tmp_path):
    """As lines they hide each other, and an error of 0 draws a vertical line."""
    pytest.importorskip("matplotlib")
    drawn = []
    monkeypatch.setattr(_figures, "save", lambda figure, path: drawn.append(figure))
    _figures.draw_comparison([METHODS["kingma"], METHODS["quadrature"]], WIDE, "a.png")
    _, value, gradient = drawn[0].axes
    for axes in (value, gradient):
        kingma, _, quadrature = axes.lines
        assert (kingma.get_linestyle(), quadrature.get_linestyle()) == ("-", "None")
        assert np.nanmin(kingma.get_ydata()) > 1e-7
        assert min(quadrature.get_ydata()) == _figures.FLOOR > axes.get_ylim()[0]


def test_a_chosen_range_is_measured_to_its_ends(capsys):
    assert main(["compare", "molchanov", "--range", "-4", "1e1", "--json", "-"]) == 0
    last = json.loads(capsys.readouterr().out)["rows"][-1]
    assert last["interval"] == {"name": "log_alpha in [-4, 10]", "low": -4.0, "high": 10.0}
    assert main(["compare", "kingma", "--range", "20", "60", "--json", "-"]) == 0
    last = json.loads(capsys.readouterr().out)["rows"][-1]
    assert last["value"]["log_alpha"] == pytest.approx(60.0)
    assert last["gradient"]["log_alpha"] == pytest.approx(60.0)
    assert 0.0 < last["value"]["mean"] < last["value"]["worst"]
