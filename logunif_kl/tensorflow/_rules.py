"""Custom gradients: the gradient of each derivative of -KL calls the next derivative.

The functions take float32 or float64 tensors of one shape. `_cut` keeps TensorFlow from
differentiating the arithmetic itself, so all derivatives come from the custom gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .._arithmetic import derivatives, functions

Tensor = Any


class Namespace:
    """The functions of an array namespace that the arithmetic uses, for TensorFlow."""

    __name__ = "tensorflow"
    float32 = tf.float32
    float64 = tf.float64
    where = staticmethod(tf.where)
    abs = staticmethod(tf.abs)
    round = staticmethod(tf.round)
    minimum = staticmethod(tf.minimum)

    @staticmethod
    def clip(x: Tensor, low: float, high: float | None) -> Tensor:
        """Limit x to the interval from `low` to `high`, or to `low` and above if `high` is None."""
        x = tf.maximum(x, low)
        return x if high is None else tf.minimum(x, high)

    @staticmethod
    def below(x: Tensor, u: Tensor, bound: float) -> Tensor:
        """Return x where u is below the bound, and 1 elsewhere.

        The 1 keeps `tf.debugging.enable_check_numerics` from reporting an intermediate infinity.
        """
        return tf.where(u >= bound, tf.ones([], x.dtype), x)

    @staticmethod
    def from_bound(x: Tensor, u: Tensor, bound: float) -> Tensor:
        """Return x where u is at the bound or above it, and 1 elsewhere."""
        return tf.where(u >= bound, x, tf.ones([], x.dtype))

    @staticmethod
    def fused(a: Tensor, b: Tensor, c: Any) -> Tensor:
        """Compute a b + c, rounded once."""
        a, b, c = (tf.cast(x, tf.float64) for x in (a, b, c))
        return tf.cast(a * b + c, tf.float32)

    @staticmethod
    def bits(x: Tensor) -> Tensor:
        return tf.bitcast(x, tf.int32)

    @staticmethod
    def unbits(n: Tensor) -> Tensor:
        return tf.bitcast(n, tf.float32)

    @staticmethod
    def to_integer(x: Tensor) -> Tensor:
        return tf.cast(x, tf.int32)

    @staticmethod
    def from_integer(n: Tensor) -> Tensor:
        return tf.cast(n, tf.float32)

    @staticmethod
    def left(n: Tensor, by: int) -> Tensor:
        return tf.bitwise.left_shift(n, by)

    @staticmethod
    def right(n: Tensor, by: int) -> Tensor:
        """Shift the bits of non-negative numbers to the right."""
        return tf.bitwise.right_shift(n, by)

    @staticmethod
    def exp(x: Tensor) -> Tensor:
        """Compute the exponential in float64, because TensorFlow's float32 errors exceed 4 ulp."""
        return tf.cast(tf.exp(tf.cast(x, tf.float64)), x.dtype)

    @staticmethod
    def log(x: Tensor) -> Tensor:
        """Compute the natural logarithm in float64, for the same reason as `exp`."""
        return tf.cast(tf.math.log(tf.cast(x, tf.float64)), x.dtype)

    @staticmethod
    def full_like(like: Tensor, value: float) -> Tensor:
        """Make a scalar of the dtype of `like`, because a tensor of its shape needs more memory."""
        return tf.constant(value, like.dtype)


_xp = Namespace()


def neg_kl_derivative(x: Tensor, order: int) -> Tensor:

    def rule(x: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        def backward(upstream: Tensor) -> Tensor:
            # TensorFlow may call this in another graph. tf.identity brings x into that graph.
            return upstream * neg_kl_derivative(tf.identity(x), order + 1)

        return _arithmetic(_cut(x), order), backward

    return tf.custom_gradient(rule)(x)


def _arithmetic(x: Tensor, order: int) -> Tensor:
    # Near the zero of the second derivative, the arithmetic computes x - a - b. Here a is the zero
    # rounded to float32, and b is the rest. The graph optimiser would compute x - b - a, which
    # loses the relative accuracy in float32, so a graph computes in float64.
    if order == 2 and x.dtype == tf.float32 and not tf.executing_eagerly():
        return tf.cast(derivatives.neg_kl_derivative(_xp, tf.cast(x, tf.float64), order), x.dtype)
    return derivatives.neg_kl_derivative(_xp, x, order)


def neg_kl_normal(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    return neg_kl_normal_derivative(mu, log_sigma2, 0, 0)


def neg_kl_normal_derivative(
    mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int
) -> Tensor:
    """Compute a derivative of -KL of N(mu, sigma^2), or -KL itself if both orders are 0."""

    def rule(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        def backward(upstream: Tensor) -> tuple[Tensor, Tensor]:
            here = tf.identity(mu), tf.identity(log_sigma2)
            d_mu = neg_kl_normal_derivative(*here, mu_order + 1, log_sigma2_order)
            d_log_sigma2 = neg_kl_normal_derivative(*here, mu_order, log_sigma2_order + 1)
            return upstream * d_mu, upstream * d_log_sigma2

        arguments = _cut(mu), _cut(log_sigma2)
        if mu_order + log_sigma2_order < 2:
            # The arithmetic returns a tuple: -KL, and its derivatives in mu and in log_sigma2.
            which = mu_order + 2 * log_sigma2_order
            return functions.neg_kl_normal(_xp, *arguments)[which], backward
        orders = mu_order, log_sigma2_order
        return derivatives.neg_kl_normal_derivative(_xp, *arguments, *orders), backward

    return tf.custom_gradient(rule)(mu, log_sigma2)


def _cut(x: Tensor) -> Tensor:
    """Keep TensorFlow from differentiating the arithmetic.

    In a graph, `tf.autodiff.ForwardAccumulator` ignores custom gradients. After `tf.stop_gradient`
    the accumulator would return zeros. After `PreventGradient` it raises an error.
    """
    if tf.executing_eagerly():
        return tf.stop_gradient(x)
    return tf.raw_ops.PreventGradient(
        input=x,
        message="tf.autodiff.ForwardAccumulator does not follow the rules of tf.custom_gradient "
        "inside a tf.function: use it outside, or tf.GradientTape",
    )
