"""What the README shows is what happens."""

import doctest
import json
import re
import shlex
import subprocess
import sys

import pytest

from validation.paths import ROOT
from validation.reports import REPORTS
from validation.tools import readme

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NEEDS = r"(?:^<!-- needs: (\w+) -->\n)?"
BLOCK = re.compile(NEEDS + r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = dict(re.findall(r"<!-- command: (\w+) -->\n```bash\n(.*?)\n```", TEXT, re.DOTALL))


def blocks(language: str, needs: str = "") -> list[str]:
    return [body for need, found, body in BLOCK.findall(TEXT) if (need, found) == (needs, language)]


def run(examples: list[str], at_least: int) -> None:
    """All of them in turn, in one namespace, as a reader would type them."""
    parser = doctest.DocTestParser()
    test = parser.get_doctest("".join(examples), {}, "README.md", "README.md", 0)
    assert len(test.examples) >= at_least
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)


def test_python_examples():
    run(blocks("python"), 20)


@pytest.mark.parametrize("framework", ["torch", "jax", "array_api_strict"])
def test_examples_of_a_framework(framework):
    pytest.importorskip(framework)
    run(blocks("python", framework), 3)


def test_the_command_for_torch():
    pytest.importorskip("torch")
    (command,) = (c for c in blocks("bash") if "import torch" in c)
    python, *rest = shlex.split(command)
    assert python == "python"
    done = subprocess.run([sys.executable, *rest], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"tensor\(\[[-+. ,\de]+\]\)\n", done.stdout)


def test_needs_are_those_that_are_tested():
    assert {need for need, _, _ in BLOCK.findall(TEXT)} == {"", "torch", "jax", "array_api_strict"}


def test_the_two_commands_are_there():
    assert set(COMMANDS) == {"main", "test"}
    assert COMMANDS["main"].endswith("logunif-kl compare")
    assert COMMANDS["test"].endswith("-m pytest")


@pytest.mark.parametrize("command", blocks("bash"))
def test_command_parses(command):
    """Each piece is shell, and each extra that it installs is declared."""
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for piece in command.replace("&&", "\n").splitlines():
        words = shlex.split(piece, comments=True)
        for extras in re.findall(r"^\.\[([\w,]+)\]$", "\n".join(words), re.MULTILINE):
            for extra in extras.split(","):
                assert re.search(rf"^{extra} = \[", metadata, re.MULTILINE), extra


SHOWN = sorted(set(re.findall(r"logunif-kl (\w+)", TEXT)))


@pytest.mark.parametrize("subcommand", SHOWN)
def test_subcommand_exists(subcommand):
    command = [sys.executable, "-m", "logunif_kl", subcommand, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_figures_are_those_of_the_results():
    assert readme.rewritten(TEXT) == TEXT


def test_sections_of_what_was_not_measured_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    about = {"versions": {"jax": "1"}, "machine": {"cpu": "c", "architecture": "a"}}
    about |= {"command": "make it", "date": "2026-01-01T00:00"}
    row = {"function": "neg_kl", "dtype": "float32", "kernel": "jax", "ulp": 2.3456}
    row |= {"command": "a part of it", "date": "2026-01-02T00:00"}
    later = row | {"date": "2026-01-03T00:00"}
    spread = {"median": 1.5, "lower_quartile": 1.25, "upper_quartile": 1.75}
    sized = {
        "size": 1000,
        "ratios": [{"what": "a / b", "must": "<= 2", "aim": "", **spread}],
        "nanoseconds_a_weight": {"a": spread, "copy": spread},
        "peak_bytes_a_weight": {"a": 12.0},
    }
    suite = {"framework": "jax", "device": "cpu", "threads": 1, "sizes": [sized]}
    for name, file, report, shown in (
        (
            "frameworks",
            "accuracy/jax",
            {"rows": [later, row]},
            (
                "JAX, jitted, float32",
                "2.346",
                "Made by `python -m validation.accuracy measure jax` "
                "(c, a; jax 1; 2026-01-02 to 2026-01-03).",
            ),
        ),
        (
            "training",
            "bench/bench_jax",
            {"suites": [suite]},
            ("1.50 (1.25 to 1.75) | <= 2", "12  ", "Made by `make it` (c, a; jax 1; 2026-01-01)."),
        ),
    ):
        assert readme.section(name).startswith("Not measured yet; `")
        (tmp_path / file).parent.mkdir()
        (tmp_path / f"{file}.json").write_text(json.dumps(about | report))
        text = readme.section(name)
        for cell in shown:
            assert cell in text


SPREAD = {"median": 1.5, "lower_quartile": 1.25, "upper_quartile": 1.75}
BY_SIZE = {
    "middle": 100_000,
    "sizes": [100, 100_000, 30_000_000],
    "by_size": [
        {
            "function": "kl_gap",
            "dtype": dtype,
            "results": kind,
            "size": size,
            "nanoseconds_an_element": SPREAD | {"median": 2.5 if dtype == "float64" else 1.0},
            "against_middle": SPREAD | {"median": against + (0.25 if dtype == "float64" else 0)},
            "must": "<= 1.5" if size == 30_000_000 else "",
            "aim": "<= 1.2" if size == 30_000_000 else "",
        }
        for dtype in ("float64", "float32")
        for kind, against in (("new arrays", 3.0), ("out=", 1.0))
        for size in (100, 100_000, 30_000_000)
    ],
    "cold": {
        "size": 1_000_000,
        "rows": [
            {
                "dtype": "float64",
                "nanoseconds_an_element": {"scipy dawsn": SPREAD, "kl_gap_grad": SPREAD},
                "ratio": SPREAD | {"median": 9.0},
                "must": ">= 8",
            }
        ],
    },
}
SLOWEST = {"argument": "mu", "at": "1e-25", "elements": "1 in 64", "against_usual": SPREAD}
BY_MAGNITUDE = {
    "by_function": [
        {
            "function": "neg_kl_normal",
            "framework": "torch",
            "dtype": "float32",
            "threads": 2,
            "usual_nanoseconds": SPREAD | {"median": 7.0},
            "slowest": [SLOWEST, SLOWEST | {"at": "nan"}],
            "must": "<= 2",
            "aim": "<= 1.3",
        }
    ]
}
RUN = {
    "optimizer": "Adam",
    "weights": 100_000,
    "dtype": "float32",
    "runs": [
        {
            "name": name,
            "nanoseconds_a_weight_at_step": {
                "0": {"step": 20.0, "penalty": 5.75, "optimizer": 7.0},
                "3000": {"step": 21.0, "penalty": 5.5, "optimizer": 8.0},
            },
            "worst_against_first": {"step": 1.125, "penalty": 1.375, "optimizer": 1.25},
            "must": must,
        }
        for name, must in (("ours", "<= 1.3"), ("peers", ""))
    ],
}


@pytest.mark.parametrize(
    ("name", "file", "report", "shown"),
    [
        (
            "sizes",
            "bench/bench_sizes",
            BY_SIZE,
            (
                "| c (avx2), one thread |",
                "| kl_gap ",
                "| 2.50 ",
                "| 1.25, 3.25 ",
                "At 30,000,000 elements the target is <= 1.5, and the aim <= 1.2.",
                "9.00 (1.25 to 1.75)",
            ),
        ),
        (
            "magnitudes",
            "bench/bench_magnitudes",
            BY_MAGNITUDE,
            (
                "torch: neg_kl_normal, 2 threads ",
                "mu: 1e-25 ",
                "1 in 64",
                "1.50 (1.25 to 1.75)",
                "<= 2, and",
            ),
        ),
        (
            "run",
            "bench/bench_training",
            RUN,
            (
                "Adam, 100,000 weights, float32, c (avx2), one thread",
                *("ours: the penalty ", "ours: Adam "),
                "ns a weight at step 3,000",
                *("5.8", "8.0 ", "1.12 ", "1.38 ", "1.25 ", "<= 1.3"),
            ),
        ),
    ],
)
def test_sections_of_speed(name, file, report, shown, tmp_path, monkeypatch):
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    path = tmp_path / f"{file}.json"
    text = f"<!-- results: {name} -->\n<!-- end -->"
    command = REPORTS[f"validation/results/{file}.json"].command
    assert readme.section(name) == f"Not measured yet; `{command}` does so.\n"
    [line] = readme.missing(text)
    assert line.startswith(f"validation/results/{file}.json is not there, and logunif-kl bench --")
    path.parent.mkdir()
    about = {"versions": {}, "machine": {"cpu": "c", "architecture": "a"}, "kernel": "avx2"}
    about |= {"command": "make it", "date": "2026-01-01T00:00", "threads": 1}
    path.write_text(json.dumps(about | report))
    assert readme.missing(text) == []
    section = readme.section(name)
    for cell in (*shown, "Made by `make it` (c, a, kernel avx2; ; 2026-01-01)."):
        assert cell in section, cell


def test_one_file_pins_the_frameworks(tree):
    pinned = (tree / "validation" / "frameworks.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^[\w-]+==[\w.]+$", pinned, re.MULTILINE)) >= 7
    for name in ("CONTRIBUTING.md", ".ci/run"):
        text = (tree / name).read_text(encoding="utf-8")
        assert "-r validation/frameworks.txt" in text
        assert re.findall(r"[\w-]+==\d[\w.]*", text) == []
