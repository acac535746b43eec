"""The improper prior C/|w|, as far as it is the same for every library of distributions.

The constant of -KL fixes C: -KL of a Gaussian is ``constant - F(u)``, and in full, with the
prior's own C, ``PROPER_CONSTANT + log C - F(u)`` (Hron et al. 2017, Eq. 1), so that
log C = constant - PROPER_CONSTANT. The default, by which -KL of a Gaussian vanishes as
alpha -> inf, is therefore log C = -2.054..., and one prior serves every posterior, the log-normal
too:

    -KL(LogNormal(loc, scale) || C/|w|) = h(log w) + log C = 1/2 log(2 pi e) + log scale + log C

since log w is N(loc, scale^2), and the entropy of w, that of log w plus E log w, meets
E log p = log C - E log w.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._convention import HALF_LOG_2_PI_E, additive_constant, log_of_c
from . import _rules
from ._operands import finished, operands


class Constant:
    """The constant of -KL and the prior's log C, each exact where the caller gave it."""

    def __init__(self, zero_at: float, log_c: float | None) -> None:
        self.added = additive_constant(zero_at, log_c)
        self.log_c = log_of_c(zero_at, log_c)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.added, self.log_c))


def log_prob(constant: Constant, value: Any) -> Any:
    """Compute log C - log|w|, infinite at 0."""
    return constant.log_c - jnp.log(jnp.abs(value))


def kl_of_normal(constant: Constant, loc: Any, scale: Any) -> Any:
    """KL(N(loc, scale^2) || C/|w|), which does not depend on the unit of w.

    With a good unit log sigma^2 has no digits to lose. It is a constant to differentiation, because
    nothing depends on it.
    """
    (loc, scale), dtype = operands(loc=loc, scale=scale)
    # The mean of their exponents where |loc| is the larger: neither product leaves the range.
    least = float(np.finfo(loc.dtype).tiny)
    size, spread = (
        jnp.clip(jnp.abs(jax.lax.stop_gradient(value)), least, 1.0 / least)
        for value in (loc, scale)
    )
    unit = jax.lax.rsqrt(spread) * jax.lax.rsqrt(jnp.maximum(size, spread))
    result = -_rules.neg_kl_normal(loc * unit, 2.0 * jnp.log(scale * unit))
    return finished(result, -constant.added, "none", dtype)


def kl_of_log_normal(constant: Constant, loc: Any, scale: Any) -> Any:
    """KL(LogNormal(loc, scale) || C/|w|), of the shape of both."""
    result = -(jnp.log(scale) + (HALF_LOG_2_PI_E + constant.log_c))
    return jnp.broadcast_to(result, jnp.broadcast_shapes(jnp.shape(loc), jnp.shape(scale)))


def no_sample() -> NotImplementedError:
    """Make the error for an attempt to sample."""
    return NotImplementedError(
        "the log-uniform prior C/|w| has no samples, because its density has no finite integral: "
        "take them from the posterior, or start from a value of your own"
    )
