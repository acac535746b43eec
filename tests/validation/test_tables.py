"""The tables of the committed results, which the README and the site show."""

import math

import pytest

from logunif_kl.cli.bench.training import with_quartiles
from validation import record
from validation.tools import summary, tables


def records(name):
    """The records of a section that exist."""
    paths = (tables.RESULTS / f"{file}.json" for file in tables.SECTIONS[name][1])
    return [record.read(path) for path in paths if path.exists()]


def cells(name):
    """The cells of all rows of the tables of a section, by the first cell."""
    lines = (line for line in tables.section(name).splitlines() if line.startswith("| "))
    rows = ([cell.strip() for cell in line.split(" | ")] for line in lines)
    return {row[0].strip("| "): [*row[1:-1], row[-1].strip("| ")] for row in rows}


@pytest.mark.parametrize("name", tables.SECTIONS)
def test_each_section_shows_its_records(name, tmp_path, monkeypatch):
    text = tables.section(name)
    assert text.count("\n| -") + text.startswith("| -") > 0
    assert all(f"`{each['command']}`" in text for each in records(name))
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    if name in tables.WHERE_MEASURED:
        assert tables.section(name) == "Not measured yet.\n"


def test_what_made_a_record():
    about = {"versions": {"logunif_kl": "1", "jax": "2"}, "command": "make it", "commit": "f00"}
    about |= {"machine": {"cpu": "c", "architecture": "a"}, "date": "2026-01-01T00:00"}
    assert tables.made_by(about) == "Made by `make it` (c, a; jax 2; 2026-01-01, commit f00)."
    rows = [{"date": f"2026-01-0{day}T00:00"} for day in (3, 2)]
    assert tables.made_by(about | {"kernel": "k", "rows": rows}) == (
        "Made by `make it` (c, a, kernel k; jax 2; 2026-01-02 to 2026-01-03, commit f00)."
    )
    made = tables.made_in_short([about, about | {"command": "b", "date": "2026-01-03T00:00"}])
    assert made == "Made by `make it`, `b` (c; 2026-01-01 to 2026-01-03)."


class TestSpeed:
    def test_sizes_show_the_worse_type(self):
        of = records("sizes")[0]
        rows = [row for row in of["by_size"] if row["function"] == "kl_gap"]
        shown = cells("sizes")
        for kind in ("out=", "new arrays"):
            large = [r for r in rows if (r["results"], r["size"]) == (kind, of["sizes"][-1])]
            worse = max(row["against_middle"]["median"] for row in large)
            assert f"{worse:.2f}" in shown["kl_gap"][-1]
        cold = of["cold"]["rows"][0]
        assert shown[cold["dtype"]][-2:] == [with_quartiles(cold["ratio"]), ">= 8"]

    def test_magnitudes_show_the_slowest(self):
        row = records("magnitudes")[0]["by_function"][-1]
        worst = max(row["slowest"], key=lambda at: at["against_usual"]["median"])
        shown = cells("magnitudes")[f"{row['framework']}: {row['function']}, 2 threads"]
        assert shown[2:4] == [f"{worst['argument']}: {worst['at']}", worst["elements"]]
        assert shown[4] == with_quartiles(worst["against_usual"])

    def test_training_has_the_target_of_its_sizes(self):
        (suite,) = records("training")[1]["suites"]
        what = "ours, jitted / peers, jitted, forward+backward"
        ratios = [r for sized in suite["sizes"] for r in sized["ratios"] if r["what"] == what]
        shown = [*map(with_quartiles, ratios), "<= 1.1, <= 1, <= 0.8", ""]
        assert cells("training")[what] == shown


def test_the_accuracy_of_frameworks_is_rounded_up():
    rows = records("frameworks")[-1]["rows"]
    worst = max(
        row["ulp"] for row in rows if (row["function"], row["dtype"]) == ("neg_kl", "float32")
    )
    assert cells("frameworks")["neg_kl"][-2] == f"{math.ceil(1000 * worst) / 1000:.3f}"


ABOUT = {"machine": {"cpu": "c"}, "kernel": "avx2", "date": "2026-01-01T00:00"}


class TestInShort:
    def test_the_worst_over_the_kernels_of_a_column_is_rounded_up(self):
        row = {"function": "neg_kl", "dtype": "float64", "kernel": "avx2", "ulp": 1.0}
        rows = [row, row | {"kernel": "avx512", "ulp": 1.0001}, row | {"kernel": "python"}]
        rows[2]["ulp"] = 2
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


class TestStudies:
    def test_each_rung_has_its_errors_and_some_a_formula(self):
        def rung(terms, error):
            of = {"inside": {"max_error": error, "max_grad_error": 10 * error}}
            fits = {"value": of, "gradient": of, "value_text": {"torch": f"terms = {terms}\n"}}
            made = {"family": "sigmoid", "terms": terms, "constants": 3, "transcendentals": 3}
            return made | fits

        text = tables.ladder({"rungs": [rung(1, 0.005), rung(4, 0.00004)]})
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
        text = tables.monte_carlo({"coverage": [row], "coverage_of": "c", "gradient": gradient})
        assert "| plain, no control variate | 4,096   | 1,000 | 93.5 to 96.0 " in text
        assert "| w                          | 0.5000      | 0.2500        |" in text
        assert text.endswith("0.3624.")

    def test_a_kernel_has_its_bound(self):
        kernel = {"bytes": 12, "picoseconds": {"memory": 5.885, "a": 1.0}, "bound": "memory"}
        text = tables.cuda({"roofline": [{"gpu": "G", "kernels": {"value": kernel}}]})
        assert text.splitlines()[2].replace(" ", "") == "|G|value|12|5.88|1.00|memory|"
