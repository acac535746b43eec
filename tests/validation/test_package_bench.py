"""What ``python -m validation.benchmarks`` measures beyond ``logunif-kl bench``."""

import json

import numpy as np
import pytest

from logunif_kl.cli import provenance
from logunif_kl.cli.bench.training import BACKWARD, FORWARD
from validation.benchmarks import functions
from validation.benchmarks.__main__ import main
from validation.benchmarks.frameworks import BYTES, COPIES, COPY

TINY = ["--rounds", "2", "--size", "500", "900"]
MORE = ("ours, log_sigma2 an array", "ours, log_sigma2 one number")


def run(arguments, tmp_path, capsys):
    """Run the command; return what it measured, its versions, and what it prints."""
    path = tmp_path / "bench.json"
    assert main([*arguments, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    [suite] = document["suites"]
    return suite, document["versions"], capsys.readouterr().out


def rises(row):
    return 0.0 < row["lower_quartile"] <= row["median"] <= row["upper_quartile"]


def check(suite, ways, more=()):
    """All that the report of a framework must hold."""
    assert [sized["size"] for sized in suite["sizes"]] == [500, 900]
    assert suite["rounds"] == 2
    names = {f"{way}: {part}" for way in ways for part in (FORWARD, BACKWARD)} | set(more)
    for sized in suite["sizes"]:
        times = sized["nanoseconds_a_weight"]
        assert set(times) == names | set(COPIES)
        assert set(sized["peak_bytes_a_weight"]) == names
        assert all(map(rises, (*sized["ratios"], *times.values())))
        for part, count in BYTES.items():
            copied = count / times[f"{COPY[part]}: {part}"]["median"]
            assert sized["copied_gigabytes_a_second"][part] == pytest.approx(copied)


def test_jax(tmp_path, capsys):
    pytest.importorskip("jax")
    suite, versions, out = run(["jax", *TINY], tmp_path, capsys)
    ways = ["ours, jitted", "peers, jitted", *MORE]
    check(suite, ways, [f"{name}, not reduced: forward" for name in ("kl_normal", "neg_kl_normal")])
    assert len(suite["small"]["microseconds"]) == 3
    assert (suite["framework"], suite["on_threads"]) == ("jax", [])
    assert {"jax", "jaxlib", "numpy"} <= set(versions)
    assert "what the compiler counts" in out
    assert "a call on 100 weights, jax" in out
    for sized in suite["sizes"]:
        counts = sized["counts"]["ours, jitted: forward+backward"]
        # From 512 weights on a program calls C, of which the compiler counts nothing. Before, it
        # reads two arguments and writes two gradients at least, and does something in between.
        counted = sized["size"] < 512
        assert (counts["bytes"] >= 16.0) is counted
        assert (counts["operations"] > 100.0) is counted
        assert counts["loops"] >= 1.0
        # The results alone are two gradients.
        assert sized["peak_bytes_a_weight"]["ours, jitted: forward+backward"] >= 8.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # by torch's own compiler
def test_torch(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    suite, _, out = run(["torch", "--threads", "1", *TINY], tmp_path, capsys)
    ways = ["ours, eager", 'ours, eager, reduction="sum"', "ours, compiled", *MORE]
    ways += [f"{name}, not reduced" for name in ("kl_normal", "neg_kl_normal")]
    check(suite, [*ways, "peers, eager", "peers, compiled"])
    assert suite["small"]["weights"] == 100
    assert len(suite["small"]["microseconds"]) == 4
    across = "ours, one thread / ours, two threads, forward+backward"
    assert all(sized["ratios"][0]["what"] == across for sized in suite["on_threads"])
    assert len(suite["on_threads"]) == (2 if provenance.cpus_usable() > 1 else 0)
    assert (suite["framework"], suite["device"], suite["threads"]) == ("torch", "cpu", 1)
    assert torch.get_num_threads() == before
    assert "peers, eager / ours, eager, forward+backward" in out


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_cuda(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    suite, _, _ = run(["torch", "--cuda", *TINY], tmp_path, capsys)
    assert suite["device"] == torch.cuda.get_device_name()
    fraction = "copying 24 bytes a weight / ours, eager, forward+backward"
    assert all(fraction in {row["what"] for row in s["ratios"]} for s in suite["sizes"])


def test_memory_in_torch():
    """What is freed again is counted; ours takes no more than its results."""
    torch = pytest.importorskip("torch")
    from logunif_kl.cli.bench import _torch as bench
    from validation.benchmarks.in_torch import cpu_peak_bytes

    x, y = (torch.ones(1_000_000, requires_grad=True) for _ in range(2))
    z = x.detach()
    for job, count in ((lambda: z + z, 1), (lambda: (z + z) * z, 2), (z.sum, 0)):
        assert cpu_peak_bytes(job) == pytest.approx(count * z.nbytes, abs=4096)
    ours, peers = (
        cpu_peak_bytes(lambda function=function: bench.backward(function, [x, y]))
        for function in (bench.ours, bench.peers)
    )
    assert 8_000_000 <= ours < peers  # the gradients alone are 8 MB
    assert cpu_peak_bytes(lambda: bench.forward(bench.reduced, [x, y])) < 2**20


def test_no_function_takes_a_mebibyte_beyond_its_result():
    for name, found in functions.memory(1_000_000).items():
        assert found["result"] == 8_000_000, name
        assert found["beyond"] < 2**20, f"{name} takes {found['beyond']} bytes beyond its result"


def test_peak_bytes_counts_arrays_that_are_freed_again():
    assert functions.peak_bytes(lambda: None) < 4096
    assert 8e6 <= functions.peak_bytes(lambda: np.zeros(1_000_000).sum()) < 8.1e6
