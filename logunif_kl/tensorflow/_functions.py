"""The documented functions of -KL over tensors of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._refusals import check_reduction
from . import _rules
from ._operands import finished, operands

Tensor = Any
Function = TypeVar("Function", bound=Callable[..., Any])


def _plain(function: Function) -> Function:
    """Keep AutoGraph from rewriting the arithmetic: no branch of it depends on a tensor."""
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

    With alpha = sigma^2/mu^2, u = 1/(2 alpha) = exp(-log_alpha)/2 and
    F(u) = u 2F2(1, 1; 3/2, 2; -u), [1]_ Eq. 1::

        -KL = constant - F(u)

    The constant is a choice, as in `logunif_kl.neg_kl`: by default -KL vanishes as alpha -> inf and
    is negative elsewhere.

    Parameters
    ----------
    log_alpha : tensor_like
        The logarithm of alpha, a ratio of *variances*: of any shape; a tensor or a variable of
        float16, bfloat16, float32 or float64, or what `tf.convert_to_tensor` makes one of. Integers
        are refused, as by `tf.exp`.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default. A Python number.
    log_c : float, optional
        The logarithm of the prior's C instead.
    reduction : {"none", "sum", "mean"}, optional
        What becomes of the elements: kept, or summed or averaged over all of them, before the
        result is rounded to a half type. The constant counts once for each element.

    Returns
    -------
    tf.Tensor
        Of the type of `log_alpha`, and of its shape or ``()``. The limit is the constant at
        ``log_alpha=inf`` and -inf at ``log_alpha=-inf``; NaN only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold floating-point numbers in a dense tensor (integer, complex,
        boolean, sparse, ...), or if `zero_at` or `log_c` is not a real number.
    ValueError
        If `zero_at` and `log_c` are both given, if `zero_at` is not positive, if `log_c` is not
        finite, or if `reduction` is none of the three.

    See Also
    --------
    kl : the same with the other sign, to be added to a loss.
    neg_kl_normal : from the mean and the variance.

    Notes
    -----
    Differentiable any number of times; the first two derivatives are `neg_kl_grad` and
    `neg_kl_hess`. `logunif_kl.accuracy` lists the worst relative error found for each type. The
    half types are computed in float32 and rounded at the end. TensorFlow flushes subnormal numbers
    to zero on the CPU, in arguments and in results.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

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
    check_reduction(reduction)
    (x,), dtype = operands(log_alpha=log_alpha)
    return finished(_rules.neg_kl_derivative(x, 0), constant, reduction, dtype)


@_plain
def neg_kl_grad(log_alpha: Any) -> Tensor:
    """Compute the derivative of -KL(q || p) in log alpha, itself differentiable.

    With u = exp(-log_alpha)/2 and D Dawson's function ([1]_, Eq. 3)::

        d(-KL)/d log_alpha = u F'(u) = sqrt(u) D(sqrt(u))

    No convention enters: a constant has no derivative.

    Parameters
    ----------
    log_alpha : tensor_like
        As for `neg_kl`.

    Returns
    -------
    tf.Tensor
        Of the shape and type of `log_alpha`; 1/2 at -inf, 0 at inf.

    Raises
    ------
    TypeError
        As for `neg_kl`.

    Notes
    -----
    `logunif_kl.accuracy` lists the worst relative error found for each type.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

    Examples
    --------
    >>> from logunif_kl.tensorflow import neg_kl_grad
    >>> print(round(float(neg_kl_grad(0.0)), 4))
    0.3624
    """
    (x,), dtype = operands(log_alpha=log_alpha)
    return tf.cast(_rules.neg_kl_derivative(x, 1), dtype)


@_plain
def neg_kl_hess(log_alpha: Any) -> Tensor:
    """Compute the second derivative of -KL(q || p) in log alpha, itself differentiable.

    With u = exp(-log_alpha)/2 and F' as in `neg_kl_grad`::

        d^2(-KL)/d log_alpha^2 = -(u/2) (1 + F'(u) - 2 u F'(u))

    Parameters
    ----------
    log_alpha : tensor_like
        As for `neg_kl`.

    Returns
    -------
    tf.Tensor
        Of the shape and type of `log_alpha`; 0 at both infinities.

    Raises
    ------
    TypeError
        As for `neg_kl`.

    Notes
    -----
    `logunif_kl.accuracy` lists the worst relative error found for each type.

    References
    ----------
    .. [1] The derivative of Eq. 3 of J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational
       Gaussian Dropout is not Bayesian" (2017).

    Examples
    --------
    >>> from logunif_kl.tensorflow import neg_kl_hess
    >>> print(round(float(neg_kl_hess(0.0)), 4))
    -0.25
    """
    (x,), dtype = operands(log_alpha=log_alpha)
    return tf.cast(_rules.neg_kl_derivative(x, 2), dtype)


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

    The additive parametrisation of Molchanov et al. (2017), with neither the epsilon nor the
    clipping that their formula needs: u = mu^2/(2 sigma^2) is formed without a logarithm, and
    mu = 0 is exact, in the derivatives as well. Formula and constant are those of `neg_kl`.

    Parameters
    ----------
    mu : tensor_like
        Means, of either sign: as `neg_kl` takes its argument.
    log_sigma2 : tensor_like
        Logarithms of the variances; broadcast against `mu`, whose type it must have if both are
        tensors.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        As for `neg_kl`.

    Returns
    -------
    tf.Tensor
        Of the broadcast shape, or of no dimensions. At mu = 0 or log_sigma2 = inf the limit is the
        constant; at infinite mu or log_sigma2 = -inf it is -inf. NaN where both limits meet, and
        where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl`, and if the tensors differ in type.
    ValueError
        As for `neg_kl`, and if the shapes do not broadcast.

    See Also
    --------
    kl_normal : the same with the other sign, to be added to a loss.

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
    check_reduction(reduction)
    (m, s), dtype = operands(mu=mu, log_sigma2=log_sigma2)
    return finished(_rules.neg_kl_normal_derivative(m, s, 0, 0), constant, reduction, dtype)


@_plain
def kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(log_alpha, ...)``.

    The documentation of `neg_kl` holds for all but the sign.

    Parameters
    ----------
    log_alpha : tensor_like
        The logarithm of alpha = sigma^2/mu^2, a ratio of variances.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: KL vanishes at alpha = `zero_at`, by default as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        As for `neg_kl`.

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

    The documentation of `neg_kl_normal` holds for all but the sign.

    Parameters
    ----------
    mu : tensor_like
        Means, of either sign.
    log_sigma2 : tensor_like
        Logarithms of the variances; broadcast against `mu`.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        As for `neg_kl`.

    Returns
    -------
    tf.Tensor
        Of the broadcast shape, or of no dimensions.

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
