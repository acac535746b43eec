"""The dense layer."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ._layer import Product, add_bias, draw
from ._moments import real_input
from ._weight import Weight, parts_of

Array = Any


def dense(
    x: Any,
    weight: Weight | jax.Array,
    bias: Any = None,
    *,
    key: Any = None,
    estimator: str = "local",
    dtype: Any = None,
    precision: Any = None,
) -> Any:
    r"""Draw ``x @ w + bias`` for random weights w, or return its mean.

    By local reparameterisation (Kingma et al. 2015, section 2.3, Eq. 6) each output is drawn from
    its own distribution, given the input:

    .. math::

        y_j \sim \mathcal N\left(\sum_i x_i\, \mathrm{E}\, w_{ij},\;
        \sum_i x_i^2\, \mathrm{Var}\, w_{ij}\right)

    This costs two products. The gradients have a smaller variance than if weights were drawn once
    for the minibatch, or once for each example.

    Parameters
    ----------
    x : array or Moments
        Inputs, of shape (..., inputs). For `Moments` the result is the `Moments` of the outputs,
        and `estimator` has no effect.
    weight : Weight or array
        A kernel of shape (inputs, outputs). An array, such as `to_deterministic` returns, has no
        noise, and takes no key.
    bias : array, optional
        Of shape (outputs,). The bias is not random.
    key : array, optional
        A key of `jax.random` for the noise. Without one the result is the mean, for evaluation.
    estimator : {"local", "per_example", "per_batch"}, optional
        What to draw: the outputs, new weights for each example ``x[i]``, or weights once for all
        examples (section 2.1). A vector `x` is one example. With `Correlated` ``"local"`` draws
        new scales for each vector ``x[..., :]``.
    dtype : dtype, optional
        The type of the products, by default the promoted type of `x` and the means.
        Exponentials and noise are computed in float32 or wider.
    precision : optional
        See `jax.lax.dot_general`.

    Returns
    -------
    jax.Array or Moments
        Of shape (..., outputs) and of type `dtype`. The derivatives are finite, even where the
        variance is 0.

    Raises
    ------
    TypeError
        If `weight` is not a `Weight`, if an array does not hold real floating-point numbers, or
        if `key` is not a key.
    ValueError
        If shapes do not fit, if `key` holds several keys, or if `estimator` is unknown. For
        `Moments`, if a key is given or the posterior has scales.

    Notes
    -----
    In float16 the variance is computed in bfloat16, which has the range of float32. In float16 the
    square of 256 would overflow, and exp(-10) would be subnormal.

    The noise depends only on the key, so `jax.checkpoint` draws the same noise again. Under
    `jax.vmap`, give each element its own key with ``jax.random.split``. With one key all elements
    have the same noise.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.ones((3, 2)), jnp.zeros((3, 2)))
    >>> x = jnp.array([[1.0, 2.0, 2.0]])
    >>> print(nn.dense(x, weight))
    [[5. 5.]]
    >>> y = nn.dense(jnp.repeat(x, 10_000, 0), weight, key=jax.random.key(0))
    >>> print(y.mean().round(1), y.std().round(1))
    5.0 3.0
    """
    parts = parts_of(weight, key)
    x, kernel = real_input(x), parts.mean()
    if kernel.ndim != 2:
        raise ValueError(
            f"weight of shape {kernel.shape} is not a kernel of a dense layer: pass shape "
            "(inputs, outputs)"
        )
    if not x.ndim or x.shape[-1] != kernel.shape[0]:
        raise ValueError(
            f"x of shape {x.shape} does not fit a kernel of shape {kernel.shape}: pass x of shape "
            f"(..., {kernel.shape[0]})"
        )
    parts.check_scales(0, 1)
    once = partial(jnp.matmul, precision=precision)

    def each(x: Array, kernels: Array) -> Array:
        # A length of -1 would be ambiguous if the minibatch is empty.
        rows = x.reshape(x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1])
        return once(rows, kernels).reshape(*x.shape[:-1], kernels.shape[-1])

    def scales(estimator: str, deviations: Array) -> tuple[tuple[int, ...], Array]:
        shape = x.shape
        if estimator == "per_batch":
            shape = x.shape[-1:]
        elif estimator == "per_example" and x.ndim > 1:
            shape = (x.shape[0], *[1] * (x.ndim - 2), x.shape[-1])
        return shape, deviations

    product = Product(once, each if x.ndim > 1 else None, x.shape[0], scales)
    y = draw(product, x, parts, key=key, estimator=estimator, dtype=dtype)
    return add_bias(y, bias)
