"""The experiments of Haussmann et al. 2018: what their records show, and what decides them."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
from scipy import stats  # noqa: E402

import logunif_kl as lk  # noqa: E402
from logunif_kl.posteriors import TruncatedLogUniform  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.validation.experiments import committed  # noqa: E402
from validation.papers.haussmann2018 import (  # noqa: E402
    covariances,
    dense,
    fashion,
    first_epochs,
    learning_curves,
    moments,
    networks,
    samples,
    thresholds,
)
from validation.training import data  # noqa: E402
from validation.training.loop import Objective, seeded  # noqa: E402


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


class TestDense:
    @pytest.mark.parametrize("log10", [3.0, 8.0])
    def test_a_gaussian_under_the_prior_between_cut_offs(self, log10):
        """In the convention of the improper prior, -KL of alpha = infinity is 0."""
        prior = TruncatedLogUniform(10.0**-log10, 10.0**log10)
        log_range = 2.0 * log10 * math.log(10.0)
        for alpha in (1e-4, 1e-6):
            exact = lk.neg_kl_posterior(stats.norm(1.0, math.sqrt(alpha)), prior=prior)
            found = lk.neg_kl(math.log(alpha)) + dense.per_weight(log_range)
            assert found == pytest.approx(exact, rel=1e-9)

    def test_small_weights_ignore_the_data(self):
        sizes = dense.widths(784, 400)
        model = dense.network(sizes, 1, seeded(1, 1), "exact").eval()
        for layer in model[::2]:
            torch.nn.init.constant_(layer.weight, dense.NEAR)
            torch.nn.init.zeros_(layer.bias)
        largest = model(torch.ones(1, 784)).max().item()
        row = {"prior": "log_uniform", "log_likelihood": -900.0, "neg_kl": -9e4, "weights": 478_000}
        found = dense.ignoring([row], 60_000, sizes)
        lowest = -60_000 * (math.log(10.0) + 2.0 * largest)
        assert found["ignorant_log_likelihood"] == pytest.approx(lowest, rel=1e-6)

    def test_where_ignoring_the_data_has_the_higher_bound(self):
        """With one weight, both bounds can be written out."""
        row = {"prior": "log_uniform", "log_likelihood": -1.0, "neg_kl": -2.0, "weights": 1}
        found = dense.ignoring([row], 1, [1, 1])
        log_range = math.log(dense.FAR / found["cut_off_of_equality"])
        trained = -1.0 - 2.0 + dense.per_weight(log_range)
        near = math.log(math.log(dense.NEAR / found["cut_off_of_equality"]) / log_range)
        ignorant = -math.log(10.0) - 2.0 * dense.NEAR + near
        assert trained == pytest.approx(ignorant, abs=1e-6)

    def test_statements(self):
        errors = {"normal_vbp": 1.4, "normal": 1.8, "mixture": 1.3}
        rows = [
            {"prior": prior, "seed": seed, "test_error": error}
            for prior, error in errors.items()
            for seed in (1, 2)
        ]
        assert [each["holds"] for each in dense.statements(rows)] == [True, True]
        rows[0]["test_error"] = 1.9
        assert [each["holds"] for each in dense.statements(rows)] == [False, False]


def test_several_samples_have_their_mean_as_the_loss():
    model = dense.network([4, 3, 3, 10], 1, seeded(1, 1), "exact")
    objective = Objective(model, 2000, 1.0)
    x, y = torch.rand(5, 4, generator=seeded(1, 0)), torch.arange(5)
    for layer in model[::2]:
        torch.nn.init.constant_(layer.log_sigma2, -60.0)
    once = objective(x, y)
    for a, b in zip(samples.Repeated(objective, 3)(x, y), once, strict=True):
        torch.testing.assert_close(a, b)
    for layer in model[::2]:
        torch.nn.init.constant_(layer.log_sigma2, 0.0)
    # The variance of the mean of 400 samples is a hundredth of that of four.
    variances = [
        torch.stack([samples.Repeated(objective, n)(x, y)[1] for _ in range(50)]).var()
        for n in (4, 400)
    ]
    assert 40.0 < variances[0] / variances[1] < 250.0


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


def test_mnist_is_not_fashion_mnist(monkeypatch, capsys):
    mnist = data.Dataset("MNIST", *[data.Split(np.zeros((1, 784)), np.zeros(1))] * 2, "")
    monkeypatch.setattr(data, "read", lambda named: mnist)
    assert fashion.EXPERIMENT.main(["--data", "m"]) == 2
    said = "error: m is MNIST: give --data FILE or set LOGUNIF_KL_FASHION_MNIST to Fashion-MNIST"
    assert said in capsys.readouterr().err


class TestFirstEpochs:
    @pytest.mark.parametrize("method", networks.METHODS)
    def test_without_noise_the_log_likelihoods_are_that_of_the_means(self, method):
        dataset = data.digits()
        model = networks.network(64, 1, seeded(1, 1))
        for layer in model.modules():
            if isinstance(layer, nn.VariationalLayer):
                torch.nn.init.constant_(layer.log_sigma2, -40.0)
        sizes = {"images": 1100, "samples": 2}
        found = first_epochs.log_likelihoods(model, method, dataset, sizes, 1)
        with torch.no_grad():
            logits = model.eval()(torch.from_numpy(dataset.train.x[:1100]))
        y = torch.from_numpy(dataset.train.y[:1100])
        exact = -torch.nn.functional.cross_entropy(logits, y).item()
        assert found["sampled"] == pytest.approx(exact, rel=1e-5)
        own = None if method.startswith("sampled") else pytest.approx(exact, rel=1e-4)
        assert found["own"] == own

    def test_with_noise_the_quadratic_form_is_a_bound(self):
        model = networks.network(64, 1, seeded(1, 1))
        sizes = {"images": 1000, "samples": 20}
        for layer in model.modules():
            if isinstance(layer, nn.VariationalLayer):
                torch.nn.init.constant_(layer.log_sigma2, -3.0)
        found = first_epochs.log_likelihoods(model, "vbp_quadratic", data.digits(), sizes, 1)
        assert found["own"] < found["sampled"] - 5.0 * found["sampled_error"]

    def test_which_values_are_too_high(self):
        rows = [
            {"title": title, "gap": gap, "gap_standard_error": 0.1}
            for title, gap in {"a": -0.3, "b": -0.1, "c": 0.3, "d": math.nan}.items()
        ]
        assert first_epochs._above(rows).startswith(
            "For “a”, the value that VBP maximises is above"
        )
        assert first_epochs._above(rows[1:]) == ""

    def test_the_sparsity_is_compared_seed_by_seed(self):
        def row(method, seed, *shares):
            curve = [{"epoch": i, "pruned_percent": p} for i, p in enumerate(shares, 1)]
            return {"method": method, "seed": seed, "curve": curve}

        rows = [row("sampled_warm", 1, 45, 97), row("sampled_warm", 2, 46, 98), row("vbp", 1, 95)]
        beside = [row("vbp_warm", 1, 48, 96), row("vbp_warm", 2, 50, 99), row("sampled", 1, 94, 99)]
        said = first_epochs._sparsity(rows, beside)
        assert "94 to 95 % of the weights have log α > 3 after the first epoch" in said
        assert "for 1 of 2 seeds: 96.0 against 97.0 %; 99.0 against 98.0 %." in said
