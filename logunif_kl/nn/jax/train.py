"""The evidence lower bound from a minibatch."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ..._display import in_short
from ..._errors import real_number, shown
from ..checks import check_cycle
from .arguments import real_array, real_numbers
from .noise import widened

Array = Any


class Bound(NamedTuple):
    """The result of `elbo`, a pytree of scalars of float32 or wider.

    Attributes
    ----------
    loss : jax.Array
        ``-value / dataset_size``, to be minimised.
    value : jax.Array
        The bound: ``expected_log_likelihood + kl_weight * neg_kl``.
    expected_log_likelihood : jax.Array
        The estimate of the log-likelihood of the whole data set.
    neg_kl, kl_weight : jax.Array
        -KL, and its weight.
    """

    loss: Any
    value: Any
    expected_log_likelihood: Any
    neg_kl: Any
    kl_weight: Any

    def __repr__(self) -> str:
        return in_short(self)


def elbo(log_likelihood: Any, neg_kl: Any, dataset_size: float, *, kl_weight: Any = 1.0) -> Bound:
    r"""Compute the variational lower bound from a minibatch (Kingma et al. 2015, Eqs. 1 and 3).

    With N examples in the data set and M in the minibatch:

    .. math::

        \mathrm{value} = \frac NM \sum_i \log p(y_i \mid x_i, w)
        + \mathrm{kl\_weight} \cdot \mathrm{neg\_kl}

    Parameters
    ----------
    log_likelihood : array
        Log-likelihoods. The first axis is the minibatch, and the others are summed. Scalars raise
        an error, because they may be sums or means.
    neg_kl : array
        -KL of all weights, as `neg_kl` returns it.
    dataset_size : float
        N, the number of examples in the data set, not in the minibatch.
    kl_weight : float or array, optional
        The factor of -KL. 1 gives the bound. Use smaller factors for warm-up (`linear_warm_up`), or
        1/3 for the downscaling in section 5 of Kingma et al. (2015).

    Returns
    -------
    Bound
        The loss to minimise, the value, and its terms.

    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    ValueError
        If `log_likelihood` has no axis, if `neg_kl` has one, if `dataset_size` is not positive or
        is smaller than the minibatch, or if `kl_weight` is negative. The value of an array
        `kl_weight` is not checked.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> bound = nn.elbo(jnp.array([-1.0, -3.0]), jnp.array(-50.0), dataset_size=100)
    >>> print(bound.expected_log_likelihood, bound.neg_kl, bound.value, bound.loss)
    -200.0 -50.0 -250.0 2.5
    """
    likelihoods = widened(real_array("log_likelihood", log_likelihood))
    if not likelihoods.ndim or not likelihoods.size:
        raise ValueError(
            f"log_likelihood has shape {likelihoods.shape}, but its first axis must be the "
            "minibatch: do not sum or average it"
        )
    divergence = widened(real_array("neg_kl", neg_kl))
    if divergence.ndim:
        raise ValueError(
            f"neg_kl has shape {divergence.shape}, but one number is needed: pass "
            "logunif_kl.jax.nn.neg_kl(tree)"
        )
    size = real_number("dataset_size", dataset_size)
    if not 0.0 < size < float("inf"):
        raise ValueError(
            f"dataset_size must be positive, but {shown(dataset_size)} was given: pass the number "
            "of examples"
        )
    if likelihoods.shape[0] > size:
        raise ValueError(
            f"the minibatch has {likelihoods.shape[0]} examples, more than "
            f"dataset_size={shown(dataset_size)}: pass the size of the whole data set"
        )
    number = 1.0 if hasattr(kl_weight, "dtype") else real_number("kl_weight", kl_weight)
    if not 0.0 <= number < float("inf"):
        raise ValueError(
            f"kl_weight must be finite and not negative, but {shown(kl_weight)} was given: pass "
            "1.0 for the bound"
        )
    weight = real_numbers("kl_weight", kl_weight).astype(divergence.dtype)
    if weight.ndim:
        raise ValueError(
            f"kl_weight has shape {weight.shape}, but one number is needed: pass 1.0 for the bound"
        )
    expected = likelihoods.sum() * (size / likelihoods.shape[0])
    value = expected + weight * divergence
    return Bound(-value / size, value, expected, divergence, weight)


def linear_warm_up(step: Any, begin: float, end: float) -> Any:
    """Compute a weight that rises from 0 at one step to 1 at another.

    Parameters
    ----------
    step : int or array
        The step, or the epoch.
    begin, end : float
        The last step with weight 0, and the first with weight 1.

    Returns
    -------
    jax.Array
        ``clip((step - begin) / (end - begin), 0, 1)``.

    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    ValueError
        If `end` is not above `begin`.

    Examples
    --------
    >>> from logunif_kl.jax import nn
    >>> print(*(nn.linear_warm_up(epoch, 5, 20).round(1) for epoch in (0, 5, 11, 20, 60)))
    0.0 0.0 0.4 1.0 1.0
    """
    return _fraction(step, real_number("begin", begin), real_number("end", end))


def cosine_warm_up(step: Any, begin: float, end: float) -> Any:
    """Compute a weight that rises smoothly from 0 to 1, on half a cosine.

    Parameters
    ----------
    step, begin, end
        As for `linear_warm_up`.

    Returns
    -------
    jax.Array
        (1 - cos(pi t))/2, where t is the weight that `linear_warm_up` returns.

    Raises
    ------
    TypeError, ValueError
        As for `linear_warm_up`.

    Examples
    --------
    >>> from logunif_kl.jax import nn
    >>> print(*(f"{nn.cosine_warm_up(step, 0, 4):.3f}" for step in range(5)))
    0.000 0.146 0.500 0.854 1.000
    """
    t = _fraction(step, real_number("begin", begin), real_number("end", end))
    return 0.5 * (1.0 - jnp.cos(jnp.pi * t))


def cyclical_warm_up(step: Any, period: float, rising: float = 0.5) -> Any:
    """Compute a weight that rises linearly from 0 to 1 in every period (Fu et al. 2019).

    Parameters
    ----------
    step : int or array
        The step, or the epoch.
    period : float
        The length of a period; positive.
    rising : float
        The fraction of a period in which the weight rises, in (0, 1]. Afterwards the weight is 1.

    Returns
    -------
    jax.Array
        In [0, 1].

    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    ValueError
        If `period` is not positive, or `rising` not in (0, 1].

    References
    ----------
    Fu et al., "Cyclical Annealing Schedule: A Simple Approach to Mitigating KL Vanishing" (2019).

    Examples
    --------
    >>> from logunif_kl.jax import nn
    >>> print(*(nn.cyclical_warm_up(step, 4) for step in range(6)))
    0.0 0.5 1.0 1.0 0.0 0.5
    """
    period, rising = check_cycle(period, rising)
    return _fraction(widened(real_numbers("step", step)) % period, 0.0, rising * period)


def _fraction(step: Any, low: float, high: float) -> Any:
    if not low < high:
        raise ValueError(
            f"end must be above begin, but begin={low:g} and end={high:g} were given: exchange them"
        )
    return jnp.clip((widened(real_numbers("step", step)) - low) / (high - low), 0.0, 1.0)
