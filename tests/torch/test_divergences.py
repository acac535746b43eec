"""KL of other posteriors to the prior, registered with torch.distributions and so with Pyro."""

import importlib
import math

import numpy as np
import pytest

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


class TestEdges(Edges):
    main = TORCH

    def test_student_of_infinite_df_is_gaussian(self):
        df = torch.tensor([1e4, 1e6, math.inf], dtype=torch.float64)
        got = TORCH.divergence("StudentT")(df, torch.ones_like(df))
        np.testing.assert_allclose(got, -0.5 / df, rtol=1e-4)

    def test_a_scale_below_zero(self):
        assert kl(TORCH.of("HalfNormal", -torch.ones(()))).isnan()


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

    def test_means_of_zero(self):
        tril = self.TRIL.diagonal().diag().float()
        assert float(kl(D.MultivariateNormal(torch.zeros(3), scale_tril=tril))) == 0.0

    @pytest.mark.parametrize("name", ["triangular", "low_rank"])
    def test_priors_that_are_refused(self, name):
        p = correlated(name, self.LOC, self.TRIL, self.LOC**2 + 1)
        with pytest.raises(ValueError, match=r" of event shape \(2,\) and batch shape \(\) "):
            kl_divergence(p, D.Independent(Prior().expand([2]), 1))
        words = r"^No KL\(p .. q\) is implemented for p type \w*MultivariateNormal and q type I"
        with pytest.raises(NotImplementedError, match=words):
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


def points(name):
    a, b = [0.25, 0.5, 1.5], [2.0, 0.75, 7.0]
    if name == "Normal":
        a, b = [0.0, 1.0, -3.0, 1e-5], [0.1, 1.0, 0.1, 3.0]
    return [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b)]


# Functions of both arrays of `points`.
OF_ONE = {
    "HalfNormal": lambda a, b: kl(TORCH.of("HalfNormal", b)) + 0.0 * a,
    "Exponential": lambda a, b: kl(TORCH.of("Exponential", b)) + 0.0 * a,
    "MultivariateNormal": lambda a, b: kl(
        D.MultivariateNormal(a, scale_tril=b.diag() + torch.ones_like(b.diag()).tril(-1))
    ),
}


class TestTransforms:
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

    @pytest.mark.parametrize("name", OF_ONE | dict.fromkeys(("Normal", *divergences.FAMILIES)))
    @pytest.mark.usefixtures("unvalidated")
    def test_compiled(self, name, capability):
        f, given = OF_ONE.get(name) or TORCH.divergence(name), points(name)
        if name in divergences.FAMILIES or name in ("HalfNormal", "Exponential"):
            capability(f"KL({name}, ImproperLogUniform)", "compile(fullgraph=True)")
        torch.compiler.reset()
        compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
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

    def test_the_loss_takes_the_exact_divergence(self, pyro_prior):
        """The loss of a model of three weights without data is KL."""
        import pyro
        from pyro import distributions as dist

        scale, tril = torch.tensor([0.1, 1.0, 2.0]), TestCorrelatedWeights.TRIL.float()
        prior = pyro_prior().expand([3]).to_event(1)
        for p in (
            dist.Laplace(self.LOC, scale).to_event(1),
            dist.Cauchy(self.LOC, scale).to_event(1),
            dist.Normal(self.LOC, 1.0).mask(self.MASK).to_event(1),
            dist.MultivariateNormal(self.LOC, scale_tril=tril),
        ):
            loss = pyro.infer.TraceMeanField_ELBO().loss(
                lambda: pyro.sample("w", prior),
                lambda: pyro.sample("w", p),  # noqa: B023
            )
            assert loss == pytest.approx(float(kl(p)), rel=1e-6)
