"""KL from each family of posteriors to the prior, in NumPyro and TensorFlow Probability."""

import math
from functools import cache

import mpmath
import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("numpyro")
pytest.importorskip("tensorflow_probability")

import jax
import jax.numpy as jnp
from scipy import stats

import logunif_kl as lk
from logunif_kl._convention import additive_constant
from tests import derivatives, divergences
from tests.derivatives import MU
from tests.jax.libraries import EACH_LIBRARY, IGNORED, NUMPYRO, TFP

pytestmark = IGNORED

OPTIONS = [{}, {"zero_at": 1.0}, {"zero_at": 0.01}, {"log_c": 0.0}, {"log_c": -1.25}]
A, B = np.array([0.25, 0.5, 1.5], "float32"), np.array([2.0, 0.75, 7.0], "float32")


def parameters(name, a, b):
    """The parameters of a family from the two of `tests.divergences`."""
    return (a, jnp.zeros_like(a), b) if name == "StudentT" else (a, b)


def divergence(name, library=NUMPYRO, **options):
    """KL as a function of these two parameters."""
    return lambda a, b: library.kl(library.of(name, *parameters(name, a, b)), **options)


SCIPY = [
    ("LogNormal", (0.0, 1.0), stats.lognorm(1.0)),
    ("LogNormal", (1.5, 0.25), stats.lognorm(0.25, scale=math.exp(1.5))),
    ("LogNormal", (-3.0, 2.0), stats.lognorm(2.0, scale=math.exp(-3.0))),
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


class TestValues:
    @EACH_LIBRARY
    @pytest.mark.parametrize(("name", "given", "same"), SCIPY)
    def test_against_numpy(self, library, name, given, same, capability):
        """By the quadrature of `logunif_kl.neg_kl_posterior`."""
        capability(f"KL({name}, ImproperLogUniform)", "value", library.name)
        for options in OPTIONS:
            truth = -lk.neg_kl_posterior(same, log_c=library.prior(**options).log_c)
            for dtype, error in (("float64", 2.0**-50), ("float32", 2.0**-21)):
                with jax.enable_x64(dtype == "float64"):
                    posterior = library.of(name, *(jnp.asarray(x, dtype) for x in given))
                    got = library.kl(posterior, **options)
                    assert got.dtype == dtype
                    assert abs(float(got) - truth) <= error * max(abs(truth), 1.0)

    def test_log_rate(self):
        """TFP's Gamma takes the logarithm of its rate as well."""
        given = TFP.dist.Gamma(2.0, log_rate=jnp.float32(1.5))
        assert TFP.kl(given) == TFP.kl(TFP.dist.Gamma(2.0, 1.0))

    @EACH_LIBRARY
    def test_half_types(self, library):
        for name in ("Laplace", "Cauchy", "Gamma", "StudentT"):
            a, b = jnp.array([0.3, 1.0, 2.5], "bfloat16"), jnp.array([2.0] * 3, "bfloat16")
            got = divergence(name, library)(a, b)
            truth = divergence(name, library)(a.astype("float32"), b.astype("float32"))
            assert got.dtype == "bfloat16"
            np.testing.assert_array_equal(got, truth.astype("bfloat16"))

    def test_log_normal_is_the_limit_of_normals(self):
        """A narrow Gaussian is log-normal, with sigma/mu as the scale of the logarithm."""
        for options in OPTIONS:
            normal = divergence("Normal", **options)(3.0, 3e-3)
            log_normal = divergence("LogNormal", **options)(math.log(3.0), 1e-3)
            assert math.isclose(normal, log_normal, rel_tol=1e-6)


# sigma over so many powers of e, with mu/sigma over e^+-14: KL loses nothing by the unit of w.
SCALES = {"float32": 35.0, "float64": 300.0}
# The worst error found over two seeds was 4.0 ulp.
SCALES_ULP = 4.0


@cache
def over_scales(dtype):
    """Means and deviations, and KL for ``zero_at=inf``."""
    rng = np.random.default_rng(17)
    scale = np.exp(rng.uniform(-SCALES[dtype], SCALES[dtype], 4000)).astype(dtype)
    loc = (scale * np.exp(rng.uniform(-14, 14, 4000))).astype(dtype)
    # A loss of digits was reported here.
    scale[:500] = np.exp(rng.uniform(-12, -1, 500))
    loc[:500] = scale[:500] * rng.uniform(0.1, 10, 500)
    with mpmath.workdps(30):
        exact = [
            2 * mpmath.log(mpmath.mpf(s) / mpmath.mpf(m))
            for m, s in zip(loc.tolist(), scale.tolist(), strict=True)
        ]
        log_alpha = np.array(exact, "float64")
        rest = np.array([e - x for e, x in zip(exact, log_alpha.tolist(), strict=True)], "float64")
    return loc, scale, -(lk.neg_kl(log_alpha) + lk.neg_kl_grad(log_alpha) * rest)


class TestNormal:
    SCALE = np.array([0.5, 2.0, 1.0, 0.625, 0.75, 0.375, 0.125])

    @EACH_LIBRARY
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_over_scales(self, library, options, capability):
        """The error in ulp of KL without its constant, beyond that of adding the constant."""
        capability("KL(Normal, ImproperLogUniform)", "float32 and float64, jit", library.name)
        constant, f = additive_constant(**options), divergence("Normal", library, **options)
        for dtype in SCALES:
            loc, scale, truth = over_scales(dtype)
            adding = 0.0
            if constant:
                adding = np.spacing(np.abs(truth - constant).astype(dtype)).astype("float64")
                adding += np.spacing(np.asarray(abs(constant), dtype)).astype("float64")
            spacing = np.spacing(truth.astype(dtype)).astype("float64")
            with jax.enable_x64(dtype == "float64"):
                for got in (f(loc, scale), jax.jit(f)(loc, scale)):
                    assert got.dtype == dtype
                    error = np.abs(np.asarray(got, "float64") - (truth - constant))
                    assert (np.maximum(error - adding, 0.0) / spacing).max() <= SCALES_ULP
        assert f(0.0, 0.1) == np.float32(-constant)

    @EACH_LIBRARY
    def test_gradients_are_those_of_kl_normal(self, library, capability):
        """Also at loc = 0, where the usual formula with its logarithm has none."""
        capability("KL(Normal, ImproperLogUniform)", "grad", library.name)
        loc, log_scale = np.array([0.0, 0.5, -2.0]), np.log([0.1, 0.25, 3.0])
        truths = lk.special.neg_kl_normal_and_grad(loc, 2 * log_scale)[1:]
        for options in OPTIONS:
            f = divergence("Normal", library, **options)
            gradient = jax.jit(jax.grad(lambda m, s, f=f: f(m, jnp.exp(s)).sum(), (0, 1)))
            d_loc, d_log_scale = gradient(loc, log_scale)
            np.testing.assert_allclose(d_loc, -truths[0], rtol=5e-7)
            np.testing.assert_allclose(d_log_scale, -2 * truths[1], rtol=5e-7)

    def truth(self, orders):
        """The derivatives in loc and scale."""

        def exact(loc, scale):
            return -derivatives.neg_kl_normal(loc, 2 * mpmath.log(scale))

        step = mpmath.mpf(10) ** -20
        with mpmath.workdps(100):
            return [
                float(mpmath.diff(exact, tuple(map(mpmath.mpf, p)), orders, h=step, relative=False))
                for p in zip(MU.tolist(), self.SCALE.tolist(), strict=True)
            ]

    def test_derivatives_of_all_orders(self, capability):
        capability("KL(Normal, ImproperLogUniform)", "third derivatives", "numpyro")
        f = divergence("Normal")
        with jax.enable_x64(True):
            level = {(0, 0): f}
            for _ in range(3):
                level = {
                    orders: function
                    for (i, j), before in level.items()
                    for orders, function in (
                        ((i + 1, j), jax.grad(before, 0)),
                        ((i, j + 1), jax.jacfwd(before, 1)),
                    )
                }
                each = jax.vmap(lambda m, s, level=level: [g(m, s) for g in level.values()])
                for orders, got in zip(level, jax.jit(each)(MU, self.SCALE), strict=True):
                    assert got.dtype == "float64"
                    # Terms of the size of 1/loc^i 1/scale^j cancel where it has a zero.
                    size = np.abs(MU) ** -orders[0] * self.SCALE ** -orders[1]
                    exact = np.array(self.truth(orders))
                    error = np.abs(got - exact) / np.maximum(np.abs(exact), size)
                    assert error.max() <= {1: 2e-16, 2: 8e-16, 3: 2e-14}[sum(orders)], orders
            # At loc = 0, where KL = loc^2/(2 scale^2) - ..., less the constant.
            second = jax.hessian(f)
            for g, truth in ((second, 64.0), (jax.jacfwd(second, 1), -1024.0)):
                assert math.isclose(jax.jit(g)(0.0, 0.125), truth, rel_tol=2.0**-52)


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
    if library is NUMPYRO:
        if name == "triangular":
            return library.dist.MultivariateNormal(loc, scale_tril=factor)
        return library.dist.LowRankMultivariateNormal(loc, factor, diagonal)
    if name == "triangular":
        return library.dist.MultivariateNormalTriL(loc, factor)
    return library.dist.MultivariateNormalDiagPlusLowRankCovariance(loc, diagonal, factor)


class TestCorrelatedWeights:
    @pytest.mark.parametrize(("name", "dtype"), GAUSSIANS)
    def test_value_and_slopes_over_wide_ranges(self, name, dtype):
        f = jax.jit(
            jax.value_and_grad(lambda arrays: NUMPYRO.kl(correlated(NUMPYRO, name, *arrays)))
        )
        worst = [0.0, 0.0]
        with jax.enable_x64(dtype == "float64"):
            for given in getattr(divergences, name)(getattr(np, dtype)):
                errors = divergences.gaussian_errors(given, *f(given.arrays))
                worst = [max(pair) for pair in zip(worst, errors, strict=True)]
        assert all(e <= b for e, b in zip(worst, GAUSSIANS[name, dtype], strict=True)), worst

    @EACH_LIBRARY
    def test_against_the_chain_rule(self, library):
        loc, covariance = np.array([0.5, -1.0]), np.array([[1.0, 0.6], [0.6, 0.7]])
        truth, dist = divergences.kl_of_pair(loc, covariance), library.dist
        with jax.enable_x64(True):
            if library is NUMPYRO:
                given = [
                    dist.MultivariateNormal(loc, covariance),
                    dist.MultivariateNormal(loc, precision_matrix=np.linalg.inv(covariance)),
                ]
            else:
                given = [
                    dist.MultivariateNormalFullCovariance(loc, covariance),
                    dist.MultivariateNormalTriL(loc, np.linalg.cholesky(covariance)),
                ]
            for p in given:
                assert library.kl(p) == pytest.approx(truth, rel=1e-12)
                moved = library.kl(p, log_c=library.prior().log_c + 0.5)
                assert moved == pytest.approx(truth - 1.0, rel=1e-12)

    @EACH_LIBRARY
    @pytest.mark.parametrize("name", ["triangular", "low_rank"])
    def test_shapes(self, library, name):
        diagonal, of = np.ones(3, "float32"), library.prior_of_vectors
        one = library.kl(correlated(library, name, A, TRIL, diagonal))
        assert one.shape == ()
        wide = correlated(library, name, np.broadcast_to(A, (4, 1, 3)), TRIL, diagonal)
        for q in (library.prior(), of(3), of(4, 1, 3)):
            np.testing.assert_allclose(library.kl(wide, q), np.full((4, 1), one), rtol=1e-6)
        assert library.kl(wide, of(2, 3)).shape == (4, 2)
        total = library.kl(library.dist.Independent(wide, 2))
        np.testing.assert_allclose(total, 4 * one, rtol=1e-6)

    @EACH_LIBRARY
    def test_a_prior_of_other_weights(self, library):
        normal = library.dist.Normal(A, B)
        posteriors = [
            correlated(library, "triangular", A, TRIL),
            correlated(library, "low_rank", A, TRIL, A),
            library.dist.Independent(normal, 1),
        ]
        if library is NUMPYRO:
            posteriors.append(posteriors[0].expand([2]))
        for p in posteriors:
            with pytest.raises(
                ValueError,
                match=r"^a posterior of event shape \(3,\) and an ImproperLogUniform of event "
                r"shape \(\) and batch shape \(3,\) were given: pass ImproperLogUniform\(\), one ",
            ):
                library.kl(p, library.prior(3))
        with pytest.raises(
            ValueError,
            match=r"^a posterior of batch shape \(3,\) and an ImproperLogUniform of batch shape "
            r"\(2,\) do not broadcast: pass ImproperLogUniform\(\), one prior for all weights$",
        ):
            library.kl(normal, library.prior(2))

    @EACH_LIBRARY
    def test_transforms(self, library):
        def f(loc, factor):
            return library.kl(correlated(library, "triangular", loc, factor))

        locs = np.stack([A, B, -A])
        each = np.array([f(loc, TRIL) for loc in locs])
        np.testing.assert_allclose(jax.vmap(f, (0, None))(locs, TRIL), each, rtol=1e-6)
        (_, mixed), (other, _) = jax.jit(jax.hessian(f, (0, 1)))(A, TRIL)
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

    def test_a_scale_of_low_rank(self):
        def f(loc, diagonal, factor):
            p = TFP.dist.MultivariateNormalDiagPlusLowRank(
                loc, diagonal, scale_perturb_factor=factor
            )
            return TFP.kl(p)

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


@EACH_LIBRARY
def test_posteriors_without_a_closed_form(library):
    gumbel = library.dist.Gumbel(A, B)
    for p in (gumbel, library.dist.Independent(gumbel, 1)):
        with pytest.raises(
            NotImplementedError,
            match=r"^KL of Gumbel from ImproperLogUniform has no closed form here: use "
            r"logunif_kl.neg_kl_posterior of the same distribution in scipy.stats, or samples",
        ):
            library.kl(p)
    other = library.dist.Independent(library.dist.Normal(A, B), 1)
    with pytest.raises(NotImplementedError, match="Independent"):
        library.kl(correlated(library, "triangular", A, TRIL), other)


@EACH_LIBRARY
def test_masked(library):
    """A masked weight has no KL and no slope; the bare prior takes the mask of the posterior."""
    Normal, Independent = library.dist.Normal, library.dist.Independent
    mask = jnp.array([True, False, True])

    def f(loc):
        return library.kl(library.masked(Normal(loc, B, validate_args=False), mask))

    each, slopes = jax.vmap(jax.value_and_grad(divergence("Normal", library)))(A, B)
    np.testing.assert_allclose(f(A), jnp.where(mask, each, 0.0), rtol=1e-6)
    np.testing.assert_array_equal(f(np.where(mask, A, np.nan)), f(A))
    np.testing.assert_allclose(
        jax.grad(lambda loc: f(loc).sum())(A), jnp.where(mask, slopes, 0.0), rtol=1e-6
    )
    total = library.kl(Independent(library.masked(Normal(A, B), mask), 1))
    np.testing.assert_allclose(total, f(A).sum(), rtol=1e-6)
    rows = Independent(Normal(np.stack([A, A]), B), 1)
    got = library.kl(library.masked(rows, jnp.array([True, False])))
    np.testing.assert_allclose(got, [each.sum(), 0.0], rtol=1e-6)
    if library is NUMPYRO:
        np.testing.assert_array_equal(library.kl(Normal(A, B).mask(False)), np.zeros(3))


class TestAccuracy:
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_over_wide_ranges(self, name, dtype, capability):
        capability(
            f"KL({name}, ImproperLogUniform)", "value, first and second derivatives", "numpyro"
        )
        f = divergence(name)

        def slope(g, i):
            return jax.grad(lambda *x: g(*x).sum(), i)

        by_a, by_b = slope(f, 0), slope(f, 1)
        functions = [f, by_a, by_b, slope(by_a, 0), slope(by_a, 1), slope(by_b, 1)]
        with jax.enable_x64(dtype == "float64"):
            given = divergences.FAMILIES[name].points(getattr(np, dtype))
            results = jax.jit(lambda a, b: [g(a, b) for g in functions])(*given)
            found = dict(zip(divergences.ORDERS, results, strict=True))
            worst = divergences.errors(name, getattr(np, dtype), found, NUMPYRO.prior().log_c)
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
        for orders, truth in (((0, 0), math.inf), ((0, 1), 0.0), ((1, 1), 0.0)):
            g = jax.grad(jax.grad(f, orders[0]), orders[1])
            assert float(g(0.0, 1.0)) == truth

    def test_uniform(self):
        """An edge at zero, and symmetric intervals."""
        f = jax.jit(jax.value_and_grad(divergence("Uniform", log_c=0.0), (0, 1)))
        for edges, value, slopes in (
            ((0.0, 3.0), -1.0, (math.inf, 0.0)),
            ((-3.0, 0.0), -1.0, (0.0, -math.inf)),
            *(((-b, b), -1.0 - math.log(2.0), (0.0, 0.0)) for b in (1e-30, 0.1, 1.0, 1e30)),
        ):
            found, slopes_found = f(*edges)
            assert (found, slopes_found) == (np.float32(value), slopes)

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_nan_and_what_is_outside_of_the_domain(self, name):
        f, one = divergence(name, TFP), jnp.float32(2.0)
        for a, b in ((jnp.nan * one, one), (one, jnp.nan * one), (one, -one)):
            assert jnp.isnan(f(a, b))

    def test_infinite(self):
        for name in ("Laplace", "Cauchy"):
            f, one, infinite = divergence(name, TFP), jnp.float32(1.0), jnp.float32(jnp.inf)
            assert float(f(infinite, one)) == float(f(-infinite, one)) == math.inf
            assert float(f(one, infinite)) == float(f(0.0 * one, one))

    @EACH_LIBRARY
    def test_student_elsewhere(self, library):
        """It has no closed form: an error where loc is known, NaN where it is traced."""
        message = (
            r"^KL of StudentT has no closed form where loc is not 0: use "
            r"logunif_kl.neg_kl_posterior of scipy.stats.t, or samples of log_prob$"
        )

        def f(loc):
            return library.kl(library.dist.StudentT(3.0, loc, 1.0))

        loc = jnp.array([0.0, 1.0])
        with pytest.raises(NotImplementedError, match=message):
            f(loc)
        assert jnp.isnan(jax.jit(f)(loc)).tolist() == [False, True]

    def test_student_of_one_degree_is_cauchy(self):
        def student(loc, scale):
            return NUMPYRO.kl(NUMPYRO.dist.StudentT(1.0, loc, scale))

        for f in (student, divergence("Cauchy")):
            value, slope = jax.jit(jax.value_and_grad(f))(0.0, 2.0)
            assert float(value) == pytest.approx(-lk.neg_kl_posterior(stats.cauchy()), rel=5e-7)
            assert (float(slope), float(jax.jit(jax.grad(jax.grad(f)))(0.0, 2.0))) == (0.0, 0.25)

    @EACH_LIBRARY
    @pytest.mark.parametrize("name", ["HalfNormal", "Exponential"])
    def test_what_does_not_depend_on_the_scale(self, library, name):
        scale = jnp.array([1e-30, 1.0, 1e30])
        f = jax.value_and_grad(lambda s: library.kl(library.of(name, s)))
        values, slopes = jax.vmap(f)(scale)
        assert len(set(values.tolist())) == 1
        assert slopes.tolist() == [0.0, 0.0, 0.0]


class TestTransforms:
    @EACH_LIBRARY
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_jit_grad_vmap(self, name, library, capability):
        capability(f"KL({name}, ImproperLogUniform)", "jit, grad, vmap, jvp", library.name)
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
        level = [((0, 0), divergence(name))]
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
                truth = mpmath.diff(lambda a, b: value(a, b)[0, 0][0], (0.5, 0.875), orders)
                assert float(got) == pytest.approx(float(truth), rel=1e-13, abs=1e-15)

    @EACH_LIBRARY
    @pytest.mark.parametrize("name", ["Normal", "LogNormal", *divergences.FAMILIES])
    def test_independent_and_expanded(self, name, library, capability):
        if "Normal" in name:
            how = "to_event, expand" if library is NUMPYRO else "Independent"
            capability(f"KL({name}, ImproperLogUniform)", how, library.name)
        f, Independent = divergence(name, library), library.dist.Independent
        each, total = f(A, B), f(A, B).sum()
        assert f(A[:, None], B).shape == (3, 3)
        given = library.of(name, *parameters(name, A, B))
        wide = library.broadcast(given, 2, 3)
        for posterior, prior, truth in (
            (Independent(given, 1), library.prior_of_vectors(3), total),
            (wide, library.prior(2, 3), np.broadcast_to(each, (2, 3))),
            # and against one prior for all weights
            (Independent(given, 1), None, total),
            (Independent(wide, 1), None, np.full(2, total)),
            (Independent(wide, 2), None, 2 * total),
            (wide, None, np.broadcast_to(each, (2, 3))),
        ):
            got = library.kl(posterior, prior)
            assert got.shape == np.shape(truth)
            np.testing.assert_allclose(got, truth, rtol=2e-6)
        if library is TFP:
            sample = TFP.dist.Sample(given, (2, 4))
            np.testing.assert_allclose(library.kl(sample), 8 * each, rtol=2e-6)
