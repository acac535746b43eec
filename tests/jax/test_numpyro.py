"""The prior in NumPyro: densities, divergences against the integrals, and models."""

import math
import operator

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("numpyro")

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO, TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal
from scipy import stats

import logunif_kl as lk
import logunif_kl.jax as lj
from logunif_kl._convention import PROPER_CONSTANT, additive_constant
from logunif_kl.jax.numpyro import ImproperLogUniform
from tests.jax.cases import SCALES_ULP, assert_derivatives_of_all_orders, error_over_scales

OPTIONS = [{}, {"zero_at": 1.0}, {"zero_at": 0.01}, {"log_c": 0.0}, {"log_c": -1.25}]
LOC = np.array([0.0, 0.5, -2.0], "float32")
SCALE = np.array([0.1, 0.25, 3.0], "float32")


@pytest.mark.parametrize("options", OPTIONS)
class TestConstant:
    """One prior, so one log C, for every posterior and for the density."""

    def test_normal(self, options, capability):
        capability("KL(Normal, ImproperLogUniform)", "float32 and float64, jit", "numpyro")

        def divergence(loc, scale):
            return dist.kl_divergence(dist.Normal(loc, scale), ImproperLogUniform(**options))

        for dtype in ("float32", "float64"):
            with jax.enable_x64(dtype == "float64"):
                assert error_over_scales(divergence, dtype, options) <= SCALES_ULP[dtype]
        assert divergence(0.0, 0.1) == np.float32(-additive_constant(**options))

    def test_log_normal_against_the_integral(self, options, capability):
        """Eq. 38 of Kingma et al. (2015), by quadrature of another module."""
        capability("KL(LogNormal, ImproperLogUniform)", "value", "numpyro")
        log_c = ImproperLogUniform(**options).log_c
        for loc, scale in ((0.0, 1.0), (1.5, 0.25), (-3.0, 2.0)):
            got = dist.kl_divergence(dist.LogNormal(loc, scale), ImproperLogUniform(**options))
            posterior = stats.lognorm(scale, scale=math.exp(loc))
            truth = -lk.neg_kl_posterior(posterior, log_c=log_c)
            assert math.isclose(got, truth, rel_tol=2e-6)

    def test_monte_carlo_of_the_densities(self, options):
        """The definition, E log q - E log p, with the prior's own log_prob."""
        prior = ImproperLogUniform(**options)
        for posterior in (dist.Normal(0.75, 0.5), dist.LogNormal(0.25, 0.5)):
            w = posterior.sample(jax.random.key(4), (100_000,))
            terms = posterior.log_prob(w) - prior.log_prob(w)
            error = terms.std() / math.sqrt(terms.size)
            assert abs(terms.mean() - dist.kl_divergence(posterior, prior)) < 4 * error < 0.05

    def test_log_normal_is_the_limit_of_normals(self, options):
        """A narrow Gaussian is log-normal, with sigma/mu as the scale of the logarithm."""
        prior = ImproperLogUniform(**options)
        normal = dist.kl_divergence(dist.Normal(3.0, 3e-3), prior)
        log_normal = dist.kl_divergence(dist.LogNormal(math.log(3.0), 1e-3), prior)
        assert math.isclose(normal, log_normal, rel_tol=1e-6)


class TestPrior:
    def test_log_prob(self):
        w = np.array([-2.0, 0.5, 0.0, 1e30], "float32")
        with np.errstate(divide="ignore"):
            truth = 0.75 - np.log(np.abs(w))
        np.testing.assert_allclose(ImproperLogUniform(log_c=0.75).log_prob(w), truth, rtol=3e-7)

    def test_log_c(self):
        assert ImproperLogUniform().log_c == -PROPER_CONSTANT
        assert ImproperLogUniform(log_c=0.1).log_c == 0.1
        at_one = lk.neg_kl(0.0) * -1 - PROPER_CONSTANT
        assert ImproperLogUniform(zero_at=1.0).log_c == at_one

    def test_shapes(self):
        prior = ImproperLogUniform().expand([4, 3]).to_event(1)
        assert (prior.batch_shape, prior.event_shape) == ((4,), (3,))
        assert prior.log_prob(jnp.ones((4, 3))).shape == (4,)
        assert prior.support.event_dim == 1
        expanded = ImproperLogUniform(zero_at=2.0).expand([3]).expand([4, 3])
        assert expanded.batch_shape == (4, 3)
        assert expanded.log_c == ImproperLogUniform(zero_at=2.0).log_c
        assert expanded.log_prob(1.0).shape == (4, 3)
        assert jax.tree.map(lambda leaf: leaf, expanded).batch_shape == (4, 3)
        with pytest.raises(ValueError, match=r"Cannot broadcast .* of shape \(4, 3\) to shape"):
            expanded.expand([5, 3])

    def test_no_samples(self):
        message = (
            r"^the log-uniform prior C/\|w\| has no samples, because its density has no finite "
            r"integral: take them from the posterior, or start from a value of your own$"
        )
        for prior in (ImproperLogUniform(), ImproperLogUniform().expand([3])):
            with pytest.raises(NotImplementedError, match=message):
                prior.sample(jax.random.key(0), (2,))

    @pytest.mark.parametrize("name", ["mean", "variance", "entropy", "cdf", "icdf"])
    def test_what_an_improper_prior_does_not_have(self, name):
        words = {"cdf": "cumulative distribution function", "icdf": "quantiles"}.get(name, name)
        arguments = (0.5,) if name in ("cdf", "icdf") else ()
        prior = ImproperLogUniform()
        with pytest.raises(NotImplementedError, match=f"^ImproperLogUniform .* has no {words}: "):
            operator.methodcaller(name, *arguments)(prior)

    def test_it_is_not_the_distribution_on_an_interval(self):
        assert not issubclass(ImproperLogUniform, dist.LogUniform)
        proper = dist.LogUniform(1e-3, 1e3)
        assert proper.sample(jax.random.key(0), (2,)).shape == (2,)
        # They differ by a constant inside the interval.
        w = np.array([0.01, 1.0, 50.0], "float32")
        difference = ImproperLogUniform(log_c=0.0).log_prob(w) - proper.log_prob(w)
        np.testing.assert_allclose(difference, math.log(math.log(1e6)), rtol=2e-6)

    def test_wrong_constants(self):
        with pytest.raises(ValueError, match=r"were both given, and each fixes the constant"):
            ImproperLogUniform(zero_at=1.0, log_c=0.0)
        with pytest.raises(ValueError, match=r"zero_at must be a positive alpha"):
            ImproperLogUniform(zero_at=-1.0)

    def test_it_is_a_pytree(self):
        prior = jax.tree.map(lambda leaf: leaf, ImproperLogUniform(zero_at=2.0))
        divergence = jax.jit(lambda p, q: dist.kl_divergence(p, q))
        got = divergence(dist.Normal(LOC, SCALE), prior)
        # Without the constant, beside which the third is small.
        got = np.asarray(got, "float64") + additive_constant(zero_at=2.0)
        truth = lk.kl_normal(LOC.astype("float64"), 2 * np.log(SCALE.astype("float64")))
        np.testing.assert_allclose(got, truth, rtol=4e-7, atol=2.0**-26)
        assert jax.tree.structure(prior) == jax.tree.structure(ImproperLogUniform(zero_at=2.0))
        assert jax.tree.structure(prior) != jax.tree.structure(ImproperLogUniform())


class TestDivergences:
    @pytest.mark.parametrize("family", [dist.Normal, dist.LogNormal])
    def test_independent_and_expanded(self, family, capability):
        capability(f"KL({family.__name__}, ImproperLogUniform)", "to_event, expand", "numpyro")
        each = dist.kl_divergence(family(LOC, SCALE), ImproperLogUniform())
        assert each.shape == (3,)
        posterior = family(LOC, SCALE).to_event(1)
        prior = ImproperLogUniform().expand([3]).to_event(1)
        got = dist.kl_divergence(posterior, prior)
        assert got.shape == ()
        np.testing.assert_allclose(got, each.sum(), rtol=3e-7)
        wide = dist.kl_divergence(
            family(LOC, SCALE).expand([2, 3]), ImproperLogUniform().expand([2, 3])
        )
        np.testing.assert_array_equal(wide, np.broadcast_to(each, (2, 3)))

    def test_log_normal_has_the_shape_of_both(self):
        got = dist.kl_divergence(dist.LogNormal(LOC[:, None], SCALE), ImproperLogUniform())
        assert got.shape == (3, 3)

    def test_gradients_are_those_of_kl_normal(self, capability):
        """Also at loc = 0, where the usual formula with its logarithm has none."""
        capability("KL(Normal, ImproperLogUniform)", "grad", "numpyro")

        def loss(loc, log_scale):
            return dist.kl_divergence(
                dist.Normal(loc, jnp.exp(log_scale)), ImproperLogUniform(zero_at=1.0)
            ).sum()

        got = jax.grad(loss, (0, 1))(LOC, np.log(SCALE))
        d_mu, d_log_sigma2 = lk.special.neg_kl_normal_and_grad(
            LOC.astype("float64"), 2 * np.log(SCALE.astype("float64"))
        )[1:]
        np.testing.assert_allclose(got[0], -d_mu, rtol=5e-7)
        np.testing.assert_allclose(got[1], -2 * d_log_sigma2, rtol=5e-7)

    def test_derivatives_of_all_orders(self, capability):
        capability("KL(Normal, ImproperLogUniform)", "third derivatives", "numpyro")
        assert_derivatives_of_all_orders(
            lambda loc, scale: dist.kl_divergence(dist.Normal(loc, scale), ImproperLogUniform())
        )

    def test_others_are_not_registered(self):
        with pytest.raises(NotImplementedError):
            dist.kl_divergence(dist.Gumbel(1.0, 1.0), ImproperLogUniform())

    def test_nothing_is_ambiguous(self):
        from multipledispatch.conflict import ambiguities

        ours = [
            pair
            for pair in ambiguities(dist.kl_divergence.funcs)
            if any(ImproperLogUniform in signature for signature in pair)
        ]
        assert ours == []


def model(x, y):
    with numpyro.plate("features", 3):
        w = numpyro.sample("w", ImproperLogUniform())
    numpyro.sample("y", dist.Normal(x @ w, 0.5).to_event(1), obs=y)


def prior_alone():
    numpyro.sample("w", ImproperLogUniform(zero_at=1.0).expand([3]).to_event(1))


def guide():
    loc = numpyro.param("loc", jnp.asarray(LOC))
    scale = numpyro.param("scale", jnp.asarray(SCALE), constraint=dist.constraints.positive)
    numpyro.sample("w", dist.Normal(loc, scale).to_event(1))


class TestModels:
    def test_the_loss_of_the_prior_alone_is_the_divergence(self):
        svi = SVI(prior_alone, guide, numpyro.optim.Adam(1e-2), TraceMeanField_ELBO())
        state = svi.init(jax.random.key(0))
        truth = lj.kl_normal(LOC, 2 * jnp.log(SCALE), zero_at=1.0, reduction="sum")
        np.testing.assert_allclose(svi.evaluate(state), truth, rtol=1e-6)

    def test_sampled_loss_agrees_with_the_exact_one(self, capability):
        """Trace_ELBO takes log_prob, TraceMeanField_ELBO the divergence."""
        capability("ImproperLogUniform", "log_prob in Trace_ELBO", "numpyro")
        parameters = {"loc": jnp.asarray(LOC), "scale": jnp.asarray(SCALE)}
        sampled = Trace_ELBO(num_particles=40_000)
        got = sampled.loss(jax.random.key(1), parameters, prior_alone, guide)
        truth = lj.kl_normal(LOC, 2 * jnp.log(SCALE), zero_at=1.0, reduction="sum")
        # log|w| has a standard deviation of 1.1 at most where mu is small against sigma.
        assert abs(got - truth) < 4 * 3 * 1.2 / math.sqrt(40_000)

    @pytest.mark.parametrize("elbo", [Trace_ELBO, TraceMeanField_ELBO])
    def test_autoguide_trains(self, elbo, capability):
        capability("ImproperLogUniform", f"SVI with AutoNormal, {elbo.__name__}", "numpyro")
        rng = np.random.default_rng(2)
        x = jnp.asarray(rng.normal(size=(40, 3)), "float32")
        y = x @ jnp.array([1.5, 0.0, -2.0]) + 0.5 * jnp.asarray(rng.normal(size=40), "float32")
        automatic = AutoNormal(model)
        svi = SVI(model, automatic, numpyro.optim.Adam(3e-2), elbo())
        result = svi.run(jax.random.key(3), 300, x, y, progress_bar=False)
        assert np.isfinite(result.losses).all()
        assert result.losses[-20:].mean() < result.losses[:20].mean()
        # Of the two that are not 0: the prior's pull, 0.25/(40 w), is a tenth of a deviation.
        x, y = np.asarray(x, "float64"), np.asarray(y, "float64")
        deviation = 0.5 * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
        error = (result.params["w_auto_loc"] - np.linalg.lstsq(x, y)[0]) / deviation
        assert np.abs(error[np.array([0, 2])]).max() < 0.5
