"""What all experiments have in common: their commands, records, pages and parts."""

import json
import shlex

import pytest

torch = pytest.importorskip("torch")
for _package in ("numpyro", "sklearn", "torchmetrics"):
    pytest.importorskip(_package)

from validation import record  # noqa: E402
from validation.experiment import PAPERS, Experiment, experiments, names  # noqa: E402
from validation.paths import ROOT  # noqa: E402

ALL = experiments()
# Their code is there, and their full runs have not ended.
NOT_RUN = {
    "kingma2015.wide",
    "molchanov2017.colour",
    "haussmann2018.authors_initial",
}


@pytest.mark.parametrize("name", ALL)
class TestEach:
    def test_the_command_is_that_of_the_module(self, name):
        words = shlex.split(ALL[name].command())
        assert words[:3] == ["python", "-m", f"validation.papers.{name}"]
        assert (words[3:] == ["--data", "FILE"]) == bool(ALL[name].images)
        file = ROOT.joinpath("validation", "papers", *name.split(".")).with_suffix(".py")
        assert file.read_text(encoding="utf-8").endswith("\nEXPERIMENT.run(__name__)\n")

    @pytest.fixture
    def made(self, name):
        found = ALL[name].read()
        assert (found is None) == (name in NOT_RUN)
        return found or pytest.skip("its full run has not ended")

    def test_the_committed_record_is_a_full_one_of_the_data(self, name, made):
        assert made["settings"]["quick"] is False
        data = ALL[name].images
        assert made.get("data", {"name": str(data)})["name"].partition(",")[0] == str(data)
        assert str(ROOT) not in json.dumps(made)

    def test_the_page_shows_the_record(self, name, made):
        text = ALL[name].text(made, "PICTURE")
        assert text.startswith(f"## {ALL[name].title}\n\n{ALL[name].about}\n\nPICTURE\n\n")
        assert "|" in text
        assert "There is no record yet" not in text
        assert "There is no record yet" in ALL[name].text(None)

    def test_the_picture_is_drawn_from_the_record(self, name, made, tmp_path):
        if ALL[name].draw is not None:
            ALL[name].draw(made).savefig(tmp_path / "a.png")
            assert (tmp_path / "a.png").stat().st_size > 10_000


def test_they_are_found_and_ordered():
    assert set(ALL) == set(names())
    papers = [each.paper for each in ALL.values()]
    assert papers == sorted(papers, key=PAPERS.index)
    for paper in PAPERS:
        places = [e.place for e in ALL.values() if e.paper == paper]
        assert places == list(range(1, len(places) + 1))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """An experiment with three parts, whose record and checkpoints are in a temporary folder."""
    made = []

    def measure(settings, parts):
        def cell(name):
            made.append(name)
            return {"name": name, "value": 2.0 * settings["size"]}

        make = {name: lambda name=name: cell(name) for name in settings["cells"]}
        return {"rows": parts.rows("cells", make, size=settings["size"])}

    sizes = {"full": {"cells": ["a", "b", "c"], "size": 10}, "quick": {"size": 1}}
    about = {"place": 1, "seeds": (1, 2), "parted": True}
    file = tmp_path / "paper2000" / "toy.py"
    file.parent.mkdir()
    file.write_text('"""Toy.\n\nAbout.\n"""')
    choose = ("cells", "size")
    experiment = Experiment(
        str(file), measure, lambda record: "table", **sizes, **about, choose=choose
    )
    experiment.path = tmp_path / "toy.json"
    experiment.made = made
    monkeypatch.setattr("validation.experiment.ROOT", tmp_path)
    monkeypatch.setattr(experiment, "probe", lambda: {"commit": "0", "columns": {"x": [1.0]}})
    return experiment


class TestToy:
    def test_a_full_run(self, toy):
        assert toy.main([]) == 0
        made = toy.read()
        assert made["command"] == "python -m validation.papers.paper2000.toy"
        assert made["settings"] == toy.full | {"quick": False, "seeds": [1, 2], "threads": 1}
        assert [row["value"] for row in made["rows"]] == [20.0] * 3
        assert made["probe"]["columns"] == {"x": [1.0]}
        assert record.is_sealed(toy.path)
        assert list(toy.complaints(made)) == []

    def test_settings_and_numbers_that_changed(self, toy, monkeypatch):
        assert toy.main(["--cells", "a", "--seeds", "3"]) == 0
        made = toy.read()
        assert made["command"].endswith("toy --cells a --seeds 3")
        assert list(toy.complaints(made)) == []
        monkeypatch.setattr(toy, "probe", lambda: {"commit": "1", "columns": {"x": [1.1]}})
        (complaint,) = toy.complaints(made)
        assert complaint == "1 columns of its quick form changed: x is 1.1, not 1.0"
        assert list(toy.complaints(made, replay=False)) == []
        toy.full["size"] = 11
        (complaint,) = toy.complaints(made, replay=False)
        assert complaint == "it was made with size 10, and its command would now take 11"

    def test_parts_of_other_code_are_not_taken_up(self, toy, monkeypatch, capsys):
        assert toy.main([]) == 0
        folder = toy.path.parent / "build" / "paper2000" / "toy"
        with monkeypatch.context() as patch:
            patch.setattr(toy, "probe", lambda: {"commit": "1", "columns": {"x": [1.1]}})
            for options in ([], ["--out", "-"], ["--work", str(folder)]):
                assert toy.main(options) == 2
                assert "were computed by code that gives other numbers" in capsys.readouterr().err
        (folder / "toy.probe.json").unlink()
        toy.made.clear()
        assert toy.main([]) == 2
        assert "has parts without a probe" in capsys.readouterr().err
        assert toy.made == []

    def test_in_two_parts(self, toy, capsys):
        assert toy.main(["--part", "1/2"]) == toy.main(["--part", "2/2"]) == 0
        assert not toy.path.exists()
        assert toy.made == ["a", "c", "b"]
        assert toy.main([]) == 0
        assert toy.made == ["a", "c", "b"]
        assert [row["name"] for row in toy.read()["rows"]] == ["a", "b", "c"]
        for part in ("0/2", "3/2", "1", "a/b", "1/0"):
            assert toy.main(["--part", part]) == 2
            said = capsys.readouterr().err
            assert f"--part {part} is not a part: write --part 1/2 for the first of two" in said

    def test_parts_with_other_settings(self, toy, tmp_path, capsys):
        options = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "a.json")]
        assert toy.main([*options, "--size", "1"]) == 0
        assert toy.main([*options, "--size", "2"]) == 2
        said = capsys.readouterr().err
        assert "is of a run with size 1, not 2: name another folder with --work" in said

    def test_what_belongs_to_one_machine_is_left_out(self, toy, tmp_path, capsys):
        command = toy.command(shlex.split("--seeds 1 2 --work=/c --out /d --size 8"))
        assert command.endswith("toy --seeds 1 2 --size 8")
        # The recorded command would keep the path behind an option that is cut short.
        with pytest.raises(SystemExit):
            toy.main(["--quick", "--wor", str(tmp_path)])
        assert "unrecognized arguments: --wor" in capsys.readouterr().err
