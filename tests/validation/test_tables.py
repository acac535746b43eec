"""The tables of the committed results, which the README and the site show."""

import json

import pytest

from validation.reports import REPORTS
from validation.tools import readme, studies, summary, tables


def test_sections_of_what_was_not_measured_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
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
        assert tables.section(name).startswith("Not measured yet; `")
        (tmp_path / file).parent.mkdir()
        (tmp_path / f"{file}.json").write_text(json.dumps(about | report))
        text = tables.section(name)
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
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    path = tmp_path / f"{file}.json"
    text = f"<!-- results: {name} -->\n<!-- end -->"
    command = REPORTS[f"validation/results/{file}.json"].command
    assert tables.section(name) == f"Not measured yet; `{command}` does so.\n"
    [line] = readme.missing(text)
    assert line.startswith(f"validation/results/{file}.json is not there, and logunif-kl bench --")
    path.parent.mkdir()
    about = {"versions": {}, "machine": {"cpu": "c", "architecture": "a"}, "kernel": "avx2"}
    about |= {"command": "make it", "date": "2026-01-01T00:00", "threads": 1}
    path.write_text(json.dumps(about | report))
    assert readme.missing(text) == []
    section = tables.section(name)
    for cell in (*shown, "Made by `make it` (c, a, kernel avx2; ; 2026-01-01)."):
        assert cell in section, cell


ABOUT = {"machine": {"cpu": "c"}, "kernel": "avx2", "date": "2026-01-01T00:00"}


class TestInShort:
    def test_the_worst_over_the_kernels_of_a_column_is_rounded_up(self):
        row = {"function": "neg_kl", "dtype": "float64", "kernel": "avx2", "ulp": 1.0}
        rows = [
            row,
            row | {"kernel": "avx512", "ulp": 1.0001},
            row | {"kernel": "python", "ulp": 2},
        ]
        rows.append(row | {"kernel": "inductor", "dtype": "float32", "ulp": 2.5})
        line = summary.accuracy({"rows": rows[:2]}, {"rows": rows[2:]}).splitlines()[2]
        assert line.replace(" ", "") == "|neg_kl|1.001|–|2.500|–|"

    def test_a_ratio_of_ours_to_theirs_is_turned_over(self):
        def report(framework, **ratios):
            rows = [
                {"what": f"{what}, forward+backward", "median": m} for what, m in ratios.items()
            ]
            sizes = [{"size": size, "ratios": rows} for size in (10_000, 1_000_000, 10_000_000)]
            suites = [{"framework": framework, "sizes": sizes}]
            return ABOUT | {"machine": {"cpu": framework}, "suites": suites}

        torch = {"peers, eager / ours, eager": 4.0, "ours, compiled / peers, compiled": 0.5}
        jax = {"ours, jitted / peers, jitted": 1.25}
        of = {"Molchanov in NumPy / neg_kl, float64": 3.0, "scipy dawsn / kl_gap_grad": 9.0}
        bench = ABOUT | {"size": 1_000_000}
        bench["ratios"] = [{"what": what, "median": median} for what, median in of.items()]
        lines = summary.bench(bench, report("torch", **torch), report("jax", **jax)).splitlines()
        cells = [[cell.strip() for cell in line.split("|")[3:-1]] for line in lines[2:]]
        where = ["c (avx2)"] * 2 + ["torch (avx2)"] * 2 + ["jax (avx2)"]
        assert [line[0] for line in cells] == where
        times = [["", "3.0", ""], ["", "9.0", ""], ["4.0"] * 3, ["2.0"] * 3, ["0.8"] * 3]
        assert [line[1:] for line in cells] == times

    def test_the_commands_of_all_files_are_named(self):
        files = ("bench/bench", "bench/bench_torch")
        later = ABOUT | {"date": "2026-01-03T00:00"}
        commands = [f"`{REPORTS[f'validation/results/{file}.json'].command}`" for file in files]
        made = tables.made_in_short([ABOUT, later], files)
        assert made == f"Made by {', '.join(commands)} (c; 2026-01-01 to 2026-01-03)."


class TestStudies:
    def test_each_rung_has_its_errors_and_some_a_formula(self):
        def rung(terms, error):
            of = {"inside": {"max_error": error, "max_grad_error": 10 * error}}
            fits = {"value": of, "gradient": of, "value_text": {"torch": f"terms = {terms}\n"}}
            return {
                "family": "sigmoid",
                "terms": terms,
                "constants": 3,
                "transcendentals": 3,
            } | fits

        text = studies.ladder({"rungs": [rung(1, 0.005), rung(4, 0.00004)]})
        assert "| 1 sigmoid of log α  | 3 " in text
        assert "| 5.0e-03 " in text
        assert "| 0.04 % " in text
        assert "```python\nterms = 1\n```" in text
        assert "terms = 4" not in text

    def test_the_coverage_is_the_least_and_the_most(self):
        row = {"of": "value", "scheme": "plain", "variance_reduction": False, "n_samples": 4096}
        row |= {"seeds": 1000, "coverage": [0.95, 0.935, 0.9601]}
        mean = {"way": "w", "samples": [100, 1000], "mean": [0.5, 0.25]}
        gradient = {"log_alpha": 0.0, "exact_by_dawson": 0.36239, "running_means": [mean]}
        text = studies.monte_carlo({"coverage": [row], "coverage_of": "c", "gradient": gradient})
        assert "| plain, no control variate | 4,096   | 1,000 | 93.5 to 96.0 " in text
        assert "| w                          | 0.5000      | 0.2500        |" in text
        assert text.endswith("0.3624.")

    def test_a_kernel_has_its_bound(self):
        kernel = {"bytes": 12, "picoseconds": {"memory": 5.885, "a": 1.0}, "bound": "memory"}
        text = studies.cuda({"roofline": [{"gpu": "G", "kernels": {"value": kernel}}]})
        assert text.splitlines()[2].replace(" ", "") == "|G|value|12|5.88|1.00|memory|"
