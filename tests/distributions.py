"""The prior as a distribution, and KL from other posteriors: tests that the libraries share."""

import math
from contextlib import nullcontext
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import logunif_kl as lk
from logunif_kl._convention import PROPER_CONSTANT, additive_constant
from tests import divergences

OPTIONS = [{}, {"zero_at": 1.0}, {"zero_at": 0.01}, {"log_c": 0.0}, {"log_c": -1.25}]
A, B = np.array([0.25, 0.5, 1.5], "float32"), np.array([2.0, 0.75, 7.0], "float32")
TRIL = np.array([[1, 0, 0], [0.3, 0.5, 0], [0.1, -0.2, 0.2]], "float32")
COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.7]])
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
# sigma over so many powers of e, with mu/sigma over e^+-14: KL loses nothing by the unit of w.
SCALES = {"float32": 35.0, "float64": 300.0}
# The worst error found over two seeds was 4.0 ulp.
SCALES_ULP = 4.0


class Library:
    """A library of distributions, and its framework."""

    name: str
    dist: Any
    kind: type
    """Our prior."""

    xp: Any
    """The framework's functions of arrays."""

    rows: tuple[str, ...] = ()
    """The transforms that the capability table has rows of."""

    student_checks_df = True
    """Whether StudentT makes a Chi2, which checks its argument even so."""

    no_closed_form: str
    """The error about a posterior without a rule."""

    def array(self, x: Any, dtype: str = "float32") -> Any:
        """Return an array of the framework."""
        raise NotImplementedError

    def keeping(self, dtype: str) -> Any:
        """Return a context in which arrays keep this type."""
        return nullcontext()

    def compiled(self, f: Any) -> Any:
        return f

    def detached(self, x: Any) -> Any:
        """Return a result that NumPy can read."""
        return x

    def slope(self, f: Any, i: int) -> Any:
        """Return the derivative of the sum of f in argument i, as another function."""
        raise NotImplementedError

    def prior(self, *shape: int, **options: float) -> Any:
        """Return the prior of weights of this shape."""
        made = self.kind(**options)
        return made.expand(shape) if shape else made

    def prior_of_vectors(self, *shape: int, **options: float) -> Any:
        return self.dist.Independent(self.prior(*shape, **options), 1)

    def kl(self, posterior: Any, prior: Any = None, **options: float) -> Any:
        """Return KL to a prior, by default to that of one weight."""
        q = self.prior(**options) if prior is None else prior
        return self.dist.kl_divergence(posterior, q)

    def of(self, name: str, *parameters: Any) -> Any:
        return getattr(self.dist, name)(*parameters)

    def of_two(self, name: str, a: Any, b: Any) -> Any:
        """Return a posterior from the two parameters of `tests.divergences`."""
        return self.of(name, *((a, self.xp.zeros_like(a), b) if name == "StudentT" else (a, b)))

    def divergence(self, name: str, **options: float) -> Any:
        """Return KL as a function of these two parameters."""
        return lambda a, b: self.kl(self.of_two(name, a, b), **options)

    def correlated(self, name: str, loc: Any, factor: Any, diagonal: Any = None) -> Any:
        """Return a posterior of vectors of the arrays of `tests.divergences`."""
        if name == "triangular":
            return self.dist.MultivariateNormal(loc, scale_tril=factor)
        return self.dist.LowRankMultivariateNormal(loc, factor, diagonal)

    def of_covariance(self, loc: Any, covariance: np.ndarray) -> list[Any]:
        """Return posteriors of this covariance, by each parameter that the library has for it."""
        parameters = {
            "covariance_matrix": covariance,
            "precision_matrix": np.linalg.inv(covariance),
            "scale_tril": np.linalg.cholesky(covariance),
        }
        loc = self.array(loc, "float64")
        return [
            self.dist.MultivariateNormal(loc, **{name: self.array(x, "float64")})
            for name, x in parameters.items()
        ]

    def broadcast(self, posterior: Any, *shape: int) -> Any:
        return posterior.expand(shape)


@cache
def over_scales(dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and deviations, and KL for ``zero_at=inf``."""
    # Rounded once, because the bits of NumPy's exponentials depend on the processor.
    exponentials = np.vectorize(lambda x: float(mpmath.exp(x)), otypes=[float])
    rng = np.random.default_rng(17)
    scale = exponentials(rng.uniform(-SCALES[dtype], SCALES[dtype], 4000)).astype(dtype)
    loc = (scale * exponentials(rng.uniform(-14, 14, 4000))).astype(dtype)
    # A loss of digits was reported here.
    scale[:500] = exponentials(rng.uniform(-12, -1, 500))
    loc[:500] = scale[:500] * rng.uniform(0.1, 10, 500)
    with mpmath.workdps(30):
        exact = [
            2 * mpmath.log(mpmath.mpf(s) / mpmath.mpf(m))
            for m, s in zip(loc.tolist(), scale.tolist(), strict=True)
        ]
        log_alpha = np.array(exact, "float64")
        rest = np.array([e - x for e, x in zip(exact, log_alpha.tolist(), strict=True)], "float64")
    return loc, scale, -(lk.neg_kl(log_alpha) + lk.neg_kl_grad(log_alpha) * rest)


class Tests:
    """A subclass is tried with each library of the fixture ``library`` in its module."""

    main: Library
    """What is the same in all libraries of a framework is tried with this one."""

    worst: dict[tuple[str, str], tuple[float, ...]]
    """The worst errors measured, in units of eps of the largest term, by the order."""

    gaussians: dict[tuple[str, str], tuple[float, float]]
    """The worst errors of KL of correlated weights, by `divergences.gaussian_errors`."""

    @pytest.fixture
    def shown(self, record_property):
        """Record that a test shows a divergence under a transform, for the capability table."""

        def record(name, transform, library=self.main):
            if transform in library.rows:
                row = f"KL({name}, ImproperLogUniform):{library.name}:{transform}"
                record_property("capability", row)

        return record


class Priors(Tests):
    def test_log_prob(self, library):
        w = np.array([-2.0, 0.5, 0.0, 1e30], "float32")
        with np.errstate(divide="ignore"):
            truth = 0.75 - np.log(np.abs(w))
        found = library.prior(log_c=0.75).log_prob(library.array(w))
        np.testing.assert_allclose(found, truth, rtol=3e-7)
        assert library.prior(2, 4).log_prob(library.array(w)).shape == (2, 4)

    def test_log_c(self, library):
        assert library.prior().log_c == -PROPER_CONSTANT
        assert library.prior(log_c=0.1).log_c == 0.1
        assert library.prior(zero_at=1.0).log_c == -lk.neg_kl(0.0) - PROPER_CONSTANT
        assert library.prior(3, zero_at=2.0).log_c == library.prior(zero_at=2.0).log_c

    def test_shapes(self, library):
        prior = library.prior(2, 3)
        assert (tuple(prior.batch_shape), tuple(prior.event_shape)) == ((2, 3), ())
        assert library.kl(library.dist.Normal(0.5, 1.0), prior).shape == (2, 3)
        vectors = library.prior_of_vectors(4, 3)
        assert (tuple(vectors.batch_shape), tuple(vectors.event_shape)) == ((4,), (3,))
        assert vectors.log_prob(library.array(np.ones((4, 3)))).shape == (4,)

    def test_wrong_constants(self, library):
        message = "^zero_at=1.0 and log_c=0.0 were both given, and each fixes the constant"
        with pytest.raises(ValueError, match=message):
            library.prior(zero_at=1.0, log_c=0.0)
        with pytest.raises(ValueError, match="zero_at must be a positive alpha"):
            library.prior(zero_at=-1.0)
        with pytest.raises(TypeError, match="log_c must be one real number"):
            library.prior(log_c="1")


class Values(Tests):
    @pytest.mark.parametrize(("name", "given", "same"), SCIPY)
    def test_against_numpy(self, library, name, given, same, shown):
        """By the quadrature of `logunif_kl.neg_kl_posterior`."""
        shown(name, "value", library)
        for options in OPTIONS:
            truth = -lk.neg_kl_posterior(same, log_c=library.prior(**options).log_c)
            for dtype, error in (("float64", 2.0**-50), ("float32", 2.0**-21)):
                with library.keeping(dtype):
                    posterior = library.of(name, *(library.array(x, dtype) for x in given))
                    got = library.kl(posterior, **options)
                    assert got.dtype == library.array(0.0, dtype).dtype
                    assert abs(float(got) - truth) <= error * max(abs(truth), 1.0)

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_normal_over_scales(self, library, options, shown):
        """The error in ulp of KL without its constant, beyond that of adding the constant."""
        shown("Normal", "float32 and float64, jit", library)
        constant, f = additive_constant(**options), library.divergence("Normal", **options)
        for dtype in SCALES:
            loc, scale, truth = over_scales(dtype)
            adding = 0.0
            if constant:
                adding = np.spacing(np.abs(truth - constant).astype(dtype)).astype("float64")
                adding += np.spacing(np.asarray(abs(constant), dtype)).astype("float64")
            spacing = np.spacing(truth.astype(dtype)).astype("float64")
            with library.keeping(dtype):
                given = library.array(loc, dtype), library.array(scale, dtype)
                for got in (f(*given), library.compiled(f)(*given)):
                    assert got.dtype == given[0].dtype
                    error = np.abs(np.asarray(got, "float64") - (truth - constant))
                    assert (np.maximum(error - adding, 0.0) / spacing).max() <= SCALES_ULP
        assert f(library.array(0.0), library.array(0.1)) == np.float32(-constant)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    @pytest.mark.parametrize("name", ["Laplace", "Cauchy", "Uniform", "Gamma", "StudentT"])
    def test_half_types(self, library, name, dtype):
        f = library.divergence(name)
        half = [library.array(x, dtype) for x in ([0.3, 1.0, 2.5], [3.0] * 3)]
        got, truth = f(*half), f(*(library.array(x, "float32") for x in half))
        assert got.dtype == half[0].dtype
        assert (got == library.array(truth, dtype)).all()

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_over_wide_ranges(self, name, dtype, shown):
        shown(name, "value, first and second derivatives")
        f, slope = self.main.divergence(name), self.main.slope
        by_a, by_b = slope(f, 0), slope(f, 1)
        functions = [f, by_a, by_b, slope(by_a, 0), slope(by_a, 1), slope(by_b, 1)]
        with self.main.keeping(dtype):
            points = divergences.FAMILIES[name].points(getattr(np, dtype))
            given = [self.main.array(x, dtype) for x in points]
            results = self.main.compiled(lambda a, b: [g(a, b) for g in functions])(*given)
            numbers = [np.asarray(self.main.detached(result)) for result in results]
        found = dict(zip(divergences.ORDERS, numbers, strict=True))
        worst = divergences.errors(name, getattr(np, dtype), found, self.main.prior().log_c)
        by_order = [max(e for o, e in worst.items() if sum(o) == n) for n in range(3)]
        bounds = self.worst[name, dtype]
        assert all(e <= b for e, b in zip(by_order, bounds, strict=True)), (by_order, bounds)


class Edges(Tests):
    def at(self, f, *point, dtype="float32"):
        """Return a function and its two derivatives at one point."""
        given = [self.main.array(x, dtype) for x in point]
        functions = (f, self.main.slope(f, 0), self.main.slope(f, 1))
        return [float(self.main.detached(g(*given))) for g in functions]

    @pytest.mark.parametrize("name", ["Laplace", "Cauchy"])
    def test_loc_zero(self, name):
        truth = -lk.neg_kl_posterior(getattr(stats, name.lower())())
        for dtype, error in (("float32", 5e-7), ("float64", 1e-15)):
            for scale in (1e-30, 0.5, 1e30):
                with self.main.keeping(dtype):
                    f = self.main.divergence(name)
                    value, *slopes = self.at(f, 0.0, scale, dtype=dtype)
                assert value == pytest.approx(truth, rel=error)
                assert slopes == [0.0, 0.0]

    def test_the_second_derivative_of_laplace_has_a_pole(self):
        for i, truths in ((0, [math.inf, 0.0]), (1, [0.0, 0.0])):
            slope = self.main.slope(self.main.divergence("Laplace"), i)
            assert self.at(slope, 0.0, 1.0)[1:] == truths

    @pytest.mark.parametrize(
        ("edges", "value", "slopes"),
        [
            ((0.0, 3.0), -1.0, [math.inf, 0.0]),
            ((-3.0, 0.0), -1.0, [0.0, -math.inf]),
            *(((-b, b), -1.0 - math.log(2.0), [0.0, 0.0]) for b in (1e-30, 0.1, 1.0, 1e30)),
        ],
    )
    def test_uniform(self, edges, value, slopes):
        """An edge at zero, where E log|w| = log(high) - 1, and symmetric intervals."""
        found = self.at(self.main.divergence("Uniform", log_c=0.0), *edges)
        assert found == [np.float32(value), *slopes]

    @pytest.mark.parametrize("name", divergences.FAMILIES)
    def test_nan_and_what_is_outside_of_the_domain(self, library, name):
        f, one, undefined = library.divergence(name), library.array(2.0), library.array(math.nan)
        for pair in ((undefined, one), (one, undefined), (one, -one)):
            checked = name == "StudentT" and library.student_checks_df
            if not (checked and pair[0] is undefined):
                assert library.xp.isnan(f(*pair))

    @pytest.mark.parametrize("name", ["Laplace", "Cauchy"])
    def test_infinite(self, library, name):
        f, one, infinite = library.divergence(name), library.array(1.0), library.array(math.inf)
        assert float(f(infinite, one)) == float(f(-infinite, one)) == math.inf
        assert float(f(one, infinite)) == float(f(0.0 * one, one))
        assert library.xp.isnan(f(infinite, infinite))

    def test_student_elsewhere(self, library):
        message = (
            r"^KL of StudentT has no closed form where loc is not 0: use "
            r"logunif_kl.neg_kl_posterior of scipy.stats.t, or samples of log_prob$"
        )
        for loc, scale in (([0.0, 1.0], 1.0), ([1e-35], 1e30)):
            with pytest.raises(NotImplementedError, match=message):
                library.kl(library.of("StudentT", 3.0, library.array(loc), scale))

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_student_of_one_degree_is_cauchy(self, dtype):
        def student(loc, scale):
            return self.main.kl(self.main.of("StudentT", self.main.xp.ones_like(loc), loc, scale))

        truth = -lk.neg_kl_posterior(stats.cauchy())
        for f in (student, self.main.divergence("Cauchy")):
            with self.main.keeping(dtype):
                value, slope, _ = self.at(f, 0.0, 2.0, dtype=dtype)
                curvature = self.at(self.main.slope(f, 0), 0.0, 2.0, dtype=dtype)[1]
            assert value == pytest.approx(truth, rel=5e-7 if dtype == "float32" else 1e-15)
            assert (slope, curvature) == (0.0, 0.25)

    @pytest.mark.parametrize("name", ["HalfNormal", "Exponential"])
    def test_what_does_not_depend_on_the_scale(self, library, name):
        scale = library.array([1e-30, 1.0, 1e30])

        def f(scale):
            return library.kl(library.of(name, scale))

        assert len(set(f(scale).tolist())) == 1
        assert library.slope(f, 0)(scale).tolist() == [0.0, 0.0, 0.0]

    def test_without_a_closed_form(self, library):
        gumbel = library.dist.Gumbel(library.array(A), library.array(B))
        for p in (gumbel, library.dist.Independent(gumbel, 1)):
            with pytest.raises(NotImplementedError, match=library.no_closed_form):
                library.kl(p)


class Shapes(Tests):
    @pytest.mark.parametrize("name", ["Normal", "LogNormal", *divergences.FAMILIES])
    def test_independent_and_expanded(self, name, library, shown):
        if "Normal" in name:
            for how in ("to_event, expand", "Independent"):
                shown(name, how, library)
        f, Independent = library.divergence(name), library.dist.Independent
        a, b = library.array(A), library.array(B)
        each, total = f(a, b), f(a, b).sum()
        assert f(a[:, None], b).shape == (3, 3)
        assert f(a[:0, None], b).shape == (0, 3)
        given = library.of_two(name, a, b)
        wide = library.broadcast(given, 2, 3)
        for posterior, prior, truth in (
            (Independent(given, 1), library.prior_of_vectors(3), total),
            (wide, library.prior(2, 3), np.broadcast_to(each, (2, 3))),
            (given, library.prior(2, 3), np.broadcast_to(each, (2, 3))),
            # and against one prior for all weights
            (Independent(given, 1), None, total),
            (Independent(wide, 1), None, np.full(2, total)),
            (Independent(Independent(wide, 1), 1), None, 2 * total),
            (Independent(wide, 2), None, 2 * total),
            (wide, None, np.broadcast_to(each, (2, 3))),
        ):
            got = library.kl(posterior, prior)
            assert got.shape == np.shape(truth)
            np.testing.assert_allclose(got, truth, rtol=2e-6)

    @pytest.mark.parametrize("name", ["triangular", "low_rank"])
    def test_correlated(self, library, name):
        arrays = library.array(TRIL), library.array(np.ones(3))
        of = library.prior_of_vectors
        single = library.correlated(name, library.array(A), *arrays)
        one = library.kl(single)
        assert one.shape == ()
        assert library.kl(single, of(5, 3)).shape == (5,)
        wide = library.correlated(name, library.array(np.broadcast_to(A, (4, 1, 3))), *arrays)
        for q in (library.prior(), of(3), of(4, 1, 3)):
            np.testing.assert_allclose(library.kl(wide, q), np.full((4, 1), one), rtol=1e-6)
        assert library.kl(wide, of(2, 3)).shape == (4, 2)
        total = library.kl(library.dist.Independent(wide, 2))
        np.testing.assert_allclose(total, 4 * one, rtol=1e-6)

    def test_a_prior_of_other_weights(self, library):
        a, b, tril = (library.array(x) for x in (A, B, TRIL))
        normal = library.dist.Normal(a, b)
        for p in (
            library.correlated("triangular", a, tril),
            library.correlated("low_rank", a, tril, a),
            library.dist.Independent(normal, 1),
        ):
            with pytest.raises(
                ValueError,
                match=r"^a posterior of event shape \(3,\) and an ImproperLogUniform of event "
                r"shape \(\) and batch shape \(3,\) were given: pass ImproperLogUniform\(\), one "
                r"prior for all weights, or an Independent of the posterior's event shape$",
            ):
                library.kl(p, library.prior(3))
        with pytest.raises(
            ValueError,
            match=r"^a posterior of batch shape \(3,\) and an ImproperLogUniform of batch shape "
            r"\(2,\) do not broadcast: pass ImproperLogUniform\(\), one prior for all weights$",
        ):
            library.kl(normal, library.prior(2))

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("name", ["triangular", "low_rank"])
    def test_correlated_over_wide_ranges(self, name, dtype):
        def f(*arrays):
            return self.main.kl(self.main.correlated(name, *arrays))

        worst = [0.0, 0.0]
        with self.main.keeping(dtype):
            for given in getattr(divergences, name)(getattr(np, dtype)):
                arrays = [self.main.array(x, dtype) for x in given.arrays]
                functions = [f, *(self.main.slope(f, i) for i in range(len(arrays)))]
                every = self.main.compiled(lambda *x: [g(*x) for g in functions])  # noqa: B023
                value, *slopes = (np.asarray(self.main.detached(y)) for y in every(*arrays))
                errors = divergences.gaussian_errors(given, value, slopes)
                worst = [max(pair) for pair in zip(worst, errors, strict=True)]
        bounds = self.gaussians[name, dtype]
        assert all(e <= b for e, b in zip(worst, bounds, strict=True)), worst

    def test_against_the_chain_rule(self, library):
        loc = np.array([0.5, -1.0])
        truth = divergences.kl_of_pair(loc, COVARIANCE)
        with library.keeping("float64"):
            for p in library.of_covariance(loc, COVARIANCE):
                assert float(library.kl(p)) == pytest.approx(truth, rel=1e-12)
                moved = library.kl(p, log_c=library.prior().log_c + 0.5)
                assert float(moved) == pytest.approx(truth - 1.0, rel=1e-12)

    def test_correlated_in_a_half_type(self, library):
        half = [library.array(x, "bfloat16") for x in (A, TRIL)]
        got = library.kl(library.correlated("triangular", *half))
        assert got.dtype == half[0].dtype
        exact = library.correlated("triangular", *(library.array(x, "float32") for x in half))
        assert float(got) == pytest.approx(float(library.kl(exact)), rel=2.0**-8)
