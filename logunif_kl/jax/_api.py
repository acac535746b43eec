"""The public functions for JAX arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._convention import ZERO_AT_INFINITY, additive_constant
from . import _rules
from ._arguments import evaluate


def neg_kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|: *maximise* it (ELBO sign).

    With alpha = sigma^2/mu^2 and u = 1/(2 alpha) = exp(-log_alpha)/2, in nats ([1]_, Eq. 1)::

        -KL = constant - F(u),    F(u) = u 2F2(1, 1; 3/2, 2; -u)

    The log-uniform prior p is improper, so the constant is a choice. By default -KL vanishes as
    alpha -> inf and is negative elsewhere, as in [2]_, Eq. 14.

    Parameters
    ----------
    log_alpha : array_like
        The logarithm of alpha, a ratio of *variances*, of any shape: an array or tracer of JAX or a
        NumPy array, of float16, bfloat16, float32 or float64, or a number. Integers are promoted as
        by `jax.numpy.exp`; weak types remain weak.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default; ``1.0`` for [3]_, Figure 2. A
        Python number, known when the function is traced.
    log_c : float, optional
        The logarithm of the prior's C, in place of `zero_at`. The constant is then
        (1 + log(pi) - psi(1/2))/2 + log(C), as in [1]_, Eq. 1.
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean. The constant counts once for each
        element. A result of a half type is rounded after the reduction.

    Returns
    -------
    jax.Array
        Of the dtype of `log_alpha`, and of its shape or ``()``; sharded as `log_alpha` is. The
        limit is the constant at ``log_alpha=inf`` and -inf at ``log_alpha=-inf``. NaN is returned
        only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits (complex, boolean, ...), or is
        nothing that the functions of `jax.numpy` take, or if `zero_at` or `log_c` is not a real
        number.
    ValueError
        If `zero_at` is not positive, if `log_c` is not finite, if both are given, if `reduction` is
        none of the three, or if a number is too large for a float.

    See Also
    --------
    kl : the same with the other sign, to be added to a loss.
    neg_kl_normal : from the mean and the variance.
    neg_kl_grad, neg_kl_hess : the first two derivatives.

    Notes
    -----
    Nothing is clipped or sampled. Without a constant the relative error is bounded:
    `logunif_kl.accuracy` lists the worst error found for each type. A constant has an absolute
    error of its own, about a unit in its last place. To a half type it is added in float32, before
    the result is rounded.

    The half types are computed in float32 and rounded at the end. The function can be
    differentiated any number of times, in both modes.

    Without ``jax_enable_x64`` float64 becomes float32, as everywhere in JAX. XLA flushes subnormal
    numbers to zero on the CPU, in arguments and in results.

    References
    ----------
    .. [1] Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).
    .. [2] Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).
    .. [3] Kingma et al., "Variational Dropout and the Local Reparameterization Trick" (2015).

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
    return evaluate(_derivative(0), constant, reduction, log_alpha=log_alpha)


def neg_kl_grad(log_alpha: Any) -> Any:
    """Compute the derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and D Dawson's function (Hron et al. 2017, Eq. 3; see `neg_kl`)::

        d(-KL)/d log_alpha = u F'(u) = sqrt(u) D(sqrt(u))

    The derivative does not depend on the constant of -KL. It is positive, since -KL increases from
    no noise to pure noise. It tends to 1/2 from above as log_alpha -> -inf, has its maximum 0.6424
    near log_alpha = -1.507, and vanishes like exp(-log_alpha)/2 as log_alpha -> inf. It equals what
    `jax.grad` makes of `neg_kl`, element by element and for any shape. `logunif_kl.accuracy` lists
    the worst error found for each type. It can itself be differentiated any number of times.

    Parameters
    ----------
    log_alpha : array_like
        Of any shape and type that `neg_kl` takes.

    Returns
    -------
    jax.Array
        Of the dtype of `log_alpha`, and of its shape; sharded as `log_alpha` is. It is 1/2 at -inf
        and 0 at inf. NaN is returned only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits (complex, boolean, ...), or is
        nothing that the functions of `jax.numpy` take.
    ValueError
        If an integer is too large for a float.

    Examples
    --------
    >>> from logunif_kl.jax import neg_kl_grad
    >>> print(neg_kl_grad(0.0).round(4))
    0.3624
    """
    return evaluate(_derivative(1), log_alpha=log_alpha)


def neg_kl_hess(log_alpha: Any) -> Any:
    """Compute the second derivative of -KL(q || p) in log alpha.

    With u and F' as in `neg_kl_grad`, by differentiating Eq. 3 of Hron et al. (2017)::

        d^2(-KL)/d log_alpha^2 = -u (F'(u) + u F''(u)) = -(u/2) (1 + F'(u) - 2 u F'(u))

    The two forms are equal by the differential equation of Dawson's function. Both lose digits by
    cancellation, so the result is computed from neither. It does not depend on the constant of -KL.
    It is positive below log_alpha = -1.507 or so, where the first derivative has its maximum,
    negative above, and vanishes at both ends. `logunif_kl.accuracy` lists the worst error found for
    each type. It can itself be differentiated any number of times.

    Parameters
    ----------
    log_alpha : array_like
        Of any shape and type that `neg_kl` takes.

    Returns
    -------
    jax.Array
        Of the dtype of `log_alpha`, and of its shape; sharded as `log_alpha` is. It is 0 at both
        infinities. NaN is returned only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits (complex, boolean, ...), or is
        nothing that the functions of `jax.numpy` take.
    ValueError
        If an integer is too large for a float.

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
) -> Any:
    """-KL(q || p) of N(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    With F and the constant as for `neg_kl` (Hron et al. 2017, Eq. 1)::

        -KL = constant - F(u),    u = mu^2/(2 sigma^2)

    This is the additive parametrisation of Molchanov et al. (2017), without the epsilon and the
    clipping that their Eq. 14 needs: u is formed without a logarithm. -KL depends on
    log_alpha = log_sigma2 - 2 log|mu| alone, so the sign of mu and the common scale of mu and sigma
    do not matter. Value and derivatives are exact at mu = 0, where both first derivatives are 0.
    `kl_normal` has the other sign, to be added to a loss.

    `logunif_kl.accuracy` lists the worst error found for each type. The value and both gradients
    come from one evaluation. The gradient of an argument that is broadcast is summed over the
    elements that share it. The function can be differentiated any number of times, in both modes.

    Parameters
    ----------
    mu, log_sigma2 : array_like
        Means, of either sign, and logarithms of the variances. They are of any type that `neg_kl`
        takes, and are broadcast against each other.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the type that `jax.numpy` promotes the two to, and of the broadcast shape or ``()``. At
        mu = 0 or log_sigma2 = inf the limit is the constant; at infinite mu or log_sigma2 = -inf it
        is -inf. NaN is returned where both limits meet (mu = 0 with log_sigma2 = -inf, infinite mu
        with log_sigma2 = inf), and where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl`.
    ValueError
        As for `neg_kl`, if the shapes do not broadcast, and if the arguments are committed to
        different devices.

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
) -> Any:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(log_alpha, ...)``.

    KL = F(u) - constant, with F and u as for `neg_kl` (Hron et al. 2017, Eq. 1). All but the sign
    is as documented for `neg_kl`, the accuracy included.

    Parameters
    ----------
    log_alpha : array_like
        The logarithm of alpha = sigma^2/mu^2, of any shape and type that `neg_kl` takes.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: KL vanishes at alpha = `zero_at`, by default as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the dtype of `log_alpha`, and of its shape or ``()``; sharded as `log_alpha` is.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> from logunif_kl.jax import kl
    >>> print(kl(0.0).round(4))
    0.4267
    """
    return -neg_kl(log_alpha, zero_at=zero_at, log_c=log_c, reduction=reduction)


def kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """KL(q || p) of N(mu, sigma^2), to be *added to a loss*: ``-neg_kl_normal(...)``.

    KL = F(u) - constant, with F and u as for `neg_kl_normal` (Hron et al. 2017, Eq. 1). All but the
    sign is as documented for `neg_kl_normal`, the accuracy included.

    Parameters
    ----------
    mu, log_sigma2 : array_like
        Means, of either sign, and logarithms of the variances, of any type that `neg_kl` takes.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: by default KL vanishes as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the type that `jax.numpy` promotes the two to, and of the broadcast shape or ``()``.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_normal`.

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
