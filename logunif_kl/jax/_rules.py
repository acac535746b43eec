"""Rules of differentiation: the derivative of each function is the function of the next order.

Arguments are float32 or float64 arrays of one shape. The arithmetic itself is never differentiated;
if a rule were dropped, the tails would lose accuracy, which the tests would show. Outside of a
trace the arithmetic of each function is compiled as a whole. Inside a trace it is inlined into the
caller's program.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._arithmetic import derivatives, functions

try:  # a private name of JAX; without it the types are strong
    from jax._src.lax.lax import _convert_element_type as _convert
except ImportError:
    _convert = None

Array = Any


@partial(jax.jit, static_argnums=1, inline=True)
def _in_log_alpha(x: Array, order: int) -> Array:
    return derivatives.neg_kl_derivative(jnp, x, order)


def _as_weak(mu: Array, log_sigma2: Array, result: Array) -> Array:
    """Make a result weakly typed if both arguments are: the operations on bits forget it."""
    weak = jax.typeof(mu).weak_type and jax.typeof(log_sigma2).weak_type
    if not weak or _convert is None:
        return result
    return _convert(result, result.dtype, weak_type=True)


@partial(jax.jit, inline=True)
def _value(mu: Array, log_sigma2: Array) -> Array:
    return _as_weak(mu, log_sigma2, functions.neg_kl_normal(jnp, mu, log_sigma2)[0])


@partial(jax.jit, inline=True)
def _value_and_gradient(mu: Array, log_sigma2: Array) -> tuple[Array, Array, Array]:
    value, d_mu, d_log_sigma2 = (
        _as_weak(mu, log_sigma2, x) for x in functions.neg_kl_normal(jnp, mu, log_sigma2)
    )
    return value, d_mu, d_log_sigma2


@partial(jax.jit, static_argnums=(2, 3), inline=True)
def _in_normal(mu: Array, log_sigma2: Array, mu_order: int, log_sigma2_order: int) -> Array:
    return derivatives.neg_kl_normal_derivative(jnp, mu, log_sigma2, mu_order, log_sigma2_order)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def neg_kl_derivative(x: Array, order: int) -> Array:
    """Compute the derivative of -KL in log_alpha = x, of any order."""
    return _in_log_alpha(x, order)


@neg_kl_derivative.defjvp
def _neg_kl_derivative_rule(order: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    return neg_kl_derivative(x, order), tangent * neg_kl_derivative(x, order + 1)


@jax.custom_jvp
def neg_kl_normal(mu: Array, log_sigma2: Array) -> Array:
    """Compute -KL of N(mu, sigma^2)."""
    return _value(mu, log_sigma2)


@partial(neg_kl_normal.defjvp, symbolic_zeros=True)
def _neg_kl_normal_rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
    value, *gradient = neg_kl_normal_with_gradient(*primals)
    return value, _along(tangents, gradient, value)


@jax.custom_jvp
def neg_kl_normal_with_gradient(mu: Array, log_sigma2: Array) -> tuple[Array, Array, Array]:
    """Compute -KL and its two derivatives in one evaluation."""
    value, d_mu, d_log_sigma2 = _value_and_gradient(mu, log_sigma2)
    return value, d_mu, d_log_sigma2


@partial(neg_kl_normal_with_gradient.defjvp, symbolic_zeros=True)
def _with_gradient_rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
    results = neg_kl_normal_with_gradient(*primals)
    value, *gradient = results
    directions = [_next(primals, tangents, *orders) for orders in ((1, 0), (0, 1))]
    return results, (_along(tangents, gradient, value), *directions)


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def neg_kl_normal_derivative(
    mu: Array, log_sigma2: Array, mu_order: int, log_sigma2_order: int
) -> Array:
    """Compute a derivative of -KL of N(mu, sigma^2) of two or more orders in all."""
    return _in_normal(mu, log_sigma2, mu_order, log_sigma2_order)


@partial(neg_kl_normal_derivative.defjvp, symbolic_zeros=True)
def _neg_kl_normal_derivative_rule(
    mu_order: int, log_sigma2_order: int, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    orders = mu_order, log_sigma2_order
    return neg_kl_normal_derivative(*primals, *orders), _next(primals, tangents, *orders)


def _next(primals: Any, tangents: Any, mu_order: int, log_sigma2_order: int) -> Array:
    """Return the tangent of a derivative, from the derivatives of one order more."""
    orders = (mu_order + 1, log_sigma2_order), (mu_order, log_sigma2_order + 1)
    found = [
        None if _is_zero(tangent) else neg_kl_normal_derivative(*primals, *order)
        for tangent, order in zip(tangents, orders, strict=True)
    ]
    return _along(tangents, found, primals[0])


def _along(tangents: Any, derivatives: Any, like: Array) -> Array:
    terms = [
        tangent * derivative
        for tangent, derivative in zip(tangents, derivatives, strict=True)
        if not _is_zero(tangent)
    ]
    return sum(terms[1:], terms[0]) if terms else jnp.zeros_like(like)


def _is_zero(tangent: Any) -> bool:
    return type(tangent) is SymbolicZero
