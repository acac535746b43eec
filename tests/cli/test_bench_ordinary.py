"""``logunif-kl bench --sizes``, ``--magnitudes`` and ``--training``: what they measure and say."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.cli import main
from logunif_kl.cli.bench import cells, cold, magnitudes, sizes


def run(arguments, tmp_path):
    path = tmp_path / "bench.json"
    assert main(["bench", *arguments, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    assert document["command"].startswith("logunif-kl bench --")
    assert {"date", "kernel", "machine", "seed", "threads", "versions"} <= set(document)
    return document


def rises(spread):
    return 0.0 < spread["lower_quartile"] <= spread["median"] <= spread["upper_quartile"]


class TestSizes:
    def test_it_writes_what_it_measured(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(cold, "cache_bytes", lambda: 1)
        monkeypatch.setattr(cold, "SIZE", 1000)
        monkeypatch.setattr(sizes, "PATTERN", 2000)
        monkeypatch.setattr(sizes, "MIDDLE", 1000)
        monkeypatch.setattr(sizes, "_count", lambda size: 1)
        arguments = ["--sizes", "--size", "100", "3000", "--rounds", "2", "--seed", "7"]
        document = run(arguments, tmp_path)
        assert (document["seed"], document["threads"], document["middle"]) == (7, 1, 1000)
        rows = document["by_size"]
        names = {ufunc.name for ufunc in sizes.UFUNCS}
        assert {"kl_gap", "neg_kl_hess", "neg_kl_normal, with gradients"} <= names
        found = {(r["function"], r["dtype"], r["results"], r["size"]) for r in rows}
        assert found == {
            (name, dtype, kind, size)
            for name in names
            for dtype in ("float64", "float32")
            for kind in ("new arrays", "out=")
            for size in (100, 3000)
        }
        assert len(found) == len(rows)
        assert all(rises(row["nanoseconds_an_element"]) for row in rows)
        assert all(rises(row["against_middle"]) for row in rows)
        assert [row["dtype"] for row in document["cold"]["rows"]] == ["float64", "float32"]
        assert document["cold"]["rows"][0]["must"] == ">= 8"
        out = " ".join(capsys.readouterr().out.split())  # a title is broken at its table's width
        assert "float32, out=, one thread" in out
        assert "Cold caches: 1,000 elements" in out

    def test_the_target_is_at_thirty_million(self):
        assert {sizes.MUST_AT, sizes.MIDDLE, 100, 100_000_000} <= set(sizes.SIZES)

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

    def test_usual_arguments_repeat_by_seed_and_type(self):
        one, same, other = (sizes.usual(np.random.default_rng(s), 9, "float32") for s in (1, 1, 2))
        assert all(values.dtype == np.float32 for values in one.values())
        for name, values in one.items():
            np.testing.assert_array_equal(values, same[name])
            assert (values != other[name]).any()


class TestColdCaches:
    def test_reads_the_largest(self, tmp_path):
        for index, size in enumerate(["48K", "1280K", "48M", "unknown"]):
            (tmp_path / f"index{index}").mkdir()
            (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
        assert cold.cache_bytes(tmp_path) == 48 * 2**20
        assert cold.cache_bytes(tmp_path / "none") == cold.CACHES_UNKNOWN

    def test_arrays_are_larger_than_the_caches(self, monkeypatch):
        for caches in (1, 10**6, 10**9):
            monkeypatch.setattr(cold, "cache_bytes", lambda caches=caches: caches)
            monkeypatch.setattr(cold, "BYTES_AT_MOST", 10**7)
            for row in cold.measure(2, 0, size=1000)["rows"]:
                assert row["bytes_in_all"] >= min(3 * caches, 9 * 10**6)
                assert row["bytes_in_all"] <= 10**7
                assert rises(row["ratio"])


class TestMagnitudes:
    @pytest.fixture
    def _few_cells(self, monkeypatch):
        """Every hundredth magnitude, and the first, which are special."""

        def few(arguments, dtype):
            found = cells.cells(arguments, dtype)
            return [*found[:3], *found[3::100]]

        monkeypatch.setattr(magnitudes, "cells", few)
        monkeypatch.setattr(magnitudes, "_ELEMENTS", 256)

    @pytest.mark.usefixtures("_few_cells")
    def test_it_writes_what_it_measured(self, tmp_path, capsys):
        document = run(["--magnitudes", "--rounds", "2", "--seed", "3"], tmp_path)
        assert (document["seed"], document["rounds"]) == (3, 2)
        found = {(row["function"], row["dtype"]) for row in document["by_function"]}
        assert found == {(u.name, t) for u in sizes.UFUNCS for t in ("float64", "float32")}
        for row in document["by_function"]:
            assert row["framework"] == "numpy"
            assert (row["must"], row["aim"]) == ("<= 2", "<= 1.3")
            ratios = [each["against_usual"]["median"] for each in row["slowest"]]
            assert ratios == sorted(ratios, reverse=True)
            assert all(rises(each["against_usual"]) for each in row["slowest"])
            assert {each["at"] for each in row["special"]} >= {"0", "inf"}
            for sweep in row["searched"]:
                assert sweep["slowest"]["argument"] == sweep["argument"]
                assert 0 <= sweep["above_aim"] <= sweep["magnitudes"]
        out = capsys.readouterr().out
        assert "The slowest magnitude of each function" in out
        assert "numpy: neg_kl_normal, with gradients" in out

    @pytest.mark.parametrize("framework", ["torch", "jax"])
    def test_of_a_framework(self, framework, monkeypatch):
        pytest.importorskip(framework)
        if framework == "torch":
            from logunif_kl.cli.bench import _torch as module
        else:
            from logunif_kl.cli.bench import _jax as module
        ways = module.ways()
        assert {way.framework for way in ways} == {framework}
        usual = sizes.usual(np.random.default_rng(0), 100, "float32")
        gradients = ways[-1].job(usual["mu"], usual["log_sigma2"])()
        if framework == "jax":
            _, gradients = gradients
        exact = lk.special.neg_kl_normal_and_grad(
            *(usual[name].astype("float64") for name in ("mu", "log_sigma2"))
        )[1:]
        for found, truth in zip(gradients, exact, strict=True):
            np.testing.assert_allclose(np.asarray(found), truth, rtol=1e-6)

    def test_slow_magnitudes_are_found(self, monkeypatch):
        """A function that takes long where an element is 0 is found out, whole and mixed."""

        def job(values):
            slow = 400 if (values == 0.0).any() else 20
            return lambda: list(range(slow))

        way = magnitudes.Way("slow at 0", "numpy", "float64", ("mu",), 256, job)
        [found] = magnitudes.measure([way], 3, 0)
        slowest = [(each.cell.at, each.share) for each, _, _ in found.slowest[:2]]
        assert set(slowest) == {("0", "all"), ("0", "1 in 64")}
        assert found.slowest[0][1].median > found.slowest[2][1].median


class TestCells:
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("name", ["u", "mu", "log_alpha", "log_sigma2"])
    def test_every_decade_of_the_type_is_there(self, name, dtype):
        info, rng = np.finfo(dtype), np.random.default_rng(0)
        own = [cell for cell in cells.cells((name,), dtype) if cell.sweep == name]
        values = np.concatenate([cell.draw(rng, 64)[name] for cell in own]).astype(dtype)
        assert np.isnan(values).any()
        assert np.isposinf(values).any()
        assert (values == 0.0).any()
        magnitudes_found = np.abs(values[np.isfinite(values) & (values != 0.0)]).astype("float64")
        powers = set(np.floor(np.log10(magnitudes_found)).astype(int).tolist())
        least = math.floor(math.log10(float(info.smallest_subnormal)))
        # The smallest decade may round to 0 or to the next.
        assert powers >= set(range(least + 1, math.floor(math.log10(float(info.max))) + 1))
        assert (magnitudes_found < float(info.tiny)).any()
        if name.startswith("log"):
            assert (values < -1e30).any()
            assert (np.abs(values - 87.0) < 1.0).any()  # where exp(-x) leaves float32

    def test_alpha_stays_near_one(self):
        rng = np.random.default_rng(0)
        found = [c.draw(rng, 64) for c in cells.cells(("mu", "log_sigma2"), "float64")]
        both = [drawn for drawn in found if len(drawn) == 2]
        assert len(both) > 600
        for drawn in both:
            log_alpha = drawn["log_sigma2"] - 2.0 * np.log(drawn["mu"])
            assert np.abs(log_alpha).max() < 1.001

    def test_one_in_sixty_four(self):
        rng = np.random.default_rng(0)
        among = sizes.usual(rng, 6400, "float32")
        cell = cells.Cell("mu", "0", lambda rng, number: {"mu": np.zeros(number)})
        for share, count in ((1, 6400), (64, 100)):
            found = cells.mixed(cell, share, among, rng, "float32")
            assert (found["mu"] == 0.0).sum() == count
            assert found["mu"].dtype == np.float32
            assert found["log_sigma2"] is among["log_sigma2"]


class TestTraining:
    @pytest.fixture
    def training(self):
        pytest.importorskip("torch")
        from logunif_kl.cli.bench import _torch_training

        return _torch_training

    def test_it_writes_what_it_measured(self, training, tmp_path, capsys):
        arguments = ["--training", "--size", "200", "--steps", "45", "--seed", "5"]
        document = run(arguments, tmp_path)
        assert (document["weights"], document["steps"], document["seed"]) == (200, 45, 5)
        names = ["ours", "ours, flushed in Adam", "peers"]
        assert [each["name"] for each in document["runs"]] == names
        for each in document["runs"]:
            windows = each["windows"]
            assert len(windows) == training.WINDOWS
            assert (windows[0]["begin"], windows[-1]["end"]) == (0, 45)
            for window in windows:
                whole, *parts = (window[part]["nanoseconds_a_weight"] for part in training.PARTS)
                assert 0.0 < sum(parts) < 1.5 * whole
                assert len({whole, *parts}) == 1 + len(parts)
            assert all(a["end"] == b["begin"] for a, b in pairwise(windows))
            for part in training.PARTS:
                assert all(rises(window[part]["milliseconds"]) for window in windows)
                worst = max(window[part]["against_first"] for window in windows)
                assert each["worst_against_first"][part] == worst
            assert set(each["nanoseconds_a_weight_at_step"]) == {"0"}
        assert [each["must"] for each in document["runs"]] == ["<= 1.3", "", ""]
        out = capsys.readouterr().out
        assert "A step, ours, 200 weights, float32, Adam, threads: 1" in out
        assert "The slowest window against the first step" in out

    def test_steps_learn_and_the_first_repeats(self, training):
        import torch

        run = training.Run(300, 100, 0)
        model, other = (training.Model(run, training.OURS) for _ in range(2))
        first = [weight.detach().clone() for weight in model.weights]
        model.step()
        after_one = [weight.detach().clone() for weight in model.weights]
        for _ in range(50):
            model.step()
        for _ in range(3):
            other.first_step()
        for a, b, c, d in zip(first, after_one, model.weights, other.weights, strict=True):
            assert not torch.equal(a, b)
            assert not torch.equal(b, c)
            torch.testing.assert_close(b, d, rtol=1e-6, atol=1e-7)

    def test_the_penalty_dominates(self, training):
        """At the first step the gradient of the data is a small part of the whole."""
        import torch

        run = training.Run(2000, 100, 0)
        with_data = training.Model(run, training.OURS)
        with_data.step()
        mu, log_sigma2 = (w.detach().clone().requires_grad_() for w in with_data._first)
        training._ours(mu, log_sigma2).backward()
        whole, alone = with_data.weights[0].grad, mu.grad
        assert torch.linalg.norm(whole - alone) < 0.05 * torch.linalg.norm(alone)
        ours, peers = (p(mu, log_sigma2).item() for p in (training._ours, training._peers))
        # The peers' clamp cuts the lower half of the first log alpha off.
        assert peers < ours < 1.2 * peers
