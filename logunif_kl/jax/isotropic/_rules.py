"""Rules of differentiation: the derivative of each function is the function of the next order.

Arguments are float32 or float64 arrays of one shape.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from ..._arithmetic.isotropic import complex_hessian, complex_weights, vector
from ..._isotropic.nodes import rule

Array = Any


@partial(jax.jit, static_argnums=(1, 2), inline=True)
def _computed(x: Array, k: float | None, order: int) -> Array:
    if k is None:
        return complex_weights.derivative(jnp, x, order)
    return vector.derivative(jnp, x, rule(k), order)


_normal = jax.jit(partial(complex_weights.normal, jnp), inline=True)
_ein_computed = jax.jit(partial(complex_hessian.ein_derivative, jnp), static_argnums=1, inline=True)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def of_log_alpha(x: Array, k: float | None, order: int) -> Array:
    """Compute -KL of groups of k weights, of complex ones for None, or a derivative of it."""
    return _computed(x, k, order)


@of_log_alpha.defjvp
def _of_log_alpha_rule(k: Any, order: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    return of_log_alpha(x, k, order), tangent * of_log_alpha(x, k, order + 1)


@jax.custom_jvp
def of_normal(re: Array, im: Array, log_sigma2: Array) -> Array:
    """Compute -KL of complex weights from the two parts of the mean, and the variance."""
    return _normal(re, im, log_sigma2)[0]


@partial(of_normal.defjvp, symbolic_zeros=True)
def _of_normal_rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
    value, *gradient = _with_gradient(*primals)
    return value, _along(tangents, gradient, value)


@jax.custom_jvp
def _with_gradient(re: Array, im: Array, log_sigma2: Array) -> tuple[Array, ...]:
    return tuple(_normal(re, im, log_sigma2))


@partial(_with_gradient.defjvp, symbolic_zeros=True)
def _with_gradient_rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
    results = _with_gradient(*primals)
    value, *gradient = results
    rows = complex_hessian.normal_hessian(jnp, _ein, *primals)
    directions = (_along(tangents, row, value) for row in rows)
    return results, (_along(tangents, gradient, value), *directions)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _ein(u: Array, order: int) -> Array:
    return _ein_computed(u, order)


@_ein.defjvp
def _ein_rule(order: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (u,), (tangent,) = primals, tangents
    return _ein(u, order), tangent * _ein(u, order + 1)


def _along(tangents: Any, derivatives: Any, like: Array) -> Array:
    terms = [
        tangent * derivative
        for tangent, derivative in zip(tangents, derivatives, strict=True)
        if type(tangent) is not SymbolicZero
    ]
    return sum(terms[1:], terms[0]) if terms else jnp.zeros_like(like)
