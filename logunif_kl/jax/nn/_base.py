"""The base of the posteriors that are nodes of a pytree."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from ..._display import in_short
from ...nn import posteriors
from ...nn.posteriors import Given
from ._arguments import axis_of
from ._noise import root

Array = Any


class Posterior:
    """The base of all posteriors, for `isinstance`."""

    _posterior: ClassVar[posteriors.Additive] = posteriors.Additive()
    input_axis: int = -2
    groups: int = 1
    _deviations: Any  # (): the standard deviations of the weights
    _variances: Any  # (): their variances
    _log_variances: Any  # (): log sigma^2 of each weight, or log alpha

    def __repr__(self) -> str:
        return in_short(self)

    def _given(self) -> Given:
        """Return the parameters of the posterior, or raise an error if their shapes do not fit."""
        raise NotImplementedError

    def log_alpha_of_weights(self) -> Array:
        """Compute log alpha of each weight; inf where the mean is 0 and alpha is not shared."""
        return self._posterior.log_alpha(jnp, self._given())

    def _mean(self) -> Array:
        return self._posterior.means(self._given())

    def _terms(self, exact: bool) -> list[posteriors.Term]:
        """Return the terms whose sum is -KL."""
        units = posteriors.Units(self.input_axis, -1)
        given = self._given()._replace(units=units, groups=self.groups)
        return self._posterior.terms(jnp, given, exact)

    def _weights(self) -> Any:
        """Return the posterior of the weights, which random scales may multiply."""
        return self

    def _scale_moments(self) -> tuple[Array, Array]:
        """Return the means and standard deviations of the scales, of shape (units,) or (1,)."""
        means, log_variances = self._posterior.scales(self._given())
        if means is None:
            # With the other order, XLA rounds some gradients otherwise in the last bit.
            log_variances = log_variances.reshape(-1)
        deviations = root(log_variances).reshape(-1)
        means = jnp.ones_like(deviations) if means is None else means.reshape(-1)
        times = self.groups if deviations.size > 1 else 1
        return jnp.tile(means, times), jnp.tile(deviations, times)


def units_of(mean: Array, sharing: str, input_axis: int, output_axis: int) -> posteriors.Units:
    """Return the axes of the units, of which the one that `sharing` names is checked."""
    axes = {"input": input_axis, "output": output_axis}
    if sharing in axes:
        axes[sharing] = axis_of(f"{sharing}_axis", axes[sharing], mean)
    return posteriors.Units(**axes)
