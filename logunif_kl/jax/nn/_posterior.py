"""Posteriors of an array of weights, as nodes of a pytree.

The fields may be arrays, tracers, or anything that `jax.numpy.asarray` takes, such as a
``flax.nnx.Param`` of one array.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ..._errors import type_name
from ..._layers import count, finite, one_of
from ...nn import posteriors
from ...nn.posteriors import Given
from ._arguments import axis_of, broadcasts, is_floating, real_array
from ._base import Posterior, units_of
from ._bound import bounded
from ._noise import largest_log, root, widened

Array = Any

NOISES = ("independent", "correlated")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class Normal(Posterior):
    """Independent weights w ~ N(mu, sigma^2), the additive posterior of Molchanov et al. (2017).

    A node of a pytree with two leaves. `dense`, `conv` and `embedding` take it as their weights,
    and `kl` finds it in a tree of parameters.

    Parameters
    ----------
    mu : array
        The means, of the shape of the weights.
    log_sigma2 : array
        The logarithms of the variances, of a shape that broadcasts to the shape of `mu`.

    See Also
    --------
    Dropout : the multiplicative posterior, whose variance is alpha theta^2.

    Notes
    -----
    The functions that take a node check its fields. The constructor does not, because JAX also
    makes nodes whose fields are not arrays.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Normal.from_mean(jnp.ones((3, 2)))
    >>> print(weight.log_sigma2.shape, weight.log_sigma2[0, 0])
    (3, 2) -10.0
    """

    mu: Any
    log_sigma2: Any

    @classmethod
    def from_mean(cls, mu: Any, log_sigma2: float = -10.0) -> Normal:
        """Make a posterior in which all variances are the same.

        Parameters
        ----------
        mu : array
            The means: initial or trained weights.
        log_sigma2 : float, optional
            The logarithm of the variance, by default -10, as in Molchanov et al. (2017).

        Returns
        -------
        Normal
            Both leaves have the shape and dtype of `mu`.
        """
        mu = real_array("mu", mu)
        return cls(mu, jnp.full_like(mu, finite("log_sigma2", log_sigma2)))

    def _given(self) -> Given:
        mu, log_sigma2 = real_array("mu", self.mu), real_array("log_sigma2", self.log_sigma2)
        if not broadcasts(log_sigma2.shape, mu.shape):
            raise ValueError(
                f"log_sigma2 of shape {log_sigma2.shape} does not broadcast to mu's {mu.shape}: "
                "use Normal.from_mean"
            )
        return Given(mu, jnp.broadcast_to(log_sigma2, mu.shape))

    def _log_variances(self) -> Array:
        mean, log_sigma2, *_ = self._given()
        return jnp.broadcast_to(log_sigma2, mean.shape)

    def _deviations(self) -> Array:
        return root(self._log_variances())

    def _variances(self) -> Array:
        log_variances = widened(self._log_variances())
        return jnp.exp(jnp.minimum(log_variances, largest_log(log_variances.dtype)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class Dropout(Posterior):
    """Weights w with mean theta and variance alpha theta^2, the posterior of Kingma et al. (2015).

    With independent noise (section 3.1) w ~ N(theta, alpha theta^2). With correlated noise (section
    3.2, Eq. 11) all weights of an input unit i share one scale: w_i = s_i theta_i, where
    s_i ~ N(1, alpha). A node of a pytree with two leaves. The other fields are static.

    Parameters
    ----------
    theta : array
        The means, of the shape of the weights.
    log_alpha : array
        The logarithm of alpha, a ratio of *variances*. Its shape must broadcast to the shape of
        `theta`; see `from_mean`. The KL counts each element once for every weight that uses it.
    noise : {"independent", "correlated"}, optional
        With correlated noise, alpha may only depend on the input unit.
    max_log_alpha : float, optional
        An upper bound: the functions use ``min(log_alpha, max_log_alpha)``. 0.0 is Kingma's
        alpha <= 1 (section 3.4). At the bound and above, `jax.grad` passes a gradient only if a
        descent step would decrease log alpha. This holds for the gradients of the likelihood
        and the KL separately. If their signs differ, log alpha stays within 2 steps of the bound.
    input_axis : int, optional
        The axis of the input units in `theta`, for correlated noise: -2 in a dense kernel, a table
        of embeddings and a convolution kernel with layout HWIO, 1 with layout OIHW.
    groups : int, optional
        The ``feature_group_count`` of a convolution with correlated noise. There is a scale for
        each of the ``groups * theta.shape[input_axis]`` channels.

    See Also
    --------
    Normal : the additive posterior.

    Notes
    -----
    To keep alpha fixed, as in Gaussian dropout, do not differentiate in `log_alpha`, or pass
    ``jax.lax.stop_gradient(log_alpha)``.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> theta = jnp.ones((300, 100))
    >>> for sharing in "weight", "output", "input", "layer":
    ...     weight = nn.Dropout.from_mean(theta, log_alpha=0.0, sharing=sharing)
    ...     print(weight.log_alpha.shape, nn.kl(weight).round())
    (300, 100) 12801.0
    (1, 100) 12801.0
    (300, 1) 12801.0
    (1, 1) 12801.0
    >>> scales = nn.Dropout.from_mean(theta, 0.0, sharing="input", noise="correlated")
    >>> print(nn.kl(scales).round())
    128.0
    """

    theta: Any
    log_alpha: Any
    noise: str = field(default="independent", metadata={"static": True})
    max_log_alpha: float | None = field(default=None, metadata={"static": True})
    input_axis: int = field(default=-2, metadata={"static": True})
    groups: int = field(default=1, metadata={"static": True})

    @classmethod
    def from_mean(
        cls,
        theta: Any,
        log_alpha: float = -3.0,
        *,
        sharing: str = "weight",
        noise: str = "independent",
        max_log_alpha: float | None = None,
        input_axis: int = -2,
        output_axis: int = -1,
        groups: int = 1,
    ) -> Dropout:
        """Make a posterior in which all alphas are the same.

        Parameters
        ----------
        theta : array
            The means: initial or trained weights.
        log_alpha : float, optional
            By default -3, a dropout rate alpha/(1 + alpha) of 5 %.
        sharing : {"weight", "output", "input", "layer"}, optional
            One alpha for each weight, for each output unit, for each input unit, or for the layer.
        noise, max_log_alpha, groups
            See `Dropout`.
        input_axis, output_axis : int, optional
            The axes of the units in `theta`: -2 and -1 in a dense kernel, a table of embeddings and
            a convolution kernel with layout HWIO, 1 and 0 with layout OIHW.

        Returns
        -------
        Dropout
            `log_alpha` has as many axes as `theta`, and the same dtype.

        Raises
        ------
        ValueError
            If an option or an axis is unknown, if `log_alpha` is not finite, or if the noise is
            correlated and `sharing` is neither ``"input"`` nor ``"layer"``.
        """
        theta = real_array("theta", theta)
        correlated = one_of("noise", noise, NOISES) == "correlated"
        kind = posteriors.Correlated if correlated else posteriors.Multiplicative
        posterior = kind(sharing, max_log_alpha)
        units = units_of(theta, sharing, input_axis, output_axis)
        ((_, shape),) = posterior.shapes(theta.shape, units).items()
        filled = jnp.full(shape, finite("log_alpha", log_alpha), theta.dtype)
        bound = posterior.max_log_alpha
        return cls(theta, filled, noise, bound, input_axis, count("groups", groups))

    @property
    def _posterior(self) -> posteriors.Additive:  # type: ignore[override]
        return _CORRELATED if self.noise == "correlated" else _INDEPENDENT

    def _given(self) -> Given:
        theta, log_alpha = real_array("theta", self.theta), real_array("log_alpha", self.log_alpha)
        if not broadcasts(log_alpha.shape, theta.shape):
            raise ValueError(
                f"log_alpha of shape {log_alpha.shape} does not broadcast to theta's "
                f"{theta.shape}: use Dropout.from_mean"
            )
        if one_of("noise", self.noise, NOISES) == "correlated":
            axis = axis_of("input_axis", self.input_axis, theta)
            shape = (1,) * (theta.ndim - log_alpha.ndim) + log_alpha.shape
            if math.prod(shape) != shape[axis]:
                raise ValueError(
                    f"noise='correlated' scales the inputs, but log_alpha has shape {shape}: pass "
                    "sharing='input' or sharing='layer'"
                )
        if self.max_log_alpha is not None:
            log_alpha = bounded(log_alpha, float(self.max_log_alpha))
        return Given(theta, log_alpha)

    def _log_variances(self) -> Array:
        return self._given().log_variance

    def _deviations(self) -> Array:
        theta, log_alpha, *_ = self._given()
        return widened(theta) * root(log_alpha)

    def _variances(self) -> Array:
        # Square the deviations, because alpha may overflow where alpha theta^2 does not.
        deviations = self._deviations()
        most = math.exp(0.5 * largest_log(deviations.dtype))
        deviations = deviations.clip(-most, most)
        return deviations * deviations


_INDEPENDENT, _CORRELATED = posteriors.Multiplicative(), posteriors.Correlated()


@dataclass(frozen=True)
class Fixed:
    """Weights whose variances are 0, such as `to_deterministic` returns."""

    array: Array
    _posterior: ClassVar[posteriors.Additive] = posteriors.Additive()

    def _mean(self) -> Array:
        return jnp.asarray(self.array)

    def _variances(self) -> Array:
        return jnp.zeros_like(self._mean())


def posterior_of(weight: Any, key: Any) -> Any:
    """Return the weights if they are a posterior, or an array and there is no key to draw noise."""
    if isinstance(weight, Posterior):
        return weight
    if key is None and is_floating(weight):
        return Fixed(weight)
    # nnx.Optimizer fails in its second step if one nnx.Param holds several arrays.
    held = weight.get_value() if hasattr(weight, "get_value") else None
    if isinstance(held, Posterior):
        raise TypeError(
            f"weight must be a posterior that holds parameters, but a {type_name(weight)} "
            f"that holds a {type(held).__name__} was given: pass jax.tree.map(nnx.Param, posterior)"
        )
    raise TypeError(
        f"weight must be a Normal, Groups, Dropout or Scaled, but {type_name(weight)} was given: "
        "pass Normal.from_mean(weight), or floats without a key"
    )


def check_scales(weight: Any, axis: int, groups: int) -> None:
    """Raise ValueError if the scales of a posterior do not fit the inputs of a layer."""
    if not weight._posterior.scaled:
        return
    kind = type(weight).__name__
    if weight.input_axis % weight._mean().ndim != axis:
        raise ValueError(
            f"the input units are axis {axis} of the weights, but input_axis={weight.input_axis} "
            f"was given: pass input_axis={axis} to {kind}"
        )
    if weight.groups != groups:
        raise ValueError(
            f"the layer has {groups} groups of channels, but the weights have "
            f"groups={weight.groups}: pass groups={groups} to {kind}"
        )
