"""The accuracy reports: one command makes each, on this machine or beside it on another."""

import json
import os

import pytest

from tests.validation.test_accuracy import ROW
from validation.accuracy import __main__ as commands
from validation.accuracy import bits, driver, plan
from validation.paths import RESULTS


def rows_of(report):
    text = (RESULTS / "accuracy" / f"{report}.json").read_text(encoding="utf-8")
    return json.loads(text)["rows"]


class TestPlan:
    def test_reports(self):
        """All but that of Triton's interpreter are committed; of two, another from Intel's."""
        here = {path.stem for path in driver.RESULTS.glob("*.json") if "." not in path.stem}
        assert here == set(plan.PARTS) - {"triton"} | {"torch_avx2", "isotropic_intel"}
        for report in sorted(here):
            name = report.removesuffix("_avx2").removesuffix("_intel")
            found = driver.read(driver.RESULTS / f"{report}.json")
            assert found["command"] == f"python -m validation.accuracy measure {name}"

    @pytest.mark.parametrize("report", [report for report in plan.PARTS if report != "triton"])
    def test_one_command_makes_the_committed_report(self, report):
        """Each job has its row, with no fewer inputs tried, and each row its job."""
        jobs = plan.jobs(report, plan.kernels(report), 1)
        # The report of isotropic functions on AMD was made before k = 0.5 and 0.7 were measured.
        rows = rows_of("isotropic_intel" if report == "isotropic" else report)
        assert all(driver.is_done(job, rows) for job in jobs)
        assert not any(driver.is_done(job | {"count": 10**12}, rows) for job in jobs)
        assert len(jobs) == len(rows)
        for row in rows:
            assert plan.report_of(row["function"], row["dtype"], row["kernel"]) == report

    def test_pytorch_has_a_report_of_its_own_unless_on_intel_with_avx512(self, monkeypatch):
        of_torch = rows_of("torch")
        assert {driver.key(row) for row in rows_of("torch_avx2")} == set(map(driver.key, of_torch))
        for cpu, kernels, name in (
            ("Intel(R) Xeon(R) Processor @ 2.80GHz", ("avx512", "avx2"), "torch.json"),
            ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", ("avx2", "python"), "torch_avx2.json"),
            ("AMD EPYC", ("avx512", "avx2"), "torch_avx2.json"),
        ):
            monkeypatch.setattr(plan, "cpu_name", lambda found=cpu: found)
            monkeypatch.setattr(plan.ufuncs, "available_kernels", lambda found=kernels: found)
            assert plan.file("torch") == name
            assert (plan.file("isotropic") == "isotropic_intel.json") == (name == "torch.json")
            assert plan.file("jax") == "jax.json"


HERE = {"machine": {"cpu": "A (R) 1", "architecture": "x"}, "versions": {"numpy": "1"}}
ELSEWHERE = {**HERE, "machine": {"cpu": "B", "architecture": "x"}}


ARGUMENTS = ["measure", "search", "--kernels", "python", "--functions", "kl_gap", "neg_kl"]
ARGUMENTS += ["--dtypes", "float64", "--count", "10"]


def row(function, ulp):
    return ROW | {"function": function, "kernel": "python", "range": "all", "ulp": ulp}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A committed report of HERE, and what is done when it is measured again."""
    report = tmp_path / "search.json"
    monkeypatch.setattr(driver, "RESULTS", tmp_path)
    monkeypatch.setattr(driver, "WORST_INPUTS", tmp_path / "worst" / "inputs.json")
    monkeypatch.setattr(bits, "differences", lambda record: {})
    about = {"command": "c", "date": "d"}
    driver.save([row("kl_gap", 0.7501)], report, HERE | about)

    def measured(*rows, conditions=HERE, out=tmp_path):
        monkeypatch.setattr(driver, "conditions", lambda *args: conditions | about)
        todo = []

        def measure(jobs, console):
            todo.extend(job["function"] for job in jobs)
            yield from (r for r in rows if r["function"] in todo)

        monkeypatch.setattr(driver, "measure", measure)
        before = report.read_bytes()
        status = commands.main([*ARGUMENTS, "--out", str(out)])
        return status, todo, report.read_bytes() == before

    return measured


def test_rows_of_other_conditions_are_refused(measured, capsys):
    assert measured(row("neg_kl", 3.0), conditions=ELSEWHERE) == (1, [], True)
    said = " ".join(capsys.readouterr().err.split())
    assert "search.json was measured with cpu A (R) 1, not B: measure where that is" in said


@pytest.mark.parametrize("folder", ["new", "."])
def test_rows_go_into_the_report_or_a_named_folder(measured, tmp_path, folder):
    status, _, unchanged = measured(row("neg_kl", 0.9), out=tmp_path / folder)
    assert (status, unchanged) == (0, folder == "new")
    assert (tmp_path / folder / "search.json").exists()
    assert driver.WORST_INPUTS.exists() == (folder == ".")


def test_a_report_of_which_nothing_can_be_measured_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(driver, "kernels", lambda: ("python",))
    assert commands.main(["measure", "jax"]) == 1
    assert "none of jax can be measured here\n" in capsys.readouterr().err
    assert commands.main(["measure", "neon"]) == 1
    assert " ".join(capsys.readouterr().err.split()) == (
        "none of neon can be measured here; python -m validation.tools.emulated --measure does it"
    )


def test_an_extension_older_than_its_sources_is_refused(monkeypatch, tmp_path):
    (tmp_path / "c").mkdir()
    source = tmp_path / "c" / "exact.h"
    for path, time in ((source, 1000), (tmp_path / "_exact.so", 2000)):
        path.touch()
        os.utime(path, (time, time))
    monkeypatch.setattr(driver, "PACKAGE", tmp_path)
    monkeypatch.setattr(driver, "_EXTENSIONS", {"_exact": ("c",)})
    driver.conditions("search")
    os.utime(source, (3000, 3000))
    with pytest.raises(RuntimeError, match=r"^the extension is older than its sources: build it"):
        driver.conditions("search")


def test_what_is_there_is_not_measured_again(monkeypatch, tmp_path):
    """But for rows that other code gave."""
    about = HERE | {"command": "c", "date": "d"}
    monkeypatch.setattr(driver, "RESULTS", tmp_path)
    monkeypatch.setattr(driver, "kernels", lambda: ("jax",))
    monkeypatch.setattr(driver, "conditions", lambda *args: about)
    rows = rows_of("jax")
    driver.save(rows, tmp_path / "jax.json", about)
    counted = []

    def measure(jobs, console):
        counted.append(len(jobs))
        yield from ()

    monkeypatch.setattr(driver, "measure", measure)
    other = {}
    monkeypatch.setattr(bits, "differences", lambda record: other)
    arguments = ["measure", "jax", "--out", str(tmp_path)]
    assert commands.main(arguments) == 0
    other[driver.key(rows[0])] = "other bits"
    assert commands.main(arguments) == 0
    assert counted == [0, 1]
