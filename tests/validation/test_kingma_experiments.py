"""The experiments of Kingma et al. 2015: what their records show, and what decides agreement."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from tests.validation.experiments import committed, quick  # noqa: E402
from validation.papers.kingma2015 import (  # noqa: E402
    appendices,
    constraint,
    extra_variance,
    gradient_variance,
    minibatch_bound,
    printed,
    ratios,
    shared_noise,
    test_error,
    variance_assumptions,
)
from validation.training import data, loop, networks  # noqa: E402
from validation.training.parts import Parts  # noqa: E402

records = partial(committed, "kingma2015")


def test_the_ratios_within_a_factor_of_2():
    entries = {"local": 9.0, "per_batch": 0.5, "none": 2.1}
    column = {"estimators": {k: {"ratio_over_paper_ratio": v} for k, v in entries.items()}}
    assert ratios.near([column, column]) == "2 of 4"


@pytest.mark.parametrize(("method", "holds"), [("variational_a2", False), ("variational_a", True)])
def test_a2_must_be_better_and_the_others_no_worse(method, holds):
    title = networks.METHODS[method].title
    found = {"statement": f"{title} is no worse than no dropout", "better": False, "holds": True}
    assert test_error.holds(found) is holds


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

    def test_the_nearest_error(self):
        errors = {1: 6.0, 2: 3.2, 5: 2.0, 100: 1.4}
        trained = [{"epochs": n, "test_error_percent": error} for n, error in errors.items()]
        assert gradient_variance.nearest_error(trained, 3.0) == 2
        assert gradient_variance.nearest_error(trained, 1.3) == 100


def test_the_number_of_epochs_is_that_of_the_nearest_error(monkeypatch):
    errors = iter([9.0, 4.0, 2.9, 0.1])
    evaluated = ({"error_percent": error} for error in errors)
    monkeypatch.setattr(variance_assumptions, "evaluate", lambda *_: next(evaluated))
    sizes = {**variance_assumptions.EXPERIMENT.quick, "test_error": 3.0, "most_epochs": 9}
    found = variance_assumptions.measure_one("as in the tables", 1, sizes, data.digits())
    assert (found["epochs"], found["test_error_percent"]) == (3, 2.9)
    assert list(errors) == [0.1]


class TestSharedNoise:
    @pytest.fixture
    def given(self):
        noise, digits = torch.Generator(), data.digits()
        model = networks.network("variational_b", digits.pixels, [8], seed=0, generator=noise)
        return model, noise, loop.Examples(data.Split(digits.train.x[:60], digits.train.y[:60]))

    def test_it_is_the_difference_of_two_rows_of_table_1(self, given):
        """One sample of the weights for a minibatch, less one for each example, by many pairs."""
        pairs = shared_noise.Pairs(*given, 10, seed=0)
        shared = shared_noise.SharedNoise(*given, 10, seed=0)
        products = [shared.product(number, 3) for number in range(600)]
        both = [
            [pairs.half_squared_difference(name, number) for name in ("per_batch", "per_example")]
            for number in range(600)
        ]
        for layer in ("top", "bottom"):
            rows = shared_noise.summary([one[layer] - each[layer] for one, each in both])
            told = shared_noise.summary([product[layer] for product in products])
            error = math.hypot(rows["standard_error"], told["standard_error"])
            assert abs(told["variance"] - rows["variance"]) < 4 * error
            assert error < 0.2 * told["variance"]

    def test_the_size_of_the_minibatch(self, given):
        """Minibatches of 2 and of 10 from the same sets: 1 - 1/2 and 1 - 1/10."""
        small, large = (
            shared_noise.SharedNoise(*given, batch, seed=0).product(0, 30 // batch)
            for batch in (2, 10)
        )
        for layer in ("top", "bottom"):
            assert small[layer] == pytest.approx(large[layer] * 0.5 / 0.9, rel=1e-4)

    def test_a_product_is_the_same_whenever_it_is_asked_for(self, given):
        shared = shared_noise.SharedNoise(*given, 10, seed=0)
        found = [shared.product(number, 2) for number in (0, 1)]
        assert [shared.product(number, 2) for number in (1, 0)] == found[::-1]
        assert found[0] != found[1]

    def test_the_whole_variance_is_that_of_table_1(self):
        (made,) = records("shared_noise")["seeds_measured"]
        table = {
            (column["layer"], column["epochs"]): column["estimators"]["per_batch"]["variance"]
            for column in records("gradient_variance")["table_1"]["columns"]
        }
        for column in made["columns"]:
            assert column["per_batch"]["variance"] == table[column["layer"], column["epochs"]]


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

    @pytest.mark.parametrize(
        ("worse_by", "holds", "better"),
        [(0.0, True, False), (0.1, False, False), (-0.1, True, True)],
    )
    def test_what_decides_a_statement(self, worse_by, holds, better):
        """A difference that is the same for all seeds counts, though the seeds differ by more."""
        found = test_error.statements(self.rows(worse_by))
        said = "A is no worse than binary dropout"
        against = next(f for f in found if f["statement"].endswith(said))
        assert (against["holds"], against["better"]) == (holds, better)
        # Of 0, 0.01, 0: by Student's t of two degrees of freedom.
        assert against["half_widths"] == pytest.approx([4.30265 * 0.01 / 3] * 2, rel=1e-5)

    @pytest.mark.parametrize(("step", "holds"), [(0.1, True), (-0.1, False), (0.0, False)])
    def test_what_decides_that_rates_rise(self, step, holds):
        found = test_error.statements(self.rows(step=step))
        assert [f["holds"] for f in found if "rates" in f] == [holds, holds]

    def test_one_seed_decides_nothing(self):
        assert {f["holds"] for f in test_error.statements(self.rows(seeds=1))} == {None}


class TestConstraint:
    @pytest.mark.parametrize(
        ("train", "arguments"),
        [(constraint.train, ("exact, no bound",)), (test_error.train, ("variational_b", 8))],
    )
    def test_ended_before_an_evaluation(self, tmp_path, monkeypatch, train, arguments):
        """What the epoch lacks is measured when the run goes on."""
        sizes = {"hidden": [8], "epochs": 3, "patience": 9, "batch_size": 200}
        arguments, calls = (*arguments, 1, sizes, data.digits()), []
        expected = train(*arguments, Parts(None, {}))
        original, parts = networks.learned_alphas, Parts(tmp_path, {})

        def ended(model):
            calls.append(model)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return original(model)

        monkeypatch.setattr(networks, "learned_alphas", ended)
        with pytest.raises(KeyboardInterrupt):
            train(*arguments, parts)
        found = train(*arguments, parts)
        assert len(found["test_error_by_epoch"]) == 3
        assert {**found, "seconds": 0} == {**expected, "seconds": 0}

    def test_a_run_that_cannot_go_on_is_recorded(self, monkeypatch):
        said = "the loss is inf at step 1: lower the learning rate"

        def fail(self):
            raise loop.TrainingError(said)

        monkeypatch.setattr(loop.Run, "_take_step", fail)
        sizes = {"hidden": [24] * 3, "epochs": 5, "batch_size": 100}
        digits = data.digits()
        rows = [constraint.train(c, 1, sizes, digits, Parts(None, {})) for c in constraint.CASES]
        assert {row["stopped"] for row in rows} == {said}
        assert all(math.isnan(row["test_error"]) for row in rows)
        summary = constraint.summarised(rows)
        assert all(row["median_log_alpha_by_layer"] == [] for row in summary)
        assert "the loss is inf" in constraint.show({"summary": summary})


class TestExtraVariance:
    def test_agrees_with_the_variance_of_eps_and_not_with_that_of_its_square(self):
        for row in records("extra_variance")["rows"]:
            if row["inputs"] > 1:
                right, printed_one = row["slope"]["eps"], row["slope"]["eps_squared"]
                assert abs(right["value"] - 1.0) < 4 * right["standard_error"] < 0.12
                assert abs(printed_one["value"] - 1.0) > 5 * printed_one["standard_error"]

    def test_no_input_is_zero(self):
        digits = data.digits()
        images = extra_variance.bright(digits, 40, 3)
        assert len(images) == 3
        for image in images:
            assert extra_variance.make(digits, image, 40, 1).a.min() > 0.0
        assert (digits.train.x[: images[0]] > 0.0).sum(1).max(initial=0) < 40

    def test_a_wrong_prediction_is_found(self):
        """One that is 5 % too large has another slope."""
        added = torch.ones(10, 3) + 0.001 * torch.randn(10, 3, generator=loop.seeded(0, 0))
        told = extra_variance._slope(added, torch.full((3,), 1.05))
        assert abs(told["value"] - 1.0 / 1.05) < 4 * told["standard_error"]
        assert abs(told["value"] - 1.0) > 4 * told["standard_error"]


def test_the_variance_over_minibatches():
    """By all minibatches of two of five examples, and the printed bound by hand."""
    mean = torch.tensor([-0.1, -0.2, -3.0, -0.4, -1.5], dtype=torch.float64)
    variance = torch.tensor([0.3, 0.1, 0.0, 0.2, 0.05], dtype=torch.float64)
    found = minibatch_bound.compared(mean, variance, 10**12, 2)
    sums = [
        5 / 2 * float(mean[list(chosen)].sum()) for chosen in itertools.combinations(range(5), 2)
    ]
    assert found["variance"] == pytest.approx(np.var(sums) + 5 / 2 * 0.65, rel=1e-9)
    assert found["printed_bound"] == pytest.approx(5 / 2 * (5.2**2 / 5 + 0.65))
    assert found["ratio"] == found["variance"] / found["printed_bound"]
    assert appendices.variance_of_minibatch(mean.numpy(), 2) == pytest.approx(np.var(sums))
