"""The experiments of Kingma et al. 2015: what their records show, and what decides agreement."""

import itertools
import math
from functools import partial

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from tests.validation.experiments import committed, quick  # noqa: E402
from validation.papers.kingma2015 import (  # noqa: E402
    convergence,
    convolutional,
    gradient_variance,
    minibatch_size,
    printed,
    ratios_by_likelihood,
    test_error,
)
from validation.training import networks  # noqa: E402

records = partial(committed, "kingma2015")


def test_figure_1a_as_its_authors_would_judge():
    found = test_error.statements(records("test_error")["rows"])
    agrees = {each["statement"]: each["agrees"] for each in found}
    rates = "the dropout rates are on average far lower in smaller networks"
    large = "the difference is especially large with smaller models"
    assert agrees[f"variational dropout A: {rates}"] is True
    assert agrees[f"variational dropout B: {rates}"] is False
    assert agrees[f"variational dropout A: {large}"] is True
    assert agrees[f"variational dropout B: {large}"] is None
    assert agrees["variational dropout A2 beats binary dropout"] is None
    page = test_error.show(records("test_error"))
    assert "mean rate 0.39 in the output layer, and 0.50 or more in the others" in page


def test_the_network_of_figure_1b():
    """The weights of a seed are the same for every method; stride 2 leaves 8 by 8 pixels of 32."""
    images = torch.zeros(2, 3072)
    first, *others = (
        convolutional.network(method, (3, 32, 32), 32, 1, torch.Generator())
        for method in convolutional.METHODS
    )
    shapes = [tuple(weight.shape) for weight in first.parameters() if weight.ndim > 1]
    assert shapes == [(32, 3, 5, 5), (64, 32, 5, 5), (128, 4096), (128, 128), (10, 128)]
    expected = first.eval()(images)
    for other in others:
        torch.testing.assert_close(other.eval()(images), expected, rtol=1e-5, atol=1e-6)
    (rates,) = {
        tuple(round(row["mean_dropout_rate"], 6) for row in networks.learned_alphas(other))
        for other in others[2:]
    }
    assert rates == (0.2, 0.5, 0.5, 0.5, 0.5)


class TestGradientVariance:
    def test_goes_on_where_it_was_ended(self, tmp_path, monkeypatch):
        """Ended in the measurement, it ends with the numbers of a run that was not."""
        pairs = {"local": 3, "per_batch": 3, "none": 3, "per_example": 2}
        for name, value in {"epochs": [1, 2], "epochs_between": [], "pairs": pairs}.items():
            monkeypatch.setitem(gradient_variance.EXPERIMENT.quick, name, value)
        whole, made = quick(gradient_variance, tmp_path / "whole"), []
        original = gradient_variance.Pairs.half_squared_difference

        def ended(self, estimator, number):
            made.append(estimator)
            if len(made) == 10:
                raise KeyboardInterrupt
            return original(self, estimator, number)

        monkeypatch.setattr(gradient_variance.Pairs, "half_squared_difference", ended)
        with pytest.raises(KeyboardInterrupt):
            quick(gradient_variance, tmp_path)
        record = quick(gradient_variance, tmp_path)
        for name in ("table_1", "table_2"):
            assert record[name]["each"] == whole[name]["each"]
        total = sum(row["pairs"] for t in ("table_1", "table_2") for row in record[t]["each"]) // 2
        assert len(made) == total + 1  # one was ended; none was computed twice

    @staticmethod
    def compared_with_the_paper(kind, of_per_batch=1.0):
        """Compare the paper's own numbers with it, those of per_batch times a factor."""
        rows = [
            {
                "estimator": estimator,
                "layer": layer,
                "epochs": epochs,
                "variance": 10.0 * value * (of_per_batch if estimator == "per_batch" else 1.0),
                "standard_error": 0.01 * value,
            }
            for (estimator, layer, epochs), value in printed.GRADIENT_VARIANCE[kind].items()
        ]
        return gradient_variance.compared_with_the_paper(rows, kind, printed.EPOCHS)

    @pytest.mark.parametrize("kind", printed.GRADIENT_VARIANCE)
    def test_the_paper_against_itself(self, kind):
        """Its own numbers are in its order, with ratios of 1."""
        for column in self.compared_with_the_paper(kind):
            assert column["order_as_in_the_paper"]
            assert column["ratios_within_2"]
            for entry in column["estimators"].values():
                assert entry["ratio_over_paper_ratio"] == pytest.approx(1.0)

    @pytest.mark.parametrize(("factor", "ordered"), [(0.45, True), (0.05, False)])
    def test_another_order_and_other_ratios_are_found(self, factor, ordered):
        column = self.compared_with_the_paper("correlated", factor)[0]
        assert (column["order_as_in_the_paper"], column["ratios_within_2"]) == (ordered, False)


class TestTestError:
    def test_early_stopping(self):
        sizes = {"epochs": 10, "patience": 3}

        def ended(*errors):
            records = [{"epoch": n, "validation_error": e} for n, e in enumerate(errors, start=1)]
            fake = type("Run", (), {"epoch": len(errors), "history": records})()
            return test_error._ended(fake, sizes)

        assert not ended()
        assert not ended(5.0, 4.0, 4.5, 4.0)  # the first of the least is two epochs back
        assert ended(5.0, 4.0, 4.5, 4.5, 4.0)
        assert not ended(5.0, 4.0, 4.5, 4.5, 3.9)
        assert ended(*(10.0 - n for n in range(10)))

    @staticmethod
    def rows(worse_by=0.0, step=0.1, seeds=3):
        """Rows whose errors depend on the seed, and whose differences hardly do."""

        def row(width, seed, method):
            worse = worse_by + 0.01 * (seed == 2) if "variational" in method else 0.0
            rates = [0.3 + step * (width == 200) + 0.01 * seed]
            made = {"method": method, "width": width, "seed": seed}
            return made | {"test_error": 2.0 + seed + worse, "mean_dropout_rates": rates}

        each = itertools.product((100, 200), range(1, seeds + 1), networks.METHODS)
        return list(itertools.starmap(row, each))

    @pytest.mark.parametrize(("worse_by", "agrees"), [(0.0, None), (0.1, False), (-0.1, True)])
    def test_what_decides_a_statement(self, worse_by, agrees):
        """A difference that is the same for all seeds counts, though the seeds differ by more."""
        found = test_error.statements(self.rows(worse_by))
        said = "A performs equal or better than binary dropout"
        against = next(f for f in found if f["statement"].endswith(said))
        assert against["agrees"] is agrees
        # Of 0, 0.01, 0: by Student's t of two degrees of freedom.
        halves = [half for _, half in against["intervals"]]
        assert halves == pytest.approx([4.30265 * 0.01 / 3] * 2, rel=1e-5)

    @pytest.mark.parametrize(("step", "agrees"), [(0.15, True), (0.05, False), (-0.1, False)])
    def test_what_decides_that_rates_are_far_lower(self, step, agrees):
        found = test_error.statements(self.rows(step=step))
        rates = [f["agrees"] for f in found if "rates" in f["statement"]]
        assert rates == [agrees, agrees]

    def test_one_seed_decides_nothing(self):
        found = list(test_error.statements(self.rows(-0.1, seeds=1)))
        assert {each["agrees"] for each in found} == {None}


class TestExtraVariance:
    def test_agrees_with_the_variance_of_eps_and_not_with_that_of_its_square(self):
        for row in records("extra_variance")["rows"]:
            if row["inputs"] > 1:
                right, printed_one = row["slope"]["eps"], row["slope"]["eps_squared"]
                assert abs(right["value"] - 1.0) < 4 * right["standard_error"] < 0.12
                assert abs(printed_one["value"] - 1.0) > 5 * printed_one["standard_error"]


class TestMinibatchSize:
    @staticmethod
    def rows(covariance, power=-1.0):
        """Variances that follow Eq. 5 with V = 100, or another power of M, for three seeds."""

        def row(seed, noise):
            each = [
                {"estimator": name, "layer": layer, "minibatch": size, "variance": value}
                for size in (10, 100, 1000)
                for layer in printed.LAYERS
                for name, value in {
                    **dict.fromkeys(minibatch_size.EACH[noise], (100.0 + seed) * size**power),
                    "per_batch": (100.0 + seed) / size + (1.0 - 1.0 / size) * covariance,
                }.items()
            ]
            return {"noise": noise, "seed": seed, "epochs": 1, "variances": each}

        return [row(seed, noise) for noise in minibatch_size.METHODS for seed in (1, 2, 3)]

    def test_the_covariance_of_equation_5(self):
        for found in minibatch_size.covariances(self.rows(4.0), [10, 100, 1000]):
            size, (share, half) = found["minibatch"], found["share"]
            assert found["covariance"][0] == pytest.approx(4.0, rel=1e-12)
            assert share == pytest.approx(1.0 / (1.0 + 102.0 / (4.0 * (size - 1.0))), rel=1e-3)
            assert half < 0.01

    @pytest.mark.parametrize(
        ("covariance", "power", "agrees"),
        [
            (4.0, -1.0, [True] * 3),
            (4.0, -0.9, [False, True, True]),
            (1e-3, -1.0, [True, True, False]),
        ],
    )
    def test_statements(self, covariance, power, agrees):
        found = list(minibatch_size.statements(self.rows(covariance, power)))
        of_correlated = [f["agrees"] for f in found if "correlated" in f["statement"]]
        assert of_correlated == agrees


def test_the_epochs_to_a_value():
    curve = [-3.0, -2.0, -1.5, -1.6, -1.0]
    wanted = {-3.5: 1.0, -2.0: 2.0, -1.75: 2.5, -1.3: 4.5, -0.5: math.inf}
    for value, epochs in wanted.items():
        assert convergence.epochs_to(curve, value) == pytest.approx(epochs)


def test_where_a_ratio_is_reached():
    """Logarithms are interpolated; the first of two places counts."""
    points = [
        ({"epochs": e, "log_likelihood": -x, "network": {"test_error_percent": 5.0}}, ratio)
        for e, x, ratio in ((1, 0.1, 8.0), (4, 0.001, 2.0), (9, 1e-5, 8.0))
    ]
    found = ratios_by_likelihood.reached(points, 4.0)
    assert found["epochs"] == pytest.approx(2.0)
    assert found["log_likelihood"] == pytest.approx(-0.01)
    assert found["test_error_percent"] == pytest.approx(5.0)
    assert ratios_by_likelihood.reached(points, 9.0) is None
