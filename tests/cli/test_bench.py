"""``logunif-kl bench``: it runs, on any number of threads, and its arithmetic is right."""

import json

import pytest

from logunif_kl.cli import main, timing
from logunif_kl.cli.bench import functions


@pytest.fixture
def _few_imports(monkeypatch):
    monkeypatch.setattr(functions, "IMPORT_ROUNDS", 2)


@pytest.mark.usefixtures("_few_imports")
@pytest.mark.parametrize("threads", ["1", "3"])
def test_it_writes_what_it_measured(threads, tmp_path, capsys):
    path = tmp_path / "bench.json"
    arguments = ["--size", "5000", "--rounds", "2", "--threads", threads, "--json", str(path)]
    assert main(["bench", *arguments]) == 0
    out = capsys.readouterr().out
    assert "scipy dawsn / kl_gap_grad" in out
    assert "beyond it, KiB" in out
    document = json.loads(path.read_text())
    assert document["threads"] == int(threads)
    assert document["rounds"] == 2
    assert set(document["machine"]) == {"cpu", "architecture", "system", "cpus_usable"}
    by_name = {row["what"]: row for row in document["ratios"]}
    assert by_name["neg_kl / np.exp, float32"]["must"] == "<= 5"
    assert by_name["kl_normal / neg_kl_normal, float32"]["aim"] == "<= 1"
    for row in document["ratios"]:
        assert 0.0 < row["lower_quartile"] <= row["median"] <= row["upper_quartile"]
    assert set(document["import_seconds"]) == {"numpy", "logunif_kl"}


def test_no_function_takes_a_mebibyte_beyond_its_result():
    for name, (result, beyond) in functions._memory(1_000_000).items():
        assert result == 8_000_000, name
        assert beyond < 2**20, f"{name} takes {beyond} bytes beyond its result"


def test_threads_share_the_whole_array():
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    x, out = np.arange(1001.0), np.zeros(1001)
    with ThreadPoolExecutor(4) as pool:
        functions._shared(pool, 4, np.negative, (x, out))()
    np.testing.assert_array_equal(out, -x)


def test_ratios_are_taken_within_a_round():
    samples = [{"a": 2.0 * drift, "b": drift} for drift in (1.0, 3.0, 2.0, 100.0)]
    assert timing.ratio(samples, "a", "b") == timing.Spread(2.0, 2.0, 2.0)
    assert timing.Spread.of([1.0, 2.0, 3.0, 4.0, 5.0]) == timing.Spread(3.0, 2.0, 4.0)


def test_rounds_rotate_and_run_every_job():
    ran = []
    jobs = {name: (lambda name=name: ran.append(name)) for name in "abc"}
    samples = list(timing.rounds(jobs, dict.fromkeys(jobs, 1), 3))
    assert "".join(ran) == "abcbcacab"
    assert [list(sample) for sample in samples] == [["a", "b", "c"]] * 3


def test_peak_bytes_counts_arrays_that_are_freed_again():
    import numpy as np

    assert timing.peak_bytes(lambda: None) < 4096
    assert 8e6 <= timing.peak_bytes(lambda: np.zeros(1_000_000).sum()) < 8.1e6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", "0"], "--size must be at least 1, but 0 was given"),
        (["--rounds", "1"], "--rounds must be at least 2, but 1 was given"),
        (["--threads", "-2"], "--threads must be at least 1, but -2 was given"),
        (["--training", "--steps", "29"], "--steps must be at least 30, but 29 was given"),
        (["--sizes", "--seed", "-1"], "--seed must be at least 0, but -1 was given"),
    ],
)
def test_errors_are_one_sentence_and_status_2(arguments, words, capsys):
    assert main(["bench", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"logunif-kl: error: {words}: ask for more\n"
