"""`ImproperLogUniform` among torch's distributions, and in a model of Pyro."""

import importlib
import math
import pickle

import mpmath
import numpy as np
import pytest

from logunif_kl import reference
from tests.distributions import Priors
from tests.ulp import error

torch = pytest.importorskip("torch")
D = torch.distributions
kl_divergence = D.kl_divergence
from tests.torch.test_divergences import TORCH, library  # noqa: E402, F401

lt = importlib.import_module("logunif_kl.torch")
Prior = lt.ImproperLogUniform


CONVENTIONS = [{}, {"zero_at": 1.0}, {"zero_at": 20.0}, {"log_c": 0.0}, {"log_c": -3.0}]
LOC = [0.0, 1.0, -3.0, 1e-5, 40.0]
SCALE = [0.1, 1.0, 0.1, 3.0, 1e-4]


def tensors(dtype="float64", *values):
    return [torch.tensor(v, dtype=getattr(torch, dtype)) for v in values or (LOC, SCALE)]


class TestThePrior(Priors):
    main = TORCH

    def test_log_prob_in_the_types_of_torch(self):
        w = torch.tensor([[0.5], [1e-300]], dtype=torch.float64)
        got = Prior(log_c=0.25).log_prob(w)
        assert got.dtype == torch.float64
        assert got.squeeze().tolist() == [0.25 - math.log(float(v)) for v in w]
        ends = torch.tensor([0.0, -0.0, math.inf])
        assert Prior().log_prob(ends).tolist() == [math.inf, math.inf, -math.inf]
        assert Prior(log_c=0.0).log_prob(torch.tensor(1)).dtype == torch.float32
        assert float(Prior(log_c=0.25, validate_args=False).log_prob(-1.0)) == 0.25

    def test_its_derivative(self):
        w = torch.tensor([0.5, -2.0], requires_grad=True)
        Prior().log_prob(w).sum().backward()
        assert w.grad.tolist() == [-2.0, 0.5]

    def test_what_torch_asks_of_a_distribution(self):
        wide = Prior().expand((4, 3))
        assert wide.log_prob(torch.ones(2, 1, 3)).shape == (2, 4, 3)
        assert D.Independent(wide, 1).expand((7, 4)).log_prob(torch.ones(3)).shape == (7, 4)
        assert wide.support is D.constraints.real
        assert wide.arg_constraints == {}
        assert not wide.has_rsample
        again = pickle.loads(pickle.dumps(Prior(zero_at=2.0).expand((3,))))
        assert repr(again) == "ImproperLogUniform(zero_at=2.0).expand((3,))"
        assert again.log_c == Prior(zero_at=2.0).log_c

    @pytest.mark.parametrize("text", ["", "zero_at=1.0", "log_c=-0.5", "zero_at=inf"])
    def test_repr(self, text):
        for expanded in ("", ".expand((2, 3))"):
            code = f"ImproperLogUniform({text}){expanded}"
            assert repr(eval(code, {"ImproperLogUniform": Prior, "inf": math.inf})) == code


POLE = "has a density C/.w. with a pole at 0, so it has no mode: use the mode of the posterior"
IMPROPER = "is improper, its density C/.w. has no finite integral, so it"
LACKS = {
    "sample": f"{IMPROPER} cannot be sampled: sample the posterior instead",
    "rsample": f"{IMPROPER} cannot be sampled: sample the posterior instead",
    "cdf": f"{IMPROPER} has no cumulative distribution function: use log_prob",
    "icdf": f"{IMPROPER} has no quantiles: use the quantiles of the posterior",
    "entropy": f"{IMPROPER} has no entropy: use kl_divergence from the posterior",
    "perplexity": f"{IMPROPER} has no entropy: use kl_divergence from the posterior",
    "mean": f"{IMPROPER} has no mean: use the mean of the posterior",
    "mode": POLE,
    "variance": f"{IMPROPER} has no variance: use the variance of the posterior",
    "stddev": f"{IMPROPER} has no variance: use the variance of the posterior",
}


class TestRefusals:
    @pytest.mark.parametrize("name", LACKS)
    def test_what_an_improper_prior_does_not_have(self, name):
        arguments = {"sample": ((3,),), "rsample": ((3,),)}
        arguments |= dict.fromkeys(("cdf", "icdf"), (torch.ones(1),))
        with pytest.raises(NotImplementedError, match=f"^ImproperLogUniform {LACKS[name]}$"):
            getattr(Prior(), name)(*arguments.get(name, ()))

    def test_a_positional_argument(self):
        with pytest.raises(TypeError, match="positional"):
            Prior(1.0)

    def test_value(self):
        # As by default, unless torch's compiler has been at work: it switches validation off.
        with pytest.raises(ValueError, match="within the support"):
            Prior(validate_args=True).log_prob(torch.tensor([math.nan]))
        got = Prior(validate_args=False).expand((1,)).log_prob(torch.tensor([math.nan]))
        assert got.isnan().all()
        with pytest.raises(ValueError, match="not broadcastable"):
            Prior(validate_args=True).expand((3,)).log_prob(torch.ones(2))
        with pytest.raises(
            TypeError, match=r"dtype torch.complex64 was given: complex weights have"
        ):
            Prior().log_prob(torch.ones(1, dtype=torch.complex64))


class TestNormal:
    def derivatives(self, loc, scale):
        """KL to the prior, and its derivatives in both."""
        leaves = [loc.requires_grad_(), scale.requires_grad_()]
        value = kl_divergence(D.Normal(*leaves), Prior())
        return [x.detach() for x in (value, *torch.autograd.grad(value.sum(), leaves))]

    def worst(self, loc, scale, dtype):
        """The largest error of value and derivatives, in ulp."""
        errors = []
        for m, s, *found in zip(loc, scale, *self.derivatives(loc, scale), strict=True):
            with mpmath.workdps(50):
                m, s = mpmath.mpf(m.item()), mpmath.mpf(s.item())
                u = (m / s) ** 2 / 2
                gap, slope = reference.kl_gap(u, dps=40), reference.kl_gap_grad(u, dps=40)
                truths = gap, slope * m / s**2, -2 * u * slope / s
                pairs = zip(found, truths, strict=True)
                errors += [abs(error(got.item(), truth, dtype)) for got, truth in pairs]
        return max(errors)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_in_ulps(self, dtype):
        """log sigma^2 of a small sigma has too few digits, so that the unit matters."""
        rng = np.random.default_rng(20)
        reach = {"float32": 30, "float64": 250}[dtype]
        exponent = rng.uniform(-reach, reach, 60)
        sigma = 10.0**exponent
        mu = sigma * 10.0 ** rng.uniform(-3, 3, 60) * rng.choice([-1, 1], 60)
        given = tensors(dtype, mu.tolist(), sigma.tolist())
        assert self.worst(*given, dtype) <= {"float32": 5.0, "float64": 3.0}[dtype]

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_at_loc_zero(self, dtype):
        scale = [10.0**exponent for exponent in (-37, -20, 0, 20, 37)]
        for loc in (0.0, -0.0):
            found = self.derivatives(*tensors(dtype, [loc] * 5, scale))
            assert [x.tolist() for x in found] == [[0.0] * 5] * 3

    def test_far_apart_in_float32(self):
        """Neither u nor loc/scale need be a float32."""
        loc, scale = [1e30, 1e-30, 1.0, 1.0, 3e38, 1e-44], [1e-30, 1e30, 1e-38, 1e-44, 1e-44, 1e-44]
        assert self.worst(*tensors("float32", loc, scale), "float32") <= 5.0

    def test_limits(self):
        loc, scale = tensors("float64", [1.0, math.inf, 1.0], [0.0, 1.0, math.inf])
        got = kl_divergence(D.Normal(loc, scale, validate_args=False), Prior())
        assert got.tolist() == [math.inf, math.inf, 0.0]
        undefined = tensors("float64", [0.0, math.inf, math.nan], [0.0, math.inf, 1.0])
        got = kl_divergence(D.Normal(*undefined, validate_args=False), Prior())
        assert got.isnan().all()


def kl(loc, scale):
    return kl_divergence(D.Normal(loc, scale, validate_args=False), Prior(zero_at=1.0))


class TestTransforms:
    def test_hessian(self):
        """By homogeneity: loc d/dloc + scale d/dscale = 0, and so for each derivative."""
        loc, scale = tensors("float64", 0.8, 0.5)
        (a, b), (c, d) = torch.func.hessian(kl, argnums=(0, 1))(loc, scale)
        d_loc, d_scale = torch.func.grad(kl, argnums=(0, 1))(loc, scale)
        assert float(b) == pytest.approx(float(c), rel=1e-14)
        assert float(loc * a + scale * b) == pytest.approx(-float(d_loc), rel=1e-13)
        assert float(loc * c + scale * d) == pytest.approx(-float(d_scale), rel=1e-13)

    @pytest.mark.usefixtures("unvalidated")
    @pytest.mark.parametrize("convention", CONVENTIONS[1:4:2], ids=str)
    def test_prior_made_in_the_graph(self, convention):
        def made_there(loc, scale):
            posterior, prior = D.Normal(loc, scale, validate_args=False), Prior(**convention)
            return kl_divergence(posterior, prior), prior.log_prob(loc)

        torch.compiler.reset()
        compiled = torch.compile(made_there, backend="aot_eager", fullgraph=True)
        for got, truth in zip(compiled(*tensors()), made_there(*tensors()), strict=True):
            np.testing.assert_allclose(got, truth, rtol=1e-14)


def test_the_derivative_of_lognormal():
    loc, scale = (t.requires_grad_() for t in tensors())
    kl_divergence(D.LogNormal(loc, scale), Prior()).sum().backward()
    assert loc.grad is None
    np.testing.assert_allclose(scale.grad, -1.0 / scale.detach(), rtol=1e-15)


class TestPyro:
    """The ELBO of y ~ N(w, 1) under a Gaussian guide, in closed form but for the divergence."""

    Y = 1.5

    @pytest.fixture
    def pyro(self):
        pyro = pytest.importorskip("pyro")
        pyro.clear_param_store()
        with pyro.validation_enabled(True):
            yield pyro

    @pytest.fixture
    def prior(self, pyro):
        return importlib.import_module("logunif_kl.torch.pyro").ImproperLogUniform

    def programs(self, pyro, loc, scale=1.0, **convention):
        from logunif_kl.torch.pyro import ImproperLogUniform as Prior

        def model():
            with pyro.plate("weights", len(loc)):
                w = pyro.sample("w", Prior(**convention))
                mean = pyro.distributions.Normal(w, 1.0)
                pyro.sample("y", mean, obs=torch.full((len(loc),), self.Y))

        def guide():
            with pyro.plate("weights", len(loc)):
                pyro.sample("w", pyro.distributions.Normal(loc, scale))

        return model, guide

    def test_elbo(self, pyro):
        """The divergence is taken exactly, so that two samples differ in the likelihood alone."""
        loc, scale = torch.tensor([0.0, 1.0, -2.0]), torch.tensor([0.5, 0.1, 2.0])
        model, guide = self.programs(pyro, loc, scale, zero_at=20.0)
        pyro.set_rng_seed(3)
        loss = pyro.infer.TraceMeanField_ELBO().loss(model, guide)
        pyro.set_rng_seed(3)
        w = pyro.poutine.trace(guide).get_trace().nodes["w"]["value"]
        likelihood = D.Normal(w, 1.0).log_prob(torch.tensor(self.Y)).sum()
        truth = lt.kl_normal(loc, 2 * scale.log(), zero_at=20.0).sum() - likelihood
        assert loss == pytest.approx(float(truth), rel=1e-6)

    def test_autoguide_with_its_initial_values(self, pyro):
        from pyro.infer import autoguide

        model, _ = self.programs(pyro, [0.0, 0.0])
        start = autoguide.init_to_value(values={"w": torch.tensor([1.0, 2.0])})
        guide = autoguide.AutoNormal(model, init_loc_fn=start, init_scale=0.05)
        pyro.set_rng_seed(6)
        assert math.isfinite(pyro.infer.Trace_ELBO().loss(model, guide))
        assert guide.median()["w"].tolist() == [1.0, 2.0]

    def test_nuts(self, pyro, prior):
        """As the docstring says. The target is N(y; w, 1)/|w|, here on one side of 0."""
        y = 8.0

        def model():
            w = pyro.sample("w", prior())
            pyro.sample("y", pyro.distributions.Normal(w, 1.0), obs=torch.tensor(y))

        start = pyro.infer.autoguide.init_to_value(values={"w": torch.tensor(y)})
        kernel = pyro.infer.NUTS(model, max_plate_nesting=0, init_strategy=start)
        pyro.set_rng_seed(7)
        chain = pyro.infer.MCMC(kernel, 400, warmup_steps=100, disable_progbar=True)
        chain.run()
        w = np.linspace(2.0, 14.0, 4001)
        density = np.exp(-((w - y) ** 2) / 2) / w
        mean = (w * density).sum() / density.sum()
        samples = chain.get_samples()["w"]
        # 0.13 below y; the standard error of 400 samples without correlation is 0.05.
        assert abs(samples.mean() - mean) < 0.25
        assert 0.8 < samples.std() < 1.2
        with pytest.raises(NotImplementedError, match="cannot be sampled"):
            pyro.infer.MCMC(pyro.infer.NUTS(model), 1, warmup_steps=1, disable_progbar=True).run()


def test_the_former_name_warns():
    pyro = pytest.importorskip("logunif_kl.torch.pyro", exc_type=ImportError)
    for module in (lt, pyro):
        with pytest.warns(DeprecationWarning, match="^LogUniform is now ImproperLogUniform"):
            assert module.LogUniform is module.ImproperLogUniform
        assert "LogUniform" not in module.__all__
        with pytest.raises(AttributeError, match="has no attribute 'Uniform'"):
            _ = module.Uniform
