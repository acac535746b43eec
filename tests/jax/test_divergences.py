"""KL of other posteriors to the prior, registered with NumPyro and TensorFlow Probability."""

import math
import warnings

import mpmath
import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("numpyro")
pytest.importorskip("tensorflow_probability")

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, TraceMeanField_ELBO
from scipy import stats

import logunif_kl as lk
from logunif_kl.jax import numpyro as of_numpyro
from logunif_kl.jax import tfp as of_tfp
from tests import divergences

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from tensorflow_probability.substrates.jax import distributions as tfd

# What TFP itself does with names that JAX deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorflow_probability")

LIBRARIES = {
    "numpyro": (dist, of_numpyro.ImproperLogUniform),
    "tensorflow-probability": (tfd, of_tfp.ImproperLogUniform),
}
LIBRARY = pytest.mark.parametrize("library", LIBRARIES)
OPTIONS = [{}, {"zero_at": 0.5}, {"log_c": -1.25}]


def kl(library, name, *parameters, **options):
    module, prior = LIBRARIES[library]
    return module.kl_divergence(getattr(module, name)(*parameters), prior(**options))


def divergence(name, library="numpyro", **options):
    """KL as a function of the two parameters of `tests.divergences`."""

    def f(a, b):
        parameters = (a, jnp.zeros_like(a), b) if name == "StudentT" else (a, b)
        return kl(library, name, *parameters, **options)

    return f


SCIPY = [
    ("Laplace", (0.75, 0.5), stats.laplace(0.75, 0.5)),
    ("Laplace", (-30.0, 2.0), stats.laplace(-30.0, 2.0)),
    ("Cauchy", (2.0, 0.25), stats.cauchy(2.0, 0.25)),
    ("Uniform", (-1.0, 0.25), stats.uniform(-1.0, 1.25)),
    ("Uniform", (0.0, 4.0), stats.uniform(0.0, 4.0)),
    ("Uniform", (1.0, 1.125), stats.uniform(1.0, 0.125)),
    ("StudentT", (3.0, 0.0, 2.0), stats.t(3.0, scale=2.0)),
    ("Gamma", (0.125, 2.0), stats.gamma(0.125, scale=0.5)),
    ("HalfNormal", (3.0,), stats.halfnorm(scale=3.0)),
    ("Exponential", (4.0,), stats.expon(scale=0.25)),
]
# The worst errors measured, in units of eps of the largest term, by the order of the derivative, on
# processors with AVX-512 and without: XLA's programs are of the processor.
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


class TestValues:
    @LIBRARY
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    @pytest.mark.parametrize(("name", "parameters", "same"), SCIPY)
    def test_against_numpy(self, library, name, parameters, same, options, capability):
        capability(f"KL({name}, ImproperLogUniform)", "value", library)
        log_c = LIBRARIES[library][1](**options).log_c
        truth = -lk.neg_kl_posterior(same, log_c=log_c)
        for dtype, error in (("float64", 2.0**-50), ("float32", 2.0**-21)):
            with jax.enable_x64(dtype == "float64"):
                got = kl(library, name, *(jnp.asarray(x, dtype) for x in parameters), **options)
                assert got.dtype == dtype
                assert abs(float(got) - truth) <= error * max(abs(truth), 1.0)

    def test_log_rate(self):
        """TFP's Gamma takes the logarithm of its rate as well."""
        prior = of_tfp.ImproperLogUniform()
        given = tfd.Gamma(2.0, log_rate=jnp.float32(1.5))
        assert tfd.kl_divergence(given, prior) == tfd.kl_divergence(tfd.Gamma(2.0, 1.0), prior)

    @LIBRARY
    def test_half_types(self, library):
        for name in ("Laplace", "Cauchy", "Gamma", "StudentT"):
            a, b = jnp.array([0.3, 1.0, 2.5], "bfloat16"), jnp.array([2.0] * 3, "bfloat16")
            got = divergence(name, library)(a, b)
            truth = divergence(name, library)(a.astype("float32"), b.astype("float32"))
            assert got.dtype == "bfloat16"
            np.testing.assert_array_equal(got, truth.astype("bfloat16"))


# The worst errors measured of KL and of its slopes, as `divergences.gaussian_errors` counts them.
# The largest are those of a low-rank factor of 100 times the diagonal, which condition the matrix.
GAUSSIANS = {
    ("triangular", "float64"): (0.7, 1.5),
    ("triangular", "float32"): (0.9, 1.9),
    ("low_rank", "float64"): (0.5, 59.4),
    ("low_rank", "float32"): (0.8, 20.7),
}
TRIL = np.array([[1, 0, 0], [0.3, 0.5, 0], [0.1, -0.2, 0.2]], "float32")


def correlated(library, name, loc, factor, diagonal=None):
    """Make a posterior of vectors of the arrays of `tests.divergences`."""
    if library == "numpyro":
        if name == "triangular":
            return dist.MultivariateNormal(loc, scale_tril=factor)
        return dist.LowRankMultivariateNormal(loc, factor, diagonal)
    if name == "triangular":
        return tfd.MultivariateNormalTriL(loc, factor)
    return tfd.MultivariateNormalDiagPlusLowRankCovariance(loc, diagonal, factor)


class TestCorrelatedWeights:
    @pytest.mark.parametrize(("name", "dtype"), GAUSSIANS)
    def test_value_and_slopes_over_wide_ranges(self, name, dtype):
        @jax.jit
        @jax.value_and_grad
        def f(arrays):
            posterior = correlated("numpyro", name, *arrays)
            return dist.kl_divergence(posterior, of_numpyro.ImproperLogUniform())

        worst = [0.0, 0.0]
        with jax.enable_x64(dtype == "float64"):
            for given in getattr(divergences, name)(getattr(np, dtype)):
                value, slopes = f(given.arrays)
                errors = divergences.gaussian_errors(given, value, slopes)
                worst = [max(pair) for pair in zip(worst, errors, strict=True)]
        assert all(e <= b for e, b in zip(worst, GAUSSIANS[name, dtype], strict=True)), worst

    @LIBRARY
    def test_against_the_chain_rule(self, library):
        loc, covariance = np.array([0.5, -1.0]), np.array([[1.0, 0.6], [0.6, 0.7]])
        truth = divergences.kl_of_pair(loc, covariance)
        module, prior = LIBRARIES[library]
        with jax.enable_x64(True):
            if library == "numpyro":
                given = [
                    dist.MultivariateNormal(loc, covariance),
                    dist.MultivariateNormal(loc, precision_matrix=np.linalg.inv(covariance)),
                ]
            else:
                given = [
                    tfd.MultivariateNormalFullCovariance(loc, covariance),
                    tfd.MultivariateNormalTriL(loc, np.linalg.cholesky(covariance)),
                ]
            for p in given:
                assert module.kl_divergence(p, prior()) == pytest.approx(truth, rel=1e-12)
                moved = module.kl_divergence(p, prior(log_c=prior().log_c + 0.5))
                assert moved == pytest.approx(truth - 1.0, rel=1e-12)

    @LIBRARY
    @pytest.mark.parametrize("name", ["triangular", "low_rank"])
    def test_shapes(self, library, name):
        module, prior = LIBRARIES[library]
        diagonal = np.ones(3, "float32")

        def of(shape):  # the prior of vectors
            if library == "numpyro":
                return dist.Independent(prior().expand(shape), 1)
            return tfd.Independent(prior(shape), 1)

        one = module.kl_divergence(correlated(library, name, A, TRIL, diagonal), prior())
        assert one.shape == ()
        wide = correlated(library, name, np.broadcast_to(A, (4, 1, 3)), TRIL, diagonal)
        for q in (prior(), of((3,)), of((4, 1, 3))):
            got = module.kl_divergence(wide, q)
            np.testing.assert_allclose(got, np.full((4, 1), one), rtol=1e-6)
        assert module.kl_divergence(wide, of((2, 3))).shape == (4, 2)
        total = module.kl_divergence(module.Independent(wide, 2), prior())
        np.testing.assert_allclose(total, 4 * one, rtol=1e-6)

    @LIBRARY
    def test_a_prior_of_other_weights(self, library):
        module, prior = LIBRARIES[library]
        expanded = prior().expand([3]) if library == "numpyro" else prior(3)
        wide = prior().expand([2]) if library == "numpyro" else prior(2)
        normal = module.Normal(A, B)
        posteriors = [
            correlated(library, "triangular", A, TRIL),
            correlated(library, "low_rank", A, TRIL, A),
            module.Independent(normal, 1),
        ]
        if library == "numpyro":
            posteriors.append(posteriors[0].expand([2]))
        for p in posteriors:
            with pytest.raises(
                ValueError,
                match=r"^a posterior of event shape \(3,\) and an ImproperLogUniform of event "
                r"shape \(\) and batch shape \(3,\) were given: pass ImproperLogUniform\(\), one ",
            ):
                module.kl_divergence(p, expanded)
        with pytest.raises(
            ValueError,
            match=r"^a posterior of batch shape \(3,\) and an ImproperLogUniform of batch shape "
            r"\(2,\) do not broadcast: pass ImproperLogUniform\(\), one prior for all weights$",
        ):
            module.kl_divergence(normal, wide)

    @LIBRARY
    def test_other_pairs(self, library):
        module, prior = LIBRARIES[library]
        for p in (module.Gumbel(A, B), module.Independent(module.Gumbel(A, B), 1)):
            with pytest.raises(
                NotImplementedError,
                match=r"^KL of Gumbel from ImproperLogUniform has no closed form here: use "
                r"logunif_kl.neg_kl_posterior of the same distribution in scipy.stats, or samples",
            ):
                module.kl_divergence(p, prior())
        with pytest.raises(NotImplementedError, match="Independent"):
            module.kl_divergence(
                correlated(library, "triangular", A, TRIL),
                module.Independent(module.Normal(A, B), 1),
            )

    @LIBRARY
    def test_transforms(self, library):
        module, prior = LIBRARIES[library]

        def f(loc, factor):
            return module.kl_divergence(correlated(library, "triangular", loc, factor), prior())

        locs = np.stack([A, B, -A])
        each = np.array([f(loc, TRIL) for loc in locs])
        np.testing.assert_allclose(jax.vmap(f, (0, None))(locs, TRIL), each, rtol=1e-6)
        (_, mixed), (other, _) = jax.hessian(f, (0, 1))(A, TRIL)
        # By the chain rule through the variance of each weight, the sum of the squares of its row.
        variance = (TRIL.astype("float64") ** 2).sum(-1)
        bend = lk.neg_kl_hess(lk.log_alpha.from_normal(A.astype("float64"), np.log(variance)))
        expected = np.zeros((len(A), *TRIL.shape))
        for i in range(len(A)):
            expected[i, i] = 4.0 * bend[i] / A[i] * TRIL[i] / variance[i]
        for found in (mixed, np.moveaxis(other, -1, 0)):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        half = f(A.astype("bfloat16"), TRIL.astype("bfloat16"))
        assert half.dtype == "bfloat16"
        assert float(half) == pytest.approx(float(f(A, TRIL)), rel=2.0**-6)


@LIBRARY
def test_masked(library):
    """A masked weight has no KL and no slope; the bare prior takes the mask of the posterior."""
    module, prior = LIBRARIES[library]
    mask = jnp.array([True, False, True])

    def masked(p, mask):
        return p.mask(mask) if library == "numpyro" else tfd.Masked(p, mask)

    def f(loc):
        p = module.Normal(loc, B, validate_args=False)
        return module.kl_divergence(masked(p, mask), prior())

    each = module.kl_divergence(module.Normal(A, B), prior())
    np.testing.assert_array_equal(f(A), jnp.where(mask, each, 0.0))
    np.testing.assert_array_equal(f(np.where(mask, A, np.nan)), f(A))
    slopes = jax.grad(lambda loc: module.kl_divergence(module.Normal(loc, B), prior()).sum())(A)
    np.testing.assert_allclose(
        jax.grad(lambda loc: f(loc).sum())(A), jnp.where(mask, slopes, 0.0), rtol=1e-6
    )
    total = module.kl_divergence(module.Independent(masked(module.Normal(A, B), mask), 1), prior())
    np.testing.assert_allclose(total, f(A).sum(), rtol=1e-6)
    rows = module.Independent(module.Normal(np.stack([A, A]), B), 1)
    got = module.kl_divergence(masked(rows, jnp.array([True, False])), prior())
    np.testing.assert_allclose(got, [each.sum(), 0.0], rtol=1e-6)
    if library == "numpyro":
        np.testing.assert_array_equal(
            dist.kl_divergence(dist.Normal(A, B).mask(False), prior()), np.zeros(3)
        )


class TestAccuracy:
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_over_wide_ranges(self, name, dtype, capability):
        capability(
            f"KL({name}, ImproperLogUniform)", "value, first and second derivatives", "numpyro"
        )

        def f(a, b):
            return divergence(name)(a, b).sum()

        def slope(g, i):
            return jax.grad(lambda *x: g(*x).sum(), i)

        with jax.enable_x64(dtype == "float64"):
            given = divergences.FAMILIES[name].points(getattr(np, dtype))
            by_a, by_b = slope(f, 0), slope(f, 1)
            functions = (
                divergence(name),
                by_a,
                by_b,
                slope(by_a, 0),
                slope(by_a, 1),
                slope(by_b, 1),
            )
            results = jax.jit(lambda a, b: [g(a, b) for g in functions])(*given)
            found = dict(zip(divergences.ORDERS, results, strict=True))
            log_c = of_numpyro.ImproperLogUniform().log_c
            worst = divergences.errors(name, getattr(np, dtype), found, log_c)
        by_order = [max(e for o, e in worst.items() if sum(o) == n) for n in range(3)]
        bounds = WORST[name, dtype]
        assert all(e <= b for e, b in zip(by_order, bounds, strict=True)), (by_order, bounds)


class TestEdges:
    def test_loc_zero(self):
        for name, truth in (("Laplace", stats.laplace()), ("Cauchy", stats.cauchy())):
            for scale in (1e-30, 0.5, 1e30):
                value, slopes = jax.value_and_grad(divergence(name), (0, 1))(0.0, scale)
                assert float(value) == pytest.approx(-lk.neg_kl_posterior(truth), rel=5e-7)
                assert [float(x) for x in slopes] == [0.0, 0.0]

    def test_the_second_derivative_of_laplace_has_a_pole(self):
        f = divergence("Laplace")
        assert float(jax.grad(jax.grad(f))(0.0, 1.0)) == math.inf
        assert float(jax.grad(jax.grad(f), 1)(0.0, 1.0)) == 0.0
        assert float(jax.grad(jax.grad(f, 1), 1)(0.0, 1.0)) == 0.0

    def test_an_interval_with_an_edge_at_zero(self):
        f = divergence("Uniform", log_c=0.0)
        value, slopes = jax.value_and_grad(f, (0, 1))(0.0, 3.0)
        assert (float(value), *map(float, slopes)) == (-1.0, math.inf, 0.0)
        value, slopes = jax.value_and_grad(f, (0, 1))(-3.0, 0.0)
        assert (float(value), *map(float, slopes)) == (-1.0, 0.0, -math.inf)

    def test_a_symmetric_interval(self):
        for b in (1e-30, 0.1, 1.0, 1e30):
            value, slopes = jax.value_and_grad(divergence("Uniform", log_c=0.0), (0, 1))(-b, b)
            assert float(value) == np.float32(-1.0 - math.log(2.0))
            assert [float(x) for x in slopes] == [0.0, 0.0]

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_nan_and_what_is_outside_of_the_domain(self, name):
        f = divergence(name, "tensorflow-probability")
        one = jnp.float32(2.0)
        for a, b in ((jnp.nan * one, one), (one, jnp.nan * one), (one, -one)):
            if name != "Gamma" or not jnp.isnan(a):
                assert jnp.isnan(f(a, b))
        assert jnp.isnan(f(jnp.nan * one, one))

    def test_infinite(self):
        for name in ("Laplace", "Cauchy"):
            f = divergence(name, "tensorflow-probability")
            one, infinite = jnp.float32(1.0), jnp.float32(jnp.inf)
            assert float(f(infinite, one)) == float(f(-infinite, one)) == math.inf
            assert float(f(one, infinite)) == float(f(0.0 * one, one))

    @LIBRARY
    def test_student_elsewhere(self, library):
        """It has no closed form: an error where loc is known, NaN where it is traced."""
        message = (
            r"^KL of StudentT has no closed form where loc is not 0: use "
            r"logunif_kl.neg_kl_posterior of scipy.stats.t, or samples of log_prob$"
        )
        loc = jnp.array([0.0, 1.0])
        with pytest.raises(NotImplementedError, match=message):
            kl(library, "StudentT", 3.0, loc, 1.0)
        traced = jax.jit(lambda m: kl(library, "StudentT", 3.0, m, 1.0))(loc)
        assert jnp.isnan(traced).tolist() == [False, True]

    def test_student_of_one_degree_is_cauchy(self):
        def student(loc, scale):
            return kl("numpyro", "StudentT", 1.0, loc, scale)

        for f in (student, divergence("Cauchy")):
            value, slope = jax.jit(jax.value_and_grad(f))(0.0, 2.0)
            assert float(value) == pytest.approx(-lk.neg_kl_posterior(stats.cauchy()), rel=5e-7)
            assert (float(slope), float(jax.jit(jax.grad(jax.grad(f)))(0.0, 2.0))) == (0.0, 0.25)

    @LIBRARY
    @pytest.mark.parametrize("name", ["HalfNormal", "Exponential"])
    def test_what_does_not_depend_on_the_scale(self, library, name):
        scale = jnp.array([1e-30, 1.0, 1e30])
        values, slopes = jax.vmap(jax.value_and_grad(lambda s: kl(library, name, s)))(scale)
        assert len(set(values.tolist())) == 1
        assert slopes.tolist() == [0.0, 0.0, 0.0]


A, B = np.array([0.25, 0.5, 1.5], "float32"), np.array([2.0, 0.75, 7.0], "float32")


class TestTransforms:
    @LIBRARY
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_jit_grad_vmap(self, name, library, capability):
        capability(f"KL({name}, ImproperLogUniform)", "jit, grad, vmap, jvp", library)
        f = divergence(name, library)
        value = f(A, B)
        np.testing.assert_allclose(jax.jit(f)(A, B), value, rtol=1e-6)
        slopes = jax.grad(lambda a, b: f(a, b).sum(), (0, 1))(A, B)
        again, each = jax.vmap(jax.value_and_grad(f, (0, 1)))(A, B)
        np.testing.assert_allclose(again, value, rtol=1e-6)
        np.testing.assert_allclose(each, slopes, rtol=1e-6)
        _, tangent = jax.jvp(f, (A, B), (np.ones_like(A), np.ones_like(B)))
        np.testing.assert_allclose(tangent, slopes[0] + slopes[1], rtol=1e-5)

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_third_derivatives(self, name):
        value = divergences.FAMILIES[name].truth
        with jax.enable_x64(True), mpmath.workdps(40):
            for orders in ((3, 0), (2, 1), (1, 2), (0, 3)):
                f = divergence(name)
                for argument in (0,) * orders[0] + (1,) * orders[1]:
                    f = jax.grad(f, argument)
                got = float(jax.jit(f)(0.5, 0.875))
                truth = mpmath.diff(lambda a, b: value(a, b)[0, 0][0], (0.5, 0.875), orders)
                assert got == pytest.approx(float(truth), rel=1e-13, abs=1e-15)

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_independent_and_expanded(self, name):
        f = divergence(name)
        each = f(A, B)
        assert f(A[:, None], B).shape == (3, 3)
        parameters = (A, np.zeros_like(A), B) if name == "StudentT" else (A, B)
        given, prior = getattr(dist, name)(*parameters), of_numpyro.ImproperLogUniform()
        total = dist.kl_divergence(given.to_event(1), prior.expand([3]).to_event(1))
        np.testing.assert_allclose(total, each.sum(), rtol=1e-6)
        wide = dist.kl_divergence(given.expand([2, 3]), prior.expand([2, 3]))
        np.testing.assert_array_equal(wide, np.broadcast_to(each, (2, 3)))
        theirs = tfd.kl_divergence(
            tfd.Independent(getattr(tfd, name)(*parameters), 1),
            tfd.Independent(of_tfp.ImproperLogUniform(3), 1),
        )
        np.testing.assert_allclose(theirs, each.sum(), rtol=1e-6)
        # and against one prior for all weights
        prior, bare = of_numpyro.ImproperLogUniform(), of_tfp.ImproperLogUniform()
        for posterior in (given.to_event(1), given.expand([2, 3]).to_event(1)):
            total = dist.kl_divergence(posterior, prior)
            assert total.shape == posterior.batch_shape
            np.testing.assert_allclose(total, np.full(total.shape, each.sum()), rtol=1e-6)
        wide = dist.kl_divergence(given.expand([2, 3]), prior)
        np.testing.assert_array_equal(wide, np.broadcast_to(each, (2, 3)))
        given = getattr(tfd, name)(*parameters)
        for posterior, truth in (
            (tfd.Independent(given, 1), each.sum()),
            (tfd.Sample(given, (2, 4)), 8 * each),
            (tfd.BatchBroadcast(given, (2, 3)), np.broadcast_to(each, (2, 3))),
            (tfd.Independent(tfd.BatchBroadcast(given, (2, 3)), 2), 2 * each.sum()),
        ):
            np.testing.assert_allclose(tfd.kl_divergence(posterior, bare), truth, rtol=2e-6)


def test_the_loss_of_numpyro_takes_the_exact_divergence():
    loc, scale = np.array([0.0, 1.0, -3.0], "float32"), np.array([0.1, 1.0, 2.0], "float32")

    def model():
        numpyro.sample("w", of_numpyro.ImproperLogUniform().expand([3]).to_event(1))

    def guide():
        where = numpyro.param("loc", jnp.asarray(loc))
        numpyro.sample("w", dist.Laplace(where, scale).to_event(1))

    svi = SVI(model, guide, numpyro.optim.Adam(1e-2), TraceMeanField_ELBO())
    truth = -sum(
        lk.neg_kl_posterior(stats.laplace(m, s))
        for m, s in zip(loc.tolist(), scale.tolist(), strict=True)
    )
    loss = svi.evaluate(svi.init(jax.random.key(0)))
    assert float(loss) == pytest.approx(truth, rel=1e-6)
