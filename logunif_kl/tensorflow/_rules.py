"""-KL and its derivatives of every order, each with the next one as its rule.

Arguments are float32 or float64 tensors of one shape. The arithmetic is never differentiated: a
rule that was dropped would leave no derivative at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .._arithmetic import derivatives, functions

Tensor = Any


class Namespace:
    """The few names of an array namespace that the arithmetic asks for.

    A constant has no dimensions: as large as its array it would cost an allocation and a pass.
    """

    __name__ = "tensorflow"
    float32 = tf.float32
    float64 = tf.float64
    where = staticmethod(tf.where)
    abs = staticmethod(tf.abs)
    round = staticmethod(tf.round)
    clip = staticmethod(tf.clip_by_value)

    @staticmethod
    def exp(x: Tensor) -> Tensor:
        """Compute the exponential, in float64: that of float32 costs the results their 4 ulp."""
        return tf.cast(tf.exp(tf.cast(x, tf.float64)), x.dtype)

    @staticmethod
    def log(x: Tensor) -> Tensor:
        """Compute the natural logarithm, in float64 for the same reason."""
        return tf.cast(tf.math.log(tf.cast(x, tf.float64)), x.dtype)

    @staticmethod
    def full_like(like: Tensor, value: float) -> Tensor:
        """Make a constant of the type of `like`, to be broadcast."""
        return tf.constant(value, like.dtype)


_xp = Namespace()


def neg_kl_derivative(x: Tensor, order: int) -> Tensor:
    """Compute the derivative of -KL in log_alpha = x, of any order."""

    def rule(x: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        def backward(upstream: Tensor) -> Tensor:
            # The graph of a gradient is not always that of the value: x must belong to it.
            return upstream * neg_kl_derivative(tf.identity(x), order + 1)

        return _arithmetic(_cut(x), order), backward

    return tf.custom_gradient(rule)(x)


def _arithmetic(x: Tensor, order: int) -> Tensor:
    # Of x - a - b, where b is what the float32 a lacks, a graph's optimiser makes x - b - a, and
    # the relative accuracy near the zero of the second derivative is lost.
    if order == 2 and x.dtype == tf.float32 and not tf.executing_eagerly():
        return tf.cast(derivatives.neg_kl_derivative(_xp, tf.cast(x, tf.float64), order), x.dtype)
    return derivatives.neg_kl_derivative(_xp, x, order)


def neg_kl_normal_derivative(
    mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int
) -> Tensor:
    """Compute a derivative of -KL of N(mu, sigma^2), of any orders; of 0 and 0, -KL itself."""

    def rule(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        def backward(upstream: Tensor) -> tuple[Tensor, Tensor]:
            here = tf.identity(mu), tf.identity(log_sigma2)
            d_mu = neg_kl_normal_derivative(*here, mu_order + 1, log_sigma2_order)
            d_log_sigma2 = neg_kl_normal_derivative(*here, mu_order, log_sigma2_order + 1)
            return upstream * d_mu, upstream * d_log_sigma2

        arguments = _cut(mu), _cut(log_sigma2)
        if mu_order + log_sigma2_order < 2:
            # Value, derivative in mu, derivative in log_sigma2.
            which = mu_order + 2 * log_sigma2_order
            return functions.neg_kl_normal(_xp, *arguments)[which], backward
        orders = mu_order, log_sigma2_order
        return derivatives.neg_kl_normal_derivative(_xp, *arguments, *orders), backward

    return tf.custom_gradient(rule)(mu, log_sigma2)


def _cut(x: Tensor) -> Tensor:
    """End differentiation, so that what does not follow the rule finds nothing else.

    In a graph that is `tf.autodiff.ForwardAccumulator`: it passes over the rule there, and takes
    the derivative of the arithmetic, which would be a zero that nobody notices.
    """
    if tf.executing_eagerly():
        return tf.stop_gradient(x)
    return tf.raw_ops.PreventGradient(
        input=x,
        message="tf.autodiff.ForwardAccumulator does not follow the rules of tf.custom_gradient "
        "inside a tf.function: use it outside, or tf.GradientTape",
    )
