"""Code for the prior C/|w| that the NumPyro and the TensorFlow Probability modules share.

`logunif_kl._convention` computes log C from the constant that is added to -KL of a Gaussian. The
same C is used for every posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import jax.numpy as jnp

from .._convention import Constants
from .._errors import check_prior

Divergence = Callable[[Any, Any], Any]


def log_prob(constants: Constants, value: Any, shape: tuple[int, ...]) -> Any:
    """Return log C - log|value| (infinite at 0), broadcast with a batch shape."""
    return _spread(constants.log_c - jnp.log(jnp.abs(value)), shape)


def no_sample() -> NotImplementedError:
    """Make the error for drawing samples."""
    return NotImplementedError(
        "the log-uniform prior C/|w| has no samples, because its density has no finite integral: "
        "take them from the posterior, or start from a value of your own"
    )


_LACKS = {
    "mean": "mean: use the mean of the posterior",
    "variance": "variance: use the variance of the posterior",
    "entropy": "entropy: use kl_divergence from the posterior",
    "cdf": "cumulative distribution function: use log_prob",
    "quantile": "quantiles: use the quantiles of the posterior",
}


def lacks(what: str) -> NotImplementedError:
    """Make the error for a property that an improper distribution does not have."""
    return NotImplementedError(
        "ImproperLogUniform is improper, its density C/|w| has no finite integral, so it has no "
        + _LACKS[what]
    )


def lacking(what: str) -> Callable[..., NoReturn]:
    """Make a method that raises the error of `lacks`."""

    def method(self: Any, *arguments: Any) -> NoReturn:
        raise lacks(what)

    return method


def of_parameters(kl: Callable[..., Any], *parameters: str) -> Divergence:
    """Make a divergence that calls `kl` with the named parameters of the posterior."""
    return lambda p, q: kl(q._constants, *(getattr(p, name) for name in parameters))


def checked(divergence: Divergence, kind: type, base: str, pair: str) -> Callable[..., Any]:
    """Make the function to register as KL from a type of posterior to a type of prior.

    `divergence` takes a posterior and a prior of one weight, an instance of `kind`. The registered
    function also takes a prior of vectors that holds a prior of one weight in the attribute `base`.
    If `base` holds another distribution, the function raises NotImplementedError with the message
    `pair`, which has a field for the name of each of the two types.
    """

    def of(p: Any, q: Any, name: str | None = None) -> Any:
        prior = q if isinstance(q, kind) else getattr(q, base)
        if not isinstance(prior, kind):
            raise NotImplementedError(pair.format(type(p).__name__, type(q).__name__))
        check_prior(p, q)
        return _spread(divergence(p, prior), q.batch_shape)

    return of


def wrappers(kl: Divergence, base: str, mask: str) -> tuple[Divergence, Divergence, Divergence]:
    """Make the divergences of independent, masked and expanded posteriors.

    `kl` is ``kl_divergence`` of NumPyro or TFP. `base` and `mask` are the names of the attributes
    that hold the wrapped distribution and its mask.
    """

    def independent(p: Any, q: Any) -> Any:
        inner = getattr(p, base)
        added = len(p.event_shape) - len(inner.event_shape)
        return kl(inner, q).sum(tuple(range(-added, 0)))

    def masked(p: Any, q: Any) -> Any:
        # A masked weight has KL 0, as if the prior had the same mask.
        return jnp.where(getattr(p, mask), kl(getattr(p, base), q), 0.0)

    def expanded(p: Any, q: Any) -> Any:
        return _spread(kl(getattr(p, base), q), p.batch_shape)

    return independent, masked, expanded


def _spread(result: Any, shape: tuple[int, ...]) -> Any:
    return jnp.broadcast_to(result, jnp.broadcast_shapes(result.shape, shape))
