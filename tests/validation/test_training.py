"""The loop, the average, the networks and the variance of gradients, apart from any experiment."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from logunif_kl.torch import nn  # noqa: E402
from validation.training import gradient_pairs, loop, networks  # noqa: E402
from validation.training.data import Split  # noqa: E402
from validation.training.loop import TemporalAverage  # noqa: E402
from validation.training.parts import Parts  # noqa: E402

rng = np.random.default_rng(3)
SPLIT = Split(rng.random((60, 6), np.float32), rng.integers(0, 10, 60))


def network(method="variational_b", seed=1, **posterior):
    noise = loop.seeded(seed, 1)
    return networks.network(method, 6, [8, 8], seed=seed, generator=noise, **posterior), noise


def run(method="variational_b", batch_size=25, **settings):
    return networks.run_of(method, SPLIT, [8, 8], loop.Settings(batch_size, 1, **settings))


class TestAverage:
    def test_the_formula(self):
        model = torch.nn.Linear(1, 1, bias=False)
        average = TemporalAverage(model, 0.9)
        values = [1.0, 4.0, -2.0]
        for value in values:
            model.weight.data.fill_(value)
            average.update()
        weights = [0.9**2, 0.9, 1.0]
        expected = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        with average.applied() as averaged:
            assert averaged.weight.item() == pytest.approx(expected, rel=1e-6)
        assert model.weight.item() == values[-1]

    def test_its_own_parameters_come_back_after_an_error(self):
        model = torch.nn.Linear(2, 2)
        average, weight = TemporalAverage(model), model.weight
        before = weight.detach().clone()
        with pytest.raises(ValueError, match="there is no average before the first step"):
            average.applied().__enter__()
        average.update()
        weight.data.add_(1.0)

        def fail():
            with average.applied():
                assert torch.allclose(weight, before)
                raise RuntimeError("inside")

        with pytest.raises(RuntimeError, match="inside"):
            fail()
        assert torch.equal(weight, before + 1.0)
        with pytest.raises(ValueError, match=r"decay must be in \[0, 1\), got 1.0: 0.999 is usual"):
            TemporalAverage(torch.nn.Linear(2, 2), 1.0)


class TestLoop:
    def test_every_example_once_an_epoch(self):
        training = run()
        seen, objective = [], training._objective
        training._objective = lambda x, y: (seen.append(x.clone()), objective(x, y))[1]
        list(training.train(2))
        assert [len(x) for x in seen] == [25, 25, 10] * 2
        for epoch in (seen[:3], seen[3:]):
            rows = np.concatenate(epoch)
            order = np.lexsort(rows.T)
            np.testing.assert_array_equal(rows[order], SPLIT.x[np.lexsort(SPLIT.x.T)])
        assert not torch.equal(seen[0], seen[3])

    def test_the_objective_is_the_bound(self):
        model, noise = network()
        objective = loop.Objective(model, 60, 0.5)
        x, y = (torch.from_numpy(part[:10]) for part in SPLIT)
        loss, likelihood, neg_kl = objective(x, y)
        noise.manual_seed(loop.seeded(1, 1).initial_seed())  # the same noise again
        summed = -torch.nn.functional.cross_entropy(model(x), y, reduction="sum")
        assert likelihood.item() == pytest.approx(6 * summed.item(), rel=1e-6)
        assert neg_kl.item() == pytest.approx(nn.neg_kl(model).item(), rel=1e-6)
        expected = -(likelihood.item() + 0.5 * neg_kl.item()) / 60
        assert loss.item() == pytest.approx(expected, rel=1e-6)

    def test_no_loss_that_is_not_finite(self):
        training = run()
        networks.weights(training.model)[0].data[0, 0] = math.nan
        said = "^the loss is nan at step 1: lower the learning rate$"
        with pytest.raises(loop.TrainingError, match=said):
            next(training.train(1))

    def test_evaluation_has_no_noise_and_leaves_the_mode(self):
        model, noise = network()
        before = noise.get_state()
        found = [loop.evaluate(model, SPLIT, batch_size) for batch_size in (7, 60)]
        assert found[0] == pytest.approx(found[1], rel=1e-6)
        assert torch.equal(noise.get_state(), before)
        assert model.training
        x, y = (torch.from_numpy(part) for part in SPLIT)
        model.eval()
        wrong = (model(x).argmax(1) != y).double().mean().item()
        assert found[0]["error_percent"] == pytest.approx(100 * wrong)


class TestNetworks:
    def test_binary_dropout(self):
        drop = networks.BinaryDropout(0.2, torch.Generator().manual_seed(0))
        x = torch.full((100_000,), 3.0)
        y = drop(x)
        assert abs((y != 0).double().mean().item() - 0.8) < 4 * math.sqrt(0.16 / len(x))
        assert torch.equal(y[y != 0], torch.full_like(y[y != 0], 3.0 / 0.8))
        assert drop.eval()(x) is x

    def test_the_options_of_its_layers(self):
        """Some are those of the posterior, and the others of the layer itself."""
        options = {"penalty": "kingma", "estimator": "per_batch", "sharing": "layer"}
        model = networks.network(
            "variational_b", 4, [3], seed=1, generator=torch.Generator(), **options
        )
        for layer in networks.variational(model):
            found = (layer.penalty, layer.estimator, layer.posterior.sharing)
            assert found == tuple(options.values())


class TestGradientPairs:
    def test_the_mean_is_the_variance_of_draws_with_replacement(self):
        """Against the sample variance of the gradients of single examples, S^2/M by hand."""
        model, noise = network()
        examples, batch = loop.Examples(SPLIT), 5
        model.eval()
        single = [
            gradient_pairs.gradients(model, x[None], y[None], 60, 1)
            for x, y in zip(examples.x, examples.y, strict=True)
        ]
        pairs = gradient_pairs.Pairs(model, noise, examples, batch, seed=0)
        assert pairs.in_a_pass == 6
        found = [pairs.half_squared_difference("none", number) for number in range(1200)]
        for layer in ("top", "bottom"):
            each = torch.stack([gradient[layer] for gradient in single]).double()
            exact = float(each.var(0).mean()) / batch
            told = gradient_pairs.summary([pair[layer] for pair in found])
            assert abs(told["variance"] - exact) < 4 * told["standard_error"]
            assert told["standard_error"] < 0.04 * exact


class TestParts:
    def test_each_is_computed_once(self, tmp_path):
        """Also where it is ended in between."""
        made = []

        def make(number):
            made.append(number)
            if made == [0, 1, 2, 3]:
                raise KeyboardInterrupt
            return number * 0.1

        with pytest.raises(KeyboardInterrupt):
            Parts(tmp_path, {"seed": 1}).growing("a", 4, make)
        for count in (3, 2, 5):
            found = Parts(tmp_path, {"seed": 1}).growing("a", count, make)
            assert found == [n * 0.1 for n in range(count)]
        assert made == [0, 1, 2, 3, 3, 4]
