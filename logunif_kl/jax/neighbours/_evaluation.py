"""The steps of every public function: check, compute, apply the convention, reduce."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..._arguments import unwrapped
from ..._errors import check_reduction
from ..._neighbours import convention
from ..._neighbours.nodes import dimensions
from .._arguments import arguments, finished
from . import _rules

Array = Any


def derivative(log_alpha: Any, k: Any, order: int) -> Array:
    """The derivative of -KL in log_alpha, of groups of k weights, or of complex ones for None."""
    (x,), dtype = arguments(log_alpha=log_alpha)
    count = None if k is None else dimensions(k)
    return finished(_rules.of_log_alpha(x, count, order), 0.0, "none", dtype)


def of_log_alpha(log_alpha: Any, k: Any, zero_at: Any, log_c: Any, reduction: str) -> Array:
    """-KL from log_alpha, with the constant and the reduction."""
    check_reduction(reduction)
    count = None if k is None else dimensions(k)
    if count is None:
        constant = convention.complex_constant(zero_at, log_c)
    else:
        constant = convention.vector_constant(count, zero_at, log_c)
    (x,), dtype = arguments(log_alpha=log_alpha)
    return finished(_rules.of_log_alpha(x, count, 0), constant, reduction, dtype)


def of_normal(mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str) -> Array:
    """-KL from the mean, complex or its modulus, and the variance."""
    check_reduction(reduction)
    constant = convention.complex_constant(zero_at, log_c)
    mu = unwrapped("mu", mu)
    if isinstance(mu, complex) and not hasattr(mu, "dtype"):
        parts: Any = (mu.real, mu.imag)
    elif jnp.issubdtype(getattr(mu, "dtype", float), jnp.complexfloating):
        parts = jnp.real(mu), jnp.imag(mu)
    else:
        parts = (mu,)
    (re, variance), dtype = arguments(mu=parts[0], log_sigma2=log_sigma2)
    if len(parts) == 1:
        im = jnp.zeros_like(re)
    else:
        (im, _), _ = arguments(mu=parts[1], log_sigma2=log_sigma2)
    return finished(_rules.of_normal(re, im, variance), constant, reduction, dtype)
