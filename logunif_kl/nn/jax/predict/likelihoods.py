"""Log-likelihoods of the examples of a minibatch, for `elbo`."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..arguments import broadcasts, in_int32, real_array, real_numbers
from ..noise import widened

Array = Any


def categorical_log_likelihood(logits: Any, labels: Any, *, ignore_index: int | None = None) -> Any:
    """Compute log p(label) for a softmax over classes.

    Parameters
    ----------
    logits : array
        Of shape (minibatch, ..., classes).
    labels : array of int
        Of shape (minibatch, ...), from 0 to ``classes - 1``.
    ignore_index : int, optional
        A label that does not count, such as that of padding: log p is 0 for it, with no gradient.

    Returns
    -------
    jax.Array
        Of shape (minibatch,) and of float32 or wider, summed over the other axes. Under `jax.jit`
        labels are not checked, and the result is NaN if a label is not a class, such as -1.

    Raises
    ------
    TypeError
        If `labels` does not hold integers.
    ValueError
        If the shapes do not agree, if there is only one class, or if a label is not a class.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> print(nn.categorical_log_likelihood(jnp.zeros((2, 10)), jnp.array([3, 4])).round(4))
    [-2.3026 -2.3026]
    """
    logits = widened(real_array("logits", logits))
    given, labels = labels, real_numbers("labels", labels)
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise TypeError(f"labels must hold integers, but {labels.dtype} was given: pass int32")
    if logits.ndim > 2 and labels.shape == logits.shape[:1] + logits.shape[2:] != logits.shape[:-1]:
        raise ValueError(
            f"labels of shape {labels.shape} fit logits of shape {logits.shape} only with classes"
            " in axis 1, but they must be last: pass jnp.moveaxis(logits, 1, -1)"
        )
    check_shapes("labels", labels.shape, logits.shape[:-1])
    if logits.shape[-1] == 1:
        raise ValueError(
            f"logits of shape {logits.shape} were given, but a softmax over one class is always 1: "
            "use bernoulli_log_likelihood for a single logit"
        )
    labels = in_int32(labels)
    # Under `jax.jit` jnp.asarray turns a NumPy array into a tracer, so check the original array.
    _check_classes(
        given if isinstance(given, np.ndarray) else labels, logits.shape[-1], ignore_index
    )
    found = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    # take_along_axis gives NaN for too large indices, but counts negative ones from the end.
    found = jnp.where(labels[..., None] < 0, jnp.nan, found)
    if ignore_index is not None:
        found = jnp.where(labels[..., None] == ignore_index, 0.0, found)
    return by_example(found)


def bernoulli_log_likelihood(logits: Any, targets: Any) -> Any:
    """Compute log p(target) for a sigmoid of each logit.

    Parameters
    ----------
    logits, targets : array
        Of the same shape (minibatch, ...); targets are in [0, 1].

    Returns
    -------
    jax.Array
        Of shape (minibatch,) and of float32 or wider, summed over the other axes.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If the shapes do not agree, or if a target is outside [0, 1]. Under `jax.jit` targets are
        not checked.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> print(nn.bernoulli_log_likelihood(jnp.zeros((2, 1)), jnp.ones((2, 1))).round(4))
    [-0.6931 -0.6931]
    """
    logits, targets = widened(real_array("logits", logits)), real_numbers("targets", targets)
    check_shapes("targets", targets.shape, logits.shape)
    check_probabilities(targets)
    return by_example(targets * logits - jax.nn.softplus(logits))


def normal_log_likelihood(mean: Any, targets: Any, log_sigma2: Any = 0.0) -> Any:
    """Compute log p(target) for a Gaussian around each mean.

    Parameters
    ----------
    mean, targets : array
        Of the same shape (minibatch, ...).
    log_sigma2 : float or array, optional
        The logarithm of the variance of the noise. Its shape must broadcast to the shape of `mean`.

    Returns
    -------
    jax.Array
        Of shape (minibatch,) and of float32 or wider, summed over the other axes.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If the shapes do not agree.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> print(nn.normal_log_likelihood(jnp.zeros((2, 3)), jnp.zeros((2, 3))).round(4))
    [-2.7568 -2.7568]
    """
    mean, targets = widened(real_array("mean", mean)), real_numbers("targets", targets)
    check_shapes("targets", targets.shape, mean.shape)
    log_sigma2 = real_numbers("log_sigma2", log_sigma2).astype(mean.dtype)
    if not broadcasts(log_sigma2.shape, mean.shape):
        raise ValueError(
            f"log_sigma2 of shape {log_sigma2.shape} does not broadcast to mean's {mean.shape}: "
            "pass one number, or the shape of mean"
        )
    squares = (targets - mean) ** 2 * jnp.exp(-log_sigma2)
    return by_example(-0.5 * (squares + log_sigma2 + math.log(2.0 * math.pi)))


def by_example(values: Array) -> Array:
    return values.reshape(values.shape[0], -1).sum(axis=1)


def _check_classes(labels: Array, classes: int, ignored: int | None) -> None:
    """Raise ValueError if a label is not a class. Skip labels that this process cannot read."""
    if not _readable(labels):
        return
    values = np.asarray(labels)
    values = values if ignored is None else values[values != ignored]
    wrong = values[(values < 0) | (values >= classes)]
    if wrong.size:
        raise ValueError(
            f"labels must be from 0 to {classes - 1}, but {wrong[0]} was given: pass the numbers "
            "of classes"
        )


def check_probabilities(targets: Array) -> None:
    """Raise ValueError if a target is outside [0, 1]. Skip targets that cannot be read here."""
    if not _readable(targets) or not targets.size:
        return
    least, most = float(targets.min()), float(targets.max())
    if least != least:
        raise ValueError("targets hold NaN: leave out the examples without a target")
    if not (least >= 0 and most <= 1):
        raise ValueError(
            f"targets hold numbers from {least:g} to {most:g}, not from 0 to 1: pass "
            "(targets + 1)/2 for labels of -1 and 1"
        )


def _readable(x: Array) -> bool:
    return not isinstance(x, jax.core.Tracer) and getattr(x, "is_fully_addressable", True)


def check_shapes(name: str, shape: Any, expected: Any) -> None:
    if shape != expected or not shape:
        raise ValueError(
            f"{name} has shape {shape}, but {expected or '(minibatch,)'} is needed: reshape it"
        )
