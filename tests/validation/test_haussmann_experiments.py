"""The experiments of Haussmann et al. 2018: what their records show, and what decides them."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from logunif_kl.torch import nn  # noqa: E402
from tests.validation.experiments import committed  # noqa: E402
from validation.papers.haussmann2018 import (  # noqa: E402
    covariances,
    learning_curves,
    moments,
    networks,
    thresholds,
)
from validation.training.loop import seeded  # noqa: E402


class TestMoments:
    def test_another_variance_is_seen(self):
        """One that is 1.2 times as large, with these few samples."""
        for row in committed("haussmann2018", "moments")["rows"]:
            if row["exact"]:
                assert moments.SIGMAS * row["ratio_standard_error"] < 0.2

    def test_the_rectifier(self):
        for row in moments.rectifier():
            assert row["mean"] <= row["exact_mean"]
            if row["ratio"] >= 4.0:
                assert row["variance"] == pytest.approx(row["exact_variance"], rel=1e-3)
            if row["ratio"] == 0.0:
                assert row["exact_variance"] == pytest.approx(0.5 - 0.5 / math.pi, rel=1e-12)
                assert row["exact_mean"] == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-12)


class TestCovariances:
    def test_they_make_the_variance_exact_without_a_rectifier(self):
        for row in committed("haussmann2018", "covariances")["rows"]:
            if row["exact"]:
                assert row["off_in_errors"] < moments.SIGMAS

    def test_of_a_layer_that_is_read_twice(self):
        """Both outputs of a convolution are w x, and so is their average."""
        first = nn.VariationalConv1d(1, 1, 1, bias=False, initial=0.0)
        model = torch.nn.Sequential(torch.nn.Identity(), first, torch.nn.AvgPool1d(2)).eval()
        found = covariances.variance(model, torch.full((1, 1, 2), 3.0))
        torch.testing.assert_close(found.flatten().detach(), torch.tensor([9.0]))


def test_statements():
    def row(method, seed, error, share):
        fixed = {"threshold": 3.0, "pruned_percent": share, "error_percent": error + 0.2}
        chosen = {**fixed, "pruned_percent": share - 5.0, "error_percent": error + 0.1}
        curve = [{"epoch": i + 1, "test_error": error} for i in range(20)]
        found = {"method": method, "seed": seed, "test_error": error, "curve": curve}
        return found | {"fixed": fixed, "by_histogram": chosen}

    rows = [row("vbp", s, 0.8, 90.0) for s in (1, 2)]
    rows += [row("sampled", s, 1.0, 95.0) for s in (1, 2)]
    found = learning_curves.statements(rows)
    assert [each["holds"] for each in found] == [True] * 5
    rows[3] = row("sampled", 2, 0.7, 80.0)
    by = {e["statement"]: e["holds"] for e in learning_curves.statements(rows)}
    assert sorted(by.values()) == [False, False, False, True, True]


def test_the_network_of_the_paper():
    """784 pixels: 20 and 50 channels, and 800 inputs of 500 units."""
    model = networks.network(784, 1, seeded(1, 1))
    shapes = [tuple(m.weight.shape) for m in model if isinstance(m, nn.VariationalLayer)]
    assert shapes == [(20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)]
    assert model(torch.zeros(2, 784)).shape == (2, 10)


class TestThresholds:
    def test_a_valley(self):
        counts = [0] * thresholds.BINS
        for i in range(thresholds.BINS):
            counts[i] = int(1000 * math.exp(-0.02 * (i - 30) ** 2))
            counts[i] += int(9000 * math.exp(-0.02 * (i - 75) ** 2))
        width = (thresholds.HIGHEST - thresholds.LOWEST) / thresholds.BINS
        place = (thresholds.valley(counts) - thresholds.LOWEST) / width
        assert 42 < place < 63

    @pytest.mark.parametrize(("mode", "beyond"), [(40, 10**6), (60, 0)])
    def test_one_mode_has_none(self, mode, beyond):
        """What is beyond the last bin is not a mode."""
        counts = [int(1000 * math.exp(-0.002 * (i - mode) ** 2)) for i in range(thresholds.BINS)]
        counts[-1] += beyond
        assert thresholds.valley(counts) is None
