"""Priors other than the log-uniform one, as penalties of layers."""

import copy
import dataclasses
import math
from functools import partial

import mpmath
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

import logunif_kl as lk  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.priors import (  # noqa: E402
    EPS,
    HORSESHOE,
    STUDENT,
    horseshoe,
    normal_ratios,
    student,
    student_slopes,
)
from tests.torch.nn.cases import compiled, copies, finite  # noqa: E402

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def mixture(samples=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return nn.ScaleMixturePrior(0.25, 1.0, 0.05, samples=samples, generator=generator)


class Laplace:
    """exp(-abs(w)/b)/(2 b), written from the documentation of `Prior` alone."""

    b = 0.5

    def neg_kl(self, mu, log_sigma2):
        sigma = (0.5 * log_sigma2).exp()
        x = mu / sigma
        size = mu * torch.erf(x / math.sqrt(2.0))
        size = size + sigma * math.sqrt(2.0 / math.pi) * (-0.5 * x * x).exp()
        entropy = 0.5 * (math.log(2.0 * math.pi) + 1.0 + log_sigma2)
        return entropy - math.log(2.0 * self.b) - size / self.b


PRIORS = {
    "normal": nn.NormalPrior(0.5),
    "student": nn.StudentTPrior(2.0, 0.3),
    "horseshoe": nn.HorseshoePrior(0.3),
    "power": nn.PowerPrior(0.8),
    "toy": Laplace(),
    "mixture": mixture(),
}


PENALTIES = PRIORS | {"method": "molchanov", "fit": lk.fit_sigmoid(2)}


@pytest.mark.parametrize("dtype", DTYPES)
class TestStudent:
    """Against mpmath, within the errors that the documentation declares."""

    def test_values(self, dtype):
        for mu, log_sigma2, df, scale in STUDENT:
            given = torch.tensor([mu, log_sigma2], dtype=DTYPES[dtype])
            exact = student(*given.tolist(), df, scale)
            found = nn.StudentTPrior(df, scale).neg_kl(*given).item()
            assert abs(found - exact) <= EPS[dtype] * (20.0 * (df + 1.0) + abs(exact))

    def test_slopes(self, dtype):
        for ratio, log_sigma2, df, scale in normal_ratios():
            mu = ratio * math.exp(0.5 * log_sigma2)
            given = torch.tensor([mu, log_sigma2], dtype=DTYPES[dtype], requires_grad=True)
            nn.StudentTPrior(df, scale).neg_kl(*given).backward()
            d_mu, d_log_sigma2 = student_slopes(*given.tolist(), df, scale)
            found = given.grad.tolist()
            assert abs(found[0] - d_mu) <= 20.0 * EPS[dtype] * abs(d_mu)
            assert abs(found[1] - d_log_sigma2) <= 10.0 * EPS[dtype] * (df + 1.0)

    @pytest.mark.parametrize("prior", [nn.StudentTPrior(1.0, 0.1), nn.HorseshoePrior(0.1)])
    def test_extremes(self, dtype, prior):
        """Nothing overflows where -KL is finite."""
        kind = DTYPES[dtype]
        most = math.log(torch.finfo(kind).max)
        mu = torch.tensor(
            [0.0, torch.finfo(kind).tiny, 1.0, 0.1 * torch.finfo(kind).max], dtype=kind
        )
        for log_sigma2 in (-1e4, -2.0 * most, 0.0, most, 2.0 * most, 1e4):
            given = [mu.clone(), torch.full_like(mu, log_sigma2, dtype=kind)]
            for x in given:
                x.requires_grad_()
            found = prior.neg_kl(*given)
            found.sum().backward()
            assert finite(found, *(x.grad for x in given))


@pytest.mark.parametrize("dtype", DTYPES)
class TestHorseshoe:
    def test_values_and_slopes(self, dtype):
        """Against quadrature in 50 digits, within the errors that the documentation declares."""
        for (mu, log_sigma2, scale), exact in HORSESHOE:
            given = torch.tensor([mu, log_sigma2], dtype=DTYPES[dtype], requires_grad=True)
            found = nn.HorseshoePrior(scale).neg_kl(*given)
            found.backward()
            value, d_mu, d_log_sigma2 = found.item(), *given.grad.tolist()
            assert abs(value - exact[0]) <= EPS[dtype] * (20.0 + 2.0 * abs(exact[0]))
            assert abs(d_mu - exact[1]) <= 20.0 * EPS[dtype] * abs(exact[1])
            assert abs(d_log_sigma2 - exact[2]) <= 10.0 * EPS[dtype]

    @pytest.mark.slow
    def test_the_numbers_on_file(self, dtype):
        given, exact = HORSESHOE[-1]
        assert [float(x) for x in horseshoe(*given)] == pytest.approx(exact, rel=1e-15)

    def test_has_the_tails_of_a_cauchy_distribution(self, dtype):
        """E1(x) exp(x) is nearly 1/x: log p falls as -2 log|w|."""
        mu = torch.tensor([1e6, 1e7], dtype=DTYPES[dtype])
        near, far = nn.HorseshoePrior(1.0).neg_kl(mu, torch.zeros_like(mu)).tolist()
        assert near - far == pytest.approx(2.0 * math.log(10.0), rel=1e-5)


def test_power_prior():
    """Between the uniform prior, whose -KL is the entropy, and the log-uniform one."""
    mu, log_sigma2 = torch.tensor([0.0, 0.3, -1.0]).double(), torch.tensor([-2.0, 1.0, -6.0])
    given = [mu.requires_grad_(), log_sigma2.double().requires_grad_()]
    uniform, between, log_uniform = (nn.PowerPrior(c).neg_kl(*given) for c in (0.0, 0.25, 1.0))
    entropy = 0.5 * (math.log(2.0 * math.pi) + 1.0 + given[1])
    torch.testing.assert_close(uniform, entropy)
    torch.testing.assert_close(log_uniform, lk.torch.neg_kl_normal(*given, log_c=0.0))
    torch.testing.assert_close(between, 0.75 * uniform + 0.25 * log_uniform)
    assert torch.autograd.gradcheck(nn.PowerPrior(0.25).neg_kl, given)
    # By quadrature in 50 digits.
    with mpmath.workdps(50):
        sigma = mpmath.exp(mpmath.mpf(1) / 2)
        mean = mpmath.quad(
            lambda w: mpmath.log(abs(w)) * mpmath.npdf(w, mpmath.mpf(0.3), sigma),
            [-30, -10, -3, -1, 0, 1, 3, 10, 30],
        )
        exact = (mpmath.log(2 * mpmath.pi) + 2) / 2 - mean / 4
    found = nn.PowerPrior(0.25).neg_kl(*torch.tensor([0.3, 1.0], dtype=torch.float64))
    assert abs(found.item() - exact) < 1e-14


class TestInTransforms:
    PRIOR = nn.StudentTPrior(1.5, 0.4)
    GIVEN = torch.tensor([0.3, -1.0, 0.01]).double(), torch.tensor([-2.0, 1.0, -6.0]).double()

    @pytest.mark.parametrize("prior", [PRIOR, nn.HorseshoePrior(0.4)])
    def test_second_derivatives(self, prior):
        values = [x.clone().requires_grad_() for x in self.GIVEN]
        for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
            assert check(prior.neg_kl, values)

    def test_forward_mode_and_vmap(self):
        def total(mu, log_sigma2):
            return self.PRIOR.neg_kl(mu, log_sigma2).sum()

        reverse = torch.func.grad(total, (0, 1))(*self.GIVEN)
        forward = torch.func.jacfwd(total, (0, 1))(*self.GIVEN)
        batched = torch.vmap(torch.func.grad(total, (0, 1)))(*self.GIVEN)
        for one, two, three in zip(reverse, forward, batched, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-14, atol=1e-16)
            torch.testing.assert_close(one, three, rtol=1e-14, atol=1e-16)

    def test_large_tensors(self):
        """The same as for small tensors, which are not computed block by block."""
        mu = torch.linspace(-2.0, 2.0, 20_000).double().reshape(100, 200).mT
        found, expected = [], []
        for values, parts in ((found, [mu]), (expected, mu)):
            given = [x.clone().requires_grad_() for x in parts]
            values += [self.PRIOR.neg_kl(x, torch.full_like(x, -1.0)) for x in given]
            values += torch.autograd.grad(sum(x.square().sum() for x in values), given)
        for one, rows in zip(found, (expected[:200], expected[200:]), strict=True):
            torch.testing.assert_close(one, torch.stack(rows), rtol=1e-13, atol=1e-15)

    def test_tends_to_the_log_uniform_prior(self):
        df = 1e-16
        found = nn.StudentTPrior(df).neg_kl(*self.GIVEN) - math.log(0.5 * df)
        expected = lk.neg_kl_normal(*(x.numpy() for x in self.GIVEN), log_c=0.0)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


class TestMixture:
    def test_unbiased(self):
        mu, log_sigma2 = torch.tensor([0.0, 0.1, -2.0]), torch.tensor([-6.0, -2.0, 1.0])
        value, error = mixture(samples=100_000).estimate(mu.double(), log_sigma2.double())
        for m, s2, found, deviation in zip(mu, log_sigma2, value, error, strict=True):

            def log_prior(w):
                parts = 0.25 * mpmath.npdf(w, 0, 1.0) + 0.75 * mpmath.npdf(w, 0, 0.05)
                return mpmath.log(parts)

            m, sigma = m.item(), math.exp(0.5 * s2.item())
            mean = mpmath.quad(
                lambda x, m=m, sigma=sigma: mpmath.npdf(x) * log_prior(m + sigma * x),
                range(-12, 13),
            )
            exact = mean + 0.5 * (math.log(2.0 * math.pi) + 1.0) + math.log(sigma)
            assert abs(found.item() - exact) < 4.0 * deviation.item() < 0.1

    def test_standard_error(self):
        """The deviation over many estimates is what one of them says."""
        mu = torch.full((2000,), 0.1, dtype=torch.float64)
        value, error = mixture(samples=20).estimate(mu, torch.full_like(mu, -2.0))
        assert value.std().item() == pytest.approx(error.square().mean().sqrt().item(), rel=0.1)

    def test_draws_from_its_generator_alone(self):
        layer = nn.VariationalLinear(30, 20, penalty=mixture(seed=3))
        before = torch.get_rng_state()
        first = layer.kl()
        assert first != layer.kl()
        assert torch.get_rng_state().equal(before)
        layer.penalty = mixture(seed=3)
        assert first == layer.kl()


@pytest.mark.parametrize("name", PENALTIES)
class TestLayers:
    def layer(self, name, **options):
        torch.manual_seed(0)
        options = {"posterior": nn.Additive(initial=-2.0), **options}
        return nn.VariationalLinear(5, 4, penalty=PENALTIES[name], **options)

    def test_sums(self, name):
        layer = self.layer(name)
        if name in PRIORS:
            other = copy.deepcopy(layer.penalty)  # with the same state of its generator
            expected = -other.neg_kl(layer.weight, layer.log_sigma2).sum().item()
            assert nn.kl(layer).item() == pytest.approx(expected, rel=1e-6)

    def test_trains(self, name):
        """The bound of a regression rises, and both the means and the variances move."""
        layer, x = self.layer(name), torch.linspace(-1.0, 1.0, 40).reshape(8, 5)
        layer.generator = torch.Generator().manual_seed(0)
        elbo = nn.ELBO(layer, nn.normal_log_likelihood, 8)
        optimiser = torch.optim.Adam(layer.parameters(), 0.05)
        before, bounds = copy.deepcopy(layer), []
        for _ in range(60):
            optimiser.zero_grad()
            bound = elbo(x, x[:, :4])
            bound.loss.backward()
            optimiser.step()
            bounds.append(-bound.loss.item())
        assert sum(bounds[-10:]) > sum(bounds[:10])
        for one, two in zip(layer.parameters(), before.parameters(), strict=True):
            assert finite(one)
            assert not torch.equal(one, two)

    def test_copies(self, name):
        layer = self.layer(name)
        made = [*copies(layer)]
        found = layer.kl().item()
        assert [each.kl().item() for each in made] == [found] * 3
        if name in ("normal", "student", "horseshoe", "power", "method", "fit"):
            assert [each.penalty for each in made] == [layer.penalty] * 3

    def test_conversions(self, name):
        penalty = PENALTIES[name]
        made = nn.to_variational(torch.nn.Sequential(torch.nn.Linear(3, 2)), penalty=penalty)
        assert made[0].penalty is penalty
        assert type(nn.to_deterministic(made)[0]) is torch.nn.Linear
        assert finite(nn.kl(nn.prune(made, threshold=0.0)))
        nn.to_sparse(made.eval(), threshold=0.0)

    def test_compiled(self, name):
        layer, twin = (self.layer(name) for _ in range(2))
        if name == "mixture":
            layer.penalty, twin.penalty = mixture(seed=1), mixture(seed=1)
        found, expected = compiled(lambda: nn.kl(layer))(), nn.kl(twin)
        found.backward()
        expected.backward()
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0.0)
        for one, two in zip(layer.parameters(), twin.parameters(), strict=True):
            if one.grad is not None:
                torch.testing.assert_close(one.grad, two.grad, rtol=1e-5, atol=1e-7)


class Learned(torch.nn.Module):
    """N(0, variance) with a trained variance, as in empirical Bayes."""

    def __init__(self):
        super().__init__()
        self.log_variance = torch.nn.Parameter(torch.zeros(1))

    def neg_kl(self, mu, log_sigma2):
        squares = (mu.square() + log_sigma2.exp()) / self.log_variance.exp()
        return -0.5 * (squares - 1.0 + self.log_variance - log_sigma2)


def networks():
    plain = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    yield "layer", nn.VariationalLinear(3, 2, penalty=Learned())
    assigned = nn.VariationalLinear(3, 2)
    assigned.penalty = Learned()
    yield "assigned", assigned
    yield "converted", nn.to_variational(plain, penalty=Learned())
    yield "sampled", nn.to_variational(torch.nn.GRU(3, 2), penalty=Learned())
    lazy = nn.LazyVariationalLinear(2, penalty=Learned())
    lazy(torch.ones(2, 3))
    yield "lazy", lazy


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize(("name", "model"), [*networks()])
def test_a_prior_with_parameters(name, model):
    """It is trained, saved, converted and copied with the layers, which share one."""
    (prior,) = [m for m in model.modules() if isinstance(m, Learned)]
    nn.kl(model).backward()
    assert (prior.log_variance.grad != 0.0).all()
    assert sum("log_variance" in each for each, _ in model.named_parameters()) == 1
    twin = copy.deepcopy(model.double())
    assert prior.log_variance.dtype == torch.float64
    prior.log_variance.data.fill_(2.0)
    assert nn.kl(twin) != nn.kl(model)
    twin.load_state_dict(model.state_dict())
    assert nn.kl(twin) == nn.kl(model)
    # It is not a part of the network.
    assert nn.sparsity(model).weights == nn.sparsity(nn.to_deterministic(model)).weights
    assert not any("penalty" in each for each in nn.conversion(model).left)
    assert not any("log_variance" in each for each in nn.to_deterministic(model).state_dict())


def test_a_network_converted_in_two_steps():
    """All layers hold the prior and the generator that were passed, as after one conversion."""
    prior, generator = Learned(), torch.Generator()
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GRU(3, 2), torch.nn.Linear(2, 2))
    for name in ("0", "1", "2"):
        only = lambda each, _, name=name: each == name  # noqa: E731
        model = nn.to_variational(model, modules=only, penalty=prior, generator=generator)
    assert {m for m in model.modules() if isinstance(m, Learned)} == {prior}
    assert all(layer._lk_generator is generator for layer in model)


def test_the_modules_of_a_prior_are_not_converted():
    class Net(Learned):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(1, 1)

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GRU(3, 2))
    model = nn.to_variational(model, modules=torch.nn.Linear, penalty=Net())
    model = nn.to_variational(model, parameters=lambda name, parameter: parameter.ndim > 1)
    assert [*nn.named_kl(model)] == ["0", "1.weight_ih_l0", "1.weight_hh_l0"]
    assert type(model[0].penalty.net) is torch.nn.Linear
    with pytest.raises(
        ValueError, match=r"^parameters names '0\.penalty\.net\.weight', a parameter "
    ):
        nn.to_variational(model, modules=(), parameters=["0.penalty.net.weight"])


class Hyper(torch.nn.Module):
    """N(0, e^s), where s is the output of a variational layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.VariationalLinear(1, 1, posterior=nn.Additive(initial=5.0))
        torch.nn.init.constant_(self.layer.weight, -1.0)

    def neg_kl(self, mu, log_sigma2):
        s = self.layer(torch.ones(1, 1)).squeeze()
        ratio = log_sigma2 - s
        return -0.5 * (mu * mu / s.exp() + ratio.exp() - 1.0 - ratio)


def test_variational_layers_of_a_prior_are_not_pruned():
    prior = Hyper()
    model = nn.to_variational(torch.nn.Linear(3, 2), penalty=prior)
    prior.eval()
    expected, x = nn.kl(model), torch.ones(4, 3)
    elbo = nn.ELBO(model, nn.normal_log_likelihood, 10, mask_from=3.0)
    torch.testing.assert_close(-elbo(x, x[:, :2]).neg_kl, expected, rtol=0.0, atol=0.0)
    nn.zero_means(model)
    nn.prune(model)
    assert prior.layer.weight.item() == -1.0
    torch.testing.assert_close(nn.kl(model), expected)


class Wide:
    """N(0, variance), without an ``__eq__``."""

    def __init__(self, variance, make=float):
        self.variance, self.given, self.parent = variance, make(variance), self

    def neg_kl(self, mu, log_sigma2):
        ratio = log_sigma2 - math.log(self.variance)
        return -0.5 * (mu * mu / self.variance + ratio.exp() - 1.0 - ratio)


@pytest.mark.parametrize(
    "make",
    [
        float,
        lambda x: torch.full((2,), x),
        lambda x: np.full(2, x),
        lambda x: [Wide(x)],
        lambda x: {"of": (Wide(x), 1.0)},
    ],
)
def test_tied_layers_have_equal_priors(make):
    def tied(*variances):
        priors = [Wide(1.0, lambda _, each=each: make(each)) for each in variances]
        one, two = (nn.VariationalLinear(3, 3, penalty=each) for each in priors)
        two.weight, two.log_sigma2 = one.weight, one.log_sigma2
        return torch.nn.Sequential(one, two)

    assert nn.kl(tied(2.0, 2.0)) > 0.0
    with pytest.raises(ValueError, match="share a weight, so its KL counts once, but the penalty"):
        nn.kl(tied(1.0, 100.0))


class Centre(torch.nn.Module):
    """N(mean of another layer, 1)."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def neg_kl(self, mu, log_sigma2):
        return -0.5 * ((mu - self.layer.weight) ** 2 + log_sigma2.exp() - 1.0 - log_sigma2)


def test_a_layer_of_the_network_that_a_prior_holds():
    torch.manual_seed(0)
    one = nn.VariationalLinear(3, 3, posterior=nn.Additive(initial=-1.0))
    two = nn.VariationalLinear(3, 3, posterior=nn.Additive(initial=-1.0), penalty=Centre(one))
    model, x = torch.nn.Sequential(one, two).eval(), torch.randn(5, 3)
    small = nn.to_deterministic(model, 3.0)
    assert nn.sparsity(model).weights == 18
    assert {type(each) for each in nn.to_compact(model)} == {torch.nn.Linear}
    torch.testing.assert_close(nn.to_sparse(model)(x), small(x))
    torch.testing.assert_close(nn.prune(model)(x), small(x))


def test_a_prior_that_holds_a_layer_of_the_network_to_convert():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    prior, last = Centre(model[0]), lambda name, _: name == "1"
    with pytest.warns(UserWarning, match="^the penalty holds a part of the model, and the copy"):
        nn.to_variational(model, modules=last, penalty=prior)
    model = nn.to_variational(model, modules=last, penalty=prior, inplace=True)
    assert model[1].penalty.layer is model[0]


def test_a_network_that_has_its_prior():
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.prior = torch.nn.Linear(3, 2), Hyper()

    network = Network()
    model = nn.to_variational(network, modules=[torch.nn.Linear], penalty=network.prior)
    assert model.layer.penalty is model.prior


def test_a_sample_of_a_network_whose_prior_has_variational_layers():
    model = nn.to_variational(torch.nn.Linear(3, 2), penalty=Hyper())
    assert type(nn.to_sample(model)) is torch.nn.Linear


class LowRank(torch.nn.Module):
    """N(0, e^s), where s is a matrix of rank 2."""

    def __init__(self):
        super().__init__()
        self.one, self.two = (torch.nn.Parameter(torch.randn(*n)) for n in ((20, 2), (2, 30)))

    def neg_kl(self, mu, log_sigma2):
        s = self.one @ self.two
        return -0.5 * (mu * mu / s.exp() + (log_sigma2 - s).exp() - 1.0 - log_sigma2 + s)


def test_the_kl_of_a_prior_under_autocast_is_in_float32():
    torch.manual_seed(0)
    model = nn.VariationalLinear(30, 20, penalty=LowRank())
    expected = nn.kl(model)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(nn.kl(model), expected, rtol=0.0, atol=0.0)


class OfTheClass(Wide):
    scale = torch.nn.Parameter(torch.zeros(()))

    def __init__(self):
        super().__init__(2.0)

    def neg_kl(self, mu, log_sigma2):
        return super().neg_kl(mu, log_sigma2) * self.scale.exp()


def test_a_parameter_that_only_the_kl_depends_on():
    elbo = nn.ELBO(nn.VariationalLinear(3, 3, penalty=OfTheClass()), nn.normal_log_likelihood, 10)
    with pytest.warns(UserWarning, match="^the KL depends on a parameter of shape"):
        elbo(torch.ones(2, 3), torch.ones(2, 3))


def test_another_penalty_than_a_module():
    layer = nn.VariationalLinear(3, 2, penalty=Learned())
    layer.penalty = "exact"
    assert (layer.penalty, len([*layer.parameters()])) == ("exact", 3)
    layer.penalty = prior = Learned()
    assert layer.penalty is prior
    assert len([*layer.parameters()]) == 4


def test_a_prior_that_is_no_module_but_holds_parameters():
    @dataclasses.dataclass(frozen=True)
    class Laplace:
        b: object

        def neg_kl(self, mu, log_sigma2):
            return -mu.abs() / torch.as_tensor(self.b) + 0.5 * log_sigma2

    words = "^the prior Laplace holds a parameter, but is no torch.nn.Module"
    layer, plain = nn.VariationalLinear(3, 2), torch.nn.GRU(3, 2)
    trained = torch.nn.Parameter(torch.ones(()))
    for b in (trained, [trained], torch.nn.Linear(1, 1), torch.distributions.Laplace(0.0, trained)):
        for make in (
            lambda b: nn.VariationalLinear(3, 2, penalty=Laplace(b)),
            lambda b: nn.to_variational(plain, penalty=Laplace(b)),
            lambda b: setattr(layer, "penalty", Laplace(b)),
        ):
            with pytest.warns(UserWarning, match=words):
                make(b)
    fixed = torch.nn.Parameter(torch.ones(()), requires_grad=False)
    for b in (2.0, torch.ones(()), fixed, trained.exp()):
        assert torch.isfinite(nn.kl(nn.VariationalLinear(3, 2, penalty=Laplace(b))))


@pytest.mark.parametrize("name", ["layer", "sampled"])
def test_a_prior_that_is_replaced_among_the_modules(name):
    model, new = dict(networks())[name], Learned()
    (old,) = [m for m in model.modules() if isinstance(m, Learned)]
    for module in [*model.modules()]:
        for key, each in [*module.named_children()]:
            if each is old:
                setattr(module, key, new)
    nn.kl(model).backward()
    assert old.log_variance.grad is None
    assert new.log_variance.grad is not None


@pytest.mark.parametrize("converted", [False, True])
def test_the_samples_of_a_prior_in_a_checkpoint(converted):
    """The second run draws those of the first, or the first generator to differ is refused."""
    prior = mixture()
    if converted:
        model = nn.to_variational(torch.nn.GRU(3, 2), penalty=prior)
    else:
        model = nn.VariationalLinear(3, 2, penalty=prior)
    state, weights = prior.generator.get_state(), [*model.parameters()]

    def slopes(**options):
        prior.generator.set_state(state)
        run = nn.kl if not options else partial(checkpoint, nn.kl, use_reentrant=False, **options)
        return torch.autograd.grad(run(model), weights, allow_unused=True)

    with pytest.raises(RuntimeError, match="a layer or a prior with a generator again"):
        slopes(preserve_rng_state=True)
    for found, expected in zip(
        slopes(context_fn=nn.checkpoint_contexts(model)), slopes(), strict=True
    ):
        assert (found is None and expected is None) or torch.equal(found, expected)
