"""The public functions for TensorFlow tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from .._convention import ZERO_AT_INFINITY, additive_constant
from . import _rules
from ._arguments import evaluate

Tensor = Any
Function = TypeVar("Function", bound=Callable[..., Any])


def _plain(function: Function) -> Function:
    """Keep AutoGraph from rewriting the arithmetic, where no branch depends on a tensor."""
    plain: Function = tf.autograph.experimental.do_not_convert(function)
    return plain


@_plain
def neg_kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|: *maximise* it (ELBO sign).

    With alpha = sigma^2/mu^2 and u = 1/(2 alpha) = exp(-log_alpha)/2, in nats ([1]_, Eq. 1)::

        -KL = constant - F(u),    F(u) = u 2F2(1, 1; 3/2, 2; -u)

    The log-uniform prior p is improper, so the constant is a choice. By default -KL vanishes as
    alpha -> inf and is negative elsewhere, as in [2]_, Eq. 14.

    Parameters
    ----------
    log_alpha : tensor_like
        The logarithm of alpha, a ratio of *variances*, of any shape: a tensor or a variable of
        float16, bfloat16, float32 or float64, or what `tf.convert_to_tensor` makes one of. Integers
        are refused, as by `tf.exp`, except a Python int.
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
    tf.Tensor
        Of the type of `log_alpha`, and of its shape or ``()``. The limit is the constant at
        ``log_alpha=inf`` and -inf at ``log_alpha=-inf``. NaN is returned only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold floating-point numbers in a dense tensor (integer, complex,
        boolean, sparse, ...), or if `zero_at` or `log_c` is not a real number.
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

    The half types are computed in float32 and rounded at the end. TensorFlow flushes subnormal
    numbers to zero on the CPU, in arguments and in results. The function can be differentiated any
    number of times.

    References
    ----------
    .. [1] Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).
    .. [2] Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).
    .. [3] Kingma et al., "Variational Dropout and the Local Reparameterization Trick" (2015).

    Examples
    --------
    >>> import tensorflow as tf
    >>> from logunif_kl.tensorflow import neg_kl
    >>> log_alpha = tf.constant([-8.0, 0.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(log_alpha)
    ...     value = neg_kl(log_alpha)
    >>> print(value.numpy().round(4))
    [-4.635  -0.4267 -0.0662]
    >>> print(tape.gradient(value, log_alpha).numpy().round(4))
    [0.5002 0.3624 0.0647]
    """
    constant = additive_constant(zero_at, log_c)
    return evaluate(_derivative(0), constant, reduction, log_alpha=log_alpha)


@_plain
def neg_kl_grad(log_alpha: Any) -> Tensor:
    """Compute the derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and D Dawson's function (Hron et al. 2017, Eq. 3; see `neg_kl`)::

        d(-KL)/d log_alpha = u F'(u) = sqrt(u) D(sqrt(u))

    The derivative does not depend on the constant of -KL. It is positive, since -KL increases from
    no noise to pure noise. It tends to 1/2 from above as log_alpha -> -inf, has its maximum 0.6424
    near log_alpha = -1.507, and vanishes like exp(-log_alpha)/2 as log_alpha -> inf.
    `logunif_kl.accuracy` lists the worst error found for each type. It can itself be differentiated
    any number of times.

    Parameters
    ----------
    log_alpha : tensor_like
        Of any shape and type that `neg_kl` takes.

    Returns
    -------
    tf.Tensor
        Of the type of `log_alpha`, and of its shape. It is 1/2 at -inf and 0 at inf. NaN is
        returned only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold floating-point numbers in a dense tensor (integer, complex,
        boolean, sparse, ...).
    ValueError
        If an integer is too large for a float.

    Examples
    --------
    >>> from logunif_kl.tensorflow import neg_kl_grad
    >>> print(round(float(neg_kl_grad(0.0)), 4))
    0.3624
    """
    return evaluate(_derivative(1), log_alpha=log_alpha)


@_plain
def neg_kl_hess(log_alpha: Any) -> Tensor:
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
    log_alpha : tensor_like
        Of any shape and type that `neg_kl` takes.

    Returns
    -------
    tf.Tensor
        Of the type of `log_alpha`, and of its shape. It is 0 at both infinities. NaN is returned
        only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold floating-point numbers in a dense tensor (integer, complex,
        boolean, sparse, ...).
    ValueError
        If an integer is too large for a float.

    Examples
    --------
    >>> from logunif_kl.tensorflow import neg_kl_hess
    >>> print(round(float(neg_kl_hess(0.0)), 4))
    -0.25
    """
    return evaluate(_derivative(2), log_alpha=log_alpha)


@_plain
def neg_kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) of N(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    With F and the constant as for `neg_kl` (Hron et al. 2017, Eq. 1)::

        -KL = constant - F(u),    u = mu^2/(2 sigma^2)

    This is the additive parametrisation of Molchanov et al. (2017), without the epsilon and the
    clipping that their Eq. 14 needs: u is formed without a logarithm. -KL depends on
    log_alpha = log_sigma2 - 2 log|mu| alone, so the sign of mu and the common scale of mu and sigma
    do not matter. Value and derivatives are exact at mu = 0, where both first derivatives are 0.
    `kl_normal` has the other sign, to be added to a loss.

    `logunif_kl.accuracy` lists the worst error found for each type. The function can be
    differentiated any number of times.

    Parameters
    ----------
    mu, log_sigma2 : tensor_like
        Means, of either sign, and logarithms of the variances. They are of any type that `neg_kl`
        takes, and are broadcast against each other. Two tensors must be of one type; an array or a
        number takes the type of a tensor beside it.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    tf.Tensor
        Of the type of the tensors, or of `mu` if neither is a tensor, and of the broadcast shape or
        ``()``. At mu = 0 or log_sigma2 = inf the limit is the constant; at infinite mu or
        log_sigma2 = -inf it is -inf. NaN is returned where both limits meet (mu = 0 with
        log_sigma2 = -inf, infinite mu with log_sigma2 = inf), and where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl`, if two tensors differ in type, and if one is of another framework.
    ValueError
        As for `neg_kl`, and if the shapes do not broadcast. Where shapes are known only when a
        graph runs, TensorFlow raises `tf.errors.InvalidArgumentError` instead.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from logunif_kl.tensorflow import neg_kl_normal
    >>> mu = tf.Variable([0.0, 1.0, -3.0])
    >>> with tf.GradientTape() as tape:
    ...     total = neg_kl_normal(mu, 0.0, reduction="sum")
    >>> print(tape.gradient(total, mu).numpy().round(4))
    [-0.     -0.7248  0.3932]
    """
    constant = additive_constant(zero_at, log_c)
    return evaluate(_rules.neg_kl_normal, constant, reduction, mu=mu, log_sigma2=log_sigma2)


@_plain
def kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(log_alpha, ...)``.

    KL = F(u) - constant, with F and u as for `neg_kl` (Hron et al. 2017, Eq. 1). All but the sign
    is as documented for `neg_kl`, the accuracy included.

    Parameters
    ----------
    log_alpha : tensor_like
        The logarithm of alpha = sigma^2/mu^2, of any shape and type that `neg_kl` takes.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: KL vanishes at alpha = `zero_at`, by default as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    tf.Tensor
        Of the type of `log_alpha`, and of its shape or ``()``.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> from logunif_kl.tensorflow import kl
    >>> print(round(float(kl([0.0, 0.0], reduction="sum")), 4))
    0.8534
    """
    return -neg_kl(log_alpha, zero_at=zero_at, log_c=log_c, reduction=reduction)


@_plain
def kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p) of N(mu, sigma^2), to be *added to a loss*: ``-neg_kl_normal(...)``.

    KL = F(u) - constant, with F and u as for `neg_kl_normal` (Hron et al. 2017, Eq. 1). All but the
    sign is as documented for `neg_kl_normal`, the accuracy included.

    Parameters
    ----------
    mu, log_sigma2 : tensor_like
        Means, of either sign, and logarithms of the variances, of any type that `neg_kl` takes.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: by default KL vanishes as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    tf.Tensor
        Of the type of the tensors, or of `mu` if neither is a tensor, and of the broadcast shape or
        ``()``.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_normal`.

    Examples
    --------
    >>> from logunif_kl.tensorflow import kl_normal
    >>> print(round(float(kl_normal(1.0, 0.0)), 4))
    0.4267
    """
    return -neg_kl_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c, reduction=reduction)


def _derivative(order: int) -> Callable[[Tensor], Tensor]:
    return lambda x: _rules.neg_kl_derivative(x, order)
