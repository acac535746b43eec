"""The public functions for JAX arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jax import Array

from .._convention import ZERO_AT_INFINITY, additive_constant
from . import _rules
from ._arguments import evaluate


def neg_kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array:
    """Compute -KL of JAX arrays, as `logunif_kl.neg_kl` does: *maximise* it (ELBO sign).

    The half types are computed in float32 and rounded at the end. The function can be
    differentiated any number of times, in both modes. Without ``jax_enable_x64`` float64 becomes
    float32, as everywhere in JAX. XLA flushes subnormal numbers to zero on the CPU, in arguments
    and in results.

    Parameters
    ----------
    log_alpha : array_like
        A number, or a JAX array, tracer or NumPy array of float16, bfloat16, float32 or float64.
        Integers are promoted as by `jax.numpy.exp`; weak types remain weak.
    zero_at, log_c, reduction
        See `logunif_kl.neg_kl`.

    Returns
    -------
    jax.Array
        -KL, with the dtype and the sharding of `log_alpha`.

    Raises
    ------
    TypeError
        If the functions of `jax.numpy` do not take `log_alpha`, or if it does not hold real numbers
        of at most 64 bits: for example, if it is complex or boolean.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import neg_kl
    >>> print(neg_kl(jnp.array([0.0, 1.0, 2.0])).round(4))
    [-0.4267 -0.1732 -0.0662]
    >>> print(jax.grad(neg_kl)(0.0).round(4))
    0.3624
    >>> print(neg_kl(jnp.array([0.0, 0.0]), log_c=0.0, reduction="sum").round(4))
    3.2549
    """
    constant = additive_constant(zero_at, log_c)
    return evaluate(_rules.neg_kl, constant, reduction, log_alpha=log_alpha)


def neg_kl_grad(log_alpha: Any) -> Array:
    """Compute the derivative of -KL in log_alpha, as `logunif_kl.neg_kl_grad` does.

    Each element of the result equals `jax.grad` of `neg_kl` at that element. Arguments are as
    for `neg_kl`, of any shape. The result can be differentiated any number of times.

    Examples
    --------
    >>> from logunif_kl.jax import neg_kl_grad
    >>> print(neg_kl_grad(0.0).round(4))
    0.3624
    """
    return evaluate(_derivative(1), log_alpha=log_alpha)


def neg_kl_hess(log_alpha: Any) -> Array:
    """Compute the second derivative of -KL in log_alpha, as `logunif_kl.neg_kl_hess` does.

    Arguments are as for `neg_kl`. The result can be differentiated any number of times.

    Examples
    --------
    >>> from logunif_kl.jax import neg_kl_hess
    >>> print(neg_kl_hess(0.0).round(4))
    -0.25
    """
    return evaluate(_derivative(2), log_alpha=log_alpha)


def neg_kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array:
    """Compute -KL(q || p) as `logunif_kl.neg_kl_normal` does: *maximise* it (ELBO sign).

    One evaluation gives the value and both gradients. The gradient of an argument that is broadcast
    is summed over the elements that share it. The function can be differentiated any number of
    times, in both modes.

    Parameters
    ----------
    mu, log_sigma2 : array_like
        Means and log variances of any type that `neg_kl` takes, promoted as by `jax.numpy`.
    zero_at, log_c, reduction
        See `logunif_kl.neg_kl`.

    Returns
    -------
    jax.Array
        -KL, with the broadcast shape and the promoted dtype.

    Raises
    ------
    ValueError
        See `logunif_kl.neg_kl_normal`; also if arguments are committed to different devices.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import neg_kl_normal
    >>> mu = jnp.array([0.0, 0.5, -3.0])
    >>> gradient = jax.grad(lambda mu: neg_kl_normal(mu, -8.0, reduction="sum"))(mu)
    >>> [f"{g:.4f}" for g in gradient.tolist()]
    ['-0.0000', '-2.0027', '0.3333']
    """
    constant = additive_constant(zero_at, log_c)
    return evaluate(_rules.neg_kl_normal, constant, reduction, mu=mu, log_sigma2=log_sigma2)


def kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array:
    """KL(q || p), the negative of `neg_kl`, to be *added to a loss*.

    Examples
    --------
    >>> from logunif_kl.jax import kl
    >>> print(kl(0.0).round(4))
    0.4267
    """
    constant = -additive_constant(zero_at, log_c)
    kl = partial(_rules.neg_kl, sign=-1.0)
    return evaluate(kl, constant, reduction, log_alpha=log_alpha)


def kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array:
    """KL(q || p), the negative of `neg_kl_normal`, to be *added to a loss*.

    Examples
    --------
    >>> from logunif_kl.jax import kl_normal
    >>> print(kl_normal(1.0, 0.0).round(4))
    0.4267
    """
    constant = -additive_constant(zero_at, log_c)
    kl = partial(_rules.neg_kl_normal, sign=-1.0)
    return evaluate(kl, constant, reduction, mu=mu, log_sigma2=log_sigma2)


def _derivative(order: int) -> Callable[[Any], Any]:
    return lambda x: _rules.neg_kl_derivative(x, order)
