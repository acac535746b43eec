"""Log alpha, counts of weights, masks and thresholds of models of PyTorch."""

import copy
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils import prune as torch_prune  # noqa: E402
from torch.nn.utils.parametrizations import weight_norm  # noqa: E402

from logunif_kl.nn.sparsity import SILENT, threshold_that_keeps  # noqa: E402
from logunif_kl.nn.torch.priors.penalty import total  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import descend  # noqa: E402


def network(**options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16, 5)
    )
    model = nn.to_variational(model, **options)
    with torch.no_grad():
        for layer in (model[0], model[3]):
            layer._log_variance.normal_(0.0 if layer.posterior.relative else -4.0, 3.0)
    return model


IMAGES = torch.linspace(-1.0, 1.0, 3 * 16).reshape(3, 1, 4, 4)
TARGET = torch.tensor([0, 3, 4])
POSTERIORS = [nn.Additive(), nn.Multiplicative(), nn.Correlated(), nn.Multiplicative("output")]


def test_log_alpha():
    model = network()
    model[3].weight.data[0, 0] = 0.0
    found = nn.log_alpha(model)
    assert list(found) == ["0", "3"]
    assert found["3"][0, 0] == math.inf
    for name, each in found.items():
        layer = model.get_submodule(name)
        assert torch.equal(each, layer.log_sigma2 - 2.0 * layer.weight.abs().log())
        assert not each.requires_grad


class TestSparsity:
    @pytest.mark.parametrize("posterior", POSTERIORS)
    @pytest.mark.parametrize("threshold", [-2.0, 3.0, math.inf])
    def test_as_many_as_to_deterministic_leaves(self, posterior, threshold):
        model = network(posterior=posterior)
        found = nn.sparsity(model, threshold)
        plain = nn.to_deterministic(model, threshold)
        counts = {n: int(plain.get_submodule(n).weight.count_nonzero()) for n in ("0", "3")}
        assert {name: each.kept for name, each in found.layers.items()} == counts
        assert (found.kept, found.weights) == (sum(counts.values()), 36 + 80)
        assert nn.sparsity(plain, threshold) == nn.sparsity(plain) == found

    @pytest.mark.parametrize("max_density", [0.0, 1.0])
    def test_a_sparse_network(self, max_density):
        model = network()
        expected = nn.sparsity(model, 1.0)
        sparse = nn.to_sparse(model, 1.0, max_density=max_density, drop_units=False)
        assert nn.sparsity(sparse) == expected
        assert isinstance(sparse[3], nn.SparseLinear) is bool(max_density)

    @pytest.mark.parametrize(
        ("table", "shared"),
        [
            (torch.nn.Embedding, ["weight"]),
            (nn.VariationalEmbedding, ["weight"]),
            (nn.VariationalEmbedding, ["weight", "log_sigma2"]),
        ],
    )
    def test_is_what_is_left_where_layers_share_a_weight(self, table, shared):
        """A table with a row of padding, and a layer of the same weight."""
        torch.manual_seed(0)
        table, out = table(4, 3, padding_idx=1), nn.VariationalLinear(3, 4)
        with torch.no_grad():
            out.weight.normal_()
            for layer in (table, out):
                if isinstance(layer, nn.VariationalLayer):
                    layer.log_sigma2.normal_(0.0, 3.0)
        for name in shared:
            setattr(table, name, getattr(out, name))
        model = torch.nn.ModuleDict({"table": table, "out": out, "again": out})
        plain = nn.to_deterministic(model, 1.0)
        found = nn.sparsity(model, 1.0)
        assert 0 < found.kept < found.weights == 12
        assert found.kept == plain["table"].weight.count_nonzero()
        sparse = nn.to_sparse(model, 1.0, max_density=1.0)
        assert nn.sparsity(sparse["table"]).kept == found.kept
        ids, x = torch.arange(4), torch.ones(2, 3)
        assert torch.equal(sparse["table"](ids), plain["table"](ids))
        torch.testing.assert_close(sparse["out"](x), plain["out"](x))

    def test_weights_that_are_zero_or_nan(self):
        layer = nn.VariationalLinear(4, 1, posterior=nn.Additive(initial=0.0))
        layer.weight.data = torch.tensor([[0.0, math.nan, 1.0, 0.1]])
        assert nn.sparsity(layer, math.inf).kept == 3
        assert nn.sparsity(layer, 3.0).kept == 2  # a weight that is no number is not hidden

    def test_numbers(self):
        found = nn.Sparsity(3, 12)
        assert (found.pruned, found.compression) == (0.75, 4.0)
        assert nn.Sparsity(0, 12).compression == math.inf
        assert str(nn.Sparsity.of({"a": found})).split("\n") == [
            "layer  weights  kept   pruned  compression",
            "a           12     3  75.00 %          4.0",
            "all         12     3  75.00 %          4.0",
        ]
        assert (nn.Sparsity(0, 0).pruned, nn.Sparsity(0, 0).compression) == (0.0, 1.0)


class TestPrune:
    @pytest.mark.parametrize("shape", [(), (2,), (3, 1), (1, 2)])
    def test_variances_that_broadcast_to_the_weight(self, shape):
        layer = nn.VariationalLinear(2, 3)
        layer.log_sigma2 = torch.nn.Parameter(torch.full(shape, -8.0))
        torch.nn.init.ones_(layer.weight)
        layer.weight.data[:, 0] = 1e-9
        nn.prune(layer)
        assert layer.weight_mask.tolist() == [[0.0, 1.0]] * 3
        kept = layer.log_sigma2.expand(3, 2)[:, 1]
        assert kept.tolist() == [-8.0] * 3

    @pytest.mark.parametrize("posterior", POSTERIORS)
    @pytest.mark.parametrize("estimator", ["local", "per_example", "per_batch"])
    def test_pruned_weights_stay_zero_without_noise(self, posterior, estimator):
        model = network(posterior=posterior, estimator=estimator).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        elbo = nn.ELBO(model, nn.categorical_log_likelihood, 100)
        descend(optimizer, lambda: elbo(IMAGES, TARGET).loss, 1)
        kept = {n: int(s.kept) for n, s in nn.sparsity(model, 0.5).layers.items()}
        nn.prune(model, 0.5)
        before = {name: value.clone() for name, value in model.named_parameters()}
        descend(optimizer, lambda: elbo(IMAGES, TARGET).loss, 3)
        model(IMAGES)
        changed, pruned = 0, 0
        for name, layer in (("0", model[0]), ("3", model[3])):
            gone = layer.weight_mask == 0
            assert int((~gone).sum()) == kept[name]
            pruned += int(gone.sum())
            assert (layer.weight[gone] == 0.0).all()
            if not posterior.relative:
                assert (layer.log_sigma2[gone].exp() == 0.0).all()
            # The optimizer still has the parameters, under other names.
            assert torch.isfinite(layer.weight_orig.grad).all()
            changed += int((layer.weight_orig != before[f"{name}.weight_orig"]).sum())
        assert changed > 0 < pruned

    def test_twice(self):
        model = network()
        nn.prune(model, 5.0)
        nn.prune(model, 1.0)
        again = nn.prune(network(), 1.0)
        for at in (0, 3):
            assert torch.equal(model[at].weight, again[at].weight)
            assert torch.equal(model[at].weight_mask, again[at].weight_mask)
            assert torch.equal(model[at].log_sigma2, again[at].log_sigma2)
            assert (model[at].log_sigma2[model[at].weight == 0] == SILENT).all()
        nn.prune(model, 5.0)  # a higher threshold brings none back
        assert torch.equal(model[3].weight, again[3].weight)

    @pytest.mark.parametrize("penalty", ["exact", "molchanov"])
    def test_made_permanent(self, penalty):
        """What the notes say: the KL is right, until a step moves a weight from 0."""
        model = network(penalty=penalty)
        plain = nn.to_deterministic(model, 1.0)
        before = nn.kl(nn.prune(model, 1.0))
        for layer in (model[0], model[3]):
            for name in ("weight", "log_sigma2"):
                torch_prune.remove(layer, name)
        assert not torch_prune.is_pruned(model)
        assert torch.equal(model.eval()(IMAGES), plain(IMAGES))
        assert nn.sparsity(model, math.inf) == nn.sparsity(plain)
        torch.testing.assert_close(nn.kl(model), before)
        layer = model[3]
        assert (layer.weight[layer.log_sigma2 == SILENT] == 0.0).all()
        layer.weight.data[layer.log_sigma2 == SILENT] += 1e-3
        assert nn.kl(model) > before + 1000.0

    @pytest.mark.parametrize("posterior", POSTERIORS)
    def test_what_is_read_between_two_calls(self, posterior):
        """The masked weights are those of the parameters, not of the last call."""
        first = nn.prune(network(posterior=posterior), 1.0).eval()
        with torch.no_grad():
            for parameter in first.parameters():
                parameter.mul_(1.1)

        def loaded():
            other = nn.prune(network(posterior=posterior), 9.0).eval()
            other.load_state_dict(first.state_dict())
            return other

        called = loaded()
        output = called(IMAGES)
        assert torch.equal(output, first(IMAGES))

        assert torch.equal(nn.kl(loaded()), nn.kl(called))
        assert torch.equal(loaded()[3].kl(), called[3].kl())
        for name, found in nn.log_alpha(loaded()).items():
            assert torch.equal(found, nn.log_alpha(called)[name])
        assert torch.equal(loaded()[3].log_alpha_of_weights(), called[3].log_alpha_of_weights())
        assert nn.sparsity(loaded(), 0.5) == nn.sparsity(called, 0.5)
        assert torch.equal(nn.to_deterministic(loaded())(IMAGES), output)
        sparse = nn.to_sparse(loaded(), math.inf, max_density=1.0)
        torch.testing.assert_close(sparse(IMAGES), output)
        again = nn.prune(loaded(), 0.5)
        assert torch.equal(again[3].weight_mask, nn.prune(called, 0.5)[3].weight_mask)

    def test_weights_that_are_only_counted_keep_their_graph(self):
        model = nn.prune(network(), 1.0)
        model(IMAGES)
        nn.sparsity(model)
        model[3].weight.sum().backward()
        assert torch.isfinite(model[3].weight_orig.grad).all()

    @pytest.mark.parametrize(
        ("penalty", "posterior"),
        [
            *itertools.product(
                ["kingma", "molchanov", "lower_bound", "kummer", "exact"], POSTERIORS
            ),
            (nn.NormalPrior(1.0), nn.Additive()),
        ],
    )
    def test_pruned_weights_have_no_kl(self, penalty, posterior):
        """What remains is that of the others, and so are its derivatives."""
        if posterior.relative:
            posterior = replace(posterior, max_log_alpha=0.5)
        model = network(posterior=posterior, penalty=penalty)
        layer = model[3]
        kept = ~(layer.log_alpha_of_weights() > 0.0)
        (term,) = layer._lk_weights()[0].terms()
        if not posterior.independent:
            kept = kept.any(0, keepdim=True)
        parts = [torch.broadcast_to(x, layer.weight.shape)[: len(kept)] for x in term.arrays]
        chosen = tuple(part[kept] for part in parts)
        expected = total([(penalty, [term._replace(arrays=chosen, count=1)])])
        (slope,) = torch.autograd.grad(expected, layer._log_variance)
        nn.prune(layer, 0.0)
        found = layer.neg_kl()
        assert math.isfinite(found.item())
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=0.0)
        spread = layer._parameters.get("log_sigma2_orig", layer._parameters.get("log_alpha"))
        gradient = torch.autograd.grad(found, spread)[0]
        torch.testing.assert_close(gradient, slope, rtol=1e-5, atol=1e-30)

    @pytest.mark.parametrize(
        ("penalty", "posterior", "padding"),
        [
            (nn.NormalPrior(0.1), nn.Additive(initial=0.0), None),
            (nn.StudentTPrior(1.0, 1.0), nn.Additive(initial=0.0), 1),
            ("exact", nn.Scaled(initial=-2.0), None),
        ],
    )
    def test_a_mask_of_the_means_alone(self, penalty, posterior, padding):
        """The methods of torch leave the variances, so what they prune has noise, and a KL."""
        options = {"posterior": posterior, "penalty": penalty}
        layer = nn.VariationalLinear(3, 4, bias=False, **options)
        if padding is not None:
            layer = nn.VariationalEmbedding(4, 3, padding_idx=padding, **options)
        same = copy.deepcopy(layer)
        torch_prune.ln_structured(layer, "weight", 0.5, n=2, dim=1)
        with torch.no_grad():
            same.weight.mul_(layer.weight_mask)
        found, expected = layer.kl(), same.kl()
        torch.testing.assert_close(found, expected)
        slopes = [
            torch.autograd.grad(kl, x.log_sigma2)[0] for kl, x in ((found, layer), (expected, same))
        ]
        torch.testing.assert_close(*slopes)

    def test_the_kl_of_a_table_with_a_padding(self):
        posterior = nn.Multiplicative("layer", initial=0.5)
        table = nn.VariationalEmbedding(5, 3, padding_idx=1, posterior=posterior)
        whole = table.kl()
        table.weight.data[3, 0] = 0.0
        nn.prune(table, 3.0)
        assert table.kl().item() == pytest.approx(whole.item() * 11 / 12, rel=1e-6)

    def test_to_deterministic(self):
        model = nn.prune(network(), 1.0).eval()
        for threshold in (None, 0.0):
            plain = nn.to_deterministic(model, threshold)
            kept = nn.sparsity(model, 1.0 if threshold is None else threshold)
            assert nn.sparsity(plain).kept == kept.kept
            assert not torch_prune.is_pruned(plain)
            assert torch_prune.is_pruned(model)
        assert torch.equal(nn.to_deterministic(model)(IMAGES), model(IMAGES))
        curve = nn.threshold_curve(model, lambda pruned: pruned(IMAGES).abs().sum(), [0.0, 1.0])
        assert list(curve.sparsities) == [nn.sparsity(model, t) for t in (0.0, 1.0)]
        output = model(IMAGES)
        assert nn.to_deterministic(model, inplace=True) is model
        assert torch.equal(model(IMAGES), output)
        names = {name for name, _ in model.named_parameters()}
        assert names == {"0.weight", "0.bias", "3.weight", "3.bias"}

    @pytest.mark.parametrize(
        ("posterior", "unit"),
        [(nn.Multiplicative("output"), 0), (nn.Multiplicative("input"), 1), (nn.Correlated(), 1)],
    )
    def test_groups_are_pruned_as_units(self, posterior, unit):
        layer = nn.VariationalConv2d(3, 3, 2, posterior=posterior)
        layer.log_alpha.data.view(-1)[1] = 5.0
        nn.prune(layer)
        by_unit = (layer.weight == 0.0).transpose(0, unit).flatten(1)
        assert by_unit.all(1).tolist() == [False, True, False]
        assert not by_unit[[0, 2]].any()
        assert nn.sparsity(layer).kept == 2 * 3 * 4


class TestThresholdCurve:
    def test_of_a_network(self, terminal):
        model, calls, shown = network().train(), [], terminal()

        def measure(pruned):
            calls.append(pruned.training)
            return (pruned(IMAGES) - nn.to_deterministic(model)(IMAGES)).abs().max()

        given = [3, -1.0, math.inf, 3.0]
        curve = nn.threshold_curve(model, measure, torch.tensor(given))
        assert shown.getvalue() == ""
        assert nn.threshold_curve(model, measure, given, progress=True) == curve
        assert "thresholds" in shown.getvalue()
        assert curve.thresholds == (-1.0, 3.0, math.inf)
        assert curve.losses[-1] == 0.0 < curve.losses[0]
        assert list(curve.sparsities) == [nn.sparsity(model, t) for t in curve.thresholds]
        assert calls == [False] * 6
        assert model.training
        assert len(nn.threshold_curve(model, measure).thresholds) == 25

    @pytest.mark.parametrize(
        ("losses", "kept", "tolerance", "chosen"),
        [
            ((9.0, 2.0, 1.0), (1, 2, 3), 0.0, 2.0),
            ((9.0, 2.0, 1.0), (1, 2, 3), 1.0, 1.0),
            ((1.0, 1.0, 1.0), (1, 2, 3), 0.0, 0.0),
            ((1.0, 1.0, 1.0), (3, 3, 3), 0.0, 2.0),
            ((2.0, 1.0, 1.5), (3, 3, 3), 1.0, 1.0),
            ((math.nan, 1.0, 2.0), (1, 2, 3), 0.0, 1.0),
        ],
    )
    def test_the_choice(self, losses, kept, tolerance, chosen):
        counts = tuple(nn.Sparsity(each, 10) for each in kept)
        assert nn.ThresholdCurve((0.0, 1.0, 2.0), losses, counts).choose(tolerance) == chosen

    def test_the_plot(self, pyplot, tmp_path):
        curve = nn.threshold_curve(network(), lambda m: 1.0, [0.0, 3.0])
        axes = curve.plot(tmp_path / "a.png", loss="error in %", chosen=3.0)
        assert (tmp_path / "a.png").stat().st_size > 0
        assert axes.get_ylabel() == "error in %"
        assert len(axes.lines) == 2
        counts = axes.figure.axes[1]
        assert counts.get_yscale() == "log"
        assert not any("10^" in label.get_text() for label in counts.get_yticklabels())

        curve = nn.threshold_curve(network(), lambda m: 1.0, [-math.inf])
        axes = curve.plot(tmp_path / "a.png")
        assert axes.figure.axes[1].get_yscale() == "linear"  # where nothing is kept
        assert curve.plot() is pyplot.gcf().axes[0]
        assert pyplot.imread(tmp_path / "a.png").std() > 0.05
        _, given = pyplot.subplots()
        assert curve.plot(ax=given) is given
        assert len(given.lines) == 1


class TestDensity:
    @pytest.mark.parametrize("density", [0.0, 0.01, 0.29, 0.3, 0.999, 1.0])
    def test_is_reached(self, density):
        torch.manual_seed(0)
        model = torch.nn.Sequential(nn.VariationalLinear(30, 20), nn.VariationalLinear(20, 7))
        for layer in model:
            torch.nn.init.normal_(layer.log_sigma2)
        threshold = nn.density_threshold(model, density)
        kept = {0.0: 0, 0.01: 7, 0.29: 214, 0.3: 222, 0.999: 739, 1.0: 740}[density]
        assert nn.sparsity(model, threshold).kept == kept
        # The product of 0.29 and 100 is below the integer.
        layer = nn.VariationalLinear(100, 1)
        kept = nn.sparsity(layer, nn.density_threshold(layer, density)).kept
        assert kept == math.floor(100 * density + 1e-6)

    @pytest.mark.parametrize("posterior", [nn.Multiplicative(), nn.Scaled()])
    def test_zeros_whose_alpha_is_small(self, posterior):
        layer = nn.VariationalLinear(10, 1, posterior=posterior)
        layer.get_parameter(posterior.parameters[-1]).data = torch.arange(10.0).view(1, 10)
        layer.weight.data = torch.tensor([[0.0] * 5 + [1.0] * 5])
        threshold = nn.density_threshold(layer, 0.3)
        assert nn.sparsity(layer, threshold).kept == 3

    def test_a_padding(self):
        table = nn.VariationalEmbedding(4, 2, padding_idx=0, posterior=nn.Additive(initial=-20.0))
        assert nn.sparsity(table, nn.density_threshold(table, 0.5)).kept == 4

    def test_equal_weights_and_zeros(self):
        layer = nn.VariationalLinear(6, 1, posterior=nn.Additive(initial=0.0))
        layer.weight.data = torch.tensor([[2.0, 1.0, -1.0, 1.0, 0.0, 0.0]])
        found = [nn.density_threshold(layer, k / 6) for k in range(7)]
        kept = [nn.sparsity(layer, threshold).kept for threshold in found]
        assert kept == [0, 1, 1, 1, 4, 4, 4]

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_neighbours(self, dtype):
        """Weights are told apart if their log alphas differ at all."""
        one = np.dtype(dtype).type(1.0)
        for last in (0.0, 1e-3, 1.0, -7.3, 123.4):
            last = one * last
            for after in (np.nextafter(last, one * 200), last + one * 1e-5, last + one):
                given = np.array([last - one, last, after, math.inf])
                for kept, found in ((2, given), (3, given), (2, given[:2])):
                    threshold = threshold_that_keeps(kept / len(found), found)
                    assert (torch.tensor(found) <= threshold).sum() == kept
        assert threshold_that_keeps(0.5, np.array([one, one * 2])) > 1.000005

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_neighbours_in_half_types(self, dtype):
        """The comparison rounds the threshold to the type of log alpha."""
        for last in (1.0014e-4, -0.37, 1.0, 7.3):
            given = [torch.tensor(last, dtype=dtype)]
            for _ in range(4):
                given.append(torch.nextafter(given[-1], given[-1] + 1))
            found = torch.stack(given)
            for kept in range(1, 5):
                threshold = threshold_that_keeps(kept / 5, found.double().numpy())
                assert (found <= threshold).sum() == kept

    def test_a_nan_is_refused(self):
        """All thresholds keep a NaN, so none keeps the share."""
        layer = nn.VariationalLinear(6, 1)
        layer.weight.data[0, 2:4] = math.nan
        with pytest.raises(ValueError, match=r"^log alpha of 2 weights is NaN, so no threshold"):
            nn.density_threshold(layer, 0.5)


def test_gaussian_parameters_of_a_parametrization_count_once():
    """Not also as the weight that they give, and `to_variational` warns of no weight left."""
    plain = torch.nn.Sequential(weight_norm(torch.nn.Linear(3, 4)), torch.nn.Linear(4, 2))
    assert nn.sparsity(plain).weights == 12 + 8
    original = "0.parametrizations.weight.original1"
    model = nn.to_variational(plain, parameters=[original])
    layers = {original: 12, "1": 8, "not converted": 4 + 4}  # the lengths, and the bias beside them
    assert {name: each.weights for name, each in nn.sparsity(model).layers.items()} == layers
    found = nn.conversion(model)
    assert found.variational == {"0.parametrizations.weight": 4 + 12 + 12, "1": 8 + 8 + 2}
    assert found.left == {"0": (4, "ParametrizedLinear has no weight matrix")}


@pytest.mark.parametrize("masked", [False, True])
def test_means_of_noisy_weights_are_set_to_zero(masked):
    layer = nn.VariationalLinear(5, 1, posterior=nn.Additive(initial=0.0), bias=False)
    # The log alpha of the fourth is 2.98.
    layer.weight.data = torch.tensor([[1.0, 0.5, 0.1, math.exp(-1.49), 0.05]])
    before = layer.log_sigma2.clone()
    if masked:
        nn.prune(layer, 5.0)
    nn.zero_means(layer, 3.0)
    means = layer.weight_orig if masked else layer.weight
    assert (means != 0).tolist() == [[True, True, False, True, False]]
    assert masked or torch.equal(layer.log_sigma2, before)
    assert layer.eval()(torch.ones(5)).item() == pytest.approx(1.5 + math.exp(-1.49))
    means.sum().backward()
    assert (means.grad == 1.0).all()
