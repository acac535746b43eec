"""The documented functions of -KL over JAX arrays."""

from __future__ import annotations

from typing import Any

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._refusals import check_reduction
from . import _rules
from ._operands import finished, operands


def neg_kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|: *maximise* it (ELBO sign).

    With alpha = sigma^2/mu^2, u = 1/(2 alpha) = exp(-log_alpha)/2 and
    F(u) = u 2F2(1, 1; 3/2, 2; -u), [1]_ Eq. 1::

        -KL = constant - F(u)

    The constant is a choice, as in `logunif_kl.neg_kl`: by default -KL vanishes as alpha -> inf and
    is negative elsewhere.

    Parameters
    ----------
    log_alpha : array_like
        The logarithm of alpha, a ratio of *variances*: of any shape; an array or tracer of JAX, a
        NumPy array, or a number. Integers are promoted as by `jax.numpy.exp`, weak types remain
        weak.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default. A Python number, known when the
        function is traced.
    log_c : float, optional
        The logarithm of the prior's C instead.
    reduction : {"none", "sum", "mean"}, optional
        What becomes of the elements: kept, or summed or averaged over all of them, before the
        result is rounded to a half type.

    Returns
    -------
    jax.Array
        Of the dtype of `log_alpha`, and of its shape or ``()``; sharded as `log_alpha` is. The
        limit is the constant at ``log_alpha=inf`` and -inf at ``log_alpha=-inf``; NaN only where
        NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers (complex, boolean, ...) or is nothing that
        `jax.numpy` functions take, or if `zero_at` or `log_c` is not a real number.
    ValueError
        If `zero_at` and `log_c` are both given, if `zero_at` is not positive, if `log_c` is not
        finite, or if `reduction` is none of the three.

    See Also
    --------
    kl : the same with the other sign, to be added to a loss.
    neg_kl_normal : from the mean and the variance.

    Notes
    -----
    Differentiable in both modes any number of times; the first two derivatives are `neg_kl_grad`
    and `neg_kl_hess`. `logunif_kl.accuracy` lists the worst relative error found for each type.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

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
    check_reduction(reduction)
    (x,), dtype = operands(log_alpha=log_alpha)
    return finished(_rules.neg_kl_derivative(x, 0), constant, reduction, dtype)


def neg_kl_grad(log_alpha: Any) -> Any:
    """Compute the derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and D Dawson's function ([1]_, Eq. 3)::

        d(-KL)/d log_alpha = u F'(u) = sqrt(u) D(sqrt(u))

    It is what `jax.grad` makes of `neg_kl`, element by element, for any shape.

    Parameters
    ----------
    log_alpha : array_like
        As for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the shape and dtype of `log_alpha`; 1/2 at -inf, 0 at inf, NaN only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers.

    Notes
    -----
    Differentiable any number of times. No convention enters: a constant has no derivative.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

    Examples
    --------
    >>> from logunif_kl.jax import neg_kl_grad
    >>> print(neg_kl_grad(0.0).round(4))
    0.3624
    """
    (x,), dtype = operands(log_alpha=log_alpha)
    return finished(_rules.neg_kl_derivative(x, 1), 0.0, "none", dtype)


def neg_kl_hess(log_alpha: Any) -> Any:
    """Compute the second derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and F' as in `neg_kl_grad`::

        d^2(-KL)/d log_alpha^2 = -(u/2) (1 + F'(u) - 2 u F'(u))

    Parameters
    ----------
    log_alpha : array_like
        As for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the shape and dtype of `log_alpha`; 0 at both infinities, NaN only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers.

    Notes
    -----
    Differentiable any number of times; not computed by this formula, which cancels.

    References
    ----------
    .. [1] The derivative of Eq. 3 of J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational
       Gaussian Dropout is not Bayesian" (2017).

    Examples
    --------
    >>> from logunif_kl.jax import neg_kl_hess
    >>> print(neg_kl_hess(0.0).round(4))
    -0.25
    """
    (x,), dtype = operands(log_alpha=log_alpha)
    return finished(_rules.neg_kl_derivative(x, 2), 0.0, "none", dtype)


def neg_kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) of N(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    With u = mu^2/(2 sigma^2) and F(u) = u 2F2(1, 1; 3/2, 2; -u), [1]_ Eq. 1::

        -KL = constant - F(u)

    in the additive parametrisation of [2]_, with neither the epsilon nor the clipping that their
    Eq. 14 needs: u is formed without a logarithm. The constant is that of `neg_kl`. The gradient is
    exact and finite at mu = 0, where that in mu is 0 and that in log_sigma2 is 0.

    Parameters
    ----------
    mu : array_like
        Means, of either sign: arrays or tracers of JAX, NumPy arrays, or numbers.
    log_sigma2 : array_like
        Logarithms of the variances; broadcast against `mu`, so that its gradient is summed over
        what shares it.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        As for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the type that `jax.numpy` promotes the two to, and of the broadcast shape or ``()``. At
        mu = 0 or log_sigma2 = inf the limit is the constant; at infinite mu or log_sigma2 = -inf it
        is -inf. NaN where both limits meet (mu = 0 with log_sigma2 = -inf, both infinite), and
        where NaN was given.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers, or is nothing that `jax.numpy` functions take.
    ValueError
        As for `neg_kl`, and if the shapes do not broadcast.

    See Also
    --------
    kl_normal : the same with the other sign, to be added to a loss.

    Notes
    -----
    The value and both gradients come from one evaluation. Differentiable any number of times in
    both modes. `logunif_kl.accuracy` lists the worst relative error found for each type.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).
    .. [2] D. Molchanov, A. Ashukha, D. Vetrov, "Variational Dropout Sparsifies Deep Neural
       Networks" (2017).

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
    check_reduction(reduction)
    (m, s), dtype = operands(mu=mu, log_sigma2=log_sigma2)
    return finished(_rules.neg_kl_normal(m, s), constant, reduction, dtype)


def kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(log_alpha, ...)``.

    The documentation of `neg_kl` holds for all but the sign.

    Parameters
    ----------
    log_alpha : array_like
        The logarithm of alpha = sigma^2/mu^2, a ratio of variances.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: KL vanishes at alpha = `zero_at`, by default as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        As for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the dtype of `log_alpha`, and of its shape or ``()``.

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

    The documentation of `neg_kl_normal` holds for all but the sign.

    Parameters
    ----------
    mu : array_like
        Means, of either sign.
    log_sigma2 : array_like
        Logarithms of the variances; broadcast against `mu`.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        As for `neg_kl`.

    Returns
    -------
    jax.Array
        Of the broadcast shape, or ``()``.

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
    return -neg_kl_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c, reduction=reduction)
