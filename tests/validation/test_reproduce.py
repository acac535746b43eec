"""One command for all experiments: what it knows, what it runs, and how it goes on."""

import ast
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from validation.paths import RESULTS, ROOT
from validation.reproduce import __main__ as command
from validation.reproduce import listing, work
from validation.training.data import Dataset, Split

pytest.importorskip("torch", reason="the experiments need PyTorch")

SYSTEMS = listing.systems()
WORKS = work.works()
PUBLIC = (ROOT / "tests" / "golden" / "public.txt").read_text(encoding="utf-8").splitlines()
CLAIMS = json.loads((RESULTS / "papers" / "papers.json").read_text(encoding="utf-8"))["claims"]
# Two experiments whose records are there, and which need no data.
TWO = ("hron2017.remarks", "hron2017.slides")


def files():
    return {p: hashlib.sha256(p.read_bytes()).digest() for p in RESULTS.rglob("*.*")}


def dataset(name):
    return Dataset(name, *[Split(np.zeros((1, 4)), np.zeros(1))] * 2, "")


@pytest.fixture
def ran(monkeypatch):
    """Run nothing, and note what would have been; a status per module can be set."""
    for variable in command.data.VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    made, status = [], {}

    def run(argv):
        made.append(argv)
        return status.get(argv[2].rpartition(".")[2], 0)

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(command, "find_spec", lambda name: name)  # nothing of PyTorch is needed
    run.made, run.status = made, status
    return run


FILES = dict.fromkeys(command.OPTIONS, "FILE")


class TestWorks:
    @pytest.mark.parametrize("name", WORKS)
    def test_its_commands_are_there_and_the_small_form_writes_into_its_folder(self, name, tmp_path):
        full = work.full_command(WORKS[name], FILES)
        quick = WORKS[name].quick_command(tmp_path)
        for argv in (full, quick):
            assert argv[:2] == [sys.executable, "-m"]
            path = ROOT.joinpath(*argv[2].split("."))
            module = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
            assert "__name__" in module.read_text(encoding="utf-8")
        words = quick[3:]
        assert ("--quick" in words) == bool(WORKS[name].paper)
        assert "--data" not in words
        assert not any(word.startswith("validation/results") for word in words)
        for option in {"--out", "--work", "--plot", "--output"}.intersection(words):
            assert Path(words[words.index(option) + 1]).is_relative_to(tmp_path)
        if name == "papers":
            assert set(words) < {each["name"] for each in CLAIMS}

    def test_a_choice(self):
        assert work.chosen(["hron2017.slides", "papers"]) == ["papers", "hron2017.slides"]
        whole = [name for name in WORKS if name.startswith("kingma2015.")]
        assert work.chosen(["kingma2015", "kingma2015.speed"]) == whole
        assert work.chosen([]) == list(WORKS)

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("kingma2015.sped", "did you mean kingma2015.speed"),
            ("hron", "did you mean hron2017?"),
            ("x", "name kingma2015, hron2017, molchanov2017, haussmann2018, gal2016, papers, "),
        ],
    )
    def test_a_name_of_none(self, name, hint, capsys, ran):
        assert command.main([name]) == 2
        said = capsys.readouterr().err
        assert f"error: there is no experiment or paper '{name}': {hint}" in said
        assert said.count("\n") == 1
        assert ran.made == []


class TestList:
    def test_it_is_complete(self):
        papers = [each.paper for each in SYSTEMS]
        assert list(dict.fromkeys(papers)) == list(listing.PAPERS)
        assert papers == sorted(papers, key=list(listing.PAPERS).index)
        assert {each.paper for each in WORKS.values() if each.paper} < set(listing.PAPERS)
        assert {name for each in SYSTEMS for name in each.run} <= set(WORKS)
        assert {name for each in SYSTEMS for name in each.claims} == {c["name"] for c in CLAIMS}

    def test_every_section_of_the_sources_has_an_entry(self):
        assert list(listing.sections()) == list(listing.PAPERS)
        for paper, sections in listing.sections().items():
            places = [place for section in sections.values() for place in section]
            assert sorted(places) == sorted({s.where for s in SYSTEMS if s.paper == paper})
            assert all(sections.values()), paper

    def test_what_was_not_tried_has_a_cost(self):
        untried = [each for each in SYSTEMS if each.without and not (each.run or each.claims)]
        assert untried
        assert [each.what for each in untried if not each.cost] == []
        assert all(each.cost in line for each in untried for line in each.shown_by()[-1:])

    @pytest.mark.parametrize("each", SYSTEMS, ids=lambda s: f"{s.paper}: {s.what[:40]}")
    def test_an_entry(self, each):
        assert each.where
        assert each.what
        assert each.shown_by()
        for name in each.library:
            assert exists(name), name
        for test in each.tests:
            path, _, inside = test.partition("::")
            assert not inside or inside in defined(ROOT / path), test
            assert (ROOT / path).is_file(), test

    def test_all_of_it_is_printed(self, capsys, ran):
        assert command.main(["--list"]) == 0
        said = capsys.readouterr().out
        for each in SYSTEMS:
            assert f"{each.where}: {each.what}\n" in said
            assert all(f"    {line}\n" in said for line in each.shown_by())
        assert "validation/results/hron2017/slides.json (hron2017.slides)\n" in said
        assert command.main(["--list", "molchanov2017"]) == 0
        said = capsys.readouterr().out
        assert listing.PAPERS["molchanov2017"] in said
        assert listing.PAPERS["hron2017"] not in said
        assert ran.made == []


def exists(name):
    """Whether a public name is on file, or a name of `validation` is defined in its module."""
    if name.startswith("logunif_kl."):
        return any(line.startswith((f"{name}(", f"{name}:")) for line in PUBLIC)
    module, _, inside = name.rpartition(".")
    return inside in defined(ROOT.joinpath(*module.split(".")).with_suffix(".py"))


def defined(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}


NONE, FASHION = "no data are named", "haussmann2018.fashion takes Fashion-MNIST"


class TestFull:
    @pytest.mark.parametrize(
        ("given", "arguments", "taker", "why"),
        [
            (None, "hron2017.slides kingma2015", "constraint and 13 more take MNIST", NONE),
            ("MNIST", "haussmann2018.fashion --data m", FASHION, NONE),
            ("MNIST", "haussmann2018.fashion --data m --fashion-mnist m", FASHION, "m is MNIST"),
            ("Fashion-MNIST", "kingma2015.speed --data f", "takes MNIST", "f is Fashion-MNIST"),
        ],
    )
    def test_without_its_images_nothing_is_run(
        self, given, arguments, taker, why, ran, capsys, monkeypatch
    ):
        """A wrong file is not found out after the hours of the other experiments."""
        if given:
            monkeypatch.setattr(command.data, "read", lambda named: dataset(given))
        assert command.main(arguments.split()) == 2
        option = "--fashion-mnist" if taker == FASHION else "--data"
        said = capsys.readouterr().err
        assert said.startswith("python -m validation.reproduce: error: nothing was run, since ")
        assert f"{taker}, and {why}: give {option} FILE or set LOGUNIF_KL_" in said
        assert said.count("\n") == 1
        assert ran.made == []

    def test_a_file_that_is_not_there(self, ran, capsys, tmp_path):
        assert command.main(["gal2016.rotated", "--data", str(tmp_path / "no.npz")]) == 2
        said = capsys.readouterr().err
        assert "nothing was run, since gal2016.rotated takes MNIST, and there is no file" in said
        assert ran.made == []

    def test_without_pytorch_nothing_is_run(self, ran, capsys, monkeypatch):
        monkeypatch.setattr(command, "find_spec", lambda name: None)
        assert command.main(["papers", *TWO]) == 2
        assert ran.made == []
        assert capsys.readouterr().err == (
            "python -m validation.reproduce: error: nothing was run, since hron2017.remarks needs "
            "PyTorch, which is not installed: run pip install -r validation/frameworks.txt\n"
        )
        assert command.main(["papers"]) == 0

    def test_each_experiment_gets_its_images(self, ran, monkeypatch):
        monkeypatch.setattr(command.data, "read", dataset)
        names = ["kingma2015.speed", "haussmann2018.fashion", "haussmann2018.colour"]
        names.append("hron2017.slides")
        monkeypatch.setattr(command, "results", lambda *_: "")
        files = [w for k, option in command.OPTIONS.items() for w in (option, f"/{k}")]
        assert command.main([*names, *files]) == 0
        for images, variable in command.data.VARIABLES.items():
            monkeypatch.setenv(variable, f"/{images}")
        assert command.main(names) == 0
        images = ["--data", "/MNIST"], [], ["--data", "/CIFAR-10"], ["--data", "/Fashion-MNIST"]
        assert [argv[3:] for argv in ran.made] == [*images, *images]

    @pytest.mark.parametrize(("status", "how"), [(2, "exit status 2"), (-9, "signal 9")])
    def test_after_a_failure_the_others_are_run(self, ran, capsys, status, how):
        ran.status["remarks"] = status
        assert command.main(TWO) == 1
        assert [argv[2] for argv in ran.made] == [f"validation.papers.{name}" for name in TWO]
        said = capsys.readouterr()
        assert "[1/2] hron2017.remarks: Remarks 1 and 2 (python -m validation" in said.out
        assert "1 of 2 were run without failure." in said.out
        assert said.err == (
            f"python -m validation.reproduce: hron2017.remarks failed with {how}: run "
            "python -m validation.papers.hron2017.remarks to see why\n"
        )
        assert "[2/2] hron2017.slides: Slides about" in said.out


class TestProcess:
    def test_none_outlives_this_one(self, tmp_path):
        """A signal to the command alone, which a terminal sends to all its processes."""
        file = tmp_path / "pid"
        child = f"import os, time; open({str(file)!r}, 'w').write(f'{{os.getpid()}}.'); "
        code = (
            "import sys\nfrom validation.reproduce import __main__ as command\n"
            "with command._terminated_as_interrupted():\n"
            f"    command.run([sys.executable, '-c', {child + 'time.sleep(600)'!r}])\n"
        )
        started = [sys.executable, "-c", code]
        with subprocess.Popen(started, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: file.exists() and file.read_text().endswith("."))
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
        assert "KeyboardInterrupt" in said
        until(lambda: gone(int(file.read_text()[:-1])))


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("name", [name for name in work.STUDIES if name != "monte_carlo"])
def test_each_study_but_monte_carlo_which_prints_its_own(name):
    assert "|" in work.results(WORKS[name])


class TestQuick:
    def test_a_study(self, capfd):
        before = files()
        assert command.main(["--quick", "papers"]) == 0
        said = capfd.readouterr().out
        assert "[1/1] papers: what the papers state, decided (in its quick form)" in said
        assert "\nholds        hron-equation-1: it agrees with the integral" in said
        assert files() == before

    @pytest.mark.slow
    def test_every_study_and_an_experiment(self, capfd):
        before = files()
        assert command.main(["--quick", *work.STUDIES, "hron2017.slides"]) == 0
        said = capfd.readouterr().out
        assert "[5/5] hron2017.slides: Slides about Kingma et al. 2015 (in its quick form)" in said
        assert "The numbers are those of a small form; the words are of the full one." in said
        assert "the only prior that" in said
        assert files() == before

    def test_which_failed(self, ran, capsys):
        ran.status["slides"] = 1
        assert command.main(["--quick", "hron2017.slides"]) == 1
        (sentence,) = capsys.readouterr().err.splitlines()
        words = shlex.split(sentence.partition(": run ")[2].removesuffix(" to see why"))
        assert words[:4] == ["python", "-m", "validation.papers.hron2017.slides", "--quick"]
