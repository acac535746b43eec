"""KL from each family of posteriors to the prior, in NumPyro and TensorFlow Probability."""

import math

import mpmath
import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("numpyro")
pytest.importorskip("tensorflow_probability")

import jax
import jax.numpy as jnp
from jax.test_util import check_grads

import logunif_kl as lk
from tests import derivatives, divergences
from tests.distributions import OPTIONS, TRIL, A, B, Edges, Shapes, Values
from tests.jax.libraries import IGNORED, NUMPYRO, TFP

pytestmark = IGNORED

# The worst errors measured, in units of eps of the largest term, by the order of the derivative, on
# processors with AVX-512 and without: XLA's programs depend on the processor.
WORST = {
    ("Laplace", "float64"): (1.4, 3.2, 14.5),
    ("Laplace", "float32"): (1.5, 2.6, 12.1),
    ("Cauchy", "float64"): (1.5, 2.5, 7.1),
    ("Cauchy", "float32"): (1.6, 2.7, 4.8),
    ("Uniform", "float64"): (1.2, 2.8, 3.7),
    ("Uniform", "float32"): (1.9, 2.7, 3.5),
    ("Gamma", "float64"): (1.3, 1.6, 2.5),
    ("Gamma", "float32"): (2.1, 1.6, 2.6),
    ("StudentT", "float64"): (1.8, 3.0, 3.6),
    ("StudentT", "float32"): (2.5, 2.7, 6.2),
}
# The worst errors measured of KL and of its slopes, as `divergences.gaussian_errors` counts them.
# The largest are those of a low-rank factor of 100 times the diagonal, which condition the matrix.
GAUSSIANS = {
    ("triangular", "float64"): (0.7, 1.5),
    ("triangular", "float32"): (0.9, 1.9),
    ("low_rank", "float64"): (0.5, 59.4),
    ("low_rank", "float32"): (0.8, 20.7),
}


@pytest.fixture(params=[NUMPYRO, TFP], ids=lambda each: each.name)
def library(request):
    return request.param


class TestValues(Values):
    main, worst = NUMPYRO, WORST

    def test_log_rate(self):
        """TFP's Gamma takes the logarithm of its rate as well."""
        given = TFP.dist.Gamma(2.0, log_rate=jnp.float32(1.5))
        assert TFP.kl(given) == TFP.kl(TFP.dist.Gamma(2.0, 1.0))


class TestEdges(Edges):
    main = NUMPYRO

    def test_student_elsewhere_is_undefined_where_loc_is_traced(self, library):
        f = jax.jit(lambda loc: library.kl(library.dist.StudentT(3.0, loc, 1.0)))
        assert jnp.isnan(f(jnp.array([0.0, 1.0]))).tolist() == [False, True]


class TestNormal:
    def test_gradients_are_those_of_kl_normal(self, library, capability):
        """Also at loc = 0, where the usual formula with its logarithm has none."""
        capability("KL(Normal, ImproperLogUniform)", "grad", library.name)
        loc, log_scale = np.array([0.0, 0.5, -2.0]), np.log([0.1, 0.25, 3.0])
        truths = lk.special.neg_kl_normal_and_grad(loc, 2 * log_scale)[1:]
        for options in OPTIONS:
            f = library.divergence("Normal", **options)
            gradient = jax.jit(jax.grad(lambda m, s, f=f: f(m, jnp.exp(s)).sum(), (0, 1)))
            d_loc, d_log_scale = gradient(loc, log_scale)
            np.testing.assert_allclose(d_loc, -truths[0], rtol=5e-7)
            np.testing.assert_allclose(d_log_scale, -2 * truths[1], rtol=5e-7)

    def test_derivatives_at_zero(self):
        """There KL = loc^2/(2 scale^2) - ..., less the constant."""
        with jax.enable_x64(True):
            second = jax.hessian(NUMPYRO.divergence("Normal"))
            for g, truth in ((second, 64.0), (jax.jacfwd(second, 1), -1024.0)):
                assert math.isclose(jax.jit(g)(0.0, 0.125), truth, rel_tol=2.0**-52)


class TestShapes(Shapes):
    main, gaussians = NUMPYRO, GAUSSIANS

    def test_samples(self):
        for name in ("Normal", "LogNormal", *divergences.FAMILIES):
            given = TFP.of_two(name, jnp.asarray(A), jnp.asarray(B))
            each = TFP.kl(given)
            found = TFP.kl(TFP.dist.Sample(given, (2, 4)))
            np.testing.assert_allclose(found, 8 * each, rtol=2e-6)

    def test_expanded_vectors_and_a_prior_of_other_weights(self):
        p = NUMPYRO.correlated("triangular", A, TRIL).expand([2])
        with pytest.raises(ValueError, match=r"^a posterior of event shape"):
            NUMPYRO.kl(p, NUMPYRO.prior(3))

    def test_correlated_from_another_distribution(self, library):
        other = library.dist.Independent(library.dist.Normal(A, B), 1)
        with pytest.raises(NotImplementedError, match="Independent"):
            library.kl(library.correlated("triangular", A, TRIL), other)

    def test_transforms(self, library):
        def f(loc, factor):
            return library.kl(library.correlated("triangular", loc, factor))

        locs = np.stack([A, B, -A])
        each = np.array([f(loc, TRIL) for loc in locs])
        np.testing.assert_allclose(jax.vmap(f, (0, None))(locs, TRIL), each, rtol=1e-6)
        with jax.enable_x64(True):
            given = (A.astype("float64"), TRIL.astype("float64"))
            check_grads(jax.jit(f), given, order=1 + (library is NUMPYRO), rtol=1e-5)

    def test_a_scale_of_low_rank(self):
        def f(loc, diagonal, factor):
            of_low_rank = TFP.dist.MultivariateNormalDiagPlusLowRank
            return TFP.kl(of_low_rank(loc, diagonal, scale_perturb_factor=factor))

        def full(loc, diagonal, factor):
            scale = jnp.diag(diagonal) + factor @ factor.T
            return TFP.kl(TFP.dist.MultivariateNormalFullCovariance(loc, scale @ scale.T))

        loc, diagonal = np.array([0.0, 0.5, -2.0]), np.array([0.1, 0.25, 3.0])
        factor = np.array([[0.5, 0.1], [-0.2, 0.3], [0.1, 0.4]])
        with jax.enable_x64(True):
            both = [jax.jit(jax.value_and_grad(g, (0, 1, 2))) for g in (f, full)]
            (value, slopes), (truth, truths) = (g(loc, diagonal, factor) for g in both)
            np.testing.assert_allclose(value, truth, rtol=1e-13)
            for a, b in zip(slopes, truths, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_a_diagonal(self, sign):
        total = TFP.kl(TFP.dist.Normal(A, B)).sum()
        for p in (
            TFP.dist.MultivariateNormalDiag(A, sign * B),
            TFP.dist.MultivariateNormalTriL(A, np.diag(sign * B)),
        ):
            of_sample = TFP.dist.Sample(TFP.prior(), 3)
            for q in (TFP.prior(), TFP.prior_of_vectors(3), of_sample):
                np.testing.assert_allclose(TFP.kl(p, q), total, rtol=3e-7)
        assert TFP.kl(TFP.dist.MultivariateNormalDiag(scale_diag=B)) == 0.0


def test_masked(library):
    """A masked weight has no KL and no slope; the bare prior takes the mask of the posterior."""
    Normal, Independent = library.dist.Normal, library.dist.Independent
    mask = jnp.array([True, False, True])

    def f(loc):
        return library.kl(library.masked(Normal(loc, B, validate_args=False), mask))

    each, slopes = jax.vmap(jax.value_and_grad(library.divergence("Normal")))(A, B)
    np.testing.assert_allclose(f(A), jnp.where(mask, each, 0.0), rtol=1e-6)
    np.testing.assert_array_equal(f(np.where(mask, A, np.nan)), f(A))
    slope = jax.grad(lambda loc: f(loc).sum())(A)
    np.testing.assert_allclose(slope, jnp.where(mask, slopes, 0.0), rtol=1e-6)
    total = library.kl(Independent(library.masked(Normal(A, B), mask), 1))
    np.testing.assert_allclose(total, f(A).sum(), rtol=1e-6)
    rows = Independent(Normal(np.stack([A, A]), B), 1)
    got = library.kl(library.masked(rows, jnp.array([True, False])))
    np.testing.assert_allclose(got, [each.sum(), 0.0], rtol=1e-6)
    if library is NUMPYRO:
        np.testing.assert_array_equal(library.kl(Normal(A, B).mask(False)), np.zeros(3))


class TestTransforms:
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_jit_grad_vmap(self, name, library, capability):
        capability(f"KL({name}, ImproperLogUniform)", "jit, grad, vmap, jvp", library.name)
        f = library.divergence(name)
        value = f(A, B)
        np.testing.assert_allclose(jax.jit(f)(A, B), value, rtol=1e-6)
        slopes = jax.grad(lambda a, b: f(a, b).sum(), (0, 1))(A, B)
        again, each = jax.vmap(jax.value_and_grad(f, (0, 1)))(A, B)
        np.testing.assert_allclose(again, value, rtol=1e-6)
        np.testing.assert_allclose(each, slopes, rtol=1e-6)
        _, tangent = jax.jvp(f, (A, B), (np.ones_like(A), np.ones_like(B)))
        np.testing.assert_allclose(tangent, slopes[0] + slopes[1], rtol=1e-5)

    @pytest.mark.parametrize("name", ["Normal", *divergences.FAMILIES])
    def test_third_derivatives(self, name, capability):
        def exact(a, b):
            if name == "Normal":
                return -derivatives.neg_kl_normal(a, 2 * mpmath.log(b))
            return divergences.FAMILIES[name].truth(a, b)[0, 0][0]

        if name == "Normal":
            capability("KL(Normal, ImproperLogUniform)", "third derivatives", "numpyro")
        level = [((0, 0), NUMPYRO.divergence(name))]
        for _ in range(3):
            level = [
                (tuple(n + (k == i) for k, n in enumerate(orders)), jax.grad(f, i))
                for orders, f in level
                for i in (0, 1)
                if i == 1 or not orders[1]
            ]
        with jax.enable_x64(True), mpmath.workdps(40):
            found = jax.jit(lambda a, b: [f(a, b) for _, f in level])(0.5, 0.875)
            for (orders, _), got in zip(level, found, strict=True):
                truth = mpmath.diff(exact, (0.5, 0.875), orders)
                assert float(got) == pytest.approx(float(truth), rel=1e-13, abs=1e-15)
