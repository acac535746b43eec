"""The experiments of Molchanov et al. 2017 in their quick forms, and what decides their claims."""

import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from logunif_kl.cli import sources  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.validation.experiments import Records  # noqa: E402
from tests.validation.experiments import run as run_module  # noqa: E402
from validation.papers.molchanov2017 import (  # noqa: E402
    comparison,
    gradients,
    inference,
    lenet_5_caffe,
    lenet_300_100,
    masks,
    models,
    printed,
    threshold,
)
from validation.reports import REPORTS  # noqa: E402
from validation.tools.experiments import molchanov2017, page  # noqa: E402
from validation.training import data, scheduled  # noqa: E402
from validation.training.loop import Settings, seeded  # noqa: E402

MODULES = {
    "lenet_300_100": lenet_300_100,
    "lenet_5_caffe": lenet_5_caffe,
    "threshold": threshold,
    "gradients": gradients,
    "inference": inference,
}
OPTIONS = {"lenet_5_caffe": ["--cases", "exact", "molchanov", "--epochs", "2"]}


def run(name, *arguments):
    return run_module(MODULES[name], *arguments)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Run each experiment in its quick form once, when a test asks for it."""

    def options(name, folder):
        plot = [] if name in ("gradients", "inference") else ["--plot", folder / f"{name}.png"]
        return [*plot, *OPTIONS.get(name, [])]

    return Records(tmp_path_factory.mktemp("records"), MODULES.__getitem__, options)


@pytest.mark.parametrize("name", MODULES)
def test_a_record_says_where_it_comes_from(records, name):
    record = records(name)
    assert record["command"].startswith(f"python -m validation.papers.molchanov2017.{name} --quick")
    assert record["quick"] is True
    assert record["seeds"] == [1]
    assert record["data"]["name"] == "digits (scikit-learn)"
    assert {"date", "machine", "kernel", "sizes", "versions"} <= set(record)


class TestComparison:
    def test_each_network(self, records):
        record = records("lenet_300_100")
        assert [row["case"] for row in record["rows"]] == list(models.CASES)
        for row in record["rows"]:
            assert 0 < row["kept"] < row["weights"] == 64 * 30 + 30 * 20 + 20 * 10
            assert len(row["pruned_percent"]) == 3
            at = {each["threshold"]: each for each in row["by_threshold"]}
            assert at[3.0]["kept"] == row["kept"]
            assert at[3.0]["test_error_pruned"] == row["test_error_pruned"]
            kept = [each["kept"] for each in row["by_threshold"]]
            assert kept == sorted(kept)
            by_layer = zip(row["pruned_percent"], row["sizes"].values(), strict=True)
            kept = sum(size * (1.0 - share / 100.0) for share, size in by_layer)
            assert kept == pytest.approx(row["kept"])
            last = row["by_epoch"][-1]
            assert (last["epoch"], last["kept"]) == (6, row["kept"])
            assert last["test_error_pruned"] == row["test_error_pruned"] < 60.0
            assert row["sparse"]["differing_predictions"] == 0
            sparse = row["sparse"]
            assert sparse["largest_difference"] <= 1e-5 * sparse["largest_output"]
            assert "masks" not in row
        exact = record["rows"][0]
        assert exact["compression"] > 1.5
        assert exact["sparse"]["bytes"] < exact["sparse"]["bytes_dense"]

    def test_the_masks_of_near_penalties_are_near(self, records):
        found = {row["case"]: row for row in records("lenet_300_100")["overlaps"]["with_exact"]}
        assert set(found) == set(models.CASES) - {"exact"}
        for row in found.values():
            assert 0.0 < row["by_chance"] < row["overlap"] <= 1.0
        assert found["refit"]["overlap"] > found["exact_again"]["overlap"]

    def test_convolutions(self, records):
        record = records("lenet_5_caffe")
        for row in record["rows"]:
            assert list(row["sizes"].values()) == [36, 96, 96, 160]
            assert row["sparse"]["differing_predictions"] == 0

    def test_the_networks_of_the_paper(self):
        small = models.plain("lenet_300_100", 1, False)
        large = models.plain("lenet_5_caffe", 1, False)
        weights = [nn.sparsity(model).weights for model in (small, large)]
        assert weights == [266_200, 430_500]
        assert large(torch.ones(2, 784)).shape == (2, 10)
        row = printed.TABLE_1["lenet_300_100"]
        kept = [235_200, 30_000, 1_000] @ (1.0 - np.array(row.pruned) / 100.0)
        assert 266_200 / kept == pytest.approx(row.compression, rel=0.05)

    def test_all_cases_start_alike(self):
        made = {
            case: models.network("lenet_300_100", case, 3, seeded(3, 1), quick=True)
            for case in models.CASES
        }
        log_alphas = {case: nn.log_alpha(model) for case, model in made.items()}
        for case, model in made.items():
            for name, value in log_alphas[case].items():
                torch.testing.assert_close(value, log_alphas["exact"][name])
                weight = made["exact"].get_submodule(name).weight
                assert torch.equal(model.get_submodule(name).weight, weight)
        refit = made["refit"][0].penalty
        assert refit.terms == 4
        assert refit.max_grad_error < 1e-3

    def test_goes_on_where_it_was_ended(self, tmp_path, monkeypatch):
        options = ["--quick", "--cases", "exact", "--epochs", "3"]
        assert run("lenet_300_100", *options, "--out", tmp_path / "whole.json") == 0
        original, calls = scheduled.ScheduledRun._take_step, []

        def ended(self):
            calls.append(None)
            if len(calls) == 40:
                raise KeyboardInterrupt
            original(self)

        monkeypatch.setattr(scheduled.ScheduledRun, "_take_step", ended)
        kept = [*options, "--work", tmp_path / "work", "--out", tmp_path / "a.json"]
        with pytest.raises(KeyboardInterrupt):
            run("lenet_300_100", *kept)
        assert run("lenet_300_100", *kept) == 0
        assert len(calls) < 2 * 3 * 29
        rows = []
        for file in ("whole.json", "a.json"):
            (row,) = json.loads((tmp_path / file).read_text(encoding="utf-8"))["rows"]
            del row["seconds"]
            rows.append(row)
        assert rows[0] == rows[1]

    def test_in_parts(self, tmp_path, capsys):
        cases = ["exact", "molchanov"]
        options = ["--quick", "--cases", *cases, "--epochs", 1, "--work", tmp_path]
        for part in ("1/2", "2/2"):
            assert run("lenet_300_100", *options, "--part", part) == 0
        assert capsys.readouterr().out == ""
        assert run("lenet_300_100", *options) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert [row["case"] for row in rows] == cases

    @pytest.mark.parametrize(
        ("kept", "error", "good"), [(3900, 1.9, True), (3950, 1.9, False), (3900, 1.95, False)]
    )
    def test_what_is_as_good_as_the_paper(self, kept, error, good):
        rows = [
            {
                "case": "exact",
                "seed": seed,
                "test_error": error,
                "test_error_pruned": error + 0.01 * (seed - 2),
                "kept": kept,
                "weights": 266_200,
                "pruned_percent": [99.0, 98.0, 60.0],
                "seconds": 1.0,
                "by_threshold": [
                    {"threshold": 2.0, "test_error_pruned": error + 0.1 * seed, "kept": 1000 * seed}
                ],
            }
            for seed in (1, 2, 3)
        ]
        (found,) = comparison.summarised("lenet_300_100", rows)
        assert found["as_good_as_the_paper"] is good
        assert found["compression"] == pytest.approx(266_200 / kept)
        assert found["test_error_pruned"]["standard_error"] == pytest.approx(0.01 / math.sqrt(3))
        (other,) = found["by_threshold"]
        assert other["kept"] == 2000
        assert other["test_error_pruned"]["mean"] == pytest.approx(error + 0.2)


class TestMasks:
    def test_packed(self):
        model = torch.nn.Sequential(nn.VariationalLinear(5, 3, initial=0.0))
        with torch.no_grad():
            model[0].weight.normal_()
        text = masks.packed(model, 0.5)
        found = masks.unpacked(text, {"0": 15})["0"]
        assert found.tolist() == (nn.log_alpha(model)["0"] <= 0.5).flatten().tolist()

    def test_overlap(self):
        a = {"0": np.array([True, True, False, False]), "1": np.array([True, False])}
        b = {"0": np.array([True, False, True, False]), "1": np.array([True, False])}
        found = masks.overlap(a, b)
        assert found["overlap"] == 2 / 4
        assert found["by_chance"] == pytest.approx((1.0 + 0.5) / (3.0 + 1.5))
        assert masks.overlap(a, a)["overlap"] == 1.0

    def test_by_chance_is_what_chance_gives(self):
        rng = np.random.default_rng(0)
        a, b = ({"0": rng.random(200_000) < p} for p in (0.02, 0.05))
        found = masks.overlap(a, b)
        assert found["overlap"] == pytest.approx(found["by_chance"], rel=0.1)

    @pytest.mark.parametrize(
        ("overlap", "holds"), [(0.5, True), (0.795, False), (0.95, False), (0.8, False)]
    )
    def test_what_decides_that_the_masks_differ(self, overlap, holds):
        noise = [0.80, 0.82, 0.78]
        found = comparison._decided("molchanov", [overlap, overlap + 0.01, overlap - 0.03], noise)
        assert found["holds"] is holds
        assert comparison._decided("molchanov", [0.5], [0.8])["holds"] is None


class TestSchedule:
    def test_the_rates(self):
        schedule = scheduled.Schedule(10, (2.0, 6.0))
        assert [schedule.rate(e) for e in (0.0, 2.5, 10.0, 11.0)] == [1.0, 0.75, 0.0, 0.0]
        assert [schedule.kl_weight(e) for e in (0.0, 2.0, 4.0, 6.0, 9.0)] == [0, 0, 0.5, 1, 1]

    def test_a_run_follows_them(self):
        dataset, noise = data.digits(), seeded(1, 1)
        model = models.network("lenet_300_100", "exact", 1, noise, quick=True)
        made = scheduled.ScheduledRun(
            model,
            noise,
            dataset.train,
            Settings(100, 1, 1e-2, averaging=None),
            schedule=scheduled.Schedule(4, (1.0, 2.0)),
            about={},
        )
        rates, weights = [], []
        original = made._elbo.forward

        def forward(x, y, kl_weight):
            rates.append(made._optimizer.param_groups[0]["lr"])
            weights.append(kl_weight)
            return original(x, y, kl_weight)

        made._elbo.forward = forward
        for _ in made.train(2):
            pass
        n = len(dataset.train.y)
        epochs = [epoch + 100 * step / n for epoch in (0, 1) for step in range(math.ceil(n / 100))]
        assert rates == pytest.approx([1e-2 * (1.0 - epoch / 4) for epoch in epochs])
        assert weights == pytest.approx([max(epoch - 1.0, 0.0) for epoch in epochs])


def test_the_threshold(records):
    (row,) = records("threshold")["rows"]
    least = min(row["validation_errors"])
    chosen = row["chosen"]
    assert chosen["validation_error"] <= least + row["standard_error"]
    fewer = [
        error
        for error, kept in zip(row["validation_errors"], row["kept"], strict=True)
        if kept < chosen["kept"]
    ]
    assert all(error > least + row["standard_error"] for error in fewer)
    assert row["of_the_paper"]["threshold"] == 3.0


class TestGradients:
    def test_the_variance_grows_with_alpha(self, records):
        found = records("gradients")["summary"]
        assert [row["estimator"] for row in found] == ["local"] * 3 + ["per_batch"] * 3
        for ratios in ([row["ratio"] for row in found[i : i + 3]] for i in (0, 3)):
            assert ratios == sorted(ratios)
            assert ratios[2] > 5.0
        assert all(row["holds"] for row in found if row["log_alpha"] >= 0.0)

    def test_the_parametrisations_are_of_one_posterior(self):
        torch.manual_seed(0)
        plain = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        x, y = torch.rand(20, 6), torch.arange(20) % 3
        models_of = [
            gradients.network(plain, posterior, 0.5, "local", seeded(1, 2))
            for posterior in gradients.POSTERIORS
        ]
        losses = [torch.nn.functional.cross_entropy(model(x), y) for model in models_of]
        assert float(losses[0].detach()) == pytest.approx(float(losses[1].detach()), rel=1e-6)
        for loss in losses:
            loss.backward()
        for ours, theirs in zip(*models_of, strict=True):
            if isinstance(ours, nn.VariationalLayer):
                # log sigma^2 = log alpha + 2 log |theta|
                of_spread = theirs.log_sigma2.grad * 2.0 / theirs.weight
                torch.testing.assert_close(ours.weight.grad, theirs.weight.grad + of_spread)
                torch.testing.assert_close(ours.log_alpha.grad.sum(), theirs.log_sigma2.grad.sum())

    @pytest.mark.parametrize("posterior", gradients.POSTERIORS)
    def test_of_all_samples_at_once(self, posterior):
        torch.manual_seed(0)
        plain = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        x, y = torch.rand(20, 6), torch.arange(20) % 3

        def made():
            return gradients.network(plain, posterior, 0.5, "per_batch", seeded(1, 2))

        found = gradients.gradients(made(), x, y, 12)
        again, of_layers = made(), ([], [])
        for loss in found["losses"]:
            again.zero_grad()
            ours = torch.nn.functional.cross_entropy(again(x), y)
            ours.backward()
            assert float(ours.detach()) == loss
            for draws, layer in zip(of_layers, (again[0], again[2]), strict=True):
                draws.append(layer.weight.grad.double().numpy().copy())
        for number, draws in enumerate(of_layers):
            variance = np.var(draws, axis=0, ddof=1).sum()
            assert found["variances"][number] == pytest.approx(variance, rel=1e-9)
            expected = (np.mean(draws, axis=0) ** 2).sum() - variance / 12
            assert found["squared_means"][number] == pytest.approx(expected, rel=1e-9)

    def test_moments(self):
        draws = np.random.default_rng(1).normal(3.0, 2.0, (50, 7))
        moments = gradients.Moments()
        for draw in draws:
            moments.add(torch.from_numpy(draw))
        variance = draws.var(0, ddof=1).sum()
        assert moments.variance() == pytest.approx(variance, rel=1e-12)
        expected = (draws.mean(0) ** 2).sum() - variance / 50
        assert moments.squared_mean() == pytest.approx(expected, rel=1e-12)


def test_inference(records):
    record = records("inference")
    assert [row["network"] for row in record["networks"]] == ["LeNet-300-100", "LeNet-5-Caffe"]
    for row in (*record["networks"], *record["layers"]):
        assert [at["batch"] for at in row["times"]] == [1, 20]
        for at in row["times"]:
            assert set(at["seconds"]) == {"dense", "torch", "scipy"}
            assert min(at["seconds"].values()) > 0.0
        assert row["largest_difference"] < 1e-4
    assert record["layers"][1]["bytes"]["torch"] < record["layers"][1]["bytes"]["dense"] / 4
    model = inference.at_random(models.plain("lenet_300_100", 1, True), [50.0, 20.0, 0.0], 1)
    counts = nn.sparsity(model).layers.values()
    assert [each.weights - each.kept for each in counts] == [960, 120, 0]


class TestPage:
    def test_of_records(self, records):
        written = page.page(
            {name: records(name) for name in MODULES}, molchanov2017.HEAD, molchanov2017.SECTIONS
        )
        assert "There is no record yet" not in written
        for row in records("lenet_300_100")["summary"]:
            assert row["title"] in written
            assert f"{row['test_error_pruned']['mean']:.2f}" in written

    @pytest.mark.parametrize("name", MODULES)
    def test_the_reports(self, name):
        report = REPORTS[f"validation/results/molchanov2017/{name}.json"]
        (section,) = (each for each in molchanov2017.SECTIONS if each.name == name)
        assert report.command == section.command
        assert report.of == (f"molchanov2017_{name}",)
        assert sources.sha256(*report.of) is not None

    def test_of_no_records(self):
        written = page.page({}, molchanov2017.HEAD, molchanov2017.SECTIONS)
        assert written.count("There is no record yet") == len(MODULES)
