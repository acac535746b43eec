"""The prior as a distribution of NumPyro and of TensorFlow Probability, and models with it."""

import math
import operator

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("numpyro")
pytest.importorskip("tensorflow_probability")

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO, TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal

import logunif_kl as lk
from logunif_kl._convention import additive_constant
from logunif_kl.jax.numpyro import ImproperLogUniform
from tests.child import output
from tests.distributions import Priors
from tests.jax.libraries import IGNORED, NUMPYRO, TFP

pytestmark = IGNORED

LOC = np.array([0.0, 0.5, -2.0], "float32")
SCALE = np.array([0.1, 0.25, 3.0], "float32")


@pytest.fixture(params=[NUMPYRO, TFP], ids=lambda each: each.name)
def library(request):
    return request.param


class TestPrior(Priors):
    main = NUMPYRO

    def test_expand(self):
        expanded = ImproperLogUniform(zero_at=2.0).expand([3]).expand([4, 3])
        assert expanded.batch_shape == (4, 3)
        assert jax.tree.map(lambda leaf: leaf, expanded).batch_shape == (4, 3)
        assert ImproperLogUniform().expand([4, 3]).to_event(1).support.event_dim == 1
        with pytest.raises(ValueError, match=r"Cannot broadcast .* of shape \(4, 3\) to shape"):
            expanded.expand([5, 3])

    def test_no_samples(self, library):
        message = (
            r"^the log-uniform prior C/\|w\| has no samples, because its density has no finite "
            r"integral: take them from the posterior, or start from a value of your own$"
        )
        key = jax.random.key(0)
        for prior in (library.prior(), library.prior(3)):
            arguments = {"sample_shape": 3, "seed": key} if library is TFP else {"key": key}
            with pytest.raises(NotImplementedError, match=message):
                prior.sample(**arguments)

    def test_what_an_improper_prior_does_not_have(self, library):
        names = {name: name for name in ("mean", "variance", "entropy")}
        names |= {"cdf": "cumulative distribution function"}
        if library is NUMPYRO:
            names |= {"icdf": "quantiles"}
        else:
            names |= {"stddev": "variance", "log_cdf": names["cdf"], "quantile": "quantiles"}
        for name, words in names.items():
            arguments = (0.5,) if words in (names["cdf"], "quantiles") else ()
            message = f"^ImproperLogUniform .* it has no {words}: "
            with pytest.raises(NotImplementedError, match=message):
                operator.methodcaller(name, *arguments)(library.prior())

    def test_it_is_a_pytree(self):
        prior = jax.tree.map(lambda leaf: leaf, ImproperLogUniform(zero_at=2.0))
        got = jax.jit(lambda p, q: dist.kl_divergence(p, q))(dist.Normal(LOC, SCALE), prior)
        # Without the constant, beside which the third is small.
        got = np.asarray(got, "float64") + additive_constant(zero_at=2.0)
        truth = lk.kl_normal(LOC.astype("float64"), 2 * np.log(SCALE.astype("float64")))
        np.testing.assert_allclose(got, truth, rtol=4e-7, atol=2.0**-26)
        assert jax.tree.structure(prior) == jax.tree.structure(ImproperLogUniform(zero_at=2.0))
        assert jax.tree.structure(prior) != jax.tree.structure(ImproperLogUniform())

    def test_a_copy_keeps_the_constant(self):
        assert TFP.prior(3, log_c=0.5).copy(batch_shape=(2,)).log_c == 0.5
        assert TFP.prior().copy().log_c == TFP.prior().log_c


class TestRegistration:
    def test_nothing_is_ambiguous(self):
        from multipledispatch.conflict import ambiguities

        for pair in ambiguities(dist.kl_divergence.funcs):
            assert not any(ImproperLogUniform in signature for signature in pair)

    def test_tfp_is_imported_twice(self):
        """TFP refuses to register a pair twice."""
        code = """
import importlib, warnings
from logunif_kl.jax import tfp
tfp = importlib.reload(tfp)
from tensorflow_probability.substrates.jax import distributions as tfd
print(round(float(tfd.kl_divergence(tfd.Normal(1.0, 1.0), tfp.ImproperLogUniform())), 4))
"""
        assert output(code) == "0.4267\n"


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
    KL_OF_NORMAL = lk.kl_normal(
        LOC.astype("float64"), 2 * np.log(SCALE.astype("float64")), zero_at=1.0, reduction="sum"
    )

    def test_the_loss_of_the_prior_alone_is_the_divergence(self):
        svi = SVI(prior_alone, guide, numpyro.optim.Adam(1e-2), TraceMeanField_ELBO())
        loss = svi.evaluate(svi.init(jax.random.key(0)))
        # The constant of zero_at=1.0 cancels most of the sum of three.
        np.testing.assert_allclose(loss, self.KL_OF_NORMAL, rtol=1e-6, atol=2.0**-21)

    def test_sampled_loss_agrees_with_the_exact_one(self, capability):
        """Trace_ELBO takes log_prob, TraceMeanField_ELBO the divergence."""
        capability("ImproperLogUniform", "log_prob in Trace_ELBO", "numpyro")
        parameters = {"loc": jnp.asarray(LOC), "scale": jnp.asarray(SCALE)}
        sampled = Trace_ELBO(num_particles=40_000)
        got = sampled.loss(jax.random.key(1), parameters, prior_alone, guide)
        # log|w| has a standard deviation of 1.1 at most where mu is small against sigma.
        assert abs(got - self.KL_OF_NORMAL) < 4 * 3 * 1.2 / math.sqrt(40_000)

    @pytest.mark.parametrize("elbo", [Trace_ELBO, TraceMeanField_ELBO])
    def test_autoguide_trains(self, elbo, capability):
        capability("ImproperLogUniform", f"SVI with AutoNormal, {elbo.__name__}", "numpyro")
        rng = np.random.default_rng(2)
        x = jnp.asarray(rng.normal(size=(40, 3)), "float32")
        y = x @ jnp.array([1.5, 0.0, -2.0]) + 0.5 * jnp.asarray(rng.normal(size=40), "float32")
        svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(3e-2), elbo())
        result = svi.run(jax.random.key(3), 300, x, y, progress_bar=False)
        assert np.isfinite(result.losses).all()
        assert result.losses[-20:].mean() < result.losses[:20].mean()
        # Of the two that are not 0: the prior's pull, 0.25/(40 w), is a tenth of a deviation.
        x, y = np.asarray(x, "float64"), np.asarray(y, "float64")
        deviation = 0.5 * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
        error = (result.params["w_auto_loc"] - np.linalg.lstsq(x, y)[0]) / deviation
        assert np.abs(error[np.array([0, 2])]).max() < 0.5
