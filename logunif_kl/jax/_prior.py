"""The improper prior C/|w|: what is the same for NumPyro and TensorFlow Probability.

-KL of a Gaussian is ``constant - F(u)``, and also ``PROPER_CONSTANT + log C - F(u)`` (Hron et al.
2017, Eq. 1), so that log C = constant - PROPER_CONSTANT. By default -KL of a Gaussian vanishes as
alpha -> inf, and log C = -2.054... With C the prior is fixed for every posterior.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .._convention import Constants


def log_prob(constants: Constants, value: Any) -> Any:
    """Compute log C - log|w|, infinite at 0."""
    return constants.log_c - jnp.log(jnp.abs(value))


def no_sample() -> NotImplementedError:
    """Make the error for an attempt to sample."""
    return NotImplementedError(
        "the log-uniform prior C/|w| has no samples, because its density has no finite integral: "
        "take them from the posterior, or start from a value of your own"
    )


def spread(result: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast a divergence over the batch of the prior."""
    return jnp.broadcast_to(result, jnp.broadcast_shapes(result.shape, shape))


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
