"""Posteriors that prune whole units: groups with one variance, and weights with scales."""

# mypy: allow-untyped-calls
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ..._layers import count, finite
from ...nn import posteriors
from ...nn.posteriors import Given, shared_shape
from ._arguments import broadcasts, real_array
from ._base import Posterior, units_of
from ._posterior import Normal

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

    _posterior: ClassVar[posteriors.Additive] = posteriors.Grouped()

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
        posterior = posteriors.Grouped(sharing)
        units = units_of(mu, sharing, input_axis, output_axis)
        ((_, shape),) = posterior.shapes(mu.shape, units).items()
        return cls(mu, jnp.full(shape, finite("log_sigma2", log_sigma2), mu.dtype))

    def _given(self) -> Given:
        mu, log_sigma2 = real_array("mu", self.mu), real_array("log_sigma2", self.log_sigma2)
        if log_sigma2.ndim != mu.ndim or not broadcasts(log_sigma2.shape, mu.shape):
            raise ValueError(
                f"log_sigma2 of shape {log_sigma2.shape} does not fit mu's {mu.shape}: use "
                "Groups.from_mean"
            )
        return Given(mu, log_sigma2)


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

    _posterior: ClassVar[posteriors.Additive] = posteriors.Scaled()
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
        start = finite("log_sigma2", log_sigma2)
        scale = jnp.ones(
            shared_shape("input", mu.shape, units_of(mu, "input", input_axis, -1)), mu.dtype
        )
        filled = jnp.full_like(mu, start), scale, jnp.full_like(scale, start)
        return cls(mu, *filled, input_axis, count("groups", groups))

    def _given(self) -> Given:
        mu, log_sigma2 = real_array("mu", self.mu), real_array("log_sigma2", self.log_sigma2)
        scale = real_array("scale", self.scale)
        spread = real_array("scale_log_sigma2", self.scale_log_sigma2)
        units = units_of(mu, "input", self.input_axis, -1)
        if not scale.shape == spread.shape == shared_shape("input", mu.shape, units):
            raise ValueError(
                f"scale of shape {scale.shape} and scale_log_sigma2 of shape {spread.shape} do not "
                f"fit mu's {mu.shape}: use Scaled.from_mean"
            )
        if log_sigma2.shape != mu.shape:
            raise ValueError(
                f"log_sigma2 of shape {log_sigma2.shape} does not fit mu's {mu.shape}: use "
                "Scaled.from_mean"
            )
        return Given(mu, log_sigma2, scale, spread)

    def _weights(self) -> Normal:
        """Return the posterior of v."""
        return Normal(self.mu, self.log_sigma2)
