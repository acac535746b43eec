"""The improper prior C/|w|: what is the same for NumPyro and TensorFlow Probability.

-KL of a Gaussian is ``constant - F(u)``, and also ``PROPER_CONSTANT + log C - F(u)`` (Hron et al.
2017, Eq. 1), so that log C = constant - PROPER_CONSTANT. By default -KL of a Gaussian vanishes as
alpha -> inf, and log C = -2.054... With C the prior is fixed for every posterior. For a log-normal
posterior

    -KL(LogNormal(loc, scale) || C/|w|) = h(log w) + log C = 1/2 log(2 pi e) + log scale + log C

because log w is N(loc, scale^2), the entropy of w is that of log w plus E log w, and
E log p(w) = log C - E log w.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._arithmetic.unit import unit
from .._convention import HALF_LOG_2_PI_E, Constants
from . import _rules
from ._arguments import arguments, finished


def log_prob(constants: Constants, value: Any) -> Any:
    """Compute log C - log|w|, infinite at 0."""
    return constants.log_c - jnp.log(jnp.abs(value))


def kl_of_normal(constants: Constants, loc: Any, scale: Any) -> Any:
    """KL(N(loc, scale^2) || C/|w|), of the shape of both."""
    (loc, scale), dtype = arguments(loc=loc, scale=scale)
    detached = jax.lax.stop_gradient((loc, scale))
    factor = unit(jnp, jax.lax.rsqrt, *detached)
    result = _rules.neg_kl_normal(loc * factor, 2.0 * jnp.log(scale * factor), -1.0)
    return finished(result, -constants.added, "none", dtype)


def kl_of_log_normal(constants: Constants, loc: Any, scale: Any) -> Any:
    """KL(LogNormal(loc, scale) || C/|w|), of the shape of both."""
    result = -(jnp.log(scale) + (HALF_LOG_2_PI_E + constants.log_c))
    return jnp.broadcast_to(result, jnp.broadcast_shapes(jnp.shape(loc), jnp.shape(scale)))


def no_sample() -> NotImplementedError:
    """Make the error for an attempt to sample."""
    return NotImplementedError(
        "the log-uniform prior C/|w| has no samples, because its density has no finite integral: "
        "take them from the posterior, or start from a value of your own"
    )


_LACKS = {
    "mean": "mean: use that of the posterior",
    "variance": "variance: use that of the posterior",
    "entropy": "entropy: use kl_divergence from the posterior",
    "cdf": "cumulative distribution function: use log_prob",
    "quantile": "quantiles: use those of the posterior",
}


def lacks(what: str) -> NotImplementedError:
    """Make the error for what an improper distribution has not."""
    return NotImplementedError(
        "ImproperLogUniform is improper, its density C/|w| has no finite integral, so it has no "
        + _LACKS[what]
    )
