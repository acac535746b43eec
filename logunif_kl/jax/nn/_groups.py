"""Posteriors that prune whole units: groups with one variance, and weights with scales."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from ..._layers import count, finite, one_of
from ._arguments import axis_of, broadcasts, real_array
from ._noise import root
from ._posterior import Normal, Posterior

Array = Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class Groups(Normal):
    """Independent weights in groups, each with one variance, and the prior of the whole group.

    The weights of a group of k are w ~ N(mu, sigma^2 I), and the prior is proportional to |w|^-k
    (`logunif_kl.isotropic.neg_kl_vector`). A group is pruned as a whole, so that units go.

    Parameters
    ----------
    mu : array
        The means, of the shape of the weights.
    log_sigma2 : array
        The logarithms of the variances, with as many axes as `mu`. The axes in which its length is
        1 are those of a group.

    See Also
    --------
    Scaled : random scales of the inputs.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Groups.from_mean(jnp.ones((300, 100)), 0.0, sharing="input")
    >>> print(weight.log_sigma2.shape, weight.log_alpha_of_weights()[0, 0], nn.kl(weight).round(1))
    (300, 1) 0.0 10434.7
    """

    @classmethod
    def from_mean(  # type: ignore[override]
        cls,
        mu: Any,
        log_sigma2: float = -10.0,
        *,
        sharing: str = "input",
        input_axis: int = -2,
        output_axis: int = -1,
    ) -> Groups:
        """Make a posterior in which all variances are the same.

        Parameters
        ----------
        mu : array
            The means: initial or trained weights.
        log_sigma2 : float, optional
            The logarithm of the variance, by default -10.
        sharing : {"input", "output"}
            One group for each input unit, or for each output unit.
        input_axis, output_axis : int, optional
            See `Dropout.from_mean`.

        Returns
        -------
        Groups
        """
        mu = real_array("mu", mu)
        one_of("sharing", sharing, ("input", "output"))
        axis = input_axis if sharing == "input" else output_axis
        shape = [1] * mu.ndim
        kept = axis_of(f"{sharing}_axis", axis, mu)
        shape[kept] = mu.shape[kept]
        return cls(mu, jnp.full(shape, finite("log_sigma2", log_sigma2), mu.dtype))

    def log_alpha_of_weights(self) -> Array:
        """Compute log(k sigma^2/|mu|^2) of each weight's group; inf where all means are 0."""
        found, size = self._of_groups()
        return jnp.broadcast_to(found + math.log(size), jnp.shape(self.mu))

    def _of_groups(self) -> tuple[Array, int]:
        """Return log(sigma^2/|mu|^2) of each group, and the number of weights in a group."""
        mu, log_sigma2 = real_array("mu", self.mu), real_array("log_sigma2", self.log_sigma2)
        if log_sigma2.ndim != mu.ndim or not broadcasts(log_sigma2.shape, mu.shape):
            raise ValueError(
                f"log_sigma2 of shape {log_sigma2.shape} does not fit mu's {mu.shape}: use "
                "Groups.from_mean"
            )
        inside = [axis for axis in range(mu.ndim) if log_sigma2.shape[axis] != mu.shape[axis]]
        squares = (mu * mu).sum(inside, keepdims=True)
        none = squares == 0
        found = log_sigma2 - jnp.log(jnp.where(none, 1, squares))
        return jnp.where(none, math.inf, found), mu.size // max(log_sigma2.size, 1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class Scaled(Posterior):
    """Gaussian weights times Gaussian scales of the inputs: w_ij = s_i v_ij (Louizos et al. 2017).

    v has the prior N(0, 1), and s the log-uniform prior, so that inputs are pruned: see the option
    ``posterior="scaled"`` of `logunif_kl.torch.nn.VariationalLinear`. `dense` and `conv` take it as
    their weights.

    Parameters
    ----------
    mu, log_sigma2 : array
        The means of v and the logarithms of its variances, of the shape of the weights.
    scale, scale_log_sigma2 : array
        The means of s and the logarithms of its variances, of length 1 in all axes but that of the
        inputs.
    input_axis : int, optional
        The axis of the input units: see `Dropout`.
    groups : int, optional
        The ``feature_group_count`` of a convolution.

    See Also
    --------
    Groups : one variance for all weights of a unit.

    References
    ----------
    Louizos, Ullrich, Welling, "Bayesian Compression for Deep Learning" (2017).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Scaled.from_mean(jnp.ones((3, 2)))
    >>> weight.scale.shape
    (3, 1)
    >>> print(nn.dense(jnp.ones(3), weight))
    [3. 3.]
    """

    mu: Any
    log_sigma2: Any
    scale: Any
    scale_log_sigma2: Any
    input_axis: int = field(default=-2, metadata={"static": True})
    groups: int = field(default=1, metadata={"static": True})

    @classmethod
    def from_mean(
        cls, mu: Any, log_sigma2: float = -10.0, *, input_axis: int = -2, groups: int = 1
    ) -> Scaled:
        """Make a posterior with scales of mean 1, in which all variances are the same.

        Parameters
        ----------
        mu : array
            The means: initial or trained weights.
        log_sigma2 : float, optional
            The logarithm of the variances of v and s, by default -10.
        input_axis, groups
            See `Scaled`.

        Returns
        -------
        Scaled
        """
        mu = real_array("mu", mu)
        start, axis = finite("log_sigma2", log_sigma2), axis_of("input_axis", input_axis, mu)
        shape = [1] * mu.ndim
        shape[axis] = mu.shape[axis]
        scale = jnp.ones(shape, mu.dtype)
        filled = jnp.full_like(mu, start), scale, jnp.full_like(scale, start)
        return cls(mu, *filled, input_axis, count("groups", groups))

    def log_alpha_of_weights(self) -> Array:
        """Compute log alpha of the scale of each weight's input; inf where the scale is 0."""
        _, _, scale, spread = self._checked()
        found = spread - 2.0 * jnp.log(jnp.abs(scale))
        return jnp.broadcast_to(found, jnp.shape(self.mu))

    def _checked(self) -> tuple[Array, Array, Array, Array]:
        mu, log_sigma2 = real_array("mu", self.mu), real_array("log_sigma2", self.log_sigma2)
        scale = real_array("scale", self.scale)
        spread = real_array("scale_log_sigma2", self.scale_log_sigma2)
        shape = [1] * mu.ndim
        axis = axis_of("input_axis", self.input_axis, mu)
        shape[axis] = mu.shape[axis]
        if scale.shape != tuple(shape) or spread.shape != scale.shape:
            raise ValueError(
                f"scale of shape {scale.shape} and scale_log_sigma2 of shape {spread.shape} do not "
                f"fit mu's {mu.shape}: use Scaled.from_mean"
            )
        if log_sigma2.shape != mu.shape:
            raise ValueError(
                f"log_sigma2 of shape {log_sigma2.shape} does not fit mu's {mu.shape}: use "
                "Scaled.from_mean"
            )
        return mu, log_sigma2, scale, spread

    def _mean(self) -> Array:
        mu, _, scale, _ = self._checked()
        return mu * scale

    def _weights(self) -> Normal:
        """Return the posterior of v."""
        return Normal(self.mu, self.log_sigma2)

    def _scale_moments(self) -> tuple[Array, Array]:
        """Return the means and standard deviations of the scales, of shape (units,)."""
        _, _, scale, spread = self._checked()
        found = scale.reshape(-1), root(spread).reshape(-1)
        return jnp.tile(found[0], self.groups), jnp.tile(found[1], self.groups)
