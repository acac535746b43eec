"""NumPyro and TensorFlow Probability: their distributions, and our prior in each."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions
import pytest

import logunif_kl.jax.numpyro
import logunif_kl.jax.tfp
from tests.distributions import Library

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import tensorflow_probability.substrates.jax.distributions as tfd

# TFP itself uses names that JAX deprecates.
IGNORED = pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorflow_probability")


class _Jax(Library):
    xp = jnp
    rows = ("value", "float32 and float64, jit", "grad", "jit, grad, vmap, jvp")
    no_closed_form = (
        r"^KL of Gumbel from ImproperLogUniform has no closed form here: use "
        r"logunif_kl.neg_kl_posterior of the same distribution in scipy.stats, or samples"
    )

    def array(self, x: Any, dtype: str = "float32") -> Any:
        return jnp.asarray(x, dtype)

    def keeping(self, dtype: str) -> Any:
        return jax.enable_x64(dtype == "float64")

    def compiled(self, f: Any) -> Any:
        return jax.jit(f)

    def slope(self, f: Any, i: int) -> Any:
        return jax.grad(lambda *x: f(*x).sum(), i)

    def masked(self, posterior: Any, mask: Any) -> Any:
        return posterior.mask(mask)


class _NumPyro(_Jax):
    name = "numpyro"
    dist = numpyro.distributions
    kind = logunif_kl.jax.numpyro.ImproperLogUniform
    rows = (*_Jax.rows, "value, first and second derivatives", "to_event, expand")

    def of(self, name: str, *parameters: Any) -> Any:
        return getattr(self.dist, name)(*parameters, validate_args=False)


class _TFP(_Jax):
    name = "tensorflow-probability"
    dist = tfd
    kind = logunif_kl.jax.tfp.ImproperLogUniform
    rows = (*_Jax.rows, "Independent")
    student_checks_df = False

    def prior(self, *shape: int, **options: float) -> Any:
        return self.kind(shape, **options)

    def correlated(self, name: str, loc: Any, factor: Any, diagonal: Any = None) -> Any:
        if name == "triangular":
            return tfd.MultivariateNormalTriL(loc, factor)
        return tfd.MultivariateNormalDiagPlusLowRankCovariance(loc, diagonal, factor)

    def of_covariance(self, loc: Any, covariance: Any) -> list[Any]:
        return [
            tfd.MultivariateNormalFullCovariance(loc, covariance),
            tfd.MultivariateNormalTriL(loc, jnp.linalg.cholesky(covariance)),
        ]

    def broadcast(self, posterior: Any, *shape: int) -> Any:
        return tfd.BatchBroadcast(posterior, shape)

    def masked(self, posterior: Any, mask: Any) -> Any:
        return tfd.Masked(posterior, mask)


NUMPYRO, TFP = _NumPyro(), _TFP()
