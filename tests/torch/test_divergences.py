"""KL of other posteriors to the prior, registered with torch.distributions and so with Pyro."""

import importlib
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import logunif_kl as lk
from tests import divergences
from tests.distributions import Edges, Library, Shapes, Values

torch = pytest.importorskip("torch")
D = torch.distributions
kl_divergence = D.kl_divergence
Prior = importlib.import_module("logunif_kl.torch").ImproperLogUniform


# The worst errors measured, in units of eps of the largest term, by the order of the derivative.
# NumPy's powers of 10, of which the parameters are made, depend on the processor. The error of
# 17.7 is d2/dloc dscale's beside its zero at loc = 3.4 scale, at parameters made without AVX-512.
WORST = {
    ("Laplace", "float64"): (1.4, 3.2, 17.7),
    ("Laplace", "float32"): (1.5, 2.9, 12.6),
    ("Cauchy", "float64"): (1.5, 3.1, 5.1),
    ("Cauchy", "float32"): (1.5, 3.4, 5.3),
    ("Uniform", "float64"): (1.2, 2.8, 4.5),
    ("Uniform", "float32"): (1.9, 2.7, 4.1),
    ("Gamma", "float64"): (1.3, 1.6, 1.9),
    ("Gamma", "float32"): (1.7, 1.6, 1.7),
    ("StudentT", "float64"): (1.8, 3.7, 4.1),
    ("StudentT", "float32"): (2.0, 3.3, 5.4),
}


class _Torch(Library):
    name = "torch"
    dist = D
    kind = Prior
    xp = torch
    rows = ("value, first and second derivatives",)
    no_closed_form = r"Gumbel and .*ImproperLogUniform"

    def array(self, x, dtype="float32"):
        dtype = getattr(torch, dtype)
        return x.to(dtype) if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=dtype)

    def detached(self, x):
        return x.detach()

    def slope(self, f, i):
        def derivative(*x):
            leaves = [a if a.requires_grad else a.detach().requires_grad_() for a in x]
            options = {"create_graph": True, "allow_unused": True, "materialize_grads": True}
            (found,) = torch.autograd.grad(f(*leaves).sum(), leaves[i], **options)
            # What does not depend on an argument has a further derivative as well.
            return found + 0.0 * leaves[i]

        return derivative

    def of(self, name, *parameters):
        return getattr(D, name)(*parameters, validate_args=False)


TORCH = _Torch()
kl, correlated = TORCH.kl, TORCH.correlated


@pytest.fixture
def library():
    return TORCH


class TestValues(Values):
    main, worst = TORCH, WORST

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_the_truth_of_these_tests_is_the_integral(self, name):
        """E log q - E log p by quadrature, at one point of each family."""
        a, b = {"Gamma": (2.5, 1.0), "StudentT": (3.0, 1.0)}.get(name, (0.75, 1.5))
        given = TORCH.of_two(name, torch.tensor(a), torch.tensor(b))
        with mpmath.workdps(20):
            density = DENSITIES[name](mpmath.mpf(a), mpmath.mpf(b))
            line = -mpmath.inf, mpmath.inf
            low, high = {"Uniform": (a, b), "Gamma": (0, mpmath.inf)}.get(name, line)
            nodes = sorted({low, high, *(x for x in (0, a, 1, 10) if low < x < high)})
            integral = mpmath.quad(
                lambda w: density(w) * mpmath.log(density(w) * abs(w)) if w else 0, nodes
            )
            truth = divergences.FAMILIES[name].truth(mpmath.mpf(a), mpmath.mpf(b))[0, 0][0]
            assert abs(integral - truth) < 1e-9
        assert kl_divergence(given, Prior(log_c=0.0)) == pytest.approx(float(truth), rel=3e-7)


DENSITIES = {
    "Laplace": lambda m, s: lambda w: mpmath.exp(-abs(w - m) / s) / (2 * s),
    "Cauchy": lambda m, s: lambda w: s / (mpmath.pi * (s**2 + (w - m) ** 2)),
    "Uniform": lambda a, b: lambda w: 1 / (b - a),
    "Gamma": lambda a, rate: lambda w: w ** (a - 1) * mpmath.exp(-w) / mpmath.gamma(a),
    "StudentT": lambda df, s: (
        lambda w: (
            mpmath.gamma((df + 1) / 2)
            / mpmath.gamma(df / 2)
            / mpmath.sqrt(df * mpmath.pi)
            * (1 + w**2 / df) ** (-(df + 1) / 2)
        )
    ),
}


class TestEdges(Edges):
    main = TORCH

    def test_student_of_infinite_df_is_gaussian(self):
        df = torch.tensor([1e4, 1e6, math.inf], dtype=torch.float64)
        got = TORCH.divergence("StudentT")(df, torch.ones_like(df))
        np.testing.assert_allclose(got, -0.5 / df, rtol=1e-4)

    def test_a_scale_below_zero(self):
        assert kl(TORCH.of("HalfNormal", -torch.ones(()))).isnan()

    def test_a_subclass(self):
        class Mine(D.Laplace):
            pass

        assert kl(Mine(0.0, 1.0)) == kl(D.Laplace(0.0, 1.0))
        assert kl(D.Chi2(torch.tensor(5.0))) == kl(D.Gamma(2.5, 0.5))


# The worst errors measured of KL and of its slopes, as `divergences.gaussian_errors` counts them.
# The largest are those of a low-rank factor of 100 times the diagonal, whose matrix is badly
# conditioned. They depend on the processor's BLAS: 4.3 and 20.7 on AMD, 4.4 and 75.8 on Intel.
GAUSSIANS = {
    ("triangular", "float64"): (1.0, 2.3),
    ("triangular", "float32"): (0.5, 2.8),
    ("low_rank", "float64"): (0.7, 4.4),
    ("low_rank", "float32"): (1.0, 75.8),
}


class TestShapes(Shapes):
    main, gaussians = TORCH, GAUSSIANS


class TestCorrelatedWeights:
    LOC = torch.tensor([0.0, 1.0, -3.0], dtype=torch.float64)
    TRIL = torch.tensor([[1, 0, 0], [0.3, 0.5, 0], [0.1, -0.2, 0.2]], dtype=torch.float64)

    def test_low_rank_is_the_full_matrix(self):
        factor, diagonal = self.TRIL[:, :2], torch.tensor([0.1, 2.0, 0.5], dtype=torch.float64)
        loc = torch.stack([self.LOC, 2.0 * self.LOC])
        got = kl(D.LowRankMultivariateNormal(loc, factor, diagonal))
        full = D.MultivariateNormal(loc, factor @ factor.mT + diagonal.diag())
        torch.testing.assert_close(got, kl(full), rtol=1e-14, atol=0.0)

    def test_independent_weights_are_their_sum(self):
        scale = torch.tensor([0.1, 2.0, 1e-3], dtype=torch.float64)
        got = kl_divergence(D.MultivariateNormal(self.LOC, scale_tril=scale.diag()), Prior())
        each = kl(D.Normal(self.LOC, scale))
        torch.testing.assert_close(got, each.sum(), rtol=1e-15, atol=0.0)
        zero = D.MultivariateNormal(torch.zeros(3), scale_tril=scale.float().diag())
        assert float(kl(zero)) == 0.0

    def test_a_prior_of_another_event(self):
        prior = D.Independent(Prior().expand([2]), 1)
        for name in ("triangular", "low_rank"):
            p = correlated(name, self.LOC, self.TRIL, self.LOC**2 + 1)
            with pytest.raises(ValueError, match=r" of event shape \(2,\) and batch shape \(\) "):
                kl_divergence(p, prior)

    def test_other_priors_are_as_before(self):
        p = correlated("triangular", self.LOC, self.TRIL)
        with pytest.raises(
            NotImplementedError, match=r"^No KL\(p .. q\) is implemented for p type M"
        ):
            kl_divergence(p, D.Independent(D.Normal(torch.zeros(3), 1.0), 1))

    @pytest.mark.parametrize("name", ["triangular", "low_rank"])
    def test_second_derivatives_and_func(self, name):
        def f(loc, factor, diagonal):
            arrays = (loc, factor.tril(), diagonal)
            return kl(correlated(name, *arrays)) + 0.0 * diagonal.sum()

        arrays = self.LOC[1:].clone(), self.TRIL[1:, 1:].clone(), torch.ones_like(self.LOC[1:])
        arrays = [a.requires_grad_() for a in arrays]
        assert torch.autograd.gradgradcheck(f, arrays)
        slopes = torch.autograd.grad(f(*arrays), arrays)
        for a, b in zip(torch.func.grad(f, argnums=(0, 1, 2))(*arrays), slopes, strict=True):
            np.testing.assert_allclose(a.detach(), b, rtol=1e-14, atol=1e-16)

    @pytest.mark.usefixtures("unvalidated")
    def test_compiled(self):
        def f(loc, factor):
            return kl(D.MultivariateNormal(loc, scale_tril=factor))

        torch.compiler.reset()
        given = [a.clone().requires_grad_() for a in (self.LOC, self.TRIL)]
        results = [torch.compile(f, backend="aot_eager", fullgraph=True)(*given), f(*given)]
        for a, b in zip(*(torch.autograd.grad(r, given) for r in results), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-16)


def points(name):
    a, b = [0.25, 0.5, 1.5], [2.0, 0.75, 7.0]
    if name == "Normal":
        a, b = [0.0, 1.0, -3.0, 1e-5], [0.1, 1.0, 0.1, 3.0]
    return [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b)]


class TestTransforms:
    @pytest.mark.parametrize("name", ["Normal", *divergences.FAMILIES])
    def test_gradcheck(self, name):
        f = TORCH.divergence(name, zero_at=1.0)
        options = {"check_forward_ad": True, "check_batched_grad": True}
        assert torch.autograd.gradcheck(f, points(name), **options)
        assert torch.autograd.gradgradcheck(f, points(name))

    @pytest.mark.parametrize("name", ["Normal", *divergences.FAMILIES])
    def test_func(self, name, capability):
        if name in divergences.FAMILIES:
            capability(f"KL({name}, ImproperLogUniform)", "func.vmap, grad, jvp, hessian")
        f, given = TORCH.divergence(name), points(name)
        value = f(*given)
        slopes = torch.autograd.grad(value.sum(), given)
        a, b = (x.detach() for x in given)
        (by_a, by_b), again = torch.func.vmap(torch.func.grad_and_value(f, argnums=(0, 1)))(a, b)
        np.testing.assert_allclose(again, value.detach(), rtol=1e-14)
        np.testing.assert_allclose(by_a, slopes[0], rtol=1e-14)
        np.testing.assert_allclose(by_b, slopes[1], rtol=1e-14)
        _, tangent = torch.func.jvp(f, (a, b), (torch.ones_like(a), 2.0 * torch.ones_like(b)))
        np.testing.assert_allclose(tangent, by_a + 2.0 * by_b, rtol=1e-13)
        mixed = torch.func.hessian(f, argnums=(0, 1))(a[1], b[1])
        assert float(mixed[0][1]) == pytest.approx(float(mixed[1][0]), rel=1e-13)

    @pytest.mark.parametrize("name", ["Normal", *divergences.FAMILIES, "HalfNormal", "Exponential"])
    @pytest.mark.usefixtures("unvalidated")
    def test_compiled(self, name, capability):
        if name != "Normal":
            capability(f"KL({name}, ImproperLogUniform)", "compile(fullgraph=True)")

        def f(a, b):
            if name in ("HalfNormal", "Exponential"):
                return kl(TORCH.of(name, b)) + 0.0 * a
            return TORCH.divergence(name)(a, b)

        torch.compiler.reset()
        compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
        given = points(name)
        values = compiled(*given), f(*given)
        both = [(y.detach(), *torch.autograd.grad(y.sum(), given)) for y in values]
        for a, b in zip(*both, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)

    @pytest.mark.usefixtures("unvalidated")
    def test_student_elsewhere_is_undefined_in_a_graph(self):
        def f(loc):
            posterior = D.StudentT(torch.ones(()), loc, torch.ones(()), validate_args=False)
            return kl(posterior)

        torch.compiler.reset()
        compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
        assert compiled(torch.tensor([0.0, 1.0])).isnan().tolist() == [False, True]
        assert torch.func.vmap(f)(torch.tensor([0.0, 1.0])).isnan().tolist() == [False, True]


@pytest.fixture
def pyro_prior():
    pytest.importorskip("pyro")
    from logunif_kl.torch.pyro import ImproperLogUniform

    return ImproperLogUniform


class TestPyro:
    LOC, MASK = torch.tensor([0.0, 1.0, -3.0]), torch.tensor([True, False, True])

    @pytest.mark.parametrize("prior", [Prior(), None], ids=["torch", "pyro"])
    def test_masked(self, prior, pyro_prior):
        import pyro.distributions as dist

        prior = prior or pyro_prior()
        loc = self.LOC.clone().requires_grad_()
        p = dist.Normal(loc, 1.0)
        each = kl_divergence(p, prior)
        got = kl_divergence(p.mask(self.MASK), prior)
        assert torch.equal(got, torch.where(self.MASK, each, 0.0))
        (slope,) = torch.autograd.grad(got.sum(), loc)
        truth = torch.autograd.grad(each.sum(), loc)[0]
        assert torch.equal(slope, torch.where(self.MASK, truth, 0.0))
        for mask, truth in ((True, each), (False, 0.0 * each)):
            assert torch.equal(kl_divergence(p.mask(mask), prior), truth)
        assert torch.equal(kl_divergence(p.mask(self.MASK).to_event(1), prior), got.sum())
        undefined = dist.Normal(torch.tensor([0.0, math.nan, -3.0]), 1.0, validate_args=False)
        assert torch.equal(kl_divergence(undefined.mask(self.MASK), prior), got)
        rows = dist.Normal(self.LOC.expand(2, 3), 1.0).to_event(1).mask(torch.tensor([True, False]))
        torch.testing.assert_close(kl_divergence(rows, prior), torch.stack([each.sum(), got[0]]))

    def test_expanded(self, pyro_prior):
        from pyro.distributions import Normal
        from pyro.distributions.torch_distribution import ExpandedDistribution

        base = Normal(self.LOC, 1.0)
        each = kl(base)
        for prior in (pyro_prior(), pyro_prior().expand([3])):
            got = kl_divergence(ExpandedDistribution(base, [2, 3]), prior)
            assert torch.equal(got, each.expand(2, 3))

    def loss(self, pyro_prior, guide):
        """The loss of a model of three weights without data, which is KL."""
        import pyro

        def model():
            pyro.sample("w", pyro_prior().expand([3]).to_event(1))

        return pyro.infer.TraceMeanField_ELBO().loss(model, lambda: pyro.sample("w", guide))

    def test_the_loss_of_correlated_weights(self, pyro_prior):
        from pyro.distributions import MultivariateNormal

        tril = TestCorrelatedWeights.TRIL.float()
        loss = self.loss(pyro_prior, MultivariateNormal(self.LOC, scale_tril=tril))
        truth = kl(D.MultivariateNormal(self.LOC, scale_tril=tril))
        assert loss == pytest.approx(float(truth), rel=1e-6)

    @pytest.mark.parametrize("name", ["Laplace", "Cauchy"])
    def test_the_loss_takes_the_exact_divergence(self, name, pyro_prior):
        from pyro import distributions

        scale = torch.tensor([0.1, 1.0, 2.0])
        truth = -sum(
            lk.neg_kl_posterior(getattr(stats, name.lower())(m, s))
            for m, s in zip(self.LOC.tolist(), scale.tolist(), strict=True)
        )
        posterior = getattr(distributions, name)(self.LOC, scale).to_event(1)
        assert self.loss(pyro_prior, posterior) == pytest.approx(truth, rel=1e-6)
