"""The experiments of Kingma et al. 2015 in their quick forms, and what decides their agreement."""

import copy
import json
import math
import shlex
from importlib import metadata

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from logunif_kl.cli import sources  # noqa: E402
from tests.validation.experiments import Records  # noqa: E402
from tests.validation.experiments import run as run_module  # noqa: E402
from validation.papers.kingma2015 import (  # noqa: E402
    constraint,
    correlated_assumptions,
    extra_variance,
    gradient_variance,
    input_rate,
    printed,
    shared_noise,
    speed,
    test_error,
    variance_assumptions,
)
from validation.paths import RESULTS, ROOT  # noqa: E402
from validation.reports import REPORTS  # noqa: E402
from validation.tools import stale  # noqa: E402
from validation.tools.experiments import page as experiments  # noqa: E402
from validation.tools.experiments import tables  # noqa: E402
from validation.training import data, loop, networks  # noqa: E402
from validation.training.data import DataError  # noqa: E402
from validation.training.parts import Parts  # noqa: E402

MODULES = {
    "gradient_variance": gradient_variance,
    "shared_noise": shared_noise,
    "variance_assumptions": variance_assumptions,
    "correlated_assumptions": correlated_assumptions,
    "speed": speed,
    "test_error": test_error,
    "input_rate": input_rate,
    "constraint": constraint,
    "extra_variance": extra_variance,
}


def run(name, *arguments):
    return run_module(MODULES[name], *arguments)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Run each experiment in its quick form once, when a test asks for it."""
    return Records(tmp_path_factory.mktemp("records"), MODULES.__getitem__)


@pytest.mark.parametrize("name", MODULES)
def test_a_record_says_where_it_comes_from(records, name):
    record = records(name)
    assert record["command"] == f"python -m validation.papers.kingma2015.{name} --quick"
    assert record["quick"] is True
    assert record["seeds"] == [1]
    assert record["threads"] == 1
    assert record["seconds"] > 0.0
    assert record["versions"]["torch"] == metadata.version("torch")
    assert record["data"]["name"] == "digits (scikit-learn)"
    assert {"date", "machine", "kernel", "sizes"} <= set(record)


class TestGradientVariance:
    @pytest.mark.parametrize("name", ["table_1", "table_2"])
    def test_the_order_at_the_end(self, records, name):
        record = records("gradient_variance")
        for column in record[name]["columns"]:
            if column["epochs"] == record["sizes"]["epochs"][-1]:
                entries = column["estimators"]
                assert (
                    entries["none"]["ratio_to_local"] < 1.0 < entries["per_batch"]["ratio_to_local"]
                )
                assert entries["local"]["ratio_to_local"] == 1.0
        assert len(record[name]["columns"]) == 4

    def test_each_is_there(self, records):
        record = records("gradient_variance")
        epochs = record["sizes"]["epochs"] + record["sizes"]["epochs_between"]
        for name, kind in (("table_1", "independent"), ("table_2", "correlated")):
            rows = {(r["estimator"], r["layer"], r["epochs"]) for r in record[name]["each"]}
            for estimator in gradient_variance.ESTIMATORS[kind]:
                when = record["sizes"]["epochs"] if estimator == "per_example" else epochs
                assert {(estimator, layer, e) for layer in printed.LAYERS for e in when} <= rows
            for row in record[name]["each"]:
                assert 0.0 < row["standard_error"] < row["variance"]

    def test_alpha_stays_at_most_1(self, records):
        for name in ("table_1", "table_2"):
            for trained in records("gradient_variance")[name]["networks"][0]["trained"]:
                # The parameter itself: what is made of it is at most 1 by construction.
                assert max(layer["greatest_parameter"] for layer in trained["alphas"]) < 0.5

    def test_goes_on_where_it_was_ended(self, records, tmp_path, monkeypatch):
        """Ended in the measurement, it ends with the numbers of a run that was not."""
        whole, made = records("gradient_variance"), []
        original = gradient_variance.Pairs.half_squared_difference

        def ended(self, estimator, number):
            made.append(estimator)
            if len(made) == 30:
                raise KeyboardInterrupt
            return original(self, estimator, number)

        options = ("--quick", "--work", tmp_path / "work", "--out", tmp_path / "a.json")
        monkeypatch.setattr(gradient_variance.Pairs, "half_squared_difference", ended)
        with pytest.raises(KeyboardInterrupt):
            run("gradient_variance", *options)
        assert run("gradient_variance", *options) == 0
        record = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
        for name in ("table_1", "table_2"):
            assert record[name]["each"] == whole[name]["each"]
        total = sum(row["pairs"] for t in ("table_1", "table_2") for row in record[t]["each"]) // 2
        assert len(made) == total + 1  # one was ended; none was computed twice

    def test_the_paper_against_itself(self):
        """Its own numbers are in its order, with ratios of 1."""
        for kind, paper in printed.GRADIENT_VARIANCE.items():
            rows = [
                {
                    "estimator": estimator,
                    "layer": layer,
                    "epochs": epochs,
                    "variance": 10.0 * value,
                    "standard_error": 0.01 * value,
                }
                for (estimator, layer, epochs), value in paper.items()
            ]
            for column in gradient_variance.beside_the_paper(rows, kind, printed.EPOCHS):
                assert column["order_as_in_the_paper"]
                assert column["ratios_within_2"]
                for entry in column["estimators"].values():
                    assert entry["ratio_over_paper_ratio"] == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("factor", "ordered", "near"), [(0.45, True, False), (0.05, False, False)]
    )
    def test_another_order_and_other_ratios_are_found(self, factor, ordered, near):
        paper = printed.GRADIENT_VARIANCE["correlated"]
        rows = [
            {
                "estimator": estimator,
                "layer": layer,
                "epochs": epochs,
                "variance": value * (factor if estimator == "per_batch" else 1.0),
                "standard_error": 1e-3 * value,
            }
            for (estimator, layer, epochs), value in paper.items()
        ]
        column = gradient_variance.beside_the_paper(rows, "correlated", printed.EPOCHS)[0]
        assert (column["order_as_in_the_paper"], column["ratios_within_2"]) == (ordered, near)

    def test_the_nearest_error(self):
        trained = [
            {"epochs": e, "test_error_percent": error}
            for e, error in ((1, 6.0), (2, 3.2), (5, 2.0), (100, 1.4))
        ]
        assert gradient_variance.nearest_error(trained, 3.0) == 2
        assert gradient_variance.nearest_error(trained, 1.3) == 100

    def test_what_the_paper_prints(self):
        table = printed.GRADIENT_VARIANCE["independent"]
        assert table["local", "top", 10] == 7.8e3
        assert table["per_batch", "bottom", 100] == 3.3e2
        assert printed.GRADIENT_VARIANCE["correlated"]["none", "bottom", 10] == 4.3e2


class TestVarianceAssumptions:
    def test_each_is_another_training(self, records):
        record = records("variance_assumptions")
        assert [case["assumption"] for case in record["cases"]] == list(
            variance_assumptions.ASSUMPTIONS
        )
        ratios = set()
        for case in record["cases"]:
            assert [column["layer"] for column in case["columns"]] == ["top", "bottom"]
            for column in case["columns"]:
                assert list(column["estimators"]) == ["local", "per_batch", "none"]
            ratios.add(case["columns"][1]["estimators"]["per_batch"]["ratio_to_local"])
        assert len(ratios) == len(record["cases"])

    def test_the_number_of_epochs_is_that_of_the_nearest_error(self, monkeypatch):
        errors = iter([9.0, 4.0, 2.9, 0.1])
        monkeypatch.setattr(
            variance_assumptions, "evaluate", lambda *_: {"error_percent": next(errors)}
        )
        sizes = {**variance_assumptions.full_and_quick(True), "test_error": 3.0, "most_epochs": 9}
        found = variance_assumptions.measure_one("as in the tables", 1, sizes, data.digits())
        assert (found["epochs"], found["test_error_percent"]) == (3, 2.9)
        assert list(errors) == [0.1]


def test_input_rate(records):
    record = records("input_rate")
    summary = {each["case"]: each for each in record["summary"]}
    assert list(summary) == list(input_rate.CASES)
    gaussian, whole, held, scaled = summary.values()
    assert gaussian["above_gaussian_b"] == 0.0
    assert gaussian["mean_dropout_rates"] == []
    assert held["mean_dropout_rates"][0] <= 0.2 + 1e-6 < whole["mean_dropout_rates"][0]
    assert held["mean_dropout_rates"][1] == pytest.approx(whole["mean_dropout_rates"][1], rel=1e-4)
    assert scaled["mean_dropout_rates"][0] < whole["mean_dropout_rates"][0]
    assert len({each["test_error"] for each in record["rows"]}) > 1


class TestSharedNoise:
    def test_it_is_above_zero_where_training_has_ended(self, records):
        (made,) = records("shared_noise")["seeds_measured"]
        assert [(c["layer"], c["epochs"]) for c in made["columns"]] == [
            ("top", 3),
            ("top", 10),
            ("bottom", 3),
            ("bottom", 10),
        ]
        for column in made["columns"]:
            assert 0.0 < column["shared"]["variance"] < column["per_batch"]["variance"]
            assert column["above_zero_in_standard_errors"] > 1.0
        assert made["columns"][1]["paper_share"] == pytest.approx((4.3e3 - 2.6e3) / 4.3e3)

    def test_it_is_the_difference_of_two_rows_of_table_1(self):
        """One sample of the weights for a minibatch, less one for each example, by many pairs."""
        noise = torch.Generator()
        digits = data.digits()
        make = networks.network
        model = make("variational_b", digits.pixels, [8], seed=0, generator=noise)
        examples = loop.Examples(data.Split(digits.train.x[:60], digits.train.y[:60]))
        pairs = shared_noise.Pairs(model, noise, examples, 10, seed=0)
        shared = shared_noise.SharedNoise(model, noise, examples, 10, 3, seed=0)
        products = [shared.product(number) for number in range(600)]
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

    def test_the_size_of_the_minibatch(self):
        """Minibatches of 2 and of 10 from the same sets: 1 - 1/2 and 1 - 1/10."""
        noise, digits = torch.Generator(), data.digits()
        model = networks.network("variational_b", digits.pixels, [8], seed=0, generator=noise)
        examples = loop.Examples(data.Split(digits.train.x[:60], digits.train.y[:60]))
        small, large = (
            shared_noise.SharedNoise(model, noise, examples, batch, 30 // batch, seed=0).product(0)
            for batch in (2, 10)
        )
        for layer in ("top", "bottom"):
            assert small[layer] == pytest.approx(large[layer] * 0.5 / 0.9, rel=1e-4)

    def test_the_whole_variance_is_that_of_table_1(self, records):
        (made,) = records("shared_noise")["seeds_measured"]
        table = {
            (column["layer"], column["epochs"]): column["estimators"]["per_batch"]["variance"]
            for column in records("gradient_variance")["table_1"]["columns"]
        }
        for column in made["columns"]:
            found = column["per_batch"]["variance"]
            assert found == table[column["layer"], column["epochs"]]

    def test_the_table_says_where_it_is_not_above_zero(self, records):
        record = copy.deepcopy(records("shared_noise"))
        columns = record["seeds_measured"][0]["columns"]
        for step, column in zip((-2.0, 3.0, 4.0, 5.0), columns, strict=True):
            column["above_zero_in_standard_errors"] = step
        told = tables.shared_noise(record)
        assert "above zero in 3 of 4 columns, by at least 3.0 standard errors." in told

    def test_a_product_is_the_same_whenever_it_is_asked_for(self):
        noise = torch.Generator()
        digits = data.digits()
        model = networks.network("variational_b", digits.pixels, [8], seed=0, generator=noise)
        shared = shared_noise.SharedNoise(model, noise, loop.Examples(digits.train), 50, 2, seed=0)
        found = [shared.product(number) for number in (0, 1)]
        assert [shared.product(number) for number in (1, 0)] == found[::-1]
        assert found[0] != found[1]

    def test_goes_on_where_it_was_ended(self, records, tmp_path, monkeypatch):
        """Ended in the training after the first measurement, it ends with the same numbers."""
        options = ("--quick", "--work", tmp_path / "work", "--out", tmp_path / "a.json")
        original = loop.Run._take_step
        steps = []

        def ended(self):
            steps.append(self.step)
            if self.epoch == 6:
                raise KeyboardInterrupt
            original(self)

        monkeypatch.setattr(loop.Run, "_take_step", ended)
        with pytest.raises(KeyboardInterrupt):
            run("shared_noise", *options)
        monkeypatch.setattr(loop.Run, "_take_step", original)
        assert run("shared_noise", *options) == 0
        again = json.loads((tmp_path / "a.json").read_text())["seeds_measured"]
        whole = records("shared_noise")["seeds_measured"]
        assert again[0]["columns"] == whole[0]["columns"]

    def test_what_is_missing_of_a_stage_that_is_past(self, tmp_path, capsys):
        options = ("--quick", "--work", tmp_path / "work", "--out", tmp_path / "a.json")
        assert run("shared_noise", *options) == 0
        (tmp_path / "work" / "independent-seed1-epoch3.json").unlink()
        assert run("shared_noise", *options) == 2
        assert capsys.readouterr().err.endswith(
            "error: the checkpoint independent-seed1.pt is past 3 epochs, and what was to be "
            "measured there is missing: remove its folder\n"
        )


class TestCorrelatedAssumptions:
    def test_each_is_another_training(self, records):
        cases = records("correlated_assumptions")["cases"]
        assert [case["assumption"] for case in cases] == list(correlated_assumptions.ASSUMPTIONS)
        for case in cases:
            assert [(c["layer"], c["epochs"]) for c in case["columns"]] == [
                ("top", 3),
                ("top", 10),
                ("bottom", 3),
                ("bottom", 10),
            ]
            for column in case["columns"]:
                assert list(column["estimators"]) == ["local", "per_batch", "none"]

    def test_a_divergence_of_every_weight_raises_the_dropout_rates(self, records):
        counted, slow = records("correlated_assumptions")["cases"]
        assert (
            counted["networks"][-1]["mean_dropout_rates"][0]
            > slow["networks"][-1]["mean_dropout_rates"][0]
        )

    def test_the_parts_are_collected(self, records, tmp_path):
        options = ("--quick", "--work", tmp_path / "work", "--out", tmp_path / "a.json")
        for part in ("1/2", "2/2"):
            assert run("correlated_assumptions", *options, "--part", part) == 0
            assert not (tmp_path / "a.json").exists()
        assert run("correlated_assumptions", *options) == 0
        again = json.loads((tmp_path / "a.json").read_text())["cases"]
        assert [each["columns"] for each in again] == [
            each["columns"] for each in records("correlated_assumptions")["cases"]
        ]


def test_an_option_cut_short_is_refused(tmp_path, capsys):
    """The recorded command would keep the path behind it."""
    with pytest.raises(SystemExit):
        run("speed", "--quick", "--wor", tmp_path)
    assert "unrecognized arguments: --wor" in capsys.readouterr().err


def test_speed(records):
    record = records("speed")
    of = {row["way"]: row for row in record["rows"]}
    assert list(of) == ["deterministic", "local", "per_batch", "per_example"]
    assert of["per_example"]["seconds_an_epoch"] > of["local"]["seconds_an_epoch"]
    ratio = of["per_example"]["seconds_an_epoch"] / of["local"]["seconds_an_epoch"]
    assert record["per_example_over_local"] == pytest.approx(ratio)
    assert record["at_least_50_times_faster"] == (ratio >= 50.0)
    for row in record["rows"]:
        assert (
            row["least_seconds_a_step"] <= row["seconds_a_step"] <= row["greatest_seconds_a_step"]
        )
    assert record["paper_per_example_over_local"] == pytest.approx(1635 / 7.4, rel=1e-15)


class TestTestError:
    def test_the_quick_form(self, records):
        record = records("test_error")
        assert len(record["rows"]) == 2 * len(networks.METHODS)
        for row in record["rows"]:
            by_epoch = row["test_error_by_epoch"]
            assert row["test_error"] == by_epoch[row["epoch"] - 1]
            assert len(by_epoch) == row["epochs_run"]
            assert len(row["mean_dropout_rates"]) == (4 if "variational" in row["method"] else 0)
        none = next(r for r in record["summary"] if (r["method"], r["width"]) == ("none", 48))
        assert none["test_error"] < 60.0
        assert {found["holds"] for found in record["statements"] if "differences" in found} == {
            None
        }

    def test_in_two_parts(self, records, tmp_path, capsys):
        """Two processes and a third that collects give what one gives."""
        methods = ["none", "variational_b"]
        options = [
            "--quick",
            "--work",
            tmp_path,
            "--epochs",
            1,
            "--widths",
            8,
            "--methods",
            *methods,
        ]
        for part in ("1/2", "2/2"):
            assert run("test_error", *options, "--part", part) == 0
        assert capsys.readouterr().out == ""
        made = {path.name for path in tmp_path.glob("*.json")}
        assert made == {"none-8-seed1.json", "variational_b-8-seed1.json"}
        times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
        assert run("test_error", *options) == 0
        assert times == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert [row["method"] for row in rows] == methods

    @pytest.mark.parametrize("part", ["0/2", "3/2", "1", "a/b", "1/0"])
    def test_no_part(self, part):
        with pytest.raises(DataError, match="is no part: write --part 1/2 for the first of two"):
            test_error.chosen(part)
        assert test_error.chosen(None) == (1, 1)

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
        return [
            {
                "method": method,
                "width": width,
                "seed": seed,
                "test_error": 2.0
                + seed
                + (worse_by + 0.01 * (seed == 2) if "variational" in method else 0.0),
                "mean_dropout_rates": [0.3 + step * (width == 200) + 0.01 * seed],
            }
            for width in (100, 200)
            for seed in range(1, seeds + 1)
            for method in networks.METHODS
        ]

    @pytest.mark.parametrize(
        ("worse_by", "holds", "better"),
        [(0.0, True, False), (0.1, False, False), (-0.1, True, True)],
    )
    def test_what_decides_a_statement(self, worse_by, holds, better):
        """A difference that is the same for all seeds counts, though the seeds differ by more."""
        found = test_error.statements(self.rows(worse_by))
        against = next(
            f for f in found if f["statement"].endswith("A is no worse than binary dropout")
        )
        assert (against["holds"], against["better"]) == (holds, better)
        # Of 0, 0.01, 0: by Student's t of two degrees of freedom.
        assert against["half_widths"] == pytest.approx([4.30265 * 0.01 / 3] * 2, rel=1e-5)

    @pytest.mark.parametrize(("step", "holds"), [(0.1, True), (-0.1, False), (0.0, False)])
    def test_what_decides_that_rates_rise(self, step, holds):
        found = test_error.statements(self.rows(step=step))
        assert [f["holds"] for f in found if "rates" in f] == [holds, holds]

    def test_one_seed_decides_nothing(self):
        assert {f["holds"] for f in test_error.statements(self.rows(seeds=1))} == {None}

    def test_the_figure(self, records, tmp_path):
        path = tmp_path / "a.png"
        test_error.draw(str(path), test_error.summarised(records("test_error")["rows"]))
        told = stale.png_text(path.read_bytes())
        assert told["sources_sha256"] == sources.sha256("kingma2015_test_error")


class TestConstraint:
    def test_alpha(self, records):
        of = {row["case"]: row for row in records("constraint")["summary"]}
        assert set(of) == set(constraint.CASES)
        assert of["exact, alpha at most 1"]["at_most_1"] == 1.0
        assert of["cubic, alpha at most 1"]["at_most_1"] == 1.0
        free = of["exact, no bound"]["median_log_alpha_by_layer"]
        bounded = of["exact, alpha at most 1"]["median_log_alpha_by_layer"]
        assert max(bounded) <= 0.0 < max(free)
        large = of["exact, no bound, from a large alpha"]["median_log_alpha_by_layer"]
        assert min(large) > 3.0

    def test_the_figure(self, records, tmp_path):
        path = tmp_path / "a.png"
        constraint.draw(str(path), records("constraint")["rows"])
        assert "sources_sha256" in stale.png_text(path.read_bytes())

    @pytest.mark.parametrize("name", ["constraint", "test_error"])
    def test_ended_between_an_epoch_and_its_evaluation(self, tmp_path, monkeypatch, name):
        """What the epoch lacks is measured when the run goes on."""
        whole, parts = Parts(None, {}), Parts(tmp_path, {})
        if name == "constraint":
            sizes = {"hidden": [8], "epochs": 3, "batch_size": 200}
            arguments = ("exact, no bound", 1, sizes, data.digits())
        else:
            sizes = {"epochs": 3, "patience": 9, "batch_size": 200}
            arguments = ("variational_b", 8, 1, sizes, data.digits())
        train, calls = MODULES[name].train, []
        expected = train(*arguments, whole)
        original = networks.learned_alphas

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

    def test_a_run_that_cannot_go_on_is_recorded(self, records, monkeypatch):
        def fail(self):
            raise loop.TrainingError("the loss is inf at step 1: lower the learning rate")

        monkeypatch.setattr(loop.Run, "_take_step", fail)
        sizes = constraint.full_and_quick(True)
        rows = [
            constraint.train(name, 1, sizes, data.digits(), Parts(None, {}))
            for name in constraint.CASES
        ]
        assert {row["stopped"] for row in rows} == {
            "the loss is inf at step 1: lower the learning rate"
        }
        assert all(math.isnan(row["test_error"]) for row in rows)
        summary = constraint.summarised(rows)
        assert all(row["median_log_alpha_by_layer"] == [] for row in summary)
        assert "the loss is inf" in tables.constraint({"summary": summary})


class TestExtraVariance:
    def test_agrees_with_the_variance_of_eps_and_not_with_that_of_its_square(self, records):
        record = records("extra_variance")
        for row in record["rows"]:
            if row["inputs"] == 1:
                assert row["slope"] == {"eps": None, "eps_squared": None}
                continue
            right, printed_one = row["slope"]["eps"], row["slope"]["eps_squared"]
            assert abs(right["value"] - 1.0) < 4 * right["standard_error"]
            assert right["standard_error"] < 0.02
            assert abs(printed_one["value"] - 1.0) > 10 * printed_one["standard_error"]
            assert row["explicit_over_local"] > 2.0
        assert record["added_over_local_with_one_input"] < 0.05

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

    def test_the_figure(self, records, tmp_path):
        path = tmp_path / "a.png"
        extra_variance.draw(str(path), records("extra_variance")["rows"])
        assert "sources_sha256" in stale.png_text(path.read_bytes())


class TestCommand:
    def test_what_belongs_to_one_machine_is_left_out(self):
        command = test_error.EXPERIMENT.command(
            shlex.split("--data /a/b.npz --seeds 1 2 --work=/c --out /d --plot e.png --widths 8")
        )
        assert command == (
            "python -m validation.papers.kingma2015.test_error --data FILE --seeds 1 2 --widths 8"
        )

    def test_no_data(self, monkeypatch, capsys):
        monkeypatch.delenv("LOGUNIF_KL_MNIST", raising=False)
        assert run("speed") == 2
        assert capsys.readouterr().err == (
            "python -m validation.papers.kingma2015.speed: error: no data are named: give --data "
            "FILE or set LOGUNIF_KL_MNIST to MNIST as .npz or IDX files\n"
        )

    def test_a_checkpoint_of_another_run(self, tmp_path, capsys):
        options = ["--quick", "--work", tmp_path, "--widths", 8, "--methods", "none"]
        assert run("test_error", *options, "--epochs", 1) == 0
        capsys.readouterr()
        assert run("test_error", *options, "--epochs", 2) == 2
        error = capsys.readouterr().err
        assert "is of a run with epochs 1, not 2: name another folder with --work" in error

    def test_the_number_of_threads_is_put_back(self):
        before, seen = torch.get_num_threads(), []

        def measure(*_):
            seen.append(torch.get_num_threads())

        assert speed.EXPERIMENT.main(measure, ["--quick", "--threads", str(before + 1)]) == 0
        assert seen == [before + 1]
        assert torch.get_num_threads() == before

    @pytest.mark.parametrize("name", MODULES)
    def test_the_command_that_makes_a_record(self, name):
        report = REPORTS[f"validation/results/kingma2015/{name}.json"]
        words = report.command.split()
        assert words[:3] == ["python", "-m", f"validation.papers.kingma2015.{name}"]
        options = MODULES[name].EXPERIMENT.parser.parse_args(words[3:])
        figure = getattr(options, "plot", None)
        assert figure is None or REPORTS[figure] == report
        assert report.of == (f"kingma2015_{name}",)
        assert sources.sha256(*report.of) is not None


class TestPage:
    def test_every_number_comes_from_the_records(self, records):
        written = experiments.page({name: records(name) for name in MODULES})
        assert "There is no record yet" not in written
        table_1 = records("gradient_variance")["table_1"]
        for column in table_1["columns"]:
            for entry in column["estimators"].values():
                assert tables.number(entry["variance"]) in written
        assert f"{records('speed')['per_example_over_local']:.0f} times faster" in written
        for row in records("test_error")["summary"]:
            assert f"{row['test_error']:.2f}" in written
        for case in constraint.CASES:
            assert case in written

    def test_without_records(self):
        written = experiments.page({})
        assert written.count("There is no record yet") == len(MODULES)
        for name in MODULES:
            assert REPORTS[f"validation/results/kingma2015/{name}.json"].command in written

    def test_the_committed_page(self):
        assert experiments.main(["--check"]) == 0

    def test_a_page_out_of_date_is_found(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(experiments, "ROOT", tmp_path)
        assert experiments.main(["--check"]) == 1
        assert "run python -m validation.tools.experiments" in capsys.readouterr().out
        assert experiments.main([]) == 0
        assert experiments.main(["--check"]) == 0

    @pytest.mark.parametrize(
        ("value", "text"),
        [(None, "–"), ("nan", "–"), (7800.0, "7.8·10^3"), (0.359, "0.359"), (59.0, "59")],
    )
    def test_numbers(self, value, text):
        assert tables.number(value) == text


def test_committed_records_are_full_ones():
    for path in (RESULTS / "kingma2015").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["quick"] is False, path
        assert record["data"]["name"] == "MNIST", path
        assert str(ROOT) not in path.read_text(encoding="utf-8")
