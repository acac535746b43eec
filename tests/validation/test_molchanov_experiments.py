"""The experiments of Molchanov et al. 2017: what their records show, and what decides them."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from logunif_kl.torch import nn  # noqa: E402
from tests.validation.experiments import quick  # noqa: E402
from validation.papers.haussmann2018 import learning_curves  # noqa: E402
from validation.papers.molchanov2017 import (  # noqa: E402
    authors_settings,
    colour,
    comparison,
    models,
)
from validation.training.loop import ScheduledRun  # noqa: E402
from validation.verdict import agreement  # noqa: E402


def test_the_largest_weights_of_all_layers_are_kept():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.Linear(2, 3)).double()
    sizes = [weight.abs().flatten() for weight in model.parameters() if weight.ndim > 1]
    least = torch.cat(sizes).sort(descending=True).values[4]
    kept = colour.keep_largest(model, 5)
    for ours, whole in zip(kept, model, strict=True):
        expected = whole.weight.where(whole.weight.abs() >= least, 0.0)
        torch.testing.assert_close(ours.weight, expected, rtol=0.0, atol=0.0)
        torch.testing.assert_close(ours.bias, whole.bias)
    assert len(list(kept.parameters())) == 4  # they train on


class TestComparison:
    def test_the_networks_of_the_paper(self):
        small = models.plain("lenet_300_100", 1, False)
        large = models.plain("lenet_5_caffe", 1, False)
        assert [nn.sparsity(model).weights for model in (small, large)] == [266_200, 430_500]
        assert large(torch.ones(2, 784)).shape == (2, 10)
        row = models.TABLE_1["lenet_300_100"]
        kept = [235_200, 30_000, 1_000] @ (1.0 - np.array(row.pruned) / 100.0)
        assert 266_200 / kept == pytest.approx(row.compression, rel=0.05)

    @pytest.mark.parametrize(
        ("kept", "error", "good"), [(3900, 1.9, True), (3950, 1.9, False), (3900, 1.95, False)]
    )
    def test_what_is_as_good_as_the_paper(self, kept, error, good):
        row = {"case": "exact", "test_error": error, "kept": kept, "weights": 266_200}
        row |= {"pruned_percent": [99.0, 98.0, 60.0], "seconds": 1.0}
        rows = []
        for seed in (1, 2, 3):
            at = {"threshold": 2.0, "test_error_pruned": error + 0.1 * seed, "kept": 1000 * seed}
            pruned = error + 0.01 * (seed - 2)
            rows.append(row | {"seed": seed, "test_error_pruned": pruned, "by_threshold": [at]})
        (found,) = comparison.summarised("lenet_300_100", rows)
        assert found["as_good_as_the_paper"] is good
        assert found["compression"] == pytest.approx(266_200 / kept)
        assert found["test_error_pruned"]["standard_error"] == pytest.approx(0.01 / math.sqrt(3))
        (other,) = found["by_threshold"]
        assert other["kept"] == 2000
        assert other["test_error_pruned"]["mean"] == pytest.approx(error + 0.2)


class TestMasks:
    def test_overlap(self):
        a = {"0": np.array([True, True, False, False]), "1": np.array([True, False])}
        b = {"0": np.array([True, False, True, False]), "1": np.array([True, False])}
        found = models.overlap(a, b)
        assert found["overlap"] == 2 / 4
        assert found["by_chance"] == pytest.approx((1.0 + 0.5) / (3.0 + 1.5))
        assert models.overlap(a, a)["overlap"] == 1.0

    @pytest.mark.parametrize(
        ("overlap", "agrees"), [(0.5, True), (0.795, None), (0.95, False), (0.8, None)]
    )
    def test_what_decides_that_the_masks_differ(self, overlap, agrees):
        noise = [0.80, 0.82, 0.78]
        found = comparison._decided("molchanov", [overlap, overlap + 0.01, overlap - 0.03], noise)
        assert agreement([(found["difference"], found["half_width"])]) is agrees


class TestSchedule:
    @pytest.mark.parametrize(
        ("module", "options"),
        [
            (authors_settings, ("--cases", "script", "--epochs", "3")),
            (learning_curves, ("--methods", "vbp", "--epochs", "2")),
        ],
    )
    def test_goes_on_where_it_was_ended(self, module, options, tmp_path, monkeypatch):
        (whole,) = quick(module, tmp_path / "whole", *options)["rows"]
        original, steps = ScheduledRun._take_step, []

        def ended(run):
            steps.append(run.step)
            if len(steps) == 70:
                raise KeyboardInterrupt
            original(run)

        monkeypatch.setattr(ScheduledRun, "_take_step", ended)
        with pytest.raises(KeyboardInterrupt):
            quick(module, tmp_path, *options)
        (row,) = quick(module, tmp_path, *options)["rows"]
        assert steps[70] > 0
        assert {**row, "seconds": 0} == {**whole, "seconds": 0}
