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
    """Keep AutoGraph from rewriting a function, because no branch in it depends on a tensor."""
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
    """Compute -KL(q || p) of tensors, as `logunif_kl.neg_kl` does: *maximise* it (ELBO sign).

    float16 and bfloat16 are computed in float32, and the result is rounded. The function can be
    differentiated any number of times. TensorFlow flushes subnormal numbers to zero on the CPU, in
    arguments and in results.

    Parameters
    ----------
    log_alpha : tensor_like
        A tensor or a variable of float16, bfloat16, float32 or float64, or anything that
        `tf.convert_to_tensor` converts to one. Integers raise an error, as in `tf.exp`, except for
        a Python int.
    zero_at, log_c, reduction
        As for `logunif_kl.neg_kl`.

    Returns
    -------
    tf.Tensor
        With the dtype of `log_alpha`.

    Raises
    ------
    TypeError
        If `log_alpha` is not a dense tensor of floating-point numbers: for example, if it is
        integer, complex, boolean or sparse.

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
    """Compute the derivative of -KL in log_alpha, as `logunif_kl.neg_kl_grad` does.

    It takes the same tensors as `neg_kl`. The result can be differentiated any number of times.

    Examples
    --------
    >>> from logunif_kl.tensorflow import neg_kl_grad
    >>> print(round(float(neg_kl_grad(0.0)), 4))
    0.3624
    """
    return evaluate(_derivative(1), log_alpha=log_alpha)


@_plain
def neg_kl_hess(log_alpha: Any) -> Tensor:
    """Compute the second derivative of -KL in log_alpha, as `logunif_kl.neg_kl_hess` does.

    It takes the same tensors as `neg_kl`. The result can be differentiated any number of times.

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
    """Compute -KL(q || p) as `logunif_kl.neg_kl_normal` does: *maximise* it (ELBO sign).

    The function can be differentiated any number of times.

    Parameters
    ----------
    mu, log_sigma2 : tensor_like
        As `log_alpha` of `neg_kl`. Two tensors must have the same dtype. An array or a number that
        is given with a tensor is converted to the dtype of the tensor.
    zero_at, log_c, reduction
        As for `logunif_kl.neg_kl`.

    Returns
    -------
    tf.Tensor
        With the broadcast shape and the dtype of the tensors, or of `mu` if neither is a tensor.

    Raises
    ------
    TypeError
        As for `neg_kl`. Also if two tensors differ in dtype or come from two frameworks.
    ValueError
        As for `logunif_kl.neg_kl_normal`. If shapes that do not broadcast are known only when a
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
    """Compute KL(q || p), the negative of `neg_kl`, to be *added to a loss*.

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
    """Compute KL(q || p), the negative of `neg_kl_normal`, to be *added to a loss*.

    Examples
    --------
    >>> from logunif_kl.tensorflow import kl_normal
    >>> print(round(float(kl_normal(1.0, 0.0)), 4))
    0.4267
    """
    return -neg_kl_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c, reduction=reduction)


def _derivative(order: int) -> Callable[[Tensor], Tensor]:
    return lambda x: _rules.neg_kl_derivative(x, order)
