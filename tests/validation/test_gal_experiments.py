"""The experiments after Gal 2016: what they are made of, and what they judge."""

import math

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("torchmetrics")

from logunif_kl.torch import nn  # noqa: E402
from tests.validation.experiments import quick  # noqa: E402
from validation.papers.gal2016 import (  # noqa: E402
    calibration,
    digit_networks,
    images,
    out_of_distribution,
    regression,
    rotated,
)
from validation.training import data  # noqa: E402
from validation.training.loop import seeded  # noqa: E402
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

    @pytest.mark.parametrize("method", ["none", "binary", "gaussian_a"])
    def test_the_decay_is_the_l2_term_of_the_risk(self, method):
        """(l^2/2N) (E|W|^2 + |b|^2), by the mean over N points, with the noise that is drawn."""
        model = regression.network(method, 7, 1, seeded(1, 1))
        groups = regression.decays(method, model, 40)
        model.requires_grad_(False)
        term = sum(0.5 * g["weight_decay"] * g["params"][0].square().sum() for g in groups)
        squares = iter([torch.tensor(1.0)])
        expected = 0.0
        torch.manual_seed(1)
        for module in model.train():
            if isinstance(module, torch.nn.Linear):
                expected += next(squares, torch.tensor(1.0)) * module.weight.square().sum()
                expected += module.bias.square().sum()
            elif isinstance(module, (torch.nn.Dropout, nn.GaussianDropoutA)):
                squares = iter([module(torch.ones(1_000_000)).square().mean()])
        assert float(term) == pytest.approx(float(0.25 / 80 * expected), rel=2e-3)
        assert len(groups) == 6

    def test_the_variational_layers_have_no_decay(self):
        model = regression.network("variational_a", 7, 1, seeded(1, 1))
        groups = regression.decays("variational_a", model, 40)
        assert [g["weight_decay"] > 0.0 for g in groups] == [True, True] + [False] * 6


class TestOutOfDistribution:
    def test_a_file_of_the_user(self, tmp_path, capsys):
        """Of the right size, it is one more set of images; of another, it is refused."""
        for width in (8, 9):
            arrays = {
                "x_train": np.zeros((2, width, width), np.uint8),
                "y_train": np.zeros(2, np.uint8),
                "x_test": np.arange(3 * width * width, dtype=np.uint8).reshape(3, width, width),
                "y_test": np.zeros(3, np.uint8),
            }
            np.savez(tmp_path / f"{width}.npz", **arrays)
        settings = {"quick": True, "images": 2, "other": str(tmp_path / "8.npz")}
        sets = out_of_distribution.others(settings, data.digits())
        assert list(sets) == [*images.OTHERS, "other"]
        assert sets["other"]["x"].shape == (2, 64)
        assert quick(out_of_distribution, tmp_path, "--other", tmp_path / "9.npz") == 2
        said = "has 81 pixels an image, and the digits have 64: name images of the same size\n"
        assert capsys.readouterr().err.endswith(said)

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

    def test_a_quarter_turn(self):
        turned = images.rotated(self.test, 90).reshape(-1, 8, 8)
        upright = self.test.reshape(-1, 8, 8)
        np.testing.assert_allclose(turned, np.rot90(upright, axes=(1, 2)), atol=1e-6)
        np.testing.assert_array_equal(images.rotated(self.test, 0), self.test)

    def test_letters_are_placed_as_digits_are(self):
        made = images.letters(np.zeros((1, 784), np.float32), 100, np.random.default_rng(0))
        assert made.max(1).min() > 0.5
        drawn = made.reshape(-1, 28, 28)
        for axis in (1, 2):
            mass = drawn.sum(axis)
            where = np.where(mass > 0.0, np.arange(28.0), np.nan)
            extent = np.nanmax(where, 1) - np.nanmin(where, 1) + 1
            assert extent.max() <= 20
            centre = (mass * (np.arange(28) + 0.5)).sum(1) / mass.sum(1)
            assert np.abs(centre - 14.0).max() <= 0.51

    def test_pixels_in_another_order(self):
        made = images.permuted(self.test, len(self.test), np.random.default_rng(0))
        assert sorted(map(tuple, np.sort(made, 1))) == sorted(map(tuple, np.sort(self.test, 1)))
        # The same order for all: pixels that are always empty are as many.
        assert (made.max(0) == 0.0).sum() == (self.test.max(0) == 0.0).sum()

    def test_the_other_digits(self):
        split = images.other_digits(np.zeros((1, 784), np.float32))
        assert split.x.shape == (1797, 784)
        assert (split.x.reshape(-1, 28, 28)[:, :4] == 0.0).all()
        assert split.x.max() == 1.0

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
