"""``logunif-kl bench``: it runs, counts what it says it counts, and its arithmetic is right."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from logunif_kl.cli import main, timing
from logunif_kl.cli.bench import functions
from logunif_kl.cli.bench.training import BACKWARD, FORWARD, molchanov_sum
from tests.child import output

TINY = ["--rounds", "2", "--size", "500", "900"]
PARTS, WHO = (FORWARD, BACKWARD), ("ours", "peers")


def run(arguments, tmp_path, capsys):
    path = tmp_path / "bench.json"
    assert main(["bench", *arguments, "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert not re.search(r"\b(must|aim|target)\b", out + path.read_text())
    return json.loads(path.read_text()), out


def rises(row):
    return 0.0 < row["lower_quartile"] <= row["median"] <= row["upper_quartile"]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_functions(threads, tmp_path, capsys):
    arguments = ["--size", "5000", "--rounds", "2", "--threads", threads]
    document, out = run(arguments, tmp_path, capsys)
    assert "scipy dawsn / kl_gap_grad" in out
    assert (document["threads"], document["rounds"]) == (int(threads), 2)
    assert set(document["machine"]) == {"cpu", "architecture", "system", "cpus_usable"}
    times = document["nanoseconds_an_element"]
    assert all(map(rises, (*document["ratios"], *times.values())))
    names = {row["what"]: (row["over"], row["under"]) for row in document["ratios"]}
    assert names["neg_kl / np.exp, float32"] == ("neg_kl f32", "np.exp f32")
    assert {name for pair in names.values() for name in pair} <= set(times)


def test_threads_share_the_whole_array():
    x, out = np.arange(1001.0), np.zeros(1001)
    with ThreadPoolExecutor(4) as pool:
        functions._shared(pool, 4, np.negative, (x, out))()
    np.testing.assert_array_equal(out, -x)


class TestTiming:
    def test_ratios_are_taken_within_a_round(self):
        samples = [{"a": 2.0 * drift, "b": drift} for drift in (1.0, 3.0, 2.0, 100.0)]
        assert set(timing.ratio(samples, "a", "b").values()) == {2.0}
        found = timing.spread([1.0, 2.0, 3.0, 4.0, 5.0], 10.0)
        assert found == {"median": 30.0, "lower_quartile": 20.0, "upper_quartile": 40.0}
        assert timing.spreads([{"a": 1.0}, {"a": 3.0}])["a"]["median"] == 2.0

    def test_rounds_rotate_and_run_every_job(self):
        ran = []
        jobs = {name: (lambda name=name: ran.append(name)) for name in "abc"}
        samples = list(timing.rounds(jobs, dict.fromkeys(jobs, 1), 3))
        assert "".join(ran) == "abcbcacab"
        assert [list(sample) for sample in samples] == [["a", "b", "c"]] * 3


@pytest.mark.parametrize("framework", ["jax", pytest.param("torch", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # by torch's own compiler
def test_a_framework(framework, tmp_path, capsys):
    pytest.importorskip(framework)
    threads = ["--threads", "1"] if framework == "torch" else []
    document, out = run([f"--{framework}", *threads, *TINY], tmp_path, capsys)
    [suite] = document["suites"]
    assert suite["framework"] == framework
    assert {framework, "numpy"} <= set(document["versions"])
    assert [sized["size"] for sized in suite["sizes"]] == [500, 900]
    way = "eager" if framework == "torch" else "jitted"
    for sized in suite["sizes"]:
        times = sized["nanoseconds_a_weight"]
        assert all(map(rises, (*sized["ratios"], *times.values())))
        assert {f"{who}, {way}: {part}" for who in WHO for part in PARTS} <= set(times)
    assert f"peers, {way}" in out


def test_what_is_timed_in_torch_is_the_same():
    """Ours three times, and an approximation of it; both gradients of each."""
    torch = pytest.importorskip("torch")
    from logunif_kl.cli.bench import _torch as bench

    generator = torch.Generator().manual_seed(0)
    weights = [
        torch.randn(1000, generator=generator, requires_grad=True),
        (torch.randn(1000, generator=generator) - 1).requires_grad_(),
    ]
    exact = bench.forward(bench.ours, weights)
    assert bench.forward(bench.reduced, weights) == pytest.approx(float(exact), rel=1e-6)
    assert bench.forward(bench.peers, weights) == pytest.approx(float(exact), rel=0.02)
    for function in (bench.ours, bench.reduced, bench.peers):
        assert [g.shape for g in bench.backward(function, weights)] == [(1000,), (1000,)]


def test_peers_formula_is_molchanovs():
    """Within the clamp it is `methods.molchanov`, but for the epsilon."""
    from logunif_kl.methods import molchanov

    mu, log_sigma2 = np.linspace(0.5, 2, 9), np.linspace(-5, 3, 9)
    found = molchanov_sum(np, lambda z: 1 / (1 + np.exp(-z)), mu, log_sigma2)
    assert found == pytest.approx(molchanov(log_sigma2 - np.log(mu**2)).sum(), rel=1e-7)
    clamped = molchanov_sum(np, lambda z: 1 / (1 + np.exp(-z)), mu, log_sigma2 - 100)
    assert clamped == pytest.approx(9 * molchanov(-8.0), rel=1e-7)


def test_a_gpu_is_looked_for(capsys):
    if pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["bench", "--torch", "--cuda"]) == 2
    assert "error: --cuda needs a GPU, but PyTorch 2" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_missing_framework(package, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["bench", f"--{package}"]) == 2
    remedy = f': install it with pip install "logunif_kl[{package}]"\n'
    assert capsys.readouterr().err.endswith(remedy)


def test_no_framework_is_imported_before_it_is_asked_for():
    code = "import sys; from logunif_kl.cli import main; main(['bench', '--size', '0']); "
    assert output(f"{code} print({{'torch', 'jax'}} & {{*sys.modules}})") == "set()\n"
