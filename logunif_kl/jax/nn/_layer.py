"""Draw the output of a layer with random weights, by any of the estimators."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..._layers import one_of
from ._arguments import in_type_of_variance, real_numbers, working
from ._bound import finite_gradient
from ._moments import Moments, through
from ._noise import check_key, normals, widened, with_noise
from ._weight import Parts

Array = Any

ESTIMATORS = ("local", "per_example", "per_batch")


class Product(NamedTuple):
    """The function of a layer, which is linear in the input and in the weights."""

    once: Callable[[Array, Array], Array]
    """Computes the output from the input and the weights."""

    each: Callable[[Array, Array], Array] | None
    """The same with separate weights for each example; None if the input is one example."""

    examples: int

    scales: Callable[[str, Array], tuple[tuple[int, ...], Array]]
    """Takes the estimator and sqrt(alpha) of the input units. Returns the shape of the noise, and
    sqrt(alpha) in a shape that broadcasts to the input."""


def draw(
    product: Product,
    x: Array | Moments,
    weight: Parts,
    *,
    key: Any,
    estimator: str,
    dtype: Any,
) -> Array | Moments:
    """Draw an output. Return its mean if there is no key, and its moments for `Moments`."""
    one_of("estimator", estimator, ESTIMATORS)
    mean = weight.mean()
    if isinstance(x, Moments):
        return through(product.once, x, weight, key=key, dtype=working(x.mean, mean, dtype))
    dtype = working(x, mean, dtype)
    x, theta = x.astype(dtype), mean.astype(dtype)
    if key is None:
        return product.once(x, theta)
    check_key(key)
    posterior = weight.posterior
    if posterior.scaled:
        of_scales = key
        if posterior.independent:
            key, of_scales = jax.random.split(key)
        x = _scaled(product, x, weight.scale_moments(), of_scales, estimator)
        theta = weight.given.mean.astype(dtype)
    if not posterior.independent:
        return product.once(x, theta)
    if estimator == "local":
        low = in_type_of_variance(dtype)
        squares = widened(x)
        # The gradient with respect to the square of a tiny input overflows if a variance is large.
        squares = finite_gradient(squares * squares).astype(low)
        variance = product.once(squares, weight.variances().astype(low))
        return with_noise(product.once(x, theta), variance, key)
    if estimator == "per_batch" or product.each is None:
        return product.once(x, sample_weights(weight, key, (), dtype))
    return product.each(x, sample_weights(weight, key, (product.examples,), dtype))


def sample_weights(weight: Parts, key: Array, before: tuple[int, ...], dtype: Any) -> Array:
    """Draw weights without their scales, and clip them to finite numbers.

    The result has the additional leading axes `before`.
    """
    mean, deviations = widened(weight.given.mean), weight.deviations()
    drawn = mean + deviations * normals(key, (*before, *mean.shape), mean.dtype)
    most = jnp.finfo(dtype).max
    return drawn.astype(dtype).clip(-most, most)


def _scaled(
    product: Product, x: Array, moments: tuple[Array, Array], key: Array, estimator: str
) -> Array:
    """Multiply the input units by random scales with these means and standard deviations."""
    shape, means = product.scales(estimator, moments[0])
    _, deviations = product.scales(estimator, moments[1])
    scales = widened(means) + deviations * normals(key, shape, deviations.dtype)
    return (widened(x) * scales).astype(x.dtype)


def add_bias(y: Array | Moments, bias: Array | None, axis: int = -1) -> Array | Moments:
    """Add a bias along an axis, in the type of `y`."""
    if bias is None:
        return y
    if isinstance(y, Moments):
        return replace(y, mean=add_bias(y.mean, bias, axis))
    # The caller may have passed a key as third argument. Raw keys are arrays of uint32.
    kind = getattr(bias, "dtype", None)
    if kind == jnp.uint32 or (kind and jnp.issubdtype(kind, jax.dtypes.prng_key)):
        raise TypeError(
            f"bias must hold real numbers, but {kind} was given: pass float32, and a key as key=key"
        )
    bias = real_numbers("bias", bias)
    if bias.shape != (y.shape[axis],):
        raise ValueError(
            f"bias of shape {bias.shape} does not fit {y.shape[axis]} output units: "
            f"pass shape ({y.shape[axis]},)"
        )
    shape = [1] * y.ndim
    shape[axis] = -1
    return y + bias.astype(y.dtype).reshape(shape)
