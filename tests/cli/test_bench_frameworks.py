"""``logunif-kl bench --torch --jax --cuda``: it runs, and counts what it says that it counts."""

import json
import subprocess
import sys

import numpy as np
import pytest

from logunif_kl.cli import main, provenance
from logunif_kl.cli.bench import frameworks as shared
from logunif_kl.cli.bench.frameworks import BACKWARD, COPY, FORWARD, Comparison, Sized
from logunif_kl.cli.bench.peers import molchanov_sum

TINY = ["--rounds", "2", "--size", "500", "900"]
NUMBERS = ("ours, log_sigma2 an array", "ours, log_sigma2 one number")


def run(arguments, tmp_path):
    path = tmp_path / "bench.json"
    assert main(["bench", *arguments, "--json", str(path)]) == 0
    return json.loads(path.read_text())


def check(suite, ways, more=()):
    """All that a report must hold."""
    assert [sized["size"] for sized in suite["sizes"]] == [500, 900]
    assert suite["rounds"] == 2
    assert suite["threads"] >= 1
    names = {f"{way}: {part}" for way in ways for part in (FORWARD, BACKWARD)} | set(more)
    copies = {f"{COPY}: {part}" for part in (FORWARD, BACKWARD)}
    for sized in suite["sizes"]:
        assert set(sized["nanoseconds_a_weight"]) == names | copies
        assert set(sized["peak_bytes_a_weight"]) == names
        for row in (*sized["ratios"], *sized["nanoseconds_a_weight"].values()):
            assert 0.0 < row["lower_quartile"] <= row["median"] <= row["upper_quartile"]
        for part, count in (("forward", 8), ("forward+backward", 24)):
            nanoseconds = sized["nanoseconds_a_weight"][f"copy: {part}"]["median"]
            assert sized["copied_gigabytes_a_second"][part] == pytest.approx(count / nanoseconds)


def test_jax(tmp_path, capsys):
    pytest.importorskip("jax")
    document = run(["--jax", *TINY], tmp_path)
    [suite] = document["suites"]
    ways = ["ours, jitted", "peers, jitted", *NUMBERS]
    check(suite, ways, [f"{name}, not reduced: forward" for name in ("kl_normal", "neg_kl_normal")])
    assert set(suite["small"]["microseconds"]) == {
        "ours, jitted: forward+backward",
        "peers, jitted: forward+backward",
        "the ufunc, value and gradients",
    }
    assert suite["on_threads"] == []
    assert suite["framework"] == "jax"
    assert {"jax", "jaxlib", "numpy"} <= set(document["versions"])
    out = capsys.readouterr().out
    assert "ours, jitted / peers, jitted, forward+backward" in out
    assert "copying 24 bytes a weight" in out
    for sized in suite["sizes"]:
        counts = sized["counts"]["ours, jitted: forward+backward"]
        # From 512 weights on a program calls C, of which the compiler counts nothing. Before, it
        # reads two arguments and writes two gradients at least, and does something in between.
        counted = sized["size"] < 512
        assert (counts["bytes"] >= 16.0) is counted
        assert (counts["operations"] > 100.0) is counted
        assert counts["loops"] >= 1.0
    assert "What the compiler counts" in out
    assert "Microseconds a call on 100 weights: jax" in out
    # The results alone are two gradients.
    assert all(
        s["peak_bytes_a_weight"]["ours, jitted: forward+backward"] >= 8.0 for s in suite["sizes"]
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # by torch's own compiler
def test_torch(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    document = run(["--torch", "--threads", "1", *TINY], tmp_path)
    [suite] = document["suites"]
    ways = ["ours, eager", 'ours, eager, reduction="sum"', "ours, compiled", *NUMBERS]
    ways += [f"{name}, not reduced" for name in ("kl_normal", "neg_kl_normal")]
    check(suite, [*ways, "peers, eager", "peers, compiled"])
    assert suite["small"]["weights"] == 100
    assert len(suite["small"]["microseconds"]) == 4
    for sized in suite["on_threads"]:
        assert (
            sized["ratios"][0]["what"] == "ours, one thread / ours, two threads, forward+backward"
        )
    assert len(suite["on_threads"]) == (2 if provenance.cpus_usable() > 1 else 0)
    assert (suite["framework"], suite["device"], suite["threads"]) == ("torch", "cpu", 1)
    assert torch.get_num_threads() == before
    assert "peers, eager / ours, eager, forward+backward" in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_cuda(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    [suite] = run(["--torch", "--cuda", *TINY], tmp_path)["suites"]
    assert suite["device"] == torch.cuda.get_device_name()
    fraction = "copying 24 bytes a weight / ours, eager, forward+backward"
    assert all(fraction in {row["what"] for row in s["ratios"]} for s in suite["sizes"])


class TestTorch:
    @pytest.fixture
    def bench(self):
        pytest.importorskip("torch")
        from logunif_kl.cli.bench import _torch

        return _torch

    def test_memory_counts_what_is_freed_again(self, bench):
        import torch

        x = torch.ones(1_000_000)
        for job, count in ((lambda: x + x, 1), (lambda: (x + x) * x, 2), (x.sum, 0)):
            assert bench._cpu_peak_bytes(job) == pytest.approx(count * x.nbytes, abs=4096)

    def test_our_memory(self, bench):
        import torch

        weights = [torch.ones(1_000_000, requires_grad=True) for _ in range(2)]
        backward = bench._cpu_peak_bytes(lambda: bench._backward(bench._ours, weights))
        assert backward >= 8_000_000  # the gradients alone
        assert backward < bench._cpu_peak_bytes(lambda: bench._backward(bench._peers, weights))
        assert bench._cpu_peak_bytes(lambda: bench._forward(bench._reduced, weights)) < 2**20

    def test_what_is_timed_is_the_same(self, bench):
        """Ours three times, and an approximation of it; both gradients of each."""
        import torch

        generator = torch.Generator().manual_seed(0)
        weights = [
            torch.randn(1000, generator=generator, requires_grad=True),
            (torch.randn(1000, generator=generator) - 1).requires_grad_(),
        ]
        exact = bench._forward(bench._ours, weights)
        assert bench._forward(bench._reduced, weights) == pytest.approx(float(exact), rel=1e-6)
        assert bench._forward(bench._peers, weights) == pytest.approx(float(exact), rel=0.02)
        for function in (bench._ours, bench._reduced, bench._peers):
            assert [g.shape for g in bench._backward(function, weights)] == [(1000,), (1000,)]

    def test_threads_are_given_back(self, bench):
        import torch

        before = torch.get_num_threads()
        with bench.threads(before + 1):
            assert torch.get_num_threads() == before + 1
        with bench.threads(None):
            assert torch.get_num_threads() == before
        assert torch.get_num_threads() == before


def test_peers_formula_is_molchanovs():
    """Within the clamp it is `methods.molchanov`, but for the epsilon."""
    from logunif_kl.methods import molchanov

    mu, log_sigma2 = np.linspace(0.5, 2, 9), np.linspace(-5, 3, 9)
    found = molchanov_sum(np, lambda z: 1 / (1 + np.exp(-z)), mu, log_sigma2)
    assert found == pytest.approx(molchanov(log_sigma2 - np.log(mu**2)).sum(), rel=1e-7)
    clamped = molchanov_sum(np, lambda z: 1 / (1 + np.exp(-z)), mu, log_sigma2 - 100)
    assert clamped == pytest.approx(9 * molchanov(-8.0), rel=1e-7)


class TestArithmetic:
    def test_targets_stand_for_large_sizes(self):
        samples = [{"a: forward": 2.0 * d, "copy: forward": d} for d in (1.0, 3.0)]
        comparison = Comparison("a", COPY, FORWARD, "<= 5", "<= 2")
        assert comparison.what == "a / copying 8 bytes a weight, forward"
        by_size = Comparison("a", COPY, FORWARD, {100: "<= 3", 1000: "<= 2"})
        assert [by_size.targets(size) for size in (99, 100, 999, 5000)] == [
            ("", ""),
            ("<= 3", ""),
            ("<= 3", ""),
            ("<= 2", ""),
        ]
        for size, must in ((shared.LARGE, "<= 5"), (shared.LARGE - 1, "")):
            [(asked, spread)] = Sized(size, samples, {}, {}).ratios([comparison])
            assert (asked.must, spread.median) == (must, 2.0)
            assert Sized(size, samples, {}, {}).times()["copy: forward"].median == 2e9 / size


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cuda"], "--cuda says where --torch is to run: give --torch as well"),
        (["--jax", "--threads", "2"], "--threads cannot be chosen with --jax: leave it out, and"),
        (
            ["--size", "1", "2"],
            "several sizes are for --sizes, --torch and --jax: give --size one number",
        ),
        (
            ["--sizes", "--training"],
            "--sizes and --training are benches of their own: give one of them at a time",
        ),
        (["--seed", "1"], "--seed is for --sizes, --magnitudes, --training and --layers: leave it"),
        (["--sizes", "--steps", "99"], "--steps is for --training: give --training as well, or"),
        (["--sizes", "--torch"], "--torch has no meaning with --sizes: leave it out"),
        (["--magnitudes", "--size", "5"], "--size has no meaning with --magnitudes: leave it out"),
        (["--training", "--rounds", "5"], "--rounds has no meaning with --training: leave it out"),
        (["--jax", "--size", "5", "0"], "--size must be at least 1, but 0 was given: ask for more"),
    ],
)
def test_errors_are_one_sentence_and_status_2(arguments, words, capsys):
    assert main(["bench", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"logunif-kl: error: {words}")


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_missing_framework(package, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["bench", f"--{package}"]) == 2
    assert capsys.readouterr().err.endswith(
        f': install it with pip install "logunif_kl[{package}]"\n'
    )


def test_training_needs_torch(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["bench", "--training"]) == 2
    assert capsys.readouterr().err.startswith("logunif-kl: error: --training needs torch, which ")


def test_missing_gpu(capsys):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["bench", "--torch", "--cuda"]) == 2
    assert "--cuda needs a GPU, but PyTorch 2" in capsys.readouterr().err


def test_no_framework_is_imported_before_it_is_asked_for():
    code = "import sys; from logunif_kl.cli import main; main({}); print('torch' in sys.modules)"
    for arguments, imported in (
        (["bench", "--size", "0"], "False"),
        (["bench", "--torch", "--size", "1", "--json", "/no/such"], "True"),
    ):
        if imported == "True":
            pytest.importorskip("torch")
        command = [sys.executable, "-c", code.format(arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == imported
