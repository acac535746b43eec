"""Committed records: each is what its command wrote, and what today's code would write."""

import json
import math
import os
from importlib.util import find_spec

import pytest

from validation import record
from validation.output import write_record
from validation.papers import __main__ as papers
from validation.paths import RESULTS
from validation.tools import trained

RECORDS = {path.relative_to(RESULTS).as_posix(): path for path in record.committed()}
PAPERS = ("kingma2015", "hron2017", "molchanov2017", "haussmann2018", "gal2016")
WITH_FRAMEWORKS = all(map(find_spec, ("torch", "triton", "numpyro", "sklearn", "torchmetrics")))
# Of speed, of a search of half an hour, and of tests that CI runs: their seal alone is looked at.
EVIDENCE = {"bench", "capability", "fuzz"}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_holds(name):
    """Without running it again: `python -m validation.record check` does that."""
    path, folder = RECORDS[name], name.partition("/")[0]
    if folder in PAPERS and not WITH_FRAMEWORKS:
        assert record.is_sealed(path)
        return
    assert record.judge(path, replay=False).complaints == []
    assert (record._maker(record.read(path)["command"]) is None) == (folder in EVIDENCE)


@pytest.fixture
def sealed(tmp_path, monkeypatch):
    """A record of two of the papers' statements, outside of the repository."""
    document = record.read(RECORDS["papers/papers.json"])
    chosen = [each for each in document["claims"] if each["name"] in ("hron-equation-1", "hron-u")]
    known = {each["name"]: papers.STATEMENTS[each["name"]] for each in chosen}
    monkeypatch.setattr(papers, "STATEMENTS", known)
    path = tmp_path / "papers.json"
    write_record(str(path), {**document, "claims": chosen})
    return path


class TestSeal:
    def test_a_digit_that_was_changed_is_found(self, sealed):
        text = sealed.read_text()
        digit = text.index("0.", text.index("measured")) + 2
        sealed.write_text(text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :])
        (complaint,) = record.judge(sealed).complaints
        assert complaint == "it is not what its command wrote: its content was changed"

    def test_it_does_not_depend_on_how_json_is_written(self, tmp_path):
        document = {"b": [1.5, {1: 2.0, 10: 3, 2: None}], "a": math.inf}
        path = tmp_path / "a.json"
        write_record(str(path), document)
        found = json.loads(path.read_text())
        assert found["a"] == "inf"
        path.write_text(json.dumps(dict(reversed(found.items()))))
        assert record.is_sealed(path)
        assert record.read(path)["a"] == math.inf


def differ(before, now, **options):
    columns = (record.columns({"rows": rows}) for rows in (before, now))
    return list(record.differences(*columns, **options))


class TestDifferences:
    def test_numbers_are_compared_with_the_largest_of_their_column(self):
        first, second = {"x": 100.0, "y": 1.0}, {"x": 1.0, "y": 1.0}
        for changed, said in (
            ({"x": 1.0009}, []),
            ({"x": 1.0011}, ["rows.*.x is 1.0011, not 1.0"]),
            ({"y": 1.00002}, ["rows.*.y is 1.00002, not 1.0"]),
        ):
            assert differ([first, second], [first, second | changed]) == said

    def test_or_each_with_itself(self):
        assert differ([100.0, 1.0], [100.0, 1.00002], each=True) == ["rows.* is 1.00002, not 1.0"]
        assert differ([100.0, 1e-17], [100.0, 2e-17], each=True) == []

    @pytest.mark.parametrize(
        ("before", "now"),
        [
            *(([True], [False]), (["holds"], ["fails"]), ([None], [0.0]), ([1.0], [math.nan])),
            *(([0.0], [1e-300]), ([1.0], [1.0, 1.0]), ([{"x": 1.0}], [{"y": 1.0}])),
            ([math.inf], [-math.inf]),
        ],
    )
    def test_anything_else_must_be_the_same(self, before, now):
        assert len(differ(before, now)) == len({*record.columns({"": [before, now]})})
        assert differ(before, before) == []

    def test_clocks_and_noise_are_left_out(self):
        document = {"seconds_a_step": 1.0, "rows": [{"x": 2.0, "noise": {"a": 3.0}}]}
        assert record.columns(document, ("*.noise.*",)) == {"rows.*.x": [2.0]}

    def test_strings_of_numbers_are_numbers(self):
        assert record.columns({"x": ["1.5", "nan", "text"]})["x.*"][::2] == [1.5, "text"]


class TestCheck:
    def test_one_that_does_not_hold_is_named(self, sealed, monkeypatch, capsys):
        monkeypatch.setattr(record, "ROOT", sealed.parent)
        sealed.write_text(sealed.read_text().replace("holds", "fails", 1))
        monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        assert record.check([sealed], 1) == 1
        said = capsys.readouterr().out
        assert said.startswith("papers.json: it is not what its command wrote: its content was ")
        assert said.splitlines()[0].endswith(". python -m validation.papers makes it again.")
        assert "\n0 of 1 records hold. 0 were computed again" in said

    def test_a_verdict_that_changed_is_found(self, sealed):
        assert record.judge(sealed) == ([], True)
        document = record.read(sealed)
        document["claims"][0]["verdict"] = "holds or fails"
        write_record(str(sealed), document)
        (complaint,) = record.judge(sealed).complaints
        assert complaint.startswith("1 columns changed: claims.*.verdict is 'holds")

    def test_a_study_and_a_record_that_was_changed_get_no_probe(self, sealed, capsys):
        arguments = ["reprobe", str(sealed), "--because", "It is old."]
        assert record.main(arguments) == 2
        assert "papers.json has no probe: only the records of" in capsys.readouterr().err
        sealed.write_text(sealed.read_text().replace("holds", "fails", 1))
        assert record.main(arguments) == 2
        assert "papers.json was changed by hand" in capsys.readouterr().err

    def test_a_record_that_cannot_be_compared_is_named(self, sealed):
        document = record.read(sealed)
        write_record(str(sealed), {**document, "command": "python -m validation.nothing"})
        (complaint,) = record.judge(sealed).complaints
        assert complaint.startswith("it could not be compared (ModuleNotFoundError(")


@pytest.mark.skipif(not WITH_FRAMEWORKS, reason="experiments need the frameworks")
class TestExperiment:
    @pytest.fixture
    def remarks(self):
        from validation.papers.hron2017.remarks import EXPERIMENT

        return EXPERIMENT

    def test_its_probe(self, remarks, tmp_path, monkeypatch, capsys):
        """A probe that does not hold is found; a new one needs a reason, which is kept."""
        made = remarks.read()
        name = "remark_1.*.kl"
        before = made["probe"]["columns"][name]
        made["probe"]["columns"][name] = [2.0 * each for each in before]
        path = tmp_path / "remarks.json"
        write_record(str(path), made)
        (complaint,) = record.judge(path).complaints
        assert complaint.startswith(f"1 columns of its quick form changed: {name} is ")
        assert record.main(["reprobe", str(path), "--because", "It was doubled."]) == 0
        found = record.read(path)
        (old,) = found["replaced_probes"]
        assert (old["because"], old["probe"]) == ("It was doubled.", made["probe"])
        assert record.judge(path) == ([], True)
        assert "It was doubled." in remarks.text(found)


def test_the_picture_of_the_readme(tmp_path):
    """It is what the record gives, but for the edges of letters."""
    image = pytest.importorskip("matplotlib.image")
    trained.save(tmp_path / "trained.png")
    now, then = (image.imread(p)[..., :3] for p in (tmp_path / "trained.png", trained.PICTURE))
    assert now.shape == then.shape
    assert (abs(now - then).max(-1) > 0.3).mean() < 0.001
