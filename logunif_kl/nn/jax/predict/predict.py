"""Predictions of a model from many samples of its noise."""

# mypy: allow-untyped-calls
from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from operator import index
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
from jax.scipy.special import entr, ndtr

from ...._errors import real_number, shown, type_name
from ...prediction import PROBIT, Prediction, check_likelihood
from ..arguments import real_array
from ..moments import Moments
from ..noise import check_key, widened

Array = Any

with contextlib.suppress(ValueError):  # if this module is loaded again
    # Exported functions that return it can be serialised.
    jax.export.register_namedtuple_serialization(
        Prediction, serialized_name="logunif_kl.Prediction"
    )


def predict(
    function: Callable[[Any], Any],
    key: Any,
    samples: int = 100,
    *,
    likelihood: str = "categorical",
    link: str = "logit",
    log_sigma2: Any = None,
) -> Prediction[jax.Array]:
    """Return the predictions of a model with random weights, and how uncertain they are.

    See `logunif_kl.torch.nn.predict`, which has the formulas and references. Here ``function(key)``
    runs the model once on all examples, with noise from `key`. It is called in `jax.lax.scan`, so
    it must be traceable, and one sample is in memory at a time. For more examples than fit, compile
    ``lambda x, key: predict(lambda key: model(x, key), key)`` and call it with each batch, each
    time with another key.

    Parameters
    ----------
    function : callable
        Takes a key of `jax.random`, and returns logits of shape (M, ..., classes), margins of any
        shape (M, ...) for ``"bernoulli"``, or means of any shape (M, ...) for ``"normal"``. Leave
        out a final softmax or sigmoid, because this function applies it. For ``"normal"`` it may
        return a tuple of the means and log sigma^2.
    key : array
        A key of `jax.random`.
    samples : int
        The number of samples, at least 2.
    likelihood : {"categorical", "bernoulli", "normal"}
        The likelihood that the model was trained with.
    link : {"logit", "probit"}
        For ``"bernoulli"``: the function that turns a margin into a probability.
    log_sigma2 : float or array, optional
        For ``"normal"``: the logarithm of the variance of the data's noise; 0 by default. An array
        must broadcast to the shape of the outputs.

    Returns
    -------
    Prediction
        Arrays in float32 or wider. In float32 the mutual information has an error of about 1e-7
        times the entropy.

    Raises
    ------
    TypeError
        If an argument is of a wrong type, or the function does not return an array of real numbers.
    ValueError
        If `samples` is below 2, an option is not one of its choices or belongs to another
        likelihood, or the outputs have no dimension of classes.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.array([[5.0, 0.0], [0.0, 5.0]]), jnp.zeros((2, 2)))
    >>> x = jnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> found = nn.predict(lambda key: nn.dense(x, weight, key=key), jax.random.key(0), 1000)
    >>> print(found.entropy.round(1))  # the classes of the last two examples are equally likely
    [0.1 0.7 0.7]
    >>> print(found.mutual_information.round(1))  # 0 for the last example, where samples agree
    [0. 0.2 0. ]
    """
    if not callable(function):
        raise TypeError(
            f"function must take a key and return outputs, but {shown(function)} was given: pass "
            "lambda key: model(params, x, key)"
        )
    check_key(key)
    count = _samples(samples)
    likelihood = check_likelihood(likelihood, link, log_sigma2)

    with_variance = False

    def values(key: Any) -> tuple[Array, Array]:
        nonlocal with_variance
        output = function(key)
        with_variance = likelihood == "normal" and type(output) is tuple
        if with_variance:
            return _with_variance(output, log_sigma2)
        return _values(likelihood, _checked(likelihood, output))

    def add(carry: Any, at: Any) -> tuple[Any, None]:
        mean, squares, entropy = carry
        number, key = at
        value, own = values(key)
        step = (value - mean) / number
        squares = squares + step * (value - mean) * (number - 1)
        return (mean + step, squares, entropy + (own - entropy) / number), None

    keys = jax.random.split(key, count)
    value, own = jax.eval_shape(values, keys[0])
    start = [jnp.zeros(each.shape, each.dtype) for each in (value, value, own)]
    numbers = jnp.arange(1, count + 1, dtype=value.dtype)
    (mean, squares, of_samples), _ = jax.lax.scan(add, tuple(start), (numbers, keys))
    variance = squares / (count - 1)
    if with_variance:
        (mean, sigma2), variance = mean, variance[0]
        entropy = _of_normal(jnp.log(variance + sigma2))
        information = jnp.maximum(entropy - of_samples, 0.0)
    elif likelihood == "normal":
        entropy, information = _about_means(variance, log_sigma2)
    else:
        entropy = _entropy(likelihood, mean, 1.0 - mean)
        # Rounding may make the difference slightly negative.
        information = jnp.maximum(entropy - of_samples, 0.0)
    return Prediction(mean, variance, entropy, information, count)


def _samples(given: Any) -> int:
    try:
        count = index(given)
    except TypeError:
        count = None
    if count is None or isinstance(given, bool):
        raise TypeError(f"samples must be a whole number, but {shown(given)} was given: pass 100")
    if count < 2:
        raise ValueError(f"samples must be at least 2, but {count} was given: pass a larger one")
    return count


def _checked(likelihood: str, output: Any) -> Array:
    if isinstance(output, Moments):
        raise TypeError(
            "the model returned Moments, which have no samples: pass a function that draws noise"
        )
    if not hasattr(output, "dtype"):
        raise TypeError(
            f"the model returned {type_name(output)}: pass a function that returns one array"
        )
    output = widened(real_array("output", output))
    if likelihood == "categorical" and (output.ndim < 2 or output.shape[-1] < 2):
        raise ValueError(
            f"the model returned shape {output.shape}, not (M, ..., classes): pass "
            "likelihood='bernoulli' or 'normal'"
        )
    return output


def _values(likelihood: str, output: Array) -> tuple[Array, Array]:
    """Return the probabilities, or the outputs for ``"normal"``, and the entropy of one sample."""
    if likelihood == "normal":
        return output, jnp.zeros(())
    if likelihood == "categorical":
        value = jax.nn.softmax(output)
        return value, _entropy(likelihood, value, value)
    linked = ndtr if likelihood == PROBIT else jax.nn.sigmoid
    return linked(output), _entropy(likelihood, linked(output), linked(-output))


def _entropy(likelihood: str, p: Array, others: Array) -> Array:
    return entr(p).sum(-1) if likelihood == "categorical" else entr(p) + entr(others)


def _with_variance(output: tuple[Any, ...], log_sigma2: Any) -> tuple[Array, Array]:
    """Stack the mean and the variance of the data's noise, with the entropy of one sample."""
    if log_sigma2 is not None:
        raise ValueError(
            "log_sigma2 was given, but the model returns its own: leave out the argument"
        )
    if len(output) != 2:
        raise ValueError(
            f"the model returned a tuple of {len(output)}: have it return one array, or a tuple of "
            "the mean and log_sigma2"
        )
    mean, own = jnp.broadcast_arrays(*(_checked("normal", each) for each in output))
    return jnp.stack((mean, jnp.exp(own))), _of_normal(own)


def _of_normal(log_variance: Array) -> Array:
    """Return the entropy of a normal distribution."""
    return 0.5 * (math.log(2.0 * math.pi * math.e) + log_variance)


def _about_means(variance: Array, log_sigma2: Any) -> tuple[Array, Array]:
    given = 0.0 if log_sigma2 is None else log_sigma2
    given = given if hasattr(given, "dtype") else real_number("log_sigma2", given)
    of_data = jnp.asarray(given, variance.dtype)
    if jnp.broadcast_shapes(of_data.shape, variance.shape) != variance.shape:
        raise ValueError(
            f"log_sigma2 of shape {of_data.shape} was given for outputs of shape "
            f"{variance.shape}: reshape it"
        )
    log_variance = jnp.log(variance)
    entropy = _of_normal(jnp.logaddexp(log_variance, of_data))
    # If all samples are equal, the mutual information is 0 for any sigma^2.
    ratio = jnp.where(variance == 0.0, log_variance, log_variance - of_data)
    return entropy, 0.5 * jnp.logaddexp(ratio, 0.0)
