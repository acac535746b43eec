"""The formulas of moments without samples, over the arrays of any framework.

They are from Haussmann et al. (2018), sections 2.3 and 2.4. `xp` is the namespace ``torch`` or
``jax.numpy``, and `special` is ``torch.special`` or ``jax.scipy.special``. A variance of None is
zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Array = Any

LINKS = ("probit", "logit")
FORMS = ("tilted", "quadratic", "taylor")


def product_variance(
    multiply: Callable[[Array, Array], Array],
    squares: Array | None,
    variance: Array | None,
    weight: Array,
    weight_variances: Array | None,
) -> Array | None:
    """Compute var[h] = E[a^2] sigma^2 + var[a] mu^2 for h = a w (Eq. 4).

    The inputs a and the weights w ~ N(mu, sigma^2) are independent, and `squares` is E[a^2], which
    only uncertain weights need. The function `multiply` computes each product: a matrix product or
    a convolution.
    """
    found = [] if weight_variances is None else [multiply(squares, weight_variances)]
    if variance is not None:
        found.append(multiply(variance, weight * weight))
    return sum(found[1:], found[0]) if found else None


def rectified(
    xp: Any, special: Any, mean: Array, wide_mean: Array, variance: Array | None, steepness: float
) -> tuple[Array, Array | None]:
    """Compute the moments of z h for an input h and an independent step z, in place of max(h, 0).

    P(z = 1) is sigmoid(C E[h]), with C the steepness. For C = inf, z is 1 where E[h] > 0, else 0.
    `wide_mean` is the mean in the type of the variance.
    """
    if steepness == math.inf:
        off = mean <= 0.0
        found = None if variance is None else xp.where(off, 0.0, variance)
        return xp.where(off, 0.0, mean), found
    argument = steepness * mean
    on, off = special.expit(argument), special.expit(-argument)
    # The variance is E[z] var[h] + var[z] E[h]^2, a sum of non-negative terms.
    flips = on * off * (wide_mean * wide_mean)
    return on * mean, flips if variance is None else on * variance + flips


def log_ndtr(xp: Any, special: Any, x: Array) -> Array:
    """Compute log Phi(x). The derivatives of the frameworks' log_ndtr are inaccurate below -1e3."""
    below = (x < 0.0) * x * -math.sqrt(0.5)
    above = (x >= 0.0) * x * math.sqrt(0.5)
    return xp.where(
        x < 0.0,
        xp.log(0.5 * special.erfcx(below)) - below * below,
        xp.log1p(-0.5 * special.erfc(above)),
    )


def categorical_penalty(
    xp: Any, special: Any, log_p: Array, variance: Array, form: str, axis: int
) -> Array:
    """Compute what to subtract from log p_y, for independent logits with these variances.

    `log_p` is the logarithm of the softmax of their means. The formulas are in the documentation
    of `expected_categorical_log_likelihood`.
    """
    if form == "quadratic":
        classes = log_p.shape[axis]
        return (classes - 1) / (4 * classes) * variance.sum(axis)
    p = xp.exp(log_p)
    if form == "taylor":
        return 0.5 * (p * (1.0 - p) * variance).sum(axis)
    # With the logits in place of log_p, the result would be a difference of large numbers.
    tilted = special.logsumexp(log_p + (0.5 - p) * variance, axis)
    return 0.5 * (p * p * variance).sum(axis) + tilted
