"""Moments without samples, against their definitions where they are exact."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrize, prune  # noqa: E402

from logunif_kl.torch import nn  # noqa: E402
from logunif_kl.torch.nn import _moments_rules as rules  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    EVERY,
    LAYERS,
    Calls,
    compiled,
    filled,
    generator,
    layer_and_input,
    means,
    twin,
    variances,
)

DEPENDENT = ("correlated, input", "correlated, layer", "scaled")
MULTIPLYING = [name for name in CASES if name != "embedding"]
INDEPENDENT = [name for name in EVERY if name not in DEPENDENT]


def spread(shape, seed=7, dtype=torch.float32):
    """Variances of the inputs, all different."""
    return 0.1 + torch.rand(shape, generator=generator(seed)).to(dtype)


def exact(case, layer, x, variance):
    """The moments of an output, which is linear in the input and in the weights."""
    plain = filled(twin(case, layer), weight=means(layer))

    def output(weight, x):
        return torch.func.functional_call(plain, {"weight": weight}, (x,)).flatten()

    weight = means(layer)
    # By the outputs, the inputs and the weights.
    jacobian = torch.func.jacrev(lambda w: torch.func.jacrev(output, 1)(w, x))(weight)
    each = jacobian.reshape(jacobian.shape[0], x.numel(), weight.numel())
    of_weights = variances(layer).flatten()
    given = variance.flatten()
    found = (each @ weight.flatten()) ** 2 @ given
    found += (x.flatten() @ each) ** 2 @ of_weights
    found += given @ each**2 @ of_weights
    return plain(x), found.view(plain(x).shape)


class TestLayers:
    @pytest.mark.parametrize(
        ("case", "posterior"), [(c, p) for c, p in LAYERS if c != "embedding" and p in INDEPENDENT]
    )
    def test_noisy_inputs(self, case, posterior):
        layer, x = layer_and_input(case, posterior, 1, dtype=torch.float64)
        variance = spread(x.shape, dtype=torch.float64)
        for given in (variance, torch.zeros_like(x)):
            expected = exact(CASES[case], layer, x, given)
            torch.testing.assert_close(tuple(nn.moments(layer, x, given)), expected)

    @pytest.mark.parametrize("case", MULTIPLYING)
    def test_torchs_own_layers(self, case):
        """Weights without variance: the limit of a small one."""
        layer, x = layer_and_input(case, n=1)
        variance = spread(x.shape)
        found = nn.moments(twin(CASES[case], layer), x, variance)
        expected = nn.moments(filled(layer, log_sigma2=-80.0), x, variance)
        torch.testing.assert_close(tuple(found), tuple(expected))
        assert nn.moments(twin(CASES[case], layer), x).variance.eq(0.0).all()


class TestNetworks:
    def test_the_mean_is_that_of_evaluation_mode(self):
        model = lenet()
        x = torch.randn(2, 1, 28, 28)
        for training in (True, False):
            found = nn.moments(model.train(training), x)
            assert found.mean.equal(model.eval()(x))

    def test_a_forward_of_its_own(self):
        def forward(a, b, x):
            x = F.relu(a((x - 0.5) / 2.0))
            return b(x.view(x.size(0), -1)) * 2.0

        torch.manual_seed(3)
        a, b = nn.VariationalConv2d(1, 2, 3, stride=2), nn.VariationalLinear(18, 3)
        x, variance = torch.rand(4, 1, 7, 7), torch.rand(4, 1, 7, 7)
        found = nn.moments(Calls(forward, a, b), x, variance)
        same = torch.nn.Sequential(a, torch.nn.ReLU(), torch.nn.Flatten(), b)
        mean, spread = nn.moments(same, (x - 0.5) / 2.0, variance / 4.0)
        torch.testing.assert_close(tuple(found), (2.0 * mean, 4.0 * spread))

    @pytest.mark.parametrize("change", ["hook", "parametrization"])
    def test_weights_that_are_made_in_each_call(self, change):
        layer, x = nn.VariationalLinear(3, 2), torch.ones(1, 3)
        if change == "hook":
            prune.random_unstructured(layer, "weight", 0.5)
            layer.weight_orig.data.mul_(2.0)
        else:
            parametrize.register_parametrization(layer, "weight", Calls(lambda w: 2.0 * w))
        assert nn.moments(layer, x).mean.equal(layer.eval()(x))

    def test_lazy_layers(self):
        model = torch.nn.Sequential(nn.LazyVariationalLinear(4), torch.nn.ReLU())
        assert nn.moments(model, torch.ones(2, 3)).shape == (2, 4)


def lenet():
    torch.manual_seed(2)
    return torch.nn.Sequential(
        nn.VariationalConv2d(1, 4, 5, stride=2),
        torch.nn.ReLU(),
        nn.VariationalConv2d(4, 6, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        nn.VariationalLinear(96, 20),
        torch.nn.ReLU(),
        nn.VariationalLinear(20, 10),
    )


AVERAGES = {
    "1d": (torch.nn.AvgPool1d(2), (1, 2, 5)),
    "1d, padding": (torch.nn.AvgPool1d(3, 2, 1), (1, 1, 5)),
    "1d, without the padding": (torch.nn.AvgPool1d(3, 2, 1, count_include_pad=False), (1, 1, 5)),
    "2d": (torch.nn.AvgPool2d((2, 3), stride=1), (1, 1, 3, 4)),
    "2d, without the padding": (torch.nn.AvgPool2d(3, 2, 1, False, False), (1, 1, 3, 4)),
    "2d, a divisor": (torch.nn.AvgPool2d(2, divisor_override=3), (1, 1, 2, 4)),
    "3d": (torch.nn.AvgPool3d(2), (1, 1, 2, 2, 4)),
    "adaptive 1d": (torch.nn.AdaptiveAvgPool1d(2), (1, 1, 5)),
    "adaptive 2d": (torch.nn.AdaptiveAvgPool2d((2, None)), (1, 1, 3, 2)),
    "adaptive 3d": (torch.nn.AdaptiveAvgPool3d(1), (1, 1, 2, 2, 2)),
}
MAXIMA = {
    "1d": (torch.nn.MaxPool1d(2), (1, 2, 4)),
    "2d": (torch.nn.MaxPool2d(3, stride=2, padding=1), (1, 1, 4, 4)),
    "2d, dilation": (torch.nn.MaxPool2d(2, stride=1, dilation=2, ceil_mode=True), (1, 1, 4, 3)),
    "3d": (torch.nn.MaxPool3d(2), (1, 1, 2, 2, 4)),
    "adaptive 1d": (torch.nn.AdaptiveMaxPool1d(2), (1, 1, 5)),
    "adaptive 2d": (torch.nn.AdaptiveMaxPool2d(2), (1, 1, 3, 4)),
    "adaptive 3d": (torch.nn.AdaptiveMaxPool3d(1), (1, 1, 2, 2, 2)),
}


class TestPooling:
    @pytest.mark.parametrize(("module", "shape"), [*AVERAGES.values(), *MAXIMA.values()])
    def test_averages_and_maxima(self, module, shape):
        """An output is a sum of inputs, where it is certain which input is the greatest."""
        mean = torch.randn(shape, generator=generator(1), dtype=torch.float64)
        variance = spread(shape, dtype=torch.float64)
        found = nn.moments(module, mean, variance)
        each = torch.func.jacrev(module)(mean).flatten(-mean.ndim)
        torch.testing.assert_close(tuple(found), (module(mean), each**2 @ variance.flatten()))
        without = nn.moments(module, mean)
        assert without.mean.equal(module(mean))
        assert without.variance.eq(0.0).all()


class TestTheStep:
    def test_relaxed(self):
        """As the product of a Bernoulli step and an independent normal h."""
        mean = torch.tensor([-1.0, -0.1, 0.0, 0.3, 2.0])
        variance = torch.tensor([0.5, 1.0, 0.3, 2.0, 0.1])
        p = torch.sigmoid(3.0 * mean)
        found = nn.moments(torch.nn.ReLU(), mean, variance, steepness=3.0)
        expected = p * mean, p * (variance + mean**2) - (p * mean) ** 2
        torch.testing.assert_close(tuple(found), expected)

    def test_the_limit(self):
        mean = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
        variance = torch.full((5,), 0.5)
        found = nn.moments(torch.nn.ReLU(), mean, variance)
        assert found.mean.tolist() == [0.0, 0.0, 0.0, 0.5, 2.0]
        assert found.variance.tolist() == [0.0, 0.0, 0.0, 0.5, 0.5]
        steep = nn.moments(torch.nn.ReLU(), mean, variance, steepness=1e6)
        at = mean != 0.0
        torch.testing.assert_close(steep.mean[at], found.mean[at])
        torch.testing.assert_close(steep.variance[at], found.variance[at])

    @pytest.mark.parametrize(
        "rectify", [F.relu, torch.relu, lambda x: x.relu(), torch.nn.ReLU(), F.relu_]
    )
    def test_its_spellings(self, rectify):
        x = nn.Moments(torch.tensor([1.0, -1.0]), torch.ones(2))
        assert rectify(x).variance.tolist() == [1.0, 0.0]
        assert x.variance.tolist() == [1.0, 0.0 if rectify is F.relu_ else 1.0]


ARRANGEMENTS = [
    lambda x: x.flatten(1),
    lambda x: torch.flatten(x, 1),
    lambda x: x.view(x.shape[0], -1),
    lambda x: x.reshape(-1),
    lambda x: torch.transpose(x, 0, 1),
    lambda x: x.permute(2, 0, 1).contiguous(),
    lambda x: x.unsqueeze(0),
    lambda x: torch.movedim(x, 0, -1),
    lambda x: torch.nn.Unflatten(1, (1, -1))(x),
    lambda x: torch.nn.Flatten()(x),
    lambda x: x[1:, 0],
    lambda x: F.pad(x, (1, 2)),
    lambda x: torch.nn.CircularPad1d(1)(x),
]


@pytest.mark.parametrize("arrange", ARRANGEMENTS)
def test_arrangements(arrange):
    mean, variance = torch.randn(2, 3, 4), torch.rand(2, 3, 4)
    found = arrange(nn.Moments(mean, variance))
    assert found.mean.equal(arrange(mean))
    assert found.variance.equal(arrange(variance))
    assert (found.shape, found.ndim, found.dim()) == (found.mean.shape, *[found.mean.ndim] * 2)


def test_padding_with_a_constant_has_no_variance():
    found = F.pad(nn.Moments(torch.ones(2), torch.ones(2)), (1, 0), value=5.0)
    assert (found.mean.tolist(), found.variance.tolist()) == ([5.0, 1.0, 1.0], [0.0, 1.0, 1.0])


def test_a_constant_whose_square_is_infinite_in_float16():
    x = nn.Moments(torch.ones(2, dtype=torch.float16), torch.ones(2))
    for constant in (300.0, torch.tensor(300.0, dtype=torch.float16)):
        assert (x * constant).variance.tolist() == [90000.0, 90000.0]


def test_constants():
    x = nn.Moments(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    found = (3.0 + 2.0 * x - torch.tensor([1.0, 1.0])) / -2.0
    assert found.mean.tolist() == [-2.0, -3.0]
    assert found.variance.tolist() == [1.0, 4.0]
    assert (x + torch.zeros(3, 1)).variance.shape == (3, 2)
    assert [each.tolist() for each in -x] == [[-1.0, -2.0], [1.0, 4.0]]
    assert not hasattr(x, "clamp")


class TestDerivatives:
    @pytest.mark.parametrize("steepness", [math.inf, 2.0])
    @pytest.mark.parametrize("case", ["linear", "conv2d"])
    def test_gradcheck(self, case, steepness):
        layer, x = layer_and_input(case, n=1, dtype=torch.float64)
        variance = spread(x.shape, dtype=torch.float64)
        named = dict(layer.named_parameters())

        def function(x, variance, *values):
            moments = nn.Moments(x, variance, steepness=steepness)
            parameters = dict(zip(named, values, strict=True))
            return tuple(F.relu(torch.func.functional_call(layer, parameters, (moments,))))

        given = [t.detach().requires_grad_() for t in (x, variance, *named.values())]
        torch.autograd.gradcheck(function, given, check_forward_ad=True)
        torch.autograd.gradgradcheck(function, given)

    @pytest.mark.parametrize(
        "module", [torch.nn.AvgPool2d(2), torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1)]
    )
    def test_of_pooling(self, module):
        given = [spread((1, 1, 4, 4), seed, torch.float64).requires_grad_() for seed in (1, 2)]
        torch.autograd.gradcheck(
            lambda m, v: tuple(nn.moments(module, m, v)), given, check_forward_ad=True
        )


class TestNumbers:
    def test_a_negative_variance_becomes_zero(self):
        """As some convolutions round it, with a finite gradient."""
        x = nn.Moments(torch.ones(1, 1), torch.ones(1, 1))
        weight = torch.ones(1, 1, requires_grad=True)

        def multiply(x, weight, bias):
            found = F.linear(x, weight, bias)
            return found if bias is not None else -1e-9 * found

        found = rules.product(multiply, x, weight, torch.zeros(1), weight)
        assert found.variance.item() == 0.0
        found.variance.sum().backward()
        assert weight.grad.isfinite().all()

    def test_gradients_at_the_edges_are_finite(self):
        model = lenet()
        filled(model[0], log_sigma2=-200.0)
        filled(model[2], weight=0.0)
        found = nn.moments(model, torch.zeros(2, 1, 28, 28))
        (found.mean.sum() + found.variance.sum()).backward()
        assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)

    def test_float16(self):
        torch.manual_seed(4)
        model = torch.nn.Sequential(nn.VariationalLinear(64, 8), nn.VariationalLinear(8, 4))
        x = 300.0 * torch.ones(2, 64)
        expected = nn.moments(model, x)
        found = nn.moments(copy.deepcopy(model).half(), x.half())
        assert (found.mean.dtype, found.variance.dtype) == (torch.float16, torch.float32)
        torch.testing.assert_close(found.variance, expected.variance, rtol=0.01, atol=0.0)

    def test_autocast(self):
        model, x = lenet(), torch.rand(2, 1, 28, 28)
        expected = nn.moments(model, x).variance
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype):
                found = nn.moments(model, x).variance.float()
            torch.testing.assert_close(found, expected, rtol=0.05, atol=0.0)


class TestSystems:
    def test_compile(self):
        model, x = lenet(), torch.rand(2, 1, 28, 28)
        found = compiled(lambda x: tuple(nn.moments(model, x)))(x)
        torch.testing.assert_close(found, tuple(nn.moments(model, x)))

    def test_vmap(self):
        model, x = lenet(), torch.rand(3, 1, 28, 28)
        found = torch.vmap(lambda x: nn.moments(model, x.unsqueeze(0)).variance)(x)
        torch.testing.assert_close(found.squeeze(1), nn.moments(model, x).variance)

    def test_copies(self):
        model = nn.VBP(lenet(), steepness=100.0)
        assert copy.deepcopy(model).steepness == 100.0
        assert "steepness=100.0" in repr(model)
        assert "steepness" not in repr(nn.VBP(lenet()))


class TestBound:
    def test_noisy_inputs(self):
        """The pair of a mean and a variance passes through the bound; VBP sets the steepness."""
        model = nn.VBP(lenet(), steepness=3.0)
        x, variance, y = torch.rand(4, 1, 28, 28), torch.rand(4, 1, 28, 28), torch.arange(4)
        elbo = nn.ELBO(model, nn.expected_categorical_log_likelihood, 1000)
        given = nn.Moments(x, variance)
        assert elbo(given, y).value == elbo.bound(model(x, variance), y).value
        assert elbo(given, y).value < elbo(x, y).value


def test_padding_by_copies_is_not_exact():
    """What the notes say: the copies of an input count as independent."""
    options = {"padding": 1, "padding_mode": "reflect", "bias": False}
    options["posterior"] = nn.Additive(initial=-20.0)
    layer = filled(nn.VariationalConv1d(1, 1, 3, **options), weight=torch.tensor([1.0, 2.0, 3.0]))
    x = torch.zeros(1, 1, 3)
    variance = nn.moments(layer, x, torch.ones_like(x)).variance.flatten().tolist()
    assert variance == pytest.approx([14.0, 14.0, 14.0], rel=1e-6)  # exact: 20, 14, 20


def test_dropout_in_evaluation_mode_passes():
    found = nn.moments(torch.nn.Dropout().eval(), torch.ones(2), torch.ones(2))
    assert found.variance.tolist() == [1.0, 1.0]
