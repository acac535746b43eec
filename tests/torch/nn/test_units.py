"""Posteriors that remove units: random scales (Louizos et al. 2017), and groups of weights."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")

from logunif_kl.torch import kl_normal, nn  # noqa: E402
from logunif_kl.torch.isotropic import kl_vector  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    OF_UNITS,
    filled,
    finite,
    generator,
    inputs,
    made,
)

every_kind = pytest.mark.parametrize("kind", [name for name in CASES if name != "embedding"])


def of_units(posterior, kind="linear", **options):
    return made(CASES[kind], **options, posterior=OF_UNITS[posterior])


def network(threes=(1, 2)):
    """A convolutional network in which these channels and units have a log alpha above 3."""
    torch.manual_seed(0)
    options = {"posterior": nn.Scaled(initial=-4.0)}
    model = torch.nn.Sequential(
        nn.VariationalConv2d(1, 4, 3, **options),
        torch.nn.ReLU(),
        nn.VariationalConv2d(4, 3, 3, **options),
        torch.nn.Flatten(),
        nn.VariationalLinear(12, 5, **options),
        torch.nn.Tanh(),
        nn.VariationalLinear(5, 2, **options),
    )
    with torch.no_grad():
        for layer in model[2], model[6]:
            layer.scale_log_sigma2[0, list(threes)] = 4.0
    return model


class TestOutputs:
    def test_outputs_of_an_example_share_a_scale(self):
        # Without noise of v, both outputs are the same multiple of their weights.
        layer = nn.VariationalLinear(1, 2, bias=False, posterior=nn.Scaled())
        filled(layer, weight=torch.tensor([[1.0], [3.0]]), log_sigma2=-80.0, scale_log_sigma2=0.0)
        found = layer(torch.ones(50, 1)).detach()
        assert torch.allclose(found[:, 1], 3 * found[:, 0])
        assert found[:, 0].unique().numel() == 50

    def test_gradients_of_zero_inputs_are_finite(self):
        layer = of_units("scaled")
        layer(torch.zeros(2, 3)).sum().backward()
        assert finite(*(p.grad for p in layer.parameters()))


class TestKl:
    @every_kind
    def test_it_is_that_of_the_scales_and_of_v(self, kind):
        layer = of_units("scaled", kind, dtype=torch.float64)
        groups = getattr(layer, "groups", 1)
        of_scales = groups * kl_normal(layer.scale, layer.scale_log_sigma2).sum()
        mu, variance = layer.weight, layer.log_sigma2.exp()
        of_weights = 0.5 * (mu**2 + variance - 1 - layer.log_sigma2).sum()
        assert torch.allclose(layer.kl(), of_scales + of_weights, rtol=1e-14)
        assert torch.equal(nn.kl(layer), layer.kl())
        assert torch.equal(nn.named_kl(torch.nn.Sequential(layer))["0"], layer.kl())

    def test_the_penalty_is_that_of_the_scales(self):
        layer = of_units("scaled", dtype=torch.float64)
        exact = layer.kl()
        layer.penalty = "molchanov"
        assert 1e-6 < (layer.kl() - exact).abs() < 3 * 9.4e-3

    def test_half_types_are_summed_in_float32(self):
        layer = of_units("scaled", dtype=torch.bfloat16)
        assert layer.kl().dtype == torch.float32
        assert layer(torch.ones(2, 3, dtype=torch.bfloat16)).dtype == torch.bfloat16

    def test_removed_units_do_not_count(self):
        layer = of_units("scaled", dtype=torch.float64)
        filled(layer, scale_log_sigma2=torch.tensor([[9.0, -1.0, -1.0]]))
        nn.prune(layer, 3.0)
        kept = nn.VariationalLinear(2, 2, posterior=nn.Scaled(), dtype=torch.float64)
        filled(
            kept,
            weight=layer.weight[:, 1:],
            log_sigma2=layer.log_sigma2[:, 1:],
            scale=layer.scale[:, 1:],
            scale_log_sigma2=layer.scale_log_sigma2[:, 1:],
        )
        assert torch.allclose(layer.kl(), kept.kl(), rtol=1e-14)
        layer.kl().backward()
        assert (layer.scale.grad[0, 0], layer.weight_orig.grad[:, 0].abs().sum()) == (0, 0)

    def test_layers_with_the_same_parameters_count_once(self):
        first, second = of_units("scaled"), of_units("scaled")
        second.weight, second.log_sigma2 = first.weight, first.log_sigma2
        second.scale, second.scale_log_sigma2 = first.scale, first.scale_log_sigma2
        model = torch.nn.ModuleList([first, second])
        assert torch.equal(nn.kl(model), first.kl())
        nn.to_deterministic(model, inplace=True)
        assert torch.equal(first.weight, second.weight)


class TestRemovedUnits:
    def test_log_alpha_is_that_of_the_scale(self):
        layer = of_units("scaled", "conv1d")
        expected = layer.scale_log_sigma2 - 2 * layer.scale.abs().log()
        assert torch.equal(nn.log_alpha(layer)[""], expected.expand_as(layer.weight))

    def test_sparsity_counts_the_weights_of_units(self):
        found = nn.sparsity(network())
        assert [each.kept for each in found.layers.values()] == [36, 3 * 2 * 9, 60, 2 * 3]

    def test_every_form_computes_the_same_function(self):
        model, x = network().eval(), torch.randn(6, 1, 6, 6, generator=generator())
        dense = nn.to_deterministic(model, 3.0)
        compact = nn.to_sparse(model, 3.0)
        assert [compact[i].weight.shape for i in (0, 2, 4, 6)] == [
            (2, 1, 3, 3),
            (3, 2, 3, 3),
            (3, 12),
            (2, 3),
        ]
        assert torch.allclose(compact(x), dense(x), atol=1e-6)
        assert torch.equal(nn.prune(model, 3.0)(x), dense(x))
        assert torch.equal(nn.to_deterministic(model)(x), dense(x))
        model.train()
        removed = copy.deepcopy(model.state_dict())
        torch.manual_seed(1)
        before = model(x)
        with torch.no_grad():
            model[6].scale[0, 1] = 50.0  # of a removed unit
        torch.manual_seed(1)
        assert torch.equal(model(x), before)
        assert removed.keys() == model.state_dict().keys()

    def test_a_scale_of_zero_removes_its_unit(self):
        layer = filled(of_units("scaled"), scale=torch.tensor([[0.0, 1.0, 1.0]]))
        assert nn.sparsity(layer, float("inf")).kept == 4


@pytest.mark.parametrize("sharing", ["input", "output"])
class TestGroups:
    @every_kind
    def test_the_kl_is_that_of_vectors(self, kind, sharing):
        layer = of_units(f"groups, {sharing}", kind, dtype=torch.float64)
        at = getattr(layer._units, sharing)
        mu = layer.weight.movedim(at, 0).flatten(1)
        assert layer.log_sigma2.numel() == len(mu)
        log_alpha = layer.log_sigma2.flatten() - mu.square().sum(1).log()
        k = mu.shape[1]
        assert torch.allclose(layer.kl(), kl_vector(log_alpha, k).sum(), rtol=1e-13)
        found = nn.log_alpha(layer)[""].movedim(at, 0).flatten(1)
        assert torch.allclose(found, (log_alpha + math.log(k))[:, None].expand_as(found))

    def test_removed_groups(self, sharing):
        layer = of_units(f"groups, {sharing}", dtype=torch.float64)
        with torch.no_grad():
            layer.log_sigma2.flatten()[1] = 9.0
        at = getattr(layer._units, sharing)
        dense = nn.to_deterministic(layer, 3.0)
        assert not dense.weight.select(at, 1).any()
        assert (dense.weight.select(at, 0) != 0).all()
        before = layer.kl()
        nn.prune(layer, 3.0)
        x = inputs(CASES["linear"], 3, dtype=torch.float64)
        assert torch.equal(layer.eval()(x), dense(x))
        assert layer.kl() < before
        layer.kl().backward()
        assert finite(layer.weight_orig.grad, layer.log_sigma2_orig.grad)
        assert torch.equal(nn.to_deterministic(layer)(x), dense(x))

    def test_another_prior(self, sharing):
        layer = of_units(f"groups, {sharing}")
        layer.penalty = nn.NormalPrior()
        assert layer.kl() > 0

    def test_state_dict_and_conversion(self, sharing):
        layer = of_units(f"groups, {sharing}", "conv2d")
        plain = nn.to_deterministic(layer)
        again = nn.to_variational(plain, posterior=nn.Grouped(sharing))
        again.load_state_dict(layer.state_dict())
        assert torch.equal(again.kl(), layer.kl())
        assert f"posterior={nn.Grouped(sharing)}" in repr(again)


def test_log_alpha_of_groups_in_half_types():
    layer = nn.VariationalLinear(100, 2, posterior=nn.Grouped("output", initial=-25.0)).half()
    layer.weight.data.fill_(1e-4)
    found = nn.log_alpha(layer)[""]
    assert torch.equal(found, nn.log_alpha(layer.float())[""])


def test_a_zero_in_a_group_that_is_kept_is_not_pruned():
    layer = nn.VariationalLinear(3, 2, posterior=nn.Grouped("output", initial=-8.0), bias=False)
    layer.weight.data.fill_(1.0)
    layer.weight.data[0, 0] = 0.0
    nn.prune(layer, 3.0)
    assert layer.weight_mask.all()


class TestSharedWeights:
    def layers(self, tied):
        first, second = (nn.VariationalLinear(3, 3, posterior=nn.Scaled()) for _ in "ab")
        others = ("log_sigma2", "scale", "scale_log_sigma2") if tied else ()
        for name in ("weight", *others):
            setattr(second, name, getattr(first, name))
        return torch.nn.Sequential(first, second).eval()

    def test_conversion_keeps_them_shared(self):
        first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        second.weight = first.weight
        made = nn.to_variational(torch.nn.Sequential(first, second), posterior=nn.Scaled())
        names = ("weight", "log_sigma2", "scale", "scale_log_sigma2")
        assert all(getattr(made[0], name) is getattr(made[1], name) for name in names)

    @pytest.mark.parametrize("tied", [False, True])
    def test_sparse_is_as_dense(self, tied):
        model, x = self.layers(tied), torch.ones(1, 3)
        model[1].scale_log_sigma2.data[0, 1] = 9.0
        dense = nn.to_deterministic(model, 3.0)
        assert (dense[0].weight is dense[1].weight) is tied
        torch.testing.assert_close(nn.to_sparse(model, 3.0)(x), dense(x))
        if tied:  # other weights are products of a shared weight, which counts once
            assert nn.sparsity(model, 3.0).kept == nn.sparsity(dense).kept
