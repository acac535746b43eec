"""The experiments after Gal 2016: what they are made of, and what they judge."""

import math

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("torchmetrics")

from validation.papers.gal2016 import (  # noqa: E402
    calibration,
    digit_networks,
    images,
    regression,
    rotated,
)
from validation.training import data  # noqa: E402
from validation.training.parts import Parts  # noqa: E402


class TestRegression:
    def test_what_is_judged(self):
        mean, y = 0.3 * np.random.default_rng(0).standard_normal((2, 500))
        found = regression.judged(mean, y, mean, np.full(500, 0.03))
        predicted = stats.norm(mean, math.sqrt(0.03 + regression.SIGMA**2))
        low, high = predicted.interval(0.95)
        off = np.sqrt(np.mean((y - mean) ** 2))
        assert found == {
            "points": 500,
            "standard_deviation": pytest.approx(math.sqrt(0.03)),
            "coverage_95": np.mean((low <= y) & (y <= high)),
            "root_mean_squared_error": pytest.approx(off, rel=1e-12),
            "log_density": pytest.approx(predicted.logpdf(y).mean(), rel=1e-12),
        }
        assert 0.5 < found["coverage_95"] < 0.9


class TestOutOfDistribution:
    def test_the_area(self):
        """By its definition, over all pairs."""
        rng = np.random.default_rng(1)
        few, many = (torch.from_numpy(rng.integers(0, 5, n) / 4) for n in (20, 30))
        pairs = (many[None] > few[:, None]).double() + 0.5 * (many[None] == few[:, None])
        assert digit_networks.auroc(few, many) == pytest.approx(float(pairs.mean()))


@pytest.mark.parametrize(("right", "error"), [(8, 0.0), (10, 0.2), (3, 0.5)])
def test_the_error_is_the_gap(right, error):
    """Ten predictions of confidence 0.8, some of them right."""
    p = torch.full((10, 5), 0.05, dtype=torch.float64)
    p[:, 0] = 0.8
    y = torch.ones(10, dtype=torch.int64)
    y[:right] = 0
    found = calibration.judged(p, y, torch.zeros(10))
    assert found["expected_calibration_error"] == pytest.approx(error, abs=1e-6)
    assert found["error_percent"] == pytest.approx(100.0 - 10.0 * right)
    likelihood = -(right * math.log(0.8) + (10 - right) * math.log(0.05)) / 10
    assert found["negative_log_likelihood"] == pytest.approx(likelihood)
    scores = (right * (0.2**2 + 4 * 0.05**2), (10 - right) * (0.8**2 + 0.95**2 + 3 * 0.05**2))
    assert found["brier_score"] == pytest.approx(sum(scores) / 10)
    curve = found["reliability"]
    assert (curve["accuracy"], curve["count"]) == ([right / 10], [10])
    assert found["auroc_of_errors"] == (None if right == 10 else 0.5)


class TestImages:
    test = data.digits().test.x

    @pytest.mark.parametrize("name", images.OTHERS)
    @pytest.mark.parametrize("width", [8, 28])
    def test_size_and_range(self, name, width):
        test = np.random.default_rng(0).random((9, width * width), dtype=np.float32)
        made = [images.OTHERS[name].make(test, 7, np.random.default_rng(s)) for s in (1, 1, 2)]
        assert (made[0].shape, made[0].dtype) == ((7, width * width), np.float32)
        assert made[0].min() >= 0.0
        assert made[0].max() <= 1.0
        assert np.array_equal(made[0], made[1])
        assert not np.array_equal(made[0], made[2])

    def test_images_that_are_not_square(self):
        with pytest.raises(data.DataError, match="images of 12 pixels are not square"):
            images.side(np.zeros((1, 12), np.float32))


def test_a_network_is_trained_once(tmp_path):
    """The experiments on digits take the same networks from their folder."""
    given = ("binary", 1, {**rotated.EXPERIMENT.quick, "hidden": [8], "epochs": 1}, data.digits())
    made = [digit_networks.Trained(*given, Parts(tmp_path, {})) for _ in range(2)]
    (file,) = tmp_path.glob("*.pt")
    assert (file.name, made[0].training_seconds) == ("binary-seed1.pt", made[1].training_seconds)


@pytest.mark.parametrize(
    ("values", "mean", "error"),
    [([1.0, 2.0, None], 1.5, 0.5), ([2.0], 2.0, None), ([None], None, None)],
)
def test_averages(values, mean, error):
    found = digit_networks.mean_and_error(values)
    assert found == {"mean": mean, "standard_error": pytest.approx(error)}
