"""The experiments of Haussmann et al. 2018: what their records show, and what decides them."""

import math
from functools import partial

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from logunif_kl.torch import nn  # noqa: E402
from tests.validation.experiments import committed, quick  # noqa: E402
from validation.papers.haussmann2018 import (  # noqa: E402
    learning_curves,
    moments,
    networks,
    thresholds,
)
from validation.training import data  # noqa: E402
from validation.training.loop import Settings, seeded  # noqa: E402

records = partial(committed, "haussmann2018")


class TestMoments:
    def test_another_variance_is_seen(self):
        """One that is 1.2 times as large, with these few samples."""
        for row in records("moments")["rows"]:
            if row["exact"]:
                assert moments.SIGMAS * row["ratio_standard_error"] < 0.2

    def test_the_rectifier(self):
        for row in records("moments")["rectifier"]:
            assert row["mean"] <= row["exact_mean"]
            if row["ratio"] >= 4.0:
                assert row["variance"] == pytest.approx(row["exact_variance"], rel=1e-3)
        at_zero = next(r for r in records("moments")["rectifier"] if r["ratio"] == 0.0)
        assert at_zero["exact_variance"] == pytest.approx(0.5 - 0.5 / math.pi, rel=1e-12)
        assert at_zero["exact_mean"] == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-12)


class TestLearningCurves:
    def test_goes_on_where_it_was_ended(self, tmp_path, monkeypatch):
        options = ("--methods", "vbp", "--epochs", 2)
        (whole,) = quick(learning_curves, tmp_path / "whole", *options)["rows"]
        original, made = networks.Annealed._take_step, []

        def ended(self):
            made.append(1)
            if len(made) == 50:
                raise KeyboardInterrupt
            return original(self)

        monkeypatch.setattr(networks.Annealed, "_take_step", ended)
        with pytest.raises(KeyboardInterrupt):
            quick(learning_curves, tmp_path, *options)
        (row,) = quick(learning_curves, tmp_path, *options)["rows"]
        assert {**row, "seconds": 0} == {**whole, "seconds": 0}

    def test_statements(self):
        def row(method, seed, error, share):
            fixed = {"threshold": 3.0, "pruned_percent": share, "error_percent": error + 0.2}
            chosen = {**fixed, "pruned_percent": share - 5.0, "error_percent": error + 0.1}
            curve = [{"epoch": i + 1, "test_error": error} for i in range(20)]
            return {
                "method": method,
                "seed": seed,
                "test_error": error,
                "fixed": fixed,
                "by_histogram": chosen,
                "curve": curve,
            }

        rows = [row("vbp", s, 0.8, 90.0) for s in (1, 2)]
        rows += [row("sampled", s, 1.0, 95.0) for s in (1, 2)]
        found = learning_curves.statements(rows)
        assert [each["holds"] for each in found] == [True] * 5
        rows[3] = row("sampled", 2, 0.7, 80.0)
        by = {e["statement"]: e["holds"] for e in learning_curves.statements(rows)}
        assert sorted(by.values()) == [False, False, False, True, True]


class TestNetworks:
    def test_the_papers(self):
        """784 pixels: 20 and 50 channels, and 800 inputs of 500 units."""
        model = networks.network(784, 1, seeded(1, 1))
        shapes = [tuple(m.weight.shape) for m in model if isinstance(m, nn.VariationalLayer)]
        assert shapes == [(20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)]
        assert model(torch.zeros(2, 784)).shape == (2, 10)

    def test_the_learning_rate_falls_and_the_weight_rises(self):
        digits, rates = data.digits(), []
        noise = seeded(1, 1)
        model = networks.network(64, 1, noise)
        training = data.Split(digits.train.x[:100], digits.train.y[:100])
        run = networks.Annealed(
            networks.METHODS["vbp_warm"], 2, model, noise, training, Settings(30, 1), about={}
        )
        weights = []
        step = run._optimizer.step

        def seen():
            rates.append(run._optimizer.param_groups[0]["lr"])
            weights.append(run._objective._weight)
            step()

        run._optimizer.step = seen
        for _ in run.train(2):
            pass
        assert rates == pytest.approx(
            [1e-3 * (1 - e / 2) for e in (0, 0.3, 0.6, 0.9, 1, 1.3, 1.6, 1.9)]
        )
        assert weights == pytest.approx([e / 15 for e in (0, 0.3, 0.6, 0.9, 1, 1.3, 1.6, 1.9)])


class TestThresholds:
    def test_a_valley(self):
        counts = [0] * thresholds.BINS
        for i in range(thresholds.BINS):
            counts[i] = int(1000 * math.exp(-0.02 * (i - 30) ** 2))
            counts[i] += int(9000 * math.exp(-0.02 * (i - 75) ** 2))
        width = (thresholds.HIGHEST - thresholds.LOWEST) / thresholds.BINS
        place = (thresholds.valley(counts) - thresholds.LOWEST) / width
        assert 42 < place < 63

    def test_what_is_beyond_is_no_mode(self):
        counts = [int(1000 * math.exp(-0.002 * (i - 40) ** 2)) for i in range(thresholds.BINS)]
        counts[-1] = 10**6
        assert thresholds.valley(counts) is None

    def test_one_mode_has_none(self):
        counts = [int(1000 * math.exp(-0.002 * (i - 60) ** 2)) for i in range(thresholds.BINS)]
        assert thresholds.valley(counts) is None
