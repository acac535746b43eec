"""``python -m validation.benchmarks``: what it measures, compares, writes and shows."""

import dataclasses
import json
import sys
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.cli import provenance
from logunif_kl.cli.bench.training import BACKWARD, FORWARD
from validation.benchmarks import cells, functions, magnitudes, sizes
from validation.benchmarks.__main__ import main
from validation.benchmarks.frameworks import BYTES, COPIES, COPY
from validation.output import seal


def run(arguments, tmp_path):
    path = tmp_path / "record.json"
    assert main([*arguments, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    assert document["command"].startswith(f"python -m validation.benchmarks {arguments[0]} ")
    assert {"date", "kernel", "machine", "commit", "versions"} <= set(document)
    assert ("threads" in document) == ("suites" not in document)  # each suite has its own
    assert document["content_sha256"] == seal(document)
    return document


def rises(spread):
    return 0.0 < spread["lower_quartile"] <= spread["median"] <= spread["upper_quartile"]


TINY = ["--rounds", "2", "--size", "500", "900"]
MORE = ("ours, log_sigma2 an array", "ours, log_sigma2 one number")


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
    document = run(["jax", *TINY], tmp_path)
    [suite], out = document["suites"], capsys.readouterr().out
    ways = ["ours, jitted", "peers, jitted", *MORE]
    check(suite, ways, [f"{name}, not reduced: forward" for name in ("kl_normal", "neg_kl_normal")])
    assert len(suite["small"]["microseconds"]) == 3
    assert (suite["framework"], suite["on_threads"]) == ("jax", [])
    assert {"jax", "jaxlib", "numpy"} <= set(document["versions"])
    assert "what the compiler counts" in out
    assert "a call on 100 weights, jax" in out
    for sized in suite["sizes"]:
        # From 512 weights on a program calls C, of which the compiler counts nothing. Before, it
        # reads two arguments and writes two gradients at least.
        counts = sized["counts"]["ours, jitted: forward+backward"]
        assert (counts["bytes"] >= 16.0) == (sized["size"] < 512)
        # The results alone are two gradients.
        assert sized["peak_bytes_a_weight"]["ours, jitted: forward+backward"] >= 8.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # by torch's own compiler
def test_torch(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    [suite] = run(["torch", "--threads", "1", *TINY], tmp_path)["suites"]
    ways = ["ours, eager", 'ours, eager, reduction="sum"', "ours, compiled", *MORE]
    ways += [f"{name}, not reduced" for name in ("kl_normal", "neg_kl_normal")]
    check(suite, [*ways, "peers, eager", "peers, compiled"])
    assert (suite["small"]["weights"], len(suite["small"]["microseconds"])) == (100, 4)
    across = "ours, one thread / ours, two threads, forward+backward"
    assert all(sized["ratios"][0]["what"] == across for sized in suite["on_threads"])
    assert len(suite["on_threads"]) == (2 if provenance.cpus_usable() > 1 else 0)
    assert (suite["framework"], suite["device"], suite["threads"]) == ("torch", "cpu", 1)
    assert torch.get_num_threads() == before
    assert "formula, eager / ours, eager, forward+backward" in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_cuda(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    [suite] = run(["torch", "--cuda", *TINY], tmp_path)["suites"]
    assert suite["device"] == torch.cuda.get_device_name()
    fraction = "copying 24 bytes a weight / ours, eager, forward+backward"
    assert all(fraction in {row["what"] for row in s["ratios"]} for s in suite["sizes"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # by torch's own compiler
def test_log_alpha(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    rows = run(["log_alpha", "--size", "100", "--rounds", "2"], tmp_path)["rows"]
    assert [row["framework"] for row in rows] == ["PyTorch", "JAX"]
    assert all(rises(row["ratio"]) for row in rows)


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


class TestSizes:
    def test_it_writes_what_it_measured(self, tmp_path, capsys, monkeypatch):
        small = {"cache_bytes": lambda: 1, "_count": lambda size: 1, "PATTERN": 2000}
        for name, value in (small | {"COLD_SIZE": 1000, "MIDDLE": 1000}).items():
            monkeypatch.setattr(sizes, name, value)
        arguments = ["sizes", "--size", "100", "3000", "--rounds", "2", "--seed", "7"]
        document = run(arguments, tmp_path)
        assert (document["seed"], document["threads"], document["middle"]) == (7, 1, 1000)
        rows = document["by_size"]
        found = {(r["function"], r["dtype"], r["results"], r["size"]) for r in rows}
        assert found == {
            (ufunc.name, dtype, kind, size)
            for ufunc in sizes.UFUNCS
            for dtype in ("float64", "float32")
            for kind in ("new arrays", "out=")
            for size in (100, 1000, 3000)
        }
        assert len(found) == len(rows)
        for row in rows:
            assert rises(row["nanoseconds_an_element"])
            assert rises(row["against_middle"])
        assert [row["dtype"] for row in document["cold"]["rows"]] == ["float64", "float32"]
        assert "cold caches, ns per element, 1,000 elements" in capsys.readouterr().out

    @pytest.mark.parametrize("ufunc", sizes.UFUNCS, ids=lambda ufunc: ufunc.name)
    def test_ufuncs_are_what_they_are_called(self, ufunc):
        usual = sizes.usual(np.random.default_rng(0), 50, "float64")
        arguments = [usual[name] for name in ufunc.arguments]
        found = ufunc.function(*arguments)
        assert ufunc.outputs == (len(found) if isinstance(found, tuple) else 1)
        name = ufunc.name.partition(",")[0]
        value = getattr(lk, name, None) or getattr(lk.special, name)
        first = found[0] if isinstance(found, tuple) else found
        np.testing.assert_array_equal(first, value(*arguments))


class TestMagnitudes:
    def test_it_writes_what_it_measured(self, tmp_path, capsys, monkeypatch):
        """With every hundredth magnitude, the first, which are special, and what is installed."""

        def few(arguments, dtype):
            found = cells.cells(arguments, dtype)
            return [*found[:3], *found[3::100]]

        monkeypatch.setattr(magnitudes, "cells", few)
        monkeypatch.setattr(magnitudes, "_ELEMENTS", 256)
        monkeypatch.setattr(magnitudes, "_ELEMENTS_OF", {"float64": 256, "float32": 256})
        frameworks = [name for name in ("torch", "jax") if find_spec(name)]
        options = ["--rounds", "2", "--seed", "3", *(f"--{name}" for name in frameworks)]
        document = run(["magnitudes", *options], tmp_path)
        assert (document["seed"], document["rounds"]) == (3, 2)
        of_numpy = [row for row in document["by_function"] if row["framework"] == "numpy"]
        found = {(row["function"], row["dtype"]) for row in of_numpy}
        assert found == {(u.name, t) for u in sizes.UFUNCS for t in ("float64", "float32")}
        of = {row["framework"] for row in document["by_function"]}
        assert of == {"numpy", *frameworks}
        for row in document["by_function"]:
            ratios = [each["against_usual"]["median"] for each in row["slowest"]]
            assert ratios == sorted(ratios, reverse=True)
            assert all(rises(each["against_usual"]) for each in row["slowest"])
            assert {each["at"] for each in row["special"]} >= {"0", "inf"}
            for sweep in row["searched"]:
                assert sweep["slowest"]["argument"] == sweep["argument"]
                assert 0 <= sweep["above_aim"] <= sweep["magnitudes"]
        assert "numpy: neg_kl_normal, with gradients" in capsys.readouterr().out

    def test_slow_magnitudes_are_found(self):
        """A function that takes long where an element is 0 is found out, whole and mixed."""

        def job(values):
            slow = 400 if (values == 0.0).any() else 20
            return lambda: list(range(slow))

        way = magnitudes.Way("slow at 0", "numpy", "float64", ("mu",), 256, job)
        [found] = magnitudes.by_function([way], 3, 0)
        slowest = {(row["at"], row["elements"]) for row in found["slowest"][:2]}
        assert slowest == {("0", "all"), ("0", "1 in 64")}
        medians = [row["against_usual"]["median"] for row in found["slowest"]]
        assert medians[0] > medians[2]


def test_training(tmp_path, capsys):
    pytest.importorskip("torch")
    from validation.benchmarks import training

    document = run(["training", "--size", "200", "--steps", "45", "--seed", "5"], tmp_path)
    assert (document["weights"], document["steps"], document["seed"]) == (200, 45, 5)
    names = ["ours", "ours, flushed in Adam", "peers"]
    assert [each["name"] for each in document["runs"]] == names
    for each in document["runs"]:
        windows = each["windows"]
        assert len(windows) == training.WINDOWS
        assert (windows[0]["begin"], windows[-1]["end"]) == (0, 45)
        assert all(a["end"] == b["begin"] for a, b in pairwise(windows))
        for window in windows:
            whole, *parts = (window[part]["nanoseconds_a_weight"] for part in training.PARTS)
            assert 0.0 < sum(parts) < 1.5 * whole
        for part in training.PARTS:
            assert all(rises(window[part]["milliseconds"]) for window in windows)
            worst = max(window[part]["against_first"] for window in windows)
            assert each["worst_against_first"][part] == worst
    assert "slowest window against the first step" in capsys.readouterr().out


@pytest.mark.slow
def test_deployed(tmp_path, capsys, monkeypatch):
    for package in ("torch", "onnxruntime", "openvino", "sklearn"):
        pytest.importorskip(package)
    from validation.benchmarks import deployed

    kept = ("LeNet-300-100", "transformer, 2 layers of width 64")
    monkeypatch.setattr(deployed, "NETWORKS", {name: deployed.NETWORKS[name] for name in kept})
    rows = run(["deployed", "--epochs", "30", "--rounds", "2"], tmp_path)["rows"]
    ways = [(form, engine) for form in deployed.FORMS for engine in deployed.ENGINES]
    assert [(row["form"], row["engine"]) for row in rows] == 2 * [*ways, ("sparse", "PyTorch")]
    assert all(row["failed"] == {} and row["compression"] > 1.0 for row in rows)
    for name in kept:
        of = {(row["form"], row["engine"]): row for row in rows if row["network"] == name}
        errors = {row["test_error"] for (_, engine), row in of.items() if "int8" not in engine}
        assert len(errors) == 1
        assert errors.pop() < 30.0
        for engine in deployed.ENGINES:
            assert of["compact", engine]["file_bytes"] < of["dense", engine]["file_bytes"]
    assert "LeNet-300-100, " in capsys.readouterr().out


class TestStacked:
    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("method", ["none", "variational_a", "variational_b"])
    def test_the_gradients_are_those_of_each_network(self, method, torch):
        from validation.benchmarks import stacked

        assert method in stacked.METHODS
        losses = stacked.losses(method, 5, 3, seed=0)
        for loss in losses:
            for name, own in loss.named_parameters():
                if name.endswith("log_alpha"):
                    torch.nn.init.constant_(own, -60.0)  # so little noise that it is rounded off
        parameters, put = stacked.gradients_of(losses)
        generator = torch.Generator().manual_seed(1)
        x = torch.rand(3, 4, stacked.PIXELS, generator=generator)
        y = torch.randint(10, (3, 4), generator=generator)
        put(x, y)
        for index, loss in enumerate(losses):
            loss(x[index], y[index]).backward()
            for name, own in loss.named_parameters():
                torch.testing.assert_close(parameters[name].grad[index], own.grad)

    def test_it_writes_what_it_measured(self, tmp_path, capsys, monkeypatch):
        from validation.benchmarks import stacked

        monkeypatch.setattr(stacked, "SHAPES", ((8, 2),))
        document = run(["stacked", "--rounds", "2"], tmp_path)
        assert document["threads"] == 1
        assert [row["networks"] for row in document["rows"]] == [2, 2, 2]
        assert all(rises(row["ratio"]) for row in document["rows"])
        assert "| 2 x 8 units, variational dropout A " in capsys.readouterr().out


class TestLayers:
    @pytest.fixture
    def layers(self, monkeypatch):
        """The module, with a package that is not installed and one that fails."""
        torch = pytest.importorskip("torch")
        from validation.benchmarks import layers, peers

        def missing():
            raise ImportError("No module named 'peer'\nand more")

        def broken(*arguments, **options):
            raise RuntimeError("it is broken\nfor a reason")

        one = layers.Made("broken", "none", broken, torch.nn.Conv2d)
        monkeypatch.setattr(peers, "PEERS", {"peer": missing, "broken": lambda: [one]})
        return layers

    @pytest.fixture
    def tiny(self, layers):
        small = {"widths": (5, 4, 3), "batches": (4, 8), "images": (2, 4, 3), "rounds": 2}
        small["texts"] = (1, 4, 2, 2, 3)
        return layers.Plan(**small, shapes=((4, 3, 3, 3), (5, 4)), compiled=False)

    def test_the_command(self, layers, tiny, monkeypatch, tmp_path, capsys):
        import torch

        monkeypatch.setattr(layers, "Plan", lambda **given: dataclasses.replace(tiny, **given))
        before = torch.get_num_threads()
        document = run(["layers", "--rounds", "2", "--threads", "1", "--seed", "3"], tmp_path)
        assert (document["rounds"], document["threads"], document["seed"]) == (2, 1, 3)
        assert torch.get_num_threads() == before
        assert [network["network"] for network in document["networks"]] == [
            "5-4-3, minibatch 4",
            "5-4-3, minibatch 8",
            "convolution 2 to 2, 3x3 on 4x4, minibatch 3",
            "transformer, 1 blocks of width 4, 6 tokens",
            "torch.nn.TransformerEncoder, 1 blocks of width 4, 6 tokens",
            "the KL alone, 128 weights in 2 tensors",
        ]
        *networks, alone = document["networks"]
        for network in networks:
            ours = [way for way in network["ways"] if way["name"] != "broken"]
            for way in ours:
                parts = way["milliseconds"]
                assert list(parts) == ["forward", "KL", "backward", "optimizer", "step"]
                assert parts["step"]["median"] > 0.0
                assert way["peak_megabytes"] > 0.0
                products, noise = way["shares"]["products"], way["shares"]["noise"]
                assert products > 0.0
                assert products + noise < 1.0
                # Only the layers with weights that are sampled draw random numbers.
                assert (noise > 0.0) == (way["name"] != layers.TORCH)
            whats = {row["what"] for row in network["ratios"]}
            assert whats >= {"ours / torch, deterministic", "ours / ours, without its KL"}
        assert networks[0]["failed"] == {"broken": "RuntimeError: it is broken"}
        whats = {row["what"] for row in alone["ratios"]}
        assert "joined by torch.cat / nn.kl(model)" in whats
        shown = capsys.readouterr().out
        assert "peer is skipped: ImportError: No module named 'peer'" in shown
        assert "broken did not run (5-4-3, minibatch 4): RuntimeError: it is broken" in shown

    def test_the_memory(self, layers, tmp_path, capsys, monkeypatch):
        monkeypatch.setitem(layers.peers.PEERS, "broken", list)
        for row in run(["memory"], tmp_path)["rows"]:
            sizes = {name: size / row["output_bytes"] for name, size in row["kept_bytes"].items()}
            if "Transformer" not in row["layer"]:
                assert sizes["ours"] <= sizes[layers.TORCH] + 1.0
        assert "usual snippet" in capsys.readouterr().out

    @pytest.mark.slow
    def test_compiled(self, layers, tiny):
        found = layers.networks(dataclasses.replace(tiny, compiled=True))
        whats = [row["what"] for row in found["networks"][0]["ratios"]]
        assert "ours, compiled / torch, deterministic, compiled" in whats


def test_the_bench_of_the_package_is_recorded(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(functions, "IMPORT_ROUNDS", 2)
    document = run(["functions", "--size", "500", "--rounds", "2"], tmp_path)
    assert (document["size"], document["rounds"]) == (500, 2)
    [row] = [r for r in document["ratios"] if r["what"] == "import logunif_kl / import numpy"]
    assert set(document["import_seconds"]) == {row["over"], row["under"]}
    shown = capsys.readouterr().out
    [line] = [line for line in shown.splitlines() if "scipy dawsn / kl_gap_grad" in line]
    median, extent = line.split("|")[-3:-1]
    assert float(median) > 0.0
    assert " to " in extent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sizes", "--size", "100", "0"], "--size must be at least 1, but 0 was given"),
        (["training", "--steps", "29"], "--steps must be at least 30, but 29 was given"),
        (["magnitudes", "--seed", "-1"], "--seed must be at least 0, but -1 was given"),
        (["layers", "--rounds", "1"], "--rounds must be at least 2, but 1 was given"),
        (["functions", "--rounds", "1"], "--rounds must be at least 2, but 1 was given: ask for"),
        (["sizes", "--json", "no/such/file"], "cannot write no/such/file: its directory does not"),
    ],
)
def test_errors_are_one_sentence_and_status_2(arguments, words, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"python -m validation.benchmarks: error: {words}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["training", "layers"])
def test_a_missing_framework_is_said(name, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, f"validation.benchmarks.{name}", None)
    assert main([name]) == 2
    assert f"validation.benchmarks.{name}" in capsys.readouterr().err


def test_a_gpu_is_looked_for_first(capsys):
    if pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["layers", "--cuda"]) == 2
    assert "--cuda needs a GPU" in capsys.readouterr().err
