"""The experiments of Molchanov et al. 2017: what their records show, and what decides them."""

import math
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from logunif_kl.torch import nn  # noqa: E402
from tests.validation.experiments import committed, quick  # noqa: E402
from validation.papers.haussmann2018 import learning_curves  # noqa: E402
from validation.papers.haussmann2018.networks import METHODS, Annealed  # noqa: E402
from validation.papers.molchanov2017 import (  # noqa: E402
    authors_settings,
    comparison,
    gradients,
    inference,
    lenet_300_100,
    masks,
    models,
)
from validation.training import data  # noqa: E402
from validation.training.loop import Settings, seeded  # noqa: E402
from validation.training.parts import Parts  # noqa: E402
from validation.training.scheduled import Schedule, ScheduledRun  # noqa: E402


class TestComparison:
    def test_the_networks_of_the_paper(self):
        small = models.plain("lenet_300_100", 1, False)
        large = models.plain("lenet_5_caffe", 1, False)
        assert [nn.sparsity(model).weights for model in (small, large)] == [266_200, 430_500]
        assert large(torch.ones(2, 784)).shape == (2, 10)
        row = models.TABLE_1["lenet_300_100"]
        kept = [235_200, 30_000, 1_000] @ (1.0 - np.array(row.pruned) / 100.0)
        assert 266_200 / kept == pytest.approx(row.compression, rel=0.05)

    def test_all_cases_start_alike(self):
        made = {
            case: models.network("lenet_300_100", case, 3, seeded(3, 1), quick=True)
            for case in models.COMPARED
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
    def test_packed(self):
        model = torch.nn.Sequential(nn.VariationalLinear(5, 3, initial=0.0))
        with torch.no_grad():
            model[0].weight.normal_()
        found = masks.unpacked(masks.packed(model, 0.5), {"0": 15})["0"]
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


# Runs of both papers, the number of epochs, and the weight of the KL at an epoch.
SCHEDULED = {
    "schedule": (partial(ScheduledRun, schedule=Schedule(4, (1, 2))), 4, lambda e: max(e - 1, 0)),
    "warm-up": (partial(Annealed, METHODS["vbp_warm"], 2), 2, lambda e: e / 15),
    "no warm-up": (partial(Annealed, METHODS["vbp"], 2), 2, lambda e: 1),
}


class TestSchedule:
    def test_the_rates(self):
        schedule = Schedule(10, (2.0, 6.0))
        assert [schedule.rate(e) for e in (0.0, 2.5, 10.0, 11.0)] == [1.0, 0.75, 0.0, 0.0]
        assert [schedule.kl_weight(e) for e in (0.0, 2.0, 4.0, 6.0, 9.0)] == [0, 0, 0.5, 1, 1]
        flat = Schedule(10, (2.0, 6.0), 0.5)
        assert [flat.rate(e) for e in (0.0, 5.0, 7.5, 10.0, 11.0)] == [1.0, 1.0, 0.5, 0.0, 0.0]

    @pytest.mark.parametrize("name", SCHEDULED)
    def test_a_run_follows_them(self, name):
        make, until, weight = SCHEDULED[name]
        noise, train = seeded(1, 1), data.digits().train
        model = models.network("lenet_300_100", "exact", 1, noise, quick=True)
        run = make(model, noise, train, Settings(100, 1, 1e-2, averaging=None), about={})
        seen, elbo = [], run._objective.elbo
        original = elbo.forward

        def forward(x, y):
            seen.append((run._optimizer.param_groups[0]["lr"], elbo.kl_weight))
            return original(x, y)

        elbo.forward = forward
        list(run.train(2))
        n = len(train.y)
        epochs = [epoch + rows / n for epoch in (0, 1) for rows in range(0, n, 100)]
        expected = [(1e-2 * (1.0 - epoch / until), weight(epoch)) for epoch in epochs]
        np.testing.assert_allclose(seen, expected, rtol=1e-12)

    @pytest.mark.parametrize("case", authors_settings.CASES)
    def test_the_settings_of_the_authors(self, case, tmp_path):
        sizes = authors_settings.EXPERIMENT.quick | {"quick": True}
        parts, digits = Parts(tmp_path, {}), data.digits()
        run = comparison.run_of("lenet_300_100", case, 1, sizes, digits, parts)
        start = torch.cat([layer.weight.detach().flatten() for layer in run.model[::2]])
        small = case != "no_start"
        assert (float(start.std()) == pytest.approx(0.01, rel=0.05)) is small
        assert all((layer.bias == 0.0).all() == small for layer in run.model[::2])
        run.finish(2)
        flat = case != "no_rate"
        assert run._optimizer.param_groups[0]["lr"] == pytest.approx(
            2e-2 * (1.0 if flat else 2.0 / 3.0), rel=0.02
        )
        centred = case != "no_centring"
        assert (float(run._examples.x.mean(0).abs().max()) < 1e-6) is centred
        # Only the KL has a gradient in the means that the likelihood leaves out.
        run._objective.elbo.kl_weight = 0.0
        run.model.zero_grad()
        run._objective(run._examples.x[:100], run._examples.y[:100])[0].backward()
        layers = run.model[::2]
        noisy = [layer.weight.grad[layer.log_alpha_of_weights() >= 3.0] for layer in layers]
        found = torch.cat(noisy)
        assert len(found)
        of_noisy = float(found.abs().max())
        assert (of_noisy == 0.0) is (case != "no_masking")

    @pytest.mark.parametrize(
        ("module", "options"),
        [
            (authors_settings, ("--cases", "script", "--epochs", "3")),
            (lenet_300_100, ("--cases", "exact", "--epochs", "3")),
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


def test_the_threshold():
    for row in committed("molchanov2017", "threshold")["rows"]:
        least, chosen = min(row["validation_errors"]), row["chosen"]
        assert chosen["validation_error"] <= least + row["standard_error"]
        for error, kept in zip(row["validation_errors"], row["kept"], strict=True):
            assert kept >= chosen["kept"] or error > least + row["standard_error"]
        assert row["of_the_paper"]["threshold"] == 3.0


class TestGradients:
    @pytest.fixture
    def given(self):
        torch.manual_seed(0)
        plain = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        return plain, torch.rand(20, 6), torch.arange(20) % 3

    def test_the_parametrisations_are_of_one_posterior(self, given):
        plain, x, y = given
        models_of, losses = [], []
        for posterior in gradients.POSTERIORS:
            models_of.append(gradients.network(plain, posterior, 0.5, "local", seeded(1, 2)))
            loss = torch.nn.functional.cross_entropy(models_of[-1](x), y)
            loss.backward()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        for ours, theirs in zip(*models_of, strict=True):
            if isinstance(ours, nn.VariationalLayer):
                # log sigma^2 = log alpha + 2 log |theta|
                of_spread = theirs.log_sigma2.grad * 2.0 / theirs.weight
                torch.testing.assert_close(ours.weight.grad, theirs.weight.grad + of_spread)
                torch.testing.assert_close(ours.log_alpha.grad.sum(), theirs.log_sigma2.grad.sum())

    @pytest.mark.parametrize("posterior", gradients.POSTERIORS)
    def test_of_all_samples_at_once(self, posterior, given):
        plain, x, y = given

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


def test_weights_that_are_pruned_at_random():
    model = inference.at_random(models.plain("lenet_300_100", 1, True), [50.0, 20.0, 0.0], 1)
    counts = nn.sparsity(model).layers.values()
    assert [each.weights - each.kept for each in counts] == [960, 120, 0]
