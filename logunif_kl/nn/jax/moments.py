"""Variance back-propagation: the mean and the variance of outputs in one pass, without samples."""

# mypy: allow-untyped-calls
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._display import in_short
from ..._errors import real_number, shown
from ..moments import product_variance, rectified
from .arguments import positive_integers, real_array
from .noise import widened

Array = Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class Moments:
    r"""The mean and the variance of each element of an array.

    If you pass `Moments` in place of the input, `dense`, `conv`, `embedding`, `relu`, `max_pool`
    and `avg_pool` return the `Moments` of their outputs under the posterior over the weights. No
    noise is drawn. This is variance back-propagation (Haussmann et al. 2018, section 2.3). A layer
    with weights N(mu, sigma^2) has outputs h with these moments, if its inputs a are independent
    (Eqs. 3 and 4):

    .. math::

        \mathrm{E}[h_j] &= \sum_i \mathrm{E}[a_i] \mu_{ij} + \mathrm{bias}_j \\
        \mathrm{var}[h_j] &= \sum_i \mathrm{E}[a_i]^2 \sigma_{ij}^2
        + \mathrm{var}[a_i] (\mu_{ij}^2 + \sigma_{ij}^2)

    ``mean, variance = moments`` unpacks `Moments`.

    Parameters
    ----------
    mean : array
        The means. For `embedding`, the ids.
    variance : array, optional
        Of the same shape; None means zeros. Negative variances are not detected.
    steepness : float, optional
        The number C in P(z = 1) = sigmoid(C E[h]) for the step z of `relu`. For the default,
        infinity, z is 1 where E[h] > 0, and 0 elsewhere.

    See Also
    --------
    expected_normal_log_likelihood, expected_bernoulli_log_likelihood
    expected_categorical_log_likelihood

    Notes
    -----
    A pytree of the mean and the variance. They are exact through one layer, and without input
    variance through two layers without a rectifier between them. Otherwise the rectifier ignores
    that z depends on h, and elements are assumed to be independent, although outputs of a
    convolution that read the same random inputs are dependent. Layers compute variances in float32
    if the mean is of a half type. Rounding makes no finite variance negative or infinite.

    References
    ----------
    Haussmann, Hamprecht, Kandemir, "Sampling-Free Variational Inference of Bayesian Neural Networks
    by Variance Backpropagation" (2018), arXiv:1805.07654.

    Examples
    --------
    The lower bound of a network of two layers:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> params = [nn.Weight.from_mean(0.1 * jnp.ones(shape)) for shape in ((4, 8), (8, 3))]
    >>> x, labels = jnp.ones((10, 4)), jnp.zeros(10, int)
    >>> def loss(params):
    ...     output = nn.dense(nn.relu(nn.dense(nn.Moments(x), params[0])), params[1])
    ...     likelihood = nn.expected_categorical_log_likelihood(output, labels)
    ...     return nn.elbo(likelihood, nn.neg_kl(params), dataset_size=1000).loss
    >>> jax.grad(loss)(params)[0].log_sigma2.shape
    (4, 8)
    """

    mean: Any
    variance: Any = None
    steepness: float = field(default=math.inf, metadata={"static": True})

    shape: ClassVar[property] = property(lambda self: self.mean.shape)
    ndim: ClassVar[property] = property(lambda self: self.mean.ndim)

    def __repr__(self) -> str:
        return in_short(self)

    def __iter__(self) -> Iterator[Array]:
        """Unpack the mean and the variance."""
        yield self.mean
        yield jnp.zeros_like(self.mean) if self.variance is None else self.variance

    def reshape(self, *shape: Any) -> Moments:
        """Reshape the mean and the variance."""
        return jax.tree.map(lambda leaf: leaf.reshape(*shape), self)

    def _checked(self) -> Moments:
        mean = real_array("mean", self.mean)
        variance = None if self.variance is None else real_array("variance", self.variance)
        if variance is not None and variance.shape != mean.shape:
            raise ValueError(
                f"variance of shape {variance.shape} was given with a mean of shape {mean.shape}: "
                "pass a variance of the same shape"
            )
        if not real_number("steepness", self.steepness) > 0.0:
            raise ValueError(
                f"steepness must be positive, but {shown(self.steepness)} was given: pass math.inf"
            )
        return replace(self, mean=mean, variance=variance)


def real_input(x: Any) -> Any:
    """Return an array or `Moments` of a floating type, otherwise raise TypeError."""
    return x._checked() if isinstance(x, Moments) else real_array("x", x)


def check_moments(key: Any, posterior: Any) -> None:
    """Raise ValueError if moments cannot pass through a layer with this key and posterior."""
    if key is not None:
        raise ValueError("x is Moments, for which no noise is drawn, but a key was given: omit key")
    if posterior.scaled:
        raise ValueError(
            f"moments need independent weights, but the posterior {posterior} was given: "
            "use Additive, Grouped or Multiplicative"
        )


def through(
    multiply: Callable[[Array, Array], Array],
    x: Moments,
    weight: Any,
    *,
    key: Any,
    dtype: Any,
) -> Moments:
    """Return the moments of the output of a layer, whose mean has the type `dtype`."""
    check_moments(key, weight.posterior)
    kernel, variance = weight.mean(), x.variance
    mean, wide = multiply(x.mean.astype(dtype), kernel.astype(dtype)), widened(x.mean.astype(dtype))
    squares = wide * wide
    if variance is not None:
        variance = variance.astype(wide.dtype)
        squares = squares + variance
    total: Any = product_variance(
        multiply,
        squares,
        variance,
        widened(kernel.astype(dtype)),
        weight.variances().astype(wide.dtype),
    )
    most = jnp.finfo(total.dtype).max
    # Some convolutions round 0 to a negative number. jnp.clip would halve gradients at the limits.
    total = jnp.where(total < 0.0, 0.0, jnp.where(total > most, most, total))
    return replace(x, mean=mean, variance=total)


def relu(x: Any) -> Any:
    r"""Compute max(x, 0), or its moments under the identity-delta decomposition.

    For `Moments` of h, max(h, 0) is written as z h, with an independent step z (Haussmann et al.
    2018, section 2.3.1). P(z = 1) is sigmoid(C E[h]), with C the `steepness` of the moments. By
    default z is 1 where E[h] > 0, and 0 elsewhere:

    .. math::

        \mathrm{E}[z h] &= \mathrm{E}[z]\, \mathrm{E}[h] \\
        \mathrm{var}[z h] &= \mathrm{E}[z]\, \mathrm{var}[h] + \mathrm{var}[z]\, \mathrm{E}[h]^2

    Parameters
    ----------
    x : array or Moments
        Of any shape.

    Returns
    -------
    jax.Array or Moments
        Of the same shape.

    Raises
    ------
    TypeError
        If `x` does not hold real floating-point numbers.
    ValueError
        If the shapes of the moments differ, or their steepness is not positive.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> mean, variance = nn.relu(nn.Moments(jnp.array([3.0, -1.0]), jnp.array([0.5, 0.5])))
    >>> print(mean, variance)
    [3. 0.] [0.5 0. ]
    """
    x = real_input(x)
    if not isinstance(x, Moments):
        return jax.nn.relu(x)
    special, wide = jax.scipy.special, widened(x.mean)
    mean, variance = rectified(jnp, special, x.mean, wide, x.variance, x.steepness)
    return replace(x, mean=mean, variance=variance)


def max_pool(
    x: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
) -> Any:
    """Compute the maximum of each window, or the moments of the element with the greatest mean.

    The rule for `Moments` is that of Haussmann et al. (2018), section 2.3.3.

    Parameters
    ----------
    x : array or Moments
        Of any shape.
    window_dimensions : sequence of int
        The lengths of a window, one for each axis of `x`, such as ``(1, 2, 2, 1)`` for images with
        their channels in the last axis.
    window_strides : sequence of int, optional
        The steps between windows, one for each axis, by default the lengths of a window.
    padding : str or sequence of pairs, optional
        ``"VALID"``, ``"SAME"``, or the numbers of elements before and after each axis. Padding is
        never the maximum.

    Returns
    -------
    jax.Array or Moments
        If several elements are the greatest, the first of them is taken.

    Raises
    ------
    TypeError
        If `x` does not hold real floating-point numbers, or a length is not an integer.
    ValueError
        If a length is not positive, or there is not one for each axis.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> x = nn.Moments(jnp.array([[1.0, 3.0, 2.0, 0.0]]), jnp.array([[0.1, 0.2, 0.3, 0.4]]))
    >>> mean, variance = nn.max_pool(x, (1, 2))
    >>> print(mean, variance)
    [[3. 2.]] [[0.2 0.3]]
    """
    x = real_input(x)
    lengths, strides, pads = _windows(x, window_dimensions, window_strides, padding)

    def elements(array: Array, padding: float) -> Array:
        """Return the elements of each window along a new last axis."""
        padded = jnp.pad(array, pads, constant_values=padding)
        ends = [n - length + 1 for n, length in zip(padded.shape, lengths, strict=True)]
        found = [
            lax.slice(padded, at, [a + end for a, end in zip(at, ends, strict=True)], strides)
            for at in itertools.product(*map(range, lengths))
        ]
        return jnp.stack(found, axis=-1)

    means = x.mean if isinstance(x, Moments) else x
    greatest = jnp.argmax(elements(means, -math.inf), axis=-1, keepdims=True)

    def chosen(leaf: Array) -> Array:
        # In a variadic lax.reduce_window JAX could not differentiate.
        of_windows = elements(leaf, -math.inf if leaf is means else 0.0)
        return jnp.take_along_axis(of_windows, greatest, axis=-1)[..., 0]

    return jax.tree.map(chosen, x)


def avg_pool(
    x: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    *,
    count_include_pad: bool = True,
) -> Any:
    """Compute the mean of each window, or its moments.

    The variance of the mean of n independent elements is the sum of their variances divided by
    n^2.

    Parameters
    ----------
    x, window_dimensions, window_strides, padding
        As for `max_pool`. Padding adds zeros.
    count_include_pad : bool, optional
        Whether n includes the padding.

    Returns
    -------
    jax.Array or Moments

    Raises
    ------
    TypeError, ValueError
        As for `max_pool`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> mean, variance = nn.avg_pool(nn.Moments(jnp.ones((1, 4)), jnp.ones((1, 4))), (1, 2))
    >>> print(mean, variance)
    [[1. 1.]] [[0.5 0.5]]
    """
    x = real_input(x)
    lengths, strides, pads = _windows(x, window_dimensions, window_strides, padding)

    def summed(array: Array) -> Array:
        zero = np.zeros((), array.dtype)  # jit would trace JAX's, and the sum has no gradient then
        return lax.reduce_window(array, zero, lax.add, lengths, strides, pads)

    n = summed(jnp.ones(x.shape)) if not count_include_pad else math.prod(lengths)

    def divided(array: Array, by: Any) -> Array:
        return (summed(widened(array)) / by).astype(array.dtype)

    if not isinstance(x, Moments):
        return divided(x, n)
    variance = jax.tree.map(lambda leaf: divided(leaf, n * n), x.variance)
    return replace(x, mean=divided(x.mean, n), variance=variance)


def _windows(x: Any, dimensions: Any, strides: Any, padding: Any) -> tuple[Any, Any, Any]:
    """Return the lengths of a window, the strides and the padding of each axis."""
    lengths = positive_integers("window_dimensions", dimensions, x.ndim, "axes")
    steps = lengths
    if strides is not None:
        steps = positive_integers("window_strides", strides, x.ndim, "axes")
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(x.shape, lengths, steps, padding)
    return lengths, steps, padding
