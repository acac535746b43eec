"""KL of other posteriors to the prior, registered with torch.distributions and so with Pyro."""

import importlib
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import logunif_kl as lk
from tests import divergences

torch = pytest.importorskip("torch")
D = torch.distributions
kl_divergence = D.kl_divergence
Prior = importlib.import_module("logunif_kl.torch").ImproperLogUniform

OPTIONS = [{}, {"zero_at": 0.5}, {"log_c": -1.25}]
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


def posterior(name, a, b):
    """A distribution of two parameters, unchecked."""
    arguments = (a, torch.zeros_like(a), b) if name == "StudentT" else (a, b)
    return getattr(D, name)(*arguments, validate_args=False)


@pytest.fixture
def unvalidated():
    """Have no distribution validate its arguments, as PyTorch's compiler does when it is loaded.

    Pyro has all of them do so when it is imported, and the compiler cannot trace that.
    """
    before = D.Distribution._validate_args
    D.Distribution.set_default_validate_args(False)
    yield
    D.Distribution.set_default_validate_args(before)


def kl(name, a, b, **options):
    return kl_divergence(posterior(name, a, b), Prior(**options))


def derivatives(name, dtype):
    a, b = (torch.tensor(x, requires_grad=True) for x in divergences.FAMILIES[name].points(dtype))

    def slopes(y):
        found = torch.autograd.grad(
            y.sum(), (a, b), create_graph=True, allow_unused=True, materialize_grads=True
        )
        return [s + 0.0 * a for s in found]

    value = kl(name, a, b)
    first = slopes(value)
    (aa, ab), (_, bb) = slopes(first[0]), slopes(first[1])
    found = dict(zip(divergences.ORDERS, (value, *first, aa, ab, bb), strict=True))
    return {orders: result.detach() for orders, result in found.items()}


SCIPY = [
    (D.Laplace, (0.75, 0.5), stats.laplace(0.75, 0.5)),
    (D.Laplace, (-30.0, 2.0), stats.laplace(-30.0, 2.0)),
    (D.Cauchy, (2.0, 0.25), stats.cauchy(2.0, 0.25)),
    (D.Uniform, (-1.0, 0.25), stats.uniform(-1.0, 1.25)),
    (D.Uniform, (0.0, 4.0), stats.uniform(0.0, 4.0)),
    (D.Uniform, (1.0, 1.125), stats.uniform(1.0, 0.125)),
    (D.StudentT, (3.0, 0.0, 2.0), stats.t(3.0, scale=2.0)),
    (D.Gamma, (0.125, 2.0), stats.gamma(0.125, scale=0.5)),
    (D.Chi2, (5.0,), stats.chi2(5.0)),
    (D.HalfNormal, (3.0,), stats.halfnorm(scale=3.0)),
    (D.Exponential, (4.0,), stats.expon(scale=0.25)),
]


class TestValues:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    @pytest.mark.parametrize(("family", "parameters", "same"), SCIPY)
    def test_against_numpy(self, family, parameters, same, options):
        prior = Prior(**options)
        truth = -lk.neg_kl_posterior(same, log_c=prior.log_c)
        for dtype, error in ((torch.float64, 2.0**-50), (torch.float32, 2.0**-21)):
            given = family(*(torch.tensor(x, dtype=dtype) for x in parameters))
            got = kl_divergence(given, prior)
            assert got.dtype == dtype
            assert abs(float(got) - truth) <= error * max(abs(truth), 1.0)

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_the_truth_of_these_tests_is_the_integral(self, name):
        """E log q - E log p by quadrature, at one point of each family."""
        a, b = {"Gamma": (2.5, 1.0), "StudentT": (3.0, 1.0)}.get(name, (0.75, 1.5))
        given = posterior(name, torch.tensor(a), torch.tensor(b))
        with mpmath.workdps(20):
            density = DENSITIES[name](mpmath.mpf(a), mpmath.mpf(b))
            low, high = {"Uniform": (a, b), "Gamma": (0, mpmath.inf)}.get(
                name, (-mpmath.inf, mpmath.inf)
            )
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


class TestAccuracy:
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_over_wide_ranges(self, name, dtype, capability):
        capability(f"KL({name}, ImproperLogUniform)", "value, first and second derivatives")
        found = derivatives(name, getattr(np, dtype))
        worst = divergences.errors(name, getattr(np, dtype), found, Prior().log_c)
        by_order = [max(e for o, e in worst.items() if sum(o) == n) for n in range(3)]
        bounds = WORST[name, dtype]
        assert all(e <= b for e, b in zip(by_order, bounds, strict=True)), (by_order, bounds)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_types(self, dtype):
        for name, b in (("Laplace", 2.0), ("Cauchy", 2.0), ("Uniform", 3.0), ("Gamma", 2.0)):
            a = torch.tensor([0.3, 1.0, 2.5], dtype=dtype)
            b = torch.full_like(a, b)
            got, truth = kl(name, a, b), kl(name, a.float(), b.float())
            assert got.dtype == dtype
            assert torch.equal(got, truth.to(dtype))


class TestEdges:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_loc_zero(self, dtype):
        scale = torch.tensor([1e-30, 0.5, 1e30], dtype=dtype, requires_grad=True)
        loc = torch.zeros_like(scale, requires_grad=True)
        for name, truth in (("Laplace", stats.laplace()), ("Cauchy", stats.cauchy())):
            value = kl(name, loc, scale)
            np.testing.assert_allclose(
                value.detach(), -lk.neg_kl_posterior(truth), rtol=4 * torch.finfo(dtype).eps
            )
            by_loc, by_scale = torch.autograd.grad(value.sum(), (loc, scale), create_graph=True)
            assert by_loc.tolist() == by_scale.tolist() == [0.0, 0.0, 0.0]

    def test_the_second_derivative_of_laplace_has_a_pole(self):
        loc, scale = torch.zeros((), requires_grad=True), torch.ones((), requires_grad=True)
        (by_loc,) = torch.autograd.grad(kl("Laplace", loc, scale), loc, create_graph=True)
        twice, mixed = torch.autograd.grad(by_loc, (loc, scale))
        assert (float(twice), float(mixed)) == (math.inf, 0.0)
        (by_scale,) = torch.autograd.grad(kl("Laplace", loc, scale), scale, create_graph=True)
        assert [float(x) for x in torch.autograd.grad(by_scale, (loc, scale))] == [0.0, 0.0]

    def test_an_interval_with_an_edge_at_zero(self):
        """E log|w| = log(high) - 1, whatever high; the derivative in low has a pole."""
        for sign in (1.0, -1.0):
            a = torch.zeros((), dtype=torch.float64, requires_grad=True)
            b = torch.tensor(sign * 3.0, dtype=torch.float64, requires_grad=True)
            low, high = (a, b) if sign > 0 else (b, a)
            value = kl("Uniform", low, high, log_c=0.0)
            assert float(value.detach()) == -1.0
            by_a, by_b = torch.autograd.grad(value, (a, b), create_graph=True)
            assert (float(by_a.detach()), float(by_b.detach())) == (sign * math.inf, 0.0)

    def test_a_symmetric_interval(self):
        b = torch.tensor([1e-30, 0.1, 1.0, 1e30], requires_grad=True)
        a = (-b).detach().requires_grad_()
        value = kl("Uniform", a, b, log_c=0.0)
        np.testing.assert_array_equal(value.detach(), np.float32(-1.0 - math.log(2.0)))
        value.sum().backward()
        assert a.grad.tolist() == b.grad.tolist() == [0.0] * 4

    def test_no_interval(self):
        given = torch.tensor([2.0, math.nan, 1.0]), torch.tensor([1.0, 2.0, math.nan])
        assert kl("Uniform", *given).isnan().all()

    @pytest.mark.parametrize("name", ["Laplace", "Cauchy", "StudentT", "Gamma"])
    def test_nan(self, name):
        one, undefined = torch.ones(()), torch.tensor(math.nan)
        if name != "StudentT":  # whose Chi2 is checked even so
            assert kl(name, undefined, one).isnan()
        assert kl(name, one, undefined).isnan()
        assert kl(name, one, -one).isnan()
        assert kl_divergence(D.HalfNormal(-one, validate_args=False), Prior()).isnan()

    def test_infinite(self):
        one, infinite = torch.ones(()), torch.tensor(math.inf)
        for name in ("Laplace", "Cauchy"):
            assert float(kl(name, infinite, one)) == math.inf
            assert float(kl(name, -infinite, one)) == math.inf
            assert float(kl(name, one, infinite)) == float(kl(name, 0.0 * one, one))
            assert kl(name, infinite, infinite).isnan()

    def test_student_of_infinite_df_is_gaussian(self):
        df = torch.tensor([1e4, 1e6, math.inf], dtype=torch.float64)
        got = kl("StudentT", df, torch.ones_like(df))
        np.testing.assert_allclose(got, -0.5 / df, rtol=1e-4)

    def test_student_of_one_degree_is_cauchy(self):
        for dtype in (torch.float32, torch.float64):
            one = torch.ones((), dtype=dtype)
            loc = torch.zeros((), dtype=dtype, requires_grad=True)
            student = kl_divergence(D.StudentT(one, loc, 2.0 * one), Prior())
            cauchy = kl_divergence(D.Cauchy(loc, 2.0 * one), Prior())
            limit = 2.0 * torch.finfo(dtype).eps
            assert float(student.detach()) == pytest.approx(float(cauchy.detach()), rel=limit)
            for value in (student, cauchy):
                (slope,) = torch.autograd.grad(value, loc, create_graph=True)
                (curvature,) = torch.autograd.grad(slope, loc)
                assert (float(slope.detach()), float(curvature)) == (0.0, 0.25)

    def test_student_elsewhere(self):
        message = (
            r"^KL of StudentT has no closed form where loc is not 0: use "
            r"logunif_kl.neg_kl_posterior of scipy.stats.t, or samples of log_prob$"
        )
        with pytest.raises(NotImplementedError, match=message):
            kl_divergence(D.StudentT(3.0, torch.tensor([0.0, 1.0]), 1.0), Prior())
        with pytest.raises(NotImplementedError, match=message):
            kl_divergence(D.StudentT(3.0, torch.tensor(1e-40), 1e30), Prior())

    @pytest.mark.parametrize("family", [D.HalfNormal, D.Exponential])
    def test_what_does_not_depend_on_the_scale(self, family):
        scale = torch.tensor([1e-30, 1.0, 1e30], requires_grad=True)
        value = kl_divergence(family(scale), Prior())
        assert len(set(value.tolist())) == 1
        value.sum().backward()
        assert scale.grad.tolist() == [0.0, 0.0, 0.0]


class TestShapes:
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_broadcasting(self, name):
        a, b = torch.full((4, 1), 0.5), torch.full((3,), 2.0)
        value = kl_divergence(posterior(name, a, b), Prior())
        assert value.shape == (4, 3)
        wide = kl_divergence(posterior(name, a, b), Prior().expand((2, 1, 3)))
        assert wide.shape == (2, 4, 3)
        assert torch.equal(wide, value.expand(2, 4, 3))
        assert kl(name, a[:0], b).shape == (0, 3)
        total = kl_divergence(D.Independent(posterior(name, a, b), 1), Prior())
        torch.testing.assert_close(total, value.sum(-1))

    def test_a_subclass(self):
        class Mine(D.Laplace):
            pass

        assert kl_divergence(Mine(0.0, 1.0), Prior()) == kl_divergence(D.Laplace(0.0, 1.0), Prior())


# The worst errors measured of KL and of its slopes, as `divergences.gaussian_errors` counts them.
# The largest are those of a low-rank factor of 100 times the diagonal, which condition the matrix.
GAUSSIANS = {
    ("MultivariateNormal", "float64"): (1.0, 2.3),
    ("MultivariateNormal", "float32"): (0.5, 2.8),
    ("LowRankMultivariateNormal", "float64"): (0.7, 4.3),
    ("LowRankMultivariateNormal", "float32"): (1.0, 20.7),
}


def correlated(name, *arrays):
    """Make a posterior of vectors of the arrays of `tests.divergences`."""
    if name == "MultivariateNormal":
        return D.MultivariateNormal(arrays[0], scale_tril=arrays[1])
    return D.LowRankMultivariateNormal(*arrays)


class TestCorrelatedWeights:
    LOC = torch.tensor([0.0, 1.0, -3.0], dtype=torch.float64)
    TRIL = torch.tensor([[1, 0, 0], [0.3, 0.5, 0], [0.1, -0.2, 0.2]], dtype=torch.float64)

    @pytest.mark.parametrize(("name", "dtype"), GAUSSIANS)
    def test_value_and_slopes_over_wide_ranges(self, name, dtype):
        make = divergences.triangular if name == "MultivariateNormal" else divergences.low_rank
        worst = [0.0, 0.0]
        for given in make(getattr(np, dtype)):
            arrays = [torch.tensor(a, requires_grad=True) for a in given.arrays]
            value = kl_divergence(correlated(name, *arrays), Prior())
            slopes = torch.autograd.grad(value, arrays)
            errors = divergences.gaussian_errors(given, value.detach(), slopes)
            worst = [max(pair) for pair in zip(worst, errors, strict=True)]
        assert all(e <= b for e, b in zip(worst, GAUSSIANS[name, dtype], strict=True)), worst

    @pytest.mark.parametrize("parameter", ["covariance_matrix", "precision_matrix", "scale_tril"])
    def test_against_the_chain_rule(self, parameter):
        loc, covariance = [0.5, -1.0], np.array([[1.0, 0.6], [0.6, 0.7]])
        given = {
            "covariance_matrix": covariance,
            "precision_matrix": np.linalg.inv(covariance),
            "scale_tril": np.linalg.cholesky(covariance),
        }[parameter]
        posterior = D.MultivariateNormal(
            torch.tensor(loc, dtype=torch.float64), **{parameter: torch.tensor(given)}
        )
        truth = divergences.kl_of_pair(np.array(loc), covariance)
        assert float(kl_divergence(posterior, Prior())) == pytest.approx(truth, rel=1e-12)
        moved = kl_divergence(posterior, Prior(log_c=Prior().log_c + 0.5))
        assert float(moved) == pytest.approx(truth - 1.0, rel=1e-12)

    def test_low_rank_is_the_full_matrix(self):
        factor, diagonal = self.TRIL[:, :2], torch.tensor([0.1, 2.0, 0.5], dtype=torch.float64)
        loc = torch.stack([self.LOC, 2.0 * self.LOC])
        got = kl_divergence(D.LowRankMultivariateNormal(loc, factor, diagonal), Prior())
        full = D.MultivariateNormal(loc, factor @ factor.mT + diagonal.diag())
        torch.testing.assert_close(got, kl_divergence(full, Prior()), rtol=1e-14, atol=0.0)

    def test_independent_weights_are_their_sum(self):
        scale = torch.tensor([0.1, 2.0, 1e-3], dtype=torch.float64)
        got = kl_divergence(D.MultivariateNormal(self.LOC, scale_tril=scale.diag()), Prior())
        each = kl_divergence(D.Normal(self.LOC, scale), Prior())
        torch.testing.assert_close(got, each.sum(), rtol=1e-15, atol=0.0)
        zero = D.MultivariateNormal(torch.zeros(3), scale_tril=scale.float().diag())
        assert float(kl_divergence(zero, Prior())) == 0.0

    @pytest.mark.parametrize("name", ["MultivariateNormal", "LowRankMultivariateNormal"])
    def test_shapes(self, name):
        arrays = self.LOC, self.TRIL, torch.ones(3, dtype=torch.float64)
        single, prior = correlated(name, *arrays), Prior()
        one = kl_divergence(single, prior)
        assert one.shape == ()
        wide = correlated(name, self.LOC.expand(4, 1, 3), *arrays[1:]).expand([4, 2])
        for q in (prior, *(D.Independent(prior.expand(s), 1) for s in ([3], [2, 3], [4, 1, 3]))):
            torch.testing.assert_close(kl_divergence(wide, q), one.expand(4, 2))
        q = D.Independent(prior.expand([5, 3]), 1)
        torch.testing.assert_close(kl_divergence(single, q), one.expand(5))
        for q in (prior, D.Independent(D.Independent(prior.expand([4, 2, 3]), 1), 1)):
            torch.testing.assert_close(kl_divergence(D.Independent(wide, 1), q), 2 * one.expand(4))

    def test_half_types(self):
        arrays = self.LOC.bfloat16(), self.TRIL.bfloat16()
        got = kl_divergence(correlated("MultivariateNormal", *arrays), Prior())
        assert got.dtype == torch.bfloat16
        exact = correlated("MultivariateNormal", *(a.float() for a in arrays))
        assert got == kl_divergence(exact, Prior()).bfloat16()

    @pytest.mark.parametrize(
        "prior",
        [Prior().expand([3]), D.Independent(Prior().expand([2]), 1)],
        ids=["expanded", "other event"],
    )
    def test_a_prior_of_other_weights(self, prior):
        shapes = rf"event shape \({'2,' if prior.event_shape else ''}\) and batch shape"
        for p in (
            correlated("MultivariateNormal", self.LOC, self.TRIL),
            correlated("LowRankMultivariateNormal", self.LOC, self.TRIL, self.LOC**2 + 1),
        ):
            with pytest.raises(
                ValueError,
                match=rf"^a posterior of event shape \(3,\) and an ImproperLogUniform of {shapes} "
                r".* were given: pass ImproperLogUniform\(\), one prior for all weights, or an "
                r"Independent of the posterior's event shape$",
            ):
                kl_divergence(p, prior)

    @pytest.mark.parametrize("family", [D.Normal, D.LogNormal, D.Laplace])
    def test_batches_that_do_not_broadcast(self, family):
        with pytest.raises(
            ValueError,
            match=r"^a posterior of batch shape \(3,\) and an ImproperLogUniform of batch shape "
            r"\(2,\) do not broadcast: pass ImproperLogUniform\(\), one prior for all weights$",
        ):
            kl_divergence(family(torch.zeros(3), 1.0), Prior().expand([2]))

    def test_other_priors_are_as_before(self):
        p = correlated("MultivariateNormal", self.LOC, self.TRIL)
        with pytest.raises(
            NotImplementedError, match=r"^No KL\(p .. q\) is implemented for p type M"
        ):
            kl_divergence(p, D.Independent(D.Normal(torch.zeros(3), 1.0), 1))

    @pytest.mark.parametrize("name", ["MultivariateNormal", "LowRankMultivariateNormal"])
    def test_second_derivatives_and_func(self, name):
        def f(loc, factor, diagonal):
            arrays = (loc, factor.tril(), diagonal)
            return kl_divergence(correlated(name, *arrays), Prior()) + 0.0 * diagonal.sum()

        arrays = self.LOC[1:].clone(), self.TRIL[1:, 1:].clone(), torch.ones_like(self.LOC[1:])
        arrays = [a.requires_grad_() for a in arrays]
        assert torch.autograd.gradgradcheck(f, arrays)
        slopes = torch.autograd.grad(f(*arrays), arrays)
        for a, b in zip(torch.func.grad(f, argnums=(0, 1, 2))(*arrays), slopes, strict=True):
            np.testing.assert_allclose(a.detach(), b, rtol=1e-14, atol=1e-16)

    @pytest.mark.usefixtures("unvalidated")
    def test_compiled(self):
        def f(loc, factor):
            return kl_divergence(D.MultivariateNormal(loc, scale_tril=factor), Prior())

        torch.compiler.reset()
        given = [a.clone().requires_grad_() for a in (self.LOC, self.TRIL)]
        results = [torch.compile(f, backend="aot_eager", fullgraph=True)(*given), f(*given)]
        for a, b in zip(*(torch.autograd.grad(r, given) for r in results), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-16)


A, B = (
    torch.tensor([0.25, 0.5, 1.5], dtype=torch.float64),
    torch.tensor([2.0, 0.75, 7.0], dtype=torch.float64),
)


class TestTransforms:
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_gradcheck(self, name):
        given = [x.clone().requires_grad_() for x in (A, B)]
        options = {"check_forward_ad": True, "check_batched_grad": True}
        assert torch.autograd.gradcheck(lambda a, b: kl(name, a, b), given, **options)
        assert torch.autograd.gradgradcheck(lambda a, b: kl(name, a, b), given)

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_func(self, name, capability):
        capability(f"KL({name}, ImproperLogUniform)", "func.vmap, grad, jvp, hessian")

        def f(a, b):
            return kl(name, a, b)

        given = [x.clone().requires_grad_() for x in (A, B)]
        value = f(*given)
        slopes = torch.autograd.grad(value.sum(), given)
        (by_a, by_b), again = torch.func.vmap(torch.func.grad_and_value(f, argnums=(0, 1)))(A, B)
        np.testing.assert_allclose(again, value.detach(), rtol=1e-14)
        np.testing.assert_allclose(by_a, slopes[0], rtol=1e-14)
        np.testing.assert_allclose(by_b, slopes[1], rtol=1e-14)
        _, tangent = torch.func.jvp(f, (A, B), (torch.ones_like(A), 2.0 * torch.ones_like(B)))
        np.testing.assert_allclose(tangent, by_a + 2.0 * by_b, rtol=1e-13)
        mixed = torch.func.hessian(f, argnums=(0, 1))(A[0], B[0])
        assert float(mixed[0][1]) == pytest.approx(float(mixed[1][0]), rel=1e-13)

    @pytest.mark.parametrize("name", [*divergences.FAMILIES, "HalfNormal", "Exponential"])
    @pytest.mark.usefixtures("unvalidated")
    def test_compiled(self, name, capability):
        capability(f"KL({name}, ImproperLogUniform)", "compile(fullgraph=True)")

        def f(a, b):
            if name in divergences.FAMILIES:
                return kl(name, a, b)
            return kl_divergence(getattr(D, name)(b, validate_args=False), Prior()) + 0.0 * a

        torch.compiler.reset()
        compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
        given = [x.clone().requires_grad_() for x in (A, B)]
        got, truth = compiled(*given), f(*given)
        np.testing.assert_allclose(got.detach(), truth.detach(), rtol=1e-14)
        for a, b in zip(
            torch.autograd.grad(got.sum(), given),
            torch.autograd.grad(truth.sum(), given),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, rtol=1e-14)

    @pytest.mark.usefixtures("unvalidated")
    def test_student_elsewhere_is_undefined_in_a_graph(self):
        def f(loc):
            posterior = D.StudentT(torch.ones(()), loc, torch.ones(()), validate_args=False)
            return kl_divergence(posterior, Prior())

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
        each = kl_divergence(base, Prior())
        for prior in (pyro_prior(), pyro_prior().expand([3])):
            got = kl_divergence(ExpandedDistribution(base, [2, 3]), prior)
            assert torch.equal(got, each.expand(2, 3))

    def test_the_loss_of_correlated_weights(self, pyro_prior):
        import pyro
        import pyro.distributions as dist

        tril = TestCorrelatedWeights.TRIL.float()

        def guide():
            pyro.sample("w", dist.MultivariateNormal(self.LOC, scale_tril=tril))

        loss = pyro.infer.TraceMeanField_ELBO().loss(
            lambda: pyro.sample("w", pyro_prior().expand([3]).to_event(1)), guide
        )
        truth = kl_divergence(D.MultivariateNormal(self.LOC, scale_tril=tril), Prior())
        assert loss == pytest.approx(float(truth), rel=1e-6)

    @pytest.mark.parametrize("name", ["Laplace", "Cauchy"])
    def test_the_loss_takes_the_exact_divergence(self, name):
        pyro = pytest.importorskip("pyro")
        import pyro.distributions as dist
        from pyro.infer import TraceMeanField_ELBO

        from logunif_kl.torch.pyro import ImproperLogUniform

        loc, scale = torch.tensor([0.0, 1.0, -3.0]), torch.tensor([0.1, 1.0, 2.0])

        def model():
            pyro.sample("w", ImproperLogUniform().expand([3]).to_event(1))

        def guide():
            pyro.sample("w", getattr(dist, name)(loc, scale).to_event(1))

        truth = -sum(
            lk.neg_kl_posterior(getattr(stats, name.lower())(m, s))
            for m, s in zip(loc.tolist(), scale.tolist(), strict=True)
        )
        assert TraceMeanField_ELBO().loss(model, guide) == pytest.approx(truth, rel=1e-6)
