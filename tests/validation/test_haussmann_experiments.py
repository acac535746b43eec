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
from validation.papers import haussmann2018  # noqa: E402
from validation.papers.haussmann2018 import (  # noqa: E402
    dense,
    fashion,
    first_epochs,
    learning_curves,
    networks,
    published_dense,
)
from validation.training import data  # noqa: E402
from validation.training.loop import seeded  # noqa: E402


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
    assert [each["agrees"] for each in found] == [True] * 6
    rows[3] = row("sampled", 2, 0.7, 80.0)  # the seeds differ in which is better
    found = learning_curves.statements(rows)
    assert [each["agrees"] for each in found] == [None, None, None, True, True, True]


def test_the_pages_say_what_our_copy_and_the_published_code_are():
    page = haussmann2018.__doc__
    assert "whose first author is Kandemir" in page
    assert "UAI 2019" in page
    assert "the bodies of Eqs. 1\nto 4 and of Propositions 1 and 2" in page
    for module in (nn, pytest.importorskip("logunif_kl.jax.nn")):
        said = " ".join(module.expected_categorical_log_likelihood.__doc__.split())
        assert "samples the outputs by default, with ``sample=True``" in said
    assert not any("authors' code" in method.title for method in networks.METHODS.values())


def test_the_network_of_the_paper():
    """784 pixels: 20 and 50 channels, and 800 inputs of 500 units."""
    model = networks.network((1, 28, 28), 1, seeded(1, 1))
    shapes = [tuple(m.weight.shape) for m in model if isinstance(m, nn.VariationalLayer)]
    assert shapes == [(20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)]
    assert model(torch.zeros(2, 784)).shape == (2, 10)


def test_the_initial_values_of_the_published_code():
    model = networks.network((1, 28, 28), 1, seeded(1, 1))
    networks.as_the_authors(model, seeded(1, 3))
    for layer in model:
        if isinstance(layer, nn.VariationalLayer):
            n = layer.weight[0].numel() * (24 / 25 if layer.weight.ndim == 4 else 1)
            spread = 4.0 / math.sqrt(2 * layer.weight.numel())  # of its standard deviation
            assert float(layer.weight.detach().std()) * math.sqrt(n) == pytest.approx(1, rel=spread)
            log_sigma2 = layer.get_parameter("log_sigma2").detach()
            assert float((log_sigma2 + 9.0).abs().max()) < 0.006
            assert not layer.bias.detach().any()


class TestPublishedDense:
    @pytest.mark.parametrize("name", published_dense.CASES)
    def test_the_estimator_and_the_prior(self, name):
        model = published_dense.network(name, [4, 3, 2], 1, seeded(1, 1))
        layer = model[0]
        assert layer.estimator == ("local" if name == "normal_vbp" else "per_batch")
        if name != "mixture":
            assert layer.penalty.variance == 1.0 / published_dense.PRECISION

    def test_statements_at_each_width(self):
        errors = {"normal_vbp": 1.4, "normal": 1.8, "mixture": 1.3}
        rows = [
            {"prior": prior, "units": units, "seed": seed, "test_error": error}
            for prior, error in errors.items()
            for units in (400, 800)
            for seed in (1, 2)
            if (prior, units) != ("mixture", 800)
        ]
        found = list(published_dense.statements(rows))
        assert [each["units"] for each in found] == [[400, 800], [400]]
        assert [each["agrees"] for each in found] == [True, True]


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

    def test_statements(self):
        errors = {"normal_vbp": 1.4, "normal": 1.8, "mixture": 1.3}
        rows = [
            {"prior": prior, "seed": seed, "test_error": error}
            for prior, error in errors.items()
            for seed in (1, 2)
        ]
        assert [each["agrees"] for each in dense.statements(rows)] == [True, True]
        rows[0]["test_error"] = 1.9
        assert [each["agrees"] for each in dense.statements(rows)] == [None, None]
        assert len(dense.OF_TABLE_1) == 2  # the other statement is about Table 2


class TestThresholds:
    def test_a_valley(self):
        counts = [0] * networks.BINS
        for i in range(networks.BINS):
            counts[i] = int(1000 * math.exp(-0.02 * (i - 30) ** 2))
            counts[i] += int(9000 * math.exp(-0.02 * (i - 75) ** 2))
        width = (networks.HIGHEST - networks.LOWEST) / networks.BINS
        place = (networks.valley(counts) - networks.LOWEST) / width
        assert 42 < place < 63

    @pytest.mark.parametrize(("mode", "beyond"), [(40, 10**6), (60, 0)])
    def test_one_mode_has_none(self, mode, beyond):
        """What is beyond the last bin is not a mode."""
        counts = [int(1000 * math.exp(-0.002 * (i - mode) ** 2)) for i in range(networks.BINS)]
        counts[-1] += beyond
        assert networks.valley(counts) is None


def test_mnist_is_not_fashion_mnist(monkeypatch, capsys):
    mnist = data.Dataset("MNIST", *[data.Split(np.zeros((1, 784)), np.zeros(1))] * 2, "")
    monkeypatch.setattr(data, "read", lambda named: mnist)
    assert fashion.EXPERIMENT.main(["--data", "m"]) == 2
    said = "error: m is MNIST: give --data FILE or set LOGUNIF_KL_FASHION_MNIST to Fashion-MNIST"
    assert said in capsys.readouterr().err


class TestFirstEpochs:
    def test_which_values_are_too_high(self):
        rows = [
            {"method": method, "gap": gap, "gap_standard_error": 0.1}
            for method, gap in zip(networks.METHODS, (-0.3, -0.1, 0.3, math.nan), strict=False)
        ]
        assert first_epochs._above(rows).startswith(
            "For “VBP, tilted bound”, the value that VBP maximises is above"
        )
        assert first_epochs._above(rows[1:]) == ""
