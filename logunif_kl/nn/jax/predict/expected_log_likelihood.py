"""Expected log-likelihoods of each example, in closed form from the moments of the outputs."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from ...._errors import type_name
from ...checks import one_of
from ...moments import FORMS, LINKS, categorical_penalty, log_ndtr
from ..arguments import real_numbers
from ..moments import Moments
from ..noise import widened
from .likelihoods import (
    bernoulli_log_likelihood,
    by_example,
    categorical_log_likelihood,
    check_probabilities,
    check_shapes,
    normal_log_likelihood,
)

Array = Any


def expected_normal_log_likelihood(output: Moments, targets: Any, log_sigma2: Any = 0.0) -> Any:
    """Compute E[log p(target)] for a normal likelihood with a random mean.

    The result ``normal_log_likelihood(mean, targets, log_sigma2) - variance/(2 sigma^2)`` is exact
    for any distribution of the mean with the given moments (Haussmann et al. 2018, section 2.3).

    Parameters
    ----------
    output : Moments
        Of shape (minibatch, ...).
    targets, log_sigma2
        As for `normal_log_likelihood`.

    Returns
    -------
    jax.Array
        Of shape (minibatch,) and of float32 or wider, summed over the other axes.

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or an argument does not hold real numbers.
    ValueError
        If the shapes do not agree.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> output = nn.Moments(jnp.zeros((2, 1)), jnp.array([[0.0], [1.0]]))
    >>> print(*(f"{x:.4f}" for x in nn.expected_normal_log_likelihood(output, jnp.zeros((2, 1)))))
    -0.9189 -1.4189
    """
    mean, variance = _moments_of(output)
    found = normal_log_likelihood(mean, targets, log_sigma2)
    log_sigma2 = real_numbers("log_sigma2", log_sigma2).astype(mean.dtype)
    return found - by_example(0.5 * variance * jnp.exp(-log_sigma2))


def expected_bernoulli_log_likelihood(output: Moments, targets: Any, link: str = "probit") -> Any:
    """Compute a lower bound of E[log p(target)] for a Bernoulli likelihood.

    An output f (the margin) has mean m and variance v. P(target = 1) is sigmoid(f) or Phi(f), with
    Phi the standard normal distribution function. For the target 1 the bounds are::

        "probit"   E log Phi(f)     >= log Phi(m) - v/2
        "logit"    E log sigmoid(f) >= log sigmoid(m) - v/8

    For the target 0, -m replaces m. Both bounds hold for any distribution of f, because the second
    derivatives of log Phi and log sigmoid are above -1 and -1/4.

    Parameters
    ----------
    output : Moments
        The moments of the margins, of shape (minibatch, ...).
    targets : array
        Of the same shape, in [0, 1].
    link : {"probit", "logit"}, optional
        The function that turns a margin into a probability.

    Returns
    -------
    jax.Array
        Of shape (minibatch,) and of float32 or wider, summed over the other axes.

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or `targets` does not hold real numbers.
    ValueError
        If the shapes do not agree, `link` is unknown, or a target is outside [0, 1]. Under
        `jax.jit` targets are not checked.

    Notes
    -----
    Haussmann et al. (2018), section 2.4, use log sigmoid(m) - v/2. This is also a bound for
    ``"logit"``, but subtracts v/2, which is four times as much as v/8.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> output = nn.Moments(jnp.zeros((2, 1)), jnp.array([[0.0], [0.4]]))
    >>> targets = jnp.array([[0.0], [1.0]])
    >>> print(*(f"{x:.4f}" for x in nn.expected_bernoulli_log_likelihood(output, targets)))
    -0.6931 -0.8931
    """
    one_of("link", link, LINKS)
    mean, variance = _moments_of(output)
    if link == "logit":
        return bernoulli_log_likelihood(mean, targets) - by_example(0.125 * variance)
    targets = real_numbers("targets", targets)
    check_shapes("targets", targets.shape, mean.shape)
    check_probabilities(targets)
    targets = targets.astype(mean.dtype)
    special = SimpleNamespace(erfc=jax.scipy.special.erfc, erfcx=_erfcx)
    log_p, log_q = (log_ndtr(jnp, special, margin) for margin in (mean, -mean))
    return by_example(targets * log_p + (1.0 - targets) * log_q - 0.5 * variance)


def _erfcx(x: Array) -> Array:
    """Compute exp(x^2) erfc(x), above 8 by 12 terms of its continued fraction.

    That of JAX 0.10 is 0 near 9.3 in float32, and near 26.6 in float64.
    """
    large = jnp.where(x > 8.0, x, 8.0)
    fraction = large
    for k in range(12, 0, -1):
        fraction = large + 0.5 * k / fraction
    return jnp.where(
        x > 8.0,
        1.0 / (math.sqrt(math.pi) * fraction),
        jax.scipy.special.erfcx(jnp.where(x > 8.0, 1.0, x)),
    )


def expected_categorical_log_likelihood(output: Moments, labels: Any, form: str = "tilted") -> Any:
    """Compute a bound or estimate of E[log p(label)] for a categorical likelihood.

    The logits f_k of K classes are independent, with means m_k and variances v_k. With
    p = softmax(m), the result for label y is log p_y minus a penalty that does not depend on y::

        "tilted"     sum_k p_k^2 v_k/2 + log sum_k p_k exp((1 - 2 p_k) v_k/2)
        "quadratic"  (K - 1)/(4 K) sum_k v_k
        "taylor"     sum_k p_k (1 - p_k) v_k/2

    ``"tilted"`` is a lower bound for normal logits (Knowles and Minka 2011, with their a_k = p_k),
    and is exact to first order in v. ``"quadratic"`` is a bound for logits of any distribution
    (Böhning 1992). For two classes it is the ``"logit"`` bound of
    `expected_bernoulli_log_likelihood`. ``"taylor"`` is the first-order expansion, not a bound.

    Parameters
    ----------
    output : Moments
        The moments of the logits, of shape (minibatch, ..., classes).
    labels : array of int
        As for `categorical_log_likelihood`.
    form : {"tilted", "quadratic", "taylor"}, optional
        Which penalty to subtract.

    Returns
    -------
    jax.Array
        Of shape (minibatch,) and of float32 or wider, summed over the other axes.

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or `labels` does not hold integers.
    ValueError
        As for `categorical_log_likelihood`, and if `form` is unknown.

    Notes
    -----
    Haussmann et al. (2018), section 2.4, say that the case of several classes is similar to that of
    two, but do not derive the formula. Their published code (its last commit, f70be32) samples the
    outputs by default, with ``sample=True``; ``"taylor"`` is its other branch.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> output = nn.Moments(jnp.zeros((1, 2)), jnp.full((1, 2), 0.4))
    >>> for form in "tilted", "quadratic", "taylor":
    ...     print(nn.expected_categorical_log_likelihood(output, jnp.array([0]), form).round(4))
    [-0.7931]
    [-0.7931]
    [-0.7931]
    """
    one_of("form", form, FORMS)
    mean, variance = _moments_of(output)
    found = categorical_log_likelihood(mean, labels)
    log_p = jax.nn.log_softmax(mean)
    return found - by_example(
        categorical_penalty(jnp, jax.scipy.special, log_p, variance, form, -1)
    )


def _moments_of(output: Any) -> tuple[Array, Array]:
    if not isinstance(output, Moments):
        raise TypeError(
            f"output must be Moments, but {type_name(output)} was given: pass Moments(x) through "
            "the layers"
        )
    mean, variance = output._checked()
    return widened(mean), widened(variance)
