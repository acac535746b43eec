"""JVP rules. The derivative of each function is computed by the function of the next order.

Arguments are float32 or float64 arrays of one shape. JAX never differentiates the arithmetic
itself: that would lose accuracy in the tails. An eager call compiles the whole arithmetic of the
function. If JAX traces the caller, the arithmetic becomes part of the caller's program.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._arithmetic import derivatives
from . import _custom_call

Array = Any

_in_log_alpha = jax.jit(partial(derivatives.neg_kl_derivative, jnp), static_argnums=1, inline=True)
_value = jax.jit(_custom_call.value, static_argnums=2, inline=True)
_value_and_gradient = jax.jit(_custom_call.value_and_gradient, static_argnums=2, inline=True)
_value_of_log_alpha = jax.jit(_custom_call.value_of_log_alpha, static_argnums=1, inline=True)
_value_and_gradient_of_log_alpha = jax.jit(
    _custom_call.value_and_gradient_of_log_alpha, static_argnums=1, inline=True
)
_in_normal = jax.jit(
    partial(derivatives.neg_kl_normal_derivative, jnp), static_argnums=(2, 3), inline=True
)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def neg_kl_derivative(x: Array, order: int) -> Array:
    """Compute the derivative of -KL in log_alpha = x, of any order."""
    return _in_log_alpha(x, order)


@neg_kl_derivative.defjvp
def _neg_kl_derivative_rule(order: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    return neg_kl_derivative(x, order), tangent * neg_kl_derivative(x, order + 1)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def neg_kl(x: Array, sign: float = 1.0) -> Array:
    """Compute -KL at log_alpha = x, or KL with the sign -1.0."""
    return _value_of_log_alpha(x, sign)


@neg_kl.defjvp
def _neg_kl_rule(sign: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    value, slope = neg_kl_with_gradient(*primals, sign)
    return value, tangents[0] * slope


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def neg_kl_with_gradient(x: Array, sign: float) -> tuple[Array, Array]:
    """Compute -KL at log_alpha = x and its derivative in one evaluation, each times the sign."""
    value, slope = _value_and_gradient_of_log_alpha(x, sign)
    return value, slope


@neg_kl_with_gradient.defjvp
def _of_log_alpha_rule(sign: float, primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (tangent,) = primals, tangents
    value, slope = neg_kl_with_gradient(x, sign)
    second = tangent * neg_kl_derivative(x, 2)
    return (value, slope), (tangent * slope, second if sign > 0 else -second)


_custom_call.RULES["log_alpha_value_and_gradient"] = _of_log_alpha_rule


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def neg_kl_normal(mu: Array, log_sigma2: Array, sign: float = 1.0) -> Array:
    """Compute -KL of N(mu, sigma^2), or KL if ``sign`` is -1.0."""
    return _value(mu, log_sigma2, sign)


@partial(neg_kl_normal.defjvp, symbolic_zeros=True)
def _neg_kl_normal_rule(sign: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    value, *gradient = neg_kl_normal_with_gradient(*primals, sign)
    return value, along(tangents, gradient, value)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def neg_kl_normal_with_gradient(
    mu: Array, log_sigma2: Array, sign: float
) -> tuple[Array, Array, Array]:
    """Compute -KL and its two derivatives in one evaluation, each multiplied by ``sign``."""
    value, d_mu, d_log_sigma2 = _value_and_gradient(mu, log_sigma2, sign)
    return value, d_mu, d_log_sigma2


@partial(neg_kl_normal_with_gradient.defjvp, symbolic_zeros=True)
def _with_gradient_rule(sign: float, primals: Any, tangents: Any) -> tuple[Any, Any]:
    results = neg_kl_normal_with_gradient(*primals, sign)
    value, *gradient = results
    directions = [_next(primals, tangents, *orders) for orders in ((1, 0), (0, 1))]
    if sign < 0:
        directions = [-d for d in directions]
    return results, (along(tangents, gradient, value), *directions)


_custom_call.RULES["value_and_gradient"] = _with_gradient_rule


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def neg_kl_normal_derivative(
    mu: Array, log_sigma2: Array, mu_order: int, log_sigma2_order: int
) -> Array:
    """Compute a derivative of -KL of N(mu, sigma^2), of total order 2 or more."""
    return _in_normal(mu, log_sigma2, mu_order, log_sigma2_order)


@partial(neg_kl_normal_derivative.defjvp, symbolic_zeros=True)
def _neg_kl_normal_derivative_rule(
    mu_order: int, log_sigma2_order: int, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    orders = mu_order, log_sigma2_order
    return neg_kl_normal_derivative(*primals, *orders), _next(primals, tangents, *orders)


def _next(primals: Any, tangents: Any, mu_order: int, log_sigma2_order: int) -> Array:
    """Return the tangent of a derivative of -KL, from the derivatives that are one order higher."""
    orders = (mu_order + 1, log_sigma2_order), (mu_order, log_sigma2_order + 1)
    found = [
        None if is_zero(tangent) else neg_kl_normal_derivative(*primals, *order)
        for tangent, order in zip(tangents, orders, strict=True)
    ]
    return along(tangents, found, primals[0])


def along(tangents: Any, derivatives: Any, like: Array) -> Array:
    """Return the sum of tangent times derivative over all tangents that are not symbolic zeros."""
    terms = [
        tangent * derivative
        for tangent, derivative in zip(tangents, derivatives, strict=True)
        if not is_zero(tangent)
    ]
    return sum(terms[1:], terms[0]) if terms else jnp.zeros_like(like)


def is_zero(tangent: Any) -> bool:
    """Return whether JAX knows a tangent to be 0 at the time of tracing."""
    return type(tangent) is SymbolicZero
