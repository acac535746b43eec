"""Normal noise, the types in which it is computed, and the square root of a variance."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..._errors import shown, type_name

Array = Any

HALF = (jnp.dtype(jnp.float16), jnp.dtype(jnp.bfloat16))


def wide(dtype: Any) -> Any:
    """Return float32 instead of a half type."""
    return jnp.dtype(jnp.float32) if dtype in HALF else dtype


def widened(x: Array) -> Array:
    """Convert an array of a half type to float32."""
    return x.astype(wide(x.dtype))


def largest_log(dtype: Any) -> float:
    """Return an upper limit for log variances that keeps the variances finite."""
    return 709.78 if dtype == jnp.float64 else 88.71


def root(log_variance: Array) -> Array:
    """Compute exp(log_variance/2), clipped so that its product with normal noise is finite."""
    half = 0.5 * widened(log_variance)
    return jnp.exp(jnp.minimum(half, 700.0 if half.dtype == jnp.float64 else 86.0))


def check_key(key: Any) -> None:
    """Raise TypeError for anything but a key of `jax.random`, and ValueError for several keys."""
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    raw = not typed and getattr(key, "dtype", None) == jnp.uint32 and getattr(key, "ndim", 0) >= 1
    if not (typed or raw):
        given = f"{type_name(key)} {shown(key)}" if not isinstance(key, jax.Array) else key.dtype
        raise TypeError(
            f"key must be a key of jax.random or None, but {given} was given: "
            "pass jax.random.key(0)"
        )
    shape = key.shape if typed else key.shape[:-1]
    if shape:
        raise ValueError(
            f"key holds keys of shape {shape}, but a layer takes one: pass key[0], or use jax.vmap"
        )


def normals(key: Array, shape: Sequence[int], dtype: Any) -> Array:
    """Draw standard normals, in float32 for half types.

    In half precision JAX could draw only few distinct values. Their variance would not be 1, and
    no value would be larger than 3.
    """
    return jax.random.normal(key, tuple(shape), wide(dtype))


def with_noise(mean: Array, variance: Array, key: Array) -> Array:
    """Draw from N(mean, variance), in the type of the mean.

    Where the variance is 0 the result is the mean, and the derivative in the variance is 0.
    """
    variance = widened(variance)
    noise = normals(key, mean.shape, variance.dtype)
    return mean + _scaled_by_root(variance, noise).astype(mean.dtype)


@jax.custom_jvp
def _scaled_by_root(variance: Array, noise: Array) -> Array:
    quiet, deviation = _root(variance)
    return jnp.where(quiet, 0.0, deviation * noise)


@_scaled_by_root.defjvp
def _scaled_by_root_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    variance, noise = primals
    quiet, deviation = _root(variance)
    # One array, where the derivatives of the operations would keep three.
    ratio = jnp.where(quiet, 0.0, 0.5 * noise / deviation)
    return _scaled_by_root(variance, noise), ratio * tangents[0]


def _root(variance: Array) -> tuple[Array, Array]:
    quiet = variance <= 0.0  # False for NaN, so that the result is NaN
    return quiet, jnp.sqrt(jnp.where(quiet, 1.0, variance))
