"""NumPyro and TensorFlow Probability: their distributions, and our prior in each."""

import warnings
from typing import Any, NamedTuple

import numpyro.distributions
import pytest

import logunif_kl.jax.numpyro
import logunif_kl.jax.tfp

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import tensorflow_probability.substrates.jax.distributions as tfd

# TFP itself uses names that JAX deprecates.
IGNORED = pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorflow_probability")


class Library(NamedTuple):
    """A library of distributions."""

    name: str
    dist: Any
    kind: type

    def prior(self, *shape: int, **options: float) -> Any:
        """The prior of weights of this shape."""
        if self.dist is tfd:
            return self.kind(shape, **options)
        made = self.kind(**options)
        return made.expand(shape) if shape else made

    def prior_of_vectors(self, *shape: int, **options: float) -> Any:
        return self.dist.Independent(self.prior(*shape, **options), 1)

    def kl(self, posterior: Any, prior: Any = None, **options: float) -> Any:
        """KL to a prior, by default to that of one weight."""
        q = self.prior(**options) if prior is None else prior
        return self.dist.kl_divergence(posterior, q)

    def of(self, name: str, *parameters: Any) -> Any:
        return getattr(self.dist, name)(*parameters)

    def broadcast(self, posterior: Any, *shape: int) -> Any:
        if self.dist is tfd:
            return tfd.BatchBroadcast(posterior, shape)
        return posterior.expand(shape)

    def masked(self, posterior: Any, mask: Any) -> Any:
        return tfd.Masked(posterior, mask) if self.dist is tfd else posterior.mask(mask)


NUMPYRO = Library("numpyro", numpyro.distributions, logunif_kl.jax.numpyro.ImproperLogUniform)
TFP = Library("tensorflow-probability", tfd, logunif_kl.jax.tfp.ImproperLogUniform)
EACH_LIBRARY = pytest.mark.parametrize("library", [NUMPYRO, TFP], ids=lambda each: each.name)
