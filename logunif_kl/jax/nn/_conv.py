"""The convolutional layer."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._layers import count
from ._arguments import positive_integers
from ._layer import Product, add_bias, draw
from ._moments import real_input
from ._weight import Weight, parts_of

Array = Any


def conv(
    x: Any,
    weight: Weight | jax.Array,
    bias: Any = None,
    *,
    window_strides: int | Sequence[int] = 1,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    lhs_dilation: int | Sequence[int] = 1,
    rhs_dilation: int | Sequence[int] = 1,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    key: Any = None,
    estimator: str = "local",
    dtype: Any = None,
    precision: Any = None,
) -> Any:
    r"""Draw a convolution with random weights plus a bias, or return its mean.

    By local reparameterisation (Kingma et al. 2015, section 2.3) each output is drawn from its own
    distribution, given the input:

    .. math::

        y \sim \mathcal N\left(\mathrm{conv}(x, \mathrm{E}\, w),\;
        \mathrm{conv}(x^2, \mathrm{Var}\, w)\right)

    The noise at each position is independent, as if a dense layer were applied to each patch. If
    weights were drawn once, the outputs at different positions would be correlated.

    Parameters
    ----------
    x : array or Moments
        The input, in the layout of `dimension_numbers`. For `Moments`, see `dense`.
    weight : Weight or array
        The kernel, in the layout of `dimension_numbers`. If its posterior has scales, its
        ``input_axis`` and ``groups`` must be those of the convolution. An array has no noise.
    bias : array, optional
        Of shape (output channels,).
    window_strides, lhs_dilation, rhs_dilation : int or sequence of int, optional
        One number, or one for each spatial dimension: see `jax.lax.conv_general_dilated`.
    padding : str or sequence of pairs, optional
        ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or the numbers of zeros before and after each
        spatial dimension.
    dimension_numbers : optional
        See `jax.lax.conv_general_dilated`: three strings such as ``("NHWC", "HWIO", "NHWC")``,
        or None for ``("NCHW", "OIHW", "NCHW")``.
    feature_group_count : int, optional
        The number of groups of channels.
    key, estimator, dtype, precision
        See `dense`. With `Correlated`, ``"local"`` and ``"per_example"`` both draw one scale
        for each channel of each example.

    Returns
    -------
    jax.Array or Moments
        Of the shape that `jax.lax.conv_general_dilated` returns, and of type `dtype`.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `dense`, and if the shapes do not fit a convolution.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight.from_mean(jnp.ones((3, 3, 1, 8)))
    >>> images = jnp.ones((2, 28, 28, 1))
    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> key = jax.random.key(0)
    >>> nn.conv(images, weight, padding="SAME", dimension_numbers=layout, key=key).shape
    (2, 28, 28, 8)
    """
    parts = parts_of(weight, key)
    x, kernel = real_input(x), parts.mean()
    spatial = kernel.ndim - 2
    if x.ndim != kernel.ndim or spatial < 1:
        raise ValueError(
            f"x of shape {x.shape} and a kernel of shape {kernel.shape} must have the same "
            "number of axes, three or more: pass x[None] for one example"
        )
    numbers = lax.conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    batch, channels = numbers.lhs_spec[:2]
    groups = count("feature_group_count", feature_group_count)
    inputs, outputs = kernel.shape[numbers.rhs_spec[1]], kernel.shape[numbers.rhs_spec[0]]
    if x.shape[channels] != inputs * groups or outputs % groups:
        raise ValueError(
            f"x has {x.shape[channels]} channels and the kernel {outputs} outputs, but {groups} "
            f"groups of {inputs} channels need {groups * inputs} channels and a multiple of "
            f"{groups} outputs: change the shapes or groups"
        )
    parts.check_scales(numbers.rhs_spec[1], groups)
    each_dimension = partial(
        positive_integers, length=spatial, of="spatial dimensions", or_one=True
    )
    options: dict[str, Any] = {
        "window_strides": each_dimension("window_strides", window_strides),
        "padding": padding,
        "lhs_dilation": each_dimension("lhs_dilation", lhs_dilation),
        "rhs_dilation": each_dimension("rhs_dilation", rhs_dilation),
        "dimension_numbers": numbers,
        "feature_group_count": groups,
        "precision": precision,
    }

    def once(x: Array, kernel: Array) -> Array:
        return lax.conv_general_dilated(x, kernel, **options)

    def each(x: Array, kernels: Array) -> Array:
        def one(x: Array, kernel: Array) -> Array:
            return jnp.squeeze(once(jnp.expand_dims(x, batch), kernel), numbers.out_spec[0])

        return jax.vmap(one, (batch, 0), numbers.out_spec[0])(x, kernels)

    def scales(estimator: str, deviations: Array) -> tuple[tuple[int, ...], Array]:
        kept = (channels,) if estimator == "per_batch" else (batch, channels)
        shape = tuple(n if axis in kept else 1 for axis, n in enumerate(x.shape))
        along = [-1 if axis == channels else 1 for axis in range(x.ndim)]
        return shape, deviations.reshape(along)

    product = Product(once, each, x.shape[batch], scales)
    y = draw(product, x, parts, key=key, estimator=estimator, dtype=dtype)
    return add_bias(y, bias, numbers.out_spec[1])
