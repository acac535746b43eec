"""The capability table: what the tests say of themselves, and a tool that a failure is seen by."""

import json
import re
import shutil

import pytest

from validation import record
from validation.paths import ROOT
from validation.tools.capability import __main__ as tool
from validation.tools.capability.table import Capability

CASES = """
import pytest


@pytest.mark.parametrize("fine", [True, {second}])
def test_of_two(fine, record_property):
    record_property("capability", "neg_kl:mpmath:grad")
    assert fine


def test_of_one(record_property):
    record_property("capability", "neg_kl:mpmath:vmap: nested")
    record_property("capability", "kl:mpmath:vmap: nested")
    record_property("other", "kl:mpmath:nothing")


def test_skipped(record_property):
    record_property("capability", "kl:mpmath:skipped")
    pytest.skip("not here")


@pytest.mark.xfail(reason="known")
def test_expected_failure(record_property):
    record_property("capability", "kl:mpmath:expected")
    assert {second} is None


@pytest.fixture
def broken():
    yield
    assert {second}


def test_teardown(record_property, broken):
    record_property("capability", "kl:mpmath:teardown")


@pytest.mark.slow
def test_slow(record_property):
    record_property("capability", "kl:mpmath:slow")
"""


GRAD = Capability("mpmath", "grad", "neg_kl")
NESTED = {Capability("mpmath", "vmap: nested", name) for name in ("neg_kl", "kl")}
TEARDOWN = Capability("mpmath", "teardown", "kl")
SLOW = Capability("mpmath", "slow", "kl")
ALL = {row: {"default"} for row in (GRAD, *NESTED, TEARDOWN)}


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """The tool with the tests above alone: the file is returned, in which the second test fails."""
    path = tmp_path / "test_cases.py"
    path.write_text(CASES.format(second=False))
    monkeypatch.setattr(tool, "RESULT", tmp_path / "capability.json")
    monkeypatch.setattr(tool, "TESTS", {"mpmath": (str(tmp_path),)})
    return path


def rows():
    return tool.on_file()[1]


def write(*more):
    """Write the table of a default run in which all tests passed, and return the file's text."""
    tool.write({**ALL, **{row: {"default"} for row in more}}, {}, "first", "default")
    return tool.RESULT.read_text()


def test_passing_tests_make_the_table(tests, capsys):
    tests.write_text(CASES.format(second=True))
    assert tool.main([]) == 1  # the expected failure
    assert rows() == ALL
    captured = capsys.readouterr()
    assert "kl in mpmath: expected: " in captured.err
    assert re.search(r"\| vmap: nested +\| yes +\| yes +\|", captured.out)
    assert tool.main(["--print"]) == 0
    assert capsys.readouterr().out in captured.out
    assert record.is_sealed(tool.RESULT)


def test_a_failing_test_takes_the_capability_away(tests, capsys):
    before = write()
    tests.write_text(tests.read_text().replace("neg_kl:mpmath:vmap", "neg_kl:mpmath:new"))
    assert tool.main(["--check"]) == 1
    assert tool.RESULT.read_text() == before
    said = capsys.readouterr().err
    assert "neg_kl in mpmath: grad: on file, and not shown by this default run" in said
    assert "neg_kl in mpmath: new: nested: shown by this default run, and not on file" in said
    assert re.search(r"neg_kl in mpmath: grad: .*test_of_two\[False\] failed", said)
    assert re.search(r"kl in mpmath: teardown: .*test_teardown failed", said)
    assert "\nkl in mpmath: vmap" not in said
    assert tool.main([]) == 1
    assert set(rows()) == {
        Capability("mpmath", "new: nested", "neg_kl"),
        Capability("mpmath", "vmap: nested", "kl"),
    }


def test_nothing_is_lost_where_tests_cannot_run(tests, capsys, monkeypatch):
    before = write()
    tests.write_text("import a_module_that_is_not_there")
    assert tool.main([]) == 1
    said = capsys.readouterr().err
    assert "the tests of mpmath failed (pytest: 2)" in said
    assert "nothing was written, for the tests of mpmath did not run to their end" in said
    monkeypatch.setattr(tool.sys, "executable", shutil.which("false"))  # no pytest, and no report
    assert tool.main([]) == tool.main(["--check"]) == 1
    assert tool.RESULT.read_text() == before


def test_a_run_keeps_the_rows_of_others_and_of_frameworks_that_are_not_installed(tests, capsys):
    absent = Capability("no-such-library", "grad", "kl")
    first = json.loads(write(absent))["runs"]["default"]
    assert tool.main(["--run", "slow"]) == 0
    captured = capsys.readouterr()
    assert "no-such-library is not installed: its 1 rows are as they were on file" in captured.out
    assert captured.err == ""
    assert rows() == ALL | {absent: {"default"}, SLOW: {"slow"}}
    document = json.loads(tool.RESULT.read_text())
    made = document["runs"]
    assert made == {"default": first, "slow": made["slow"]}
    assert made["slow"]["command"] == "python -m validation.tools.capability --run slow"
    for run, about in made.items():
        version = about["versions"]["mpmath"]
        shown = document["made_with"]["mpmath"][run]
        assert shown == {"version": f"mpmath {version}", "date": about["date"]}


def test_every_test_that_records_is_run_by_the_tool():
    known = [ROOT / path for paths in tool.TESTS.values() for path in paths]
    for path in (ROOT / "tests").rglob("test_*.py"):
        found = r'\bcapability\(|record_property\(\s*"capability"'
        if re.search(found, path.read_text("utf-8")) and path.name != "test_capability.py":
            assert any(path.is_relative_to(each) for each in known), path
