"""-KL of complex weights and of groups of weights, differentiable any number of times."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .._arguments import unwrapped
from .._arithmetic.isotropic import complex_hessian, complex_weights
from .._convention import ZERO_AT_INFINITY
from .._errors import check_reduction
from .._isotropic import constant, derivative
from ._arguments import arguments, evaluate, finished
from ._rules import along

Array = Any


def of_log_alpha(
    log_alpha: Any,
    k: float | None,
    order: int = 0,
    zero_at: Any = ZERO_AT_INFINITY,
    log_c: Any = None,
    reduction: str = "none",
) -> Array:
    """Return -KL of groups of k weights (complex weights if k is None), or a derivative of -KL."""
    added = constant(k, zero_at, log_c)
    return evaluate(lambda x: _of_log_alpha(x, k, order), added, reduction, log_alpha=log_alpha)


def of_normal(mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str) -> Array:
    """Return -KL of complex weights from their means, or moduli of means, and log variances."""
    check_reduction(reduction)
    added = constant(None, zero_at, log_c)
    mu = unwrapped("mu", mu)
    is_number = isinstance(mu, complex) and not hasattr(mu, "dtype")
    if is_number or jnp.issubdtype(getattr(mu, "dtype", float), jnp.complexfloating):
        # The parts of a Python number stay Python numbers, which take the type of log_sigma2.
        real, imag = (mu.real, mu.imag) if is_number else (jnp.real(mu), jnp.imag(mu))
        (re, variance), dtype = arguments(mu=real, log_sigma2=log_sigma2)
        (im, _), _ = arguments(mu=imag, log_sigma2=log_sigma2)
    else:
        (re, variance), dtype = arguments(mu=mu, log_sigma2=log_sigma2)
        im = jnp.zeros_like(re)
    return finished(_of_normal(re, im, variance), added, reduction, dtype)


_derivative = jax.jit(partial(derivative, jnp), static_argnums=(1, 2), inline=True)
_normal = jax.jit(partial(complex_weights.normal, jnp), inline=True)
_ein_derivative = jax.jit(
    partial(complex_hessian.ein_derivative, jnp), static_argnums=1, inline=True
)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _of_log_alpha(x: Array, k: float | None, order: int) -> Array:
    return _derivative(x, k, order)


@_of_log_alpha.defjvp
def _of_log_alpha_rule(k: Any, order: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    return _of_log_alpha(x, k, order), tangent * _of_log_alpha(x, k, order + 1)


@jax.custom_jvp
def _of_normal(re: Array, im: Array, log_sigma2: Array) -> Array:
    return _normal(re, im, log_sigma2)[0]


@partial(_of_normal.defjvp, symbolic_zeros=True)
def _of_normal_rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
    value, *gradient = _with_gradient(*primals)
    return value, along(tangents, gradient, value)


@jax.custom_jvp
def _with_gradient(re: Array, im: Array, log_sigma2: Array) -> tuple[Array, ...]:
    return tuple(_normal(re, im, log_sigma2))


@partial(_with_gradient.defjvp, symbolic_zeros=True)
def _with_gradient_rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
    results = _with_gradient(*primals)
    value, *gradient = results
    rows = complex_hessian.normal_hessian(jnp, _ein, *primals)
    directions = (along(tangents, row, value) for row in rows)
    return results, (along(tangents, gradient, value), *directions)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _ein(u: Array, order: int) -> Array:
    return _ein_derivative(u, order)


@_ein.defjvp
def _ein_rule(order: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (u,), (tangent,) = primals, tangents
    return _ein(u, order), tangent * _ein(u, order + 1)
