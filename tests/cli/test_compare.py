"""``logunif-kl compare``: the figures a stranger sees first."""

import json
import sys

import pytest

from logunif_kl.cli import main
from logunif_kl.methods import METHODS


def test_the_tables_show_the_known_figures(capsys):
    assert main(["compare"]) == 0
    out = capsys.readouterr().out
    molchanov = next(line for line in out.splitlines() if line.strip().startswith("molchanov"))
    assert "-9.37e-03" in molchanov
    assert "-3.51" in molchanov
    assert "2.02e-02" in out  # Kingma over (0, 1], best constant
    assert "6.64e-03" in out  # Kingma over [0.05, 1], best constant
    assert "+3.76 %" in out
    assert "+14.87 %" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


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


def test_every_closed_form_has_a_row_for_each_claim(tmp_path, capsys):
    path = tmp_path / "out.json"
    assert main(["compare", "--json", str(path)]) == 0
    assert "molchanov" in capsys.readouterr().out
    rows = json.loads(path.read_text())["rows"]
    assert [(row["method"], row["interval"]["name"]) for row in rows] == [
        (m.name, claim.interval.name)
        for m in METHODS.values()
        if m.kind == "closed form"
        for claim in m.claims
    ]


def test_all_takes_the_numerical_methods_too(capsys, tmp_path):
    path = tmp_path / "figure.png"
    assert main(["compare", "--all", "--plot", str(path)]) == 0
    out = capsys.readouterr().out
    for name, method in METHODS.items():
        assert (name in out) == (method.kind != "statistical")
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_a_numerical_method_by_name(capsys):
    assert main(["compare", "series", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["interval"]["name"] for row in rows] == ["every alpha", "log_alpha in [-10, 10]"]
    assert all(abs(row["value"]["worst"]) < 1e-14 for row in rows)
    assert all(abs(row["gradient"]["worst"]) < 1e-14 for row in rows)


def test_the_common_range_can_be_chosen(capsys):
    assert main(["compare", "molchanov", "--range", "-4", "1e1", "--json", "-"]) == 0
    last = json.loads(capsys.readouterr().out)["rows"][-1]
    assert last["interval"] == {"name": "log_alpha in [-4, 10]", "low": -4.0, "high": 10.0}


def test_a_far_range_is_measured_to_its_ends(capsys):
    assert main(["compare", "kingma", "--range", "20", "60", "--json", "-"]) == 0
    last = json.loads(capsys.readouterr().out)["rows"][-1]
    assert last["value"]["log_alpha"] == pytest.approx(60.0)
    assert last["gradient"]["log_alpha"] == pytest.approx(60.0)
    assert 0.0 < last["value"]["mean"] < last["value"]["worst"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_picture_is_written(tmp_path, capsys, suffix):
    path = tmp_path / f"figure{suffix}"
    assert main(["compare", "--plot", str(path)]) == 0
    start = path.read_bytes()[:5]
    assert start.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF-"}[suffix])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "there is no method 'nothing': choose from kingma, molchanov, lower_bound"),
        (["monte_carlo"], "monte_carlo gives an estimate with a standard error"),
        (["--all", "kingma"], "--all and kingma were both given: name methods, or none for all"),
        (["--range", "3", "1"], "an interval of log_alpha needs low < high"),
        (["--range", "0", "inf"], "--range must be finite"),
        (["--range", "-1000", "0"], "a finite end must lie in [-100, 100], but log_alpha = -1000"),
        (["--range", "0", "x"], "argument --range: invalid float value: 'x'"),
        (["--json", "no/such/place.json"], "the directory no/such does not exist"),
        (["--plot", "figure.xyz"], "its suffix must name a format"),
        (["--plot", "."], "it is a directory"),
    ],
)
def test_errors_are_one_sentence_and_status_2(arguments, words, capsys):
    assert main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("logunif-kl: error: ")
    assert words in err
    assert err.count("\n") == 1


def test_without_rich_the_table_is_refused_and_json_is_not(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["compare"]) == 2
    assert 'pip install "logunif_kl[cli]"' in capsys.readouterr().err
    path = tmp_path / "out.json"
    assert main(["compare", "--json", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "the table is left out" in err
    assert json.loads(path.read_text())["rows"]
    assert main(["compare", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]


def test_without_matplotlib_nothing_is_begun(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "out.json"
    assert main(["compare", "--json", str(path), "--plot", str(tmp_path / "a.png")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert 'pip install "logunif_kl[plot]"' in err
    assert not path.exists()


def test_a_picture_that_fails_loses_nothing_else(monkeypatch, capsys, tmp_path):
    from matplotlib.figure import Figure

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    path = tmp_path / "out.json"
    assert main(["compare", "--json", str(path), "--plot", str(tmp_path / "a.png")]) == 2
    out, err = capsys.readouterr()
    assert "molchanov" in out
    assert json.loads(path.read_text())["rows"]
    assert "No space left on device" in err
