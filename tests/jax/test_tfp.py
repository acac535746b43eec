"""The prior in TensorFlow Probability on JAX."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("tensorflow_probability")

import jax
import jax.numpy as jnp
from scipy import stats

import logunif_kl as lk
from logunif_kl._convention import additive_constant
from logunif_kl.jax.tfp import ImproperLogUniform
from tests.jax.cases import SCALES_ULP, error_over_scales

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from tensorflow_probability.substrates.jax import distributions as tfd

# What TFP itself does with names that JAX deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorflow_probability")

LOC = np.array([0.0, 0.5, -2.0], "float32")
SCALE = np.array([0.1, 0.25, 3.0], "float32")
TFP = "tensorflow-probability"
OPTIONS = [{}, {"zero_at": 1.0}, {"log_c": -1.25}]


@pytest.mark.parametrize("options", OPTIONS)
class TestDivergences:
    def test_normal(self, options, capability):
        capability("KL(Normal, ImproperLogUniform)", "float32 and float64, jit", TFP)

        def divergence(loc, scale):
            return tfd.kl_divergence(tfd.Normal(loc, scale), ImproperLogUniform(**options))

        for dtype in ("float32", "float64"):
            with jax.enable_x64(dtype == "float64"):
                assert error_over_scales(divergence, dtype, options) <= SCALES_ULP[dtype]
        assert divergence(0.0, 0.1) == np.float32(-additive_constant(**options))

    def test_log_normal(self, options, capability):
        capability("KL(LogNormal, ImproperLogUniform)", "value", TFP)
        prior = ImproperLogUniform(**options)
        got = tfd.LogNormal(1.5, 0.25).kl_divergence(prior)
        truth = -lk.neg_kl_posterior(stats.lognorm(0.25, scale=math.exp(1.5)), log_c=prior.log_c)
        assert math.isclose(got, truth, rel_tol=2e-6)

    @pytest.mark.parametrize("family", [tfd.Normal, tfd.LogNormal])
    def test_independent(self, options, family, capability):
        capability(f"KL({family.__name__}, ImproperLogUniform)", "Independent", TFP)
        each = tfd.kl_divergence(family(LOC, SCALE), ImproperLogUniform(**options))
        posterior = tfd.Independent(family(LOC, SCALE), reinterpreted_batch_ndims=1)
        prior = tfd.Independent(ImproperLogUniform(3, **options), reinterpreted_batch_ndims=1)
        got = tfd.kl_divergence(posterior, prior)
        assert got.shape == ()
        np.testing.assert_allclose(got, each.sum(), rtol=3e-7)

    def test_gradient(self, options, capability):
        capability("KL(Normal, ImproperLogUniform)", "grad", TFP)

        def loss(loc):
            return tfd.kl_divergence(tfd.Normal(loc, SCALE), ImproperLogUniform(**options)).sum()

        truth = lk.special.neg_kl_normal_and_grad(
            LOC.astype("float64"), 2 * np.log(SCALE.astype("float64"))
        )[1]
        np.testing.assert_allclose(jax.jit(jax.grad(loss))(LOC), -truth, rtol=5e-7)


class TestGaussiansOfVectors:
    """The other forms of one covariance, and the priors of a vector."""

    FACTOR = np.array([[0.5, 0.1], [-0.2, 0.3], [0.1, 0.4]])

    def test_scale_of_low_rank(self):
        def f(loc, diagonal, factor):
            p = tfd.MultivariateNormalDiagPlusLowRank(loc, diagonal, scale_perturb_factor=factor)
            return tfd.kl_divergence(p, ImproperLogUniform())

        def full(loc, diagonal, factor):
            scale = jnp.diag(diagonal) + factor @ factor.T
            p = tfd.MultivariateNormalFullCovariance(loc, scale @ scale.T)
            return tfd.kl_divergence(p, ImproperLogUniform())

        with jax.enable_x64(True):
            given = LOC.astype("float64"), SCALE.astype("float64"), self.FACTOR
            np.testing.assert_allclose(f(*given), full(*given), rtol=1e-13)
            for a, b in zip(*(jax.grad(g, (0, 1, 2))(*given) for g in (f, full)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_diagonal(self, sign):
        each = tfd.kl_divergence(tfd.Normal(LOC, SCALE), ImproperLogUniform())
        for p in (
            tfd.MultivariateNormalDiag(LOC, sign * SCALE),
            tfd.MultivariateNormalTriL(LOC, np.diag(sign * SCALE)),
        ):
            for q in (
                ImproperLogUniform(),
                tfd.Independent(ImproperLogUniform(3), 1),
                tfd.Sample(ImproperLogUniform(), 3),
            ):
                np.testing.assert_allclose(tfd.kl_divergence(p, q), each.sum(), rtol=3e-7)
        without_loc = tfd.MultivariateNormalDiag(scale_diag=SCALE)
        assert tfd.kl_divergence(without_loc, ImproperLogUniform()) == 0.0


class TestPrior:
    def test_log_prob(self):
        w = np.array([-2.0, 0.5, 1e30], "float32")
        got = ImproperLogUniform(log_c=0.75).log_prob(w)
        np.testing.assert_allclose(got, 0.75 - np.log(np.abs(w)), rtol=3e-7)
        assert ImproperLogUniform((2, 3)).log_prob(w).shape == (2, 3)

    def test_shapes(self):
        prior = ImproperLogUniform((2, 3))
        assert tuple(prior.batch_shape) == (2, 3)
        assert tuple(prior.event_shape) == ()
        assert tfd.kl_divergence(tfd.Normal(0.5, 1.0), prior).shape == (2, 3)

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("mean", "mean"),
            ("variance", "variance"),
            ("stddev", "variance"),
            ("entropy", "entropy"),
            ("cdf", "cumulative distribution function"),
            ("log_cdf", "cumulative distribution function"),
            ("quantile", "quantiles"),
        ],
    )
    def test_what_an_improper_prior_does_not_have(self, name, words):
        arguments = (0.5,) if name in ("cdf", "log_cdf", "quantile") else ()
        with pytest.raises(NotImplementedError, match=f"^ImproperLogUniform .* it has no {words}"):
            getattr(ImproperLogUniform(), name)(*arguments)

    def test_no_samples(self):
        with pytest.raises(NotImplementedError, match=r"prior C/\|w\| has no samples, because"):
            ImproperLogUniform().sample(3, seed=jax.random.key(0))

    def test_a_copy_keeps_the_constant(self):
        assert ImproperLogUniform(3, log_c=0.5).copy(batch_shape=(2,)).log_c == 0.5
        assert ImproperLogUniform().copy().log_c == ImproperLogUniform().log_c

    def test_wrong_constants(self):
        with pytest.raises(ValueError, match=r"were both given, and each fixes the constant"):
            ImproperLogUniform(zero_at=1.0, log_c=0.0)


def test_a_second_registration_is_none():
    """TFP refuses to register a pair twice; reloading makes a pair of its own."""
    with pytest.raises(ValueError, match="has already been registered"):
        tfd.RegisterKL(tfd.Normal, ImproperLogUniform)(lambda p, q: 0.0)
    code = """
import importlib, warnings
from logunif_kl.jax import tfp
tfp = importlib.reload(tfp)
from tensorflow_probability.substrates.jax import distributions as tfd
print(round(float(tfd.kl_divergence(tfd.Normal(1.0, 1.0), tfp.ImproperLogUniform())), 4))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0.4267\n"


def test_posteriors_of_other_families_are_not_registered():
    with pytest.raises(NotImplementedError):
        tfd.kl_divergence(tfd.Logistic(jnp.float32(0.0), 1.0), ImproperLogUniform())
