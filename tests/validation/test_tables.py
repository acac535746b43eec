"""The tables of the committed results, which the README and the site show."""

import math

import pytest

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


def test_the_accuracy_of_frameworks_is_rounded_up():
    rows = records("frameworks")[-1]["rows"]
    of = [row for row in rows if (row["function"], row["dtype"]) == ("neg_kl", "float32")]
    worst = max(row["ulp"] for row in of)
    assert cells("frameworks")["neg_kl"][-2] == f"{math.ceil(1000 * worst) / 1000:.3f}"


ABOUT = {"machine": {"cpu": "c"}, "kernel": "avx2", "date": "2026-01-01T00:00"}


class TestInShort:
    def test_the_worst_over_the_kernels_of_a_column_is_rounded_up(self):
        row = {"function": "neg_kl", "dtype": "float64", "kernel": "avx2", "ulp": 1.0}
        rows = [row, row | {"kernel": "avx512", "ulp": 1.0001}, row | {"kernel": "python"}]
        rows[2]["ulp"] = 2
        rows.append(row | {"kernel": "inductor", "dtype": "float32", "ulp": 2.5})
        line = summary.accuracy({"rows": rows[:2]}, {"rows": rows[2:]}).splitlines()[2]
        assert line.replace(" ", "") == "|neg_kl|1.001|1.0947|–|2.500|–|"

    def test_a_ratio_of_ours_to_theirs_is_turned_over(self):
        def report(framework, **ratios):
            named = {f"{what}, forward+backward": median for what, median in ratios.items()}
            rows = [{"what": what, "median": median} for what, median in named.items()]
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
