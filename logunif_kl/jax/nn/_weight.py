"""The posterior over an array of weights, as a node of a pytree.

The leaves may be arrays, tracers, or anything that `jax.numpy.asarray` takes, such as a
``flax.nnx.Param`` of one array.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ..._display import in_short
from ..._errors import type_name
from ..._layers import count
from ...nn.options import check_posterior
from ...nn.posteriors import Additive
from ...nn.terms import Given, Term, Units, shared_shape
from ._arguments import axis_of, broadcasts, is_floating, real_array
from ._bound import bounded
from ._noise import largest_log, root, widened

Array = Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class Weight:
    """An array of weights with a Gaussian posterior.

    A node of a pytree. `dense`, `conv` and `embedding` take it as their weights, and `kl` finds it
    in a tree of parameters. Its leaves are `mean` and the parameters that ``posterior.parameters``
    names. The other parameters are None. `posterior`, `input_axis` and `groups` are static.

    Parameters
    ----------
    mean : array
        The means, of the shape of the weights; with `Scaled`, those of v.
    log_sigma2 : array, optional
        The logarithms of the variances, of `Additive`, `Grouped` and `Scaled`. This array and
        `log_alpha` must broadcast to the shape of `mean`. The axes in which `log_sigma2` of
        `Grouped` has length 1 are those of a group.
    log_alpha : array, optional
        The logarithm of alpha, a ratio of *variances*, of `Multiplicative` and `Correlated`. The KL
        counts each element once for every weight, or scale, that uses it.
    scale, scale_log_sigma2 : array, optional
        The means of the scales and the logarithms of their variances, of `Scaled`.
    posterior : Additive, Grouped, Multiplicative, Correlated or Scaled, optional
        The posterior. Its option ``initial`` serves `from_mean`, and is not kept.
    input_axis : int, optional
        The axis of the input units in `mean`, for posteriors with scales: -2 in a dense kernel, a
        table of embeddings and a convolution kernel with layout HWIO, 1 with layout OIHW.
    groups : int, optional
        The ``feature_group_count`` of a convolution, for posteriors with scales. There is a scale
        for each of the ``groups * mean.shape[input_axis]`` channels.

    Raises
    ------
    TypeError
        If `posterior` is not a posterior.

    Notes
    -----
    The functions that take a node check its arrays. The constructor does not, because JAX also
    makes nodes whose leaves are not arrays.

    With ``max_log_alpha`` the functions use ``min(log_alpha, max_log_alpha)``. At the bound and
    above, `jax.grad` passes a gradient only if a descent step would decrease log alpha. This holds
    for the gradients of the likelihood and the KL separately. If their signs differ, log alpha
    stays within 2 steps of the bound.

    To keep alpha fixed, as in Gaussian dropout, do not differentiate in `log_alpha`, or pass
    ``jax.lax.stop_gradient(log_alpha)``.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> mean = jnp.ones((300, 100))
    >>> weight = nn.Weight.from_mean(mean)
    >>> print(weight.log_sigma2.shape, weight.log_sigma2[0, 0])
    (300, 100) -10.0
    >>> for sharing in "weight", "output", "input", "layer":
    ...     weight = nn.Weight.from_mean(mean, nn.Multiplicative(sharing, initial=0.0))
    ...     print(weight.log_alpha.shape, nn.kl(weight).round())
    (300, 100) 12801.0
    (1, 100) 12801.0
    (300, 1) 12801.0
    (1, 1) 12801.0
    >>> print(nn.kl(nn.Weight.from_mean(mean, nn.Correlated(initial=0.0))).round())
    128.0
    """

    mean: Any
    log_sigma2: Any = None
    _: KW_ONLY
    log_alpha: Any = None
    scale: Any = None
    scale_log_sigma2: Any = None
    posterior: Additive = field(default=Additive(), metadata={"static": True})
    input_axis: int = field(default=-2, metadata={"static": True})
    groups: int = field(default=1, metadata={"static": True})

    def __post_init__(self) -> None:
        """Check the posterior, and forget its `initial`, in which trees should not differ."""
        posterior = self.posterior
        if not isinstance(posterior, Additive):
            check_posterior({"posterior": posterior})
        if posterior.initial != type(posterior).initial:
            kept = replace(posterior, initial=type(posterior).initial)
            object.__setattr__(self, "posterior", kept)

    @classmethod
    def from_mean(
        cls,
        mean: Any,
        posterior: Additive = Additive(),  # noqa: B008 (frozen)
        *,
        input_axis: int = -2,
        output_axis: int = -1,
        groups: int = 1,
    ) -> Weight:
        """Make weights whose variances are those of ``posterior.initial``.

        Parameters
        ----------
        mean : array
            The means: initial or trained weights.
        posterior : Additive, Grouped, Multiplicative, Correlated or Scaled, optional
            By default ``Additive()``, with log sigma^2 = -10.
        input_axis, output_axis : int, optional
            The axes of the units in `mean`: -2 and -1 in a dense kernel, a table of embeddings and
            a convolution kernel with layout HWIO, 1 and 0 with layout OIHW.
        groups : int, optional
            See `Weight`.

        Returns
        -------
        Weight
            All leaves have the dtype of `mean`, and as many axes. Scales have the mean 1.

        Raises
        ------
        TypeError
            If `mean` is not an array of floats, or `posterior` is not a posterior.
        ValueError
            If `mean` has no axis of the units that share a parameter.
        """
        mean = real_array("mean", mean)
        options: Any = {"input_axis": input_axis, "groups": count("groups", groups)}
        made = cls(mean, posterior=posterior, **options)
        shapes = posterior.shapes(mean.shape, _units(mean, posterior, input_axis, output_axis))
        parameters = {
            name: jnp.full(shape, 1.0 if name == "scale" else posterior.initial, mean.dtype)
            for name, shape in shapes.items()
        }
        return replace(made, **parameters)

    def __repr__(self) -> str:
        return in_short(self)

    def log_alpha_of_weights(self) -> Array:
        """Compute log alpha of each weight; inf where the mean is 0 and alpha is not shared."""
        return self.posterior.log_alpha(jnp, self._given())

    def _given(self) -> Given:
        """Return the parameters of the posterior, or raise an error if they do not fit it."""
        posterior, mean = self.posterior, real_array("mean", self.mean)
        names = tuple([name for name in _PARAMETERS if getattr(self, name) is not None])
        if names != posterior.parameters:
            raise ValueError(
                f"the posterior {posterior} needs {' and '.join(posterior.parameters)}, but "
                f"{' and '.join(names) or 'none of them'} was given: use Weight.from_mean"
            )
        first, *scales = (real_array(name, getattr(self, name)) for name in names)
        if not broadcasts(first.shape, mean.shape):
            raise ValueError(
                f"{names[0]} of shape {first.shape} does not broadcast to the means' {mean.shape}: "
                "use Weight.from_mean"
            )
        first = first.reshape((1,) * (mean.ndim - first.ndim) + first.shape)
        bound, units = posterior.max_log_alpha, _units(mean, posterior, self.input_axis)
        if bound is not None:
            first = bounded(first, bound)
        given = Given(mean, first, *scales, units=units, groups=self.groups)
        if posterior.scaled:
            shapes = {x.shape for x in posterior.scales(given) if x is not None}
            wanted = [shared_shape(each, mean.shape, units) for each in ("input", "layer")]
            if len(shapes) > 1 or not shapes <= set(wanted):
                raise ValueError(
                    f"the scales of the inputs must have shape {wanted[0]} for means of shape "
                    f"{mean.shape}, but {' and '.join(map(str, sorted(shapes)))} was given: use "
                    "Weight.from_mean"
                )
        return given

    def _mean(self) -> Array:
        return self.posterior.means(self._given())

    def _log_variances(self) -> Array:
        """Return log sigma^2 of each weight, or log alpha."""
        given = self._given()
        if self.posterior.relative:
            return given.log_variance
        return jnp.broadcast_to(given.log_variance, given.mean.shape)

    def _deviations(self) -> Array:
        """Return the standard deviations of the weights, or of the weights without their scales."""
        deviations = root(self._log_variances())
        if self.posterior.relative:
            deviations = widened(real_array("mean", self.mean)) * deviations
        return deviations

    def _variances(self) -> Array:
        if not self.posterior.relative:
            log_variances = widened(self._log_variances())
            return jnp.exp(jnp.minimum(log_variances, largest_log(log_variances.dtype)))
        # Square the deviations, because alpha may overflow where alpha mean^2 does not.
        deviations = self._deviations()
        most = math.exp(0.5 * largest_log(deviations.dtype))
        deviations = deviations.clip(-most, most)
        return deviations * deviations

    def _scale_moments(self) -> tuple[Array, Array]:
        """Return the means and standard deviations of the scales, of shape (units,) or (1,)."""
        means, log_variances = self.posterior.scales(self._given())
        if means is None:
            # With the other order, XLA rounds some gradients otherwise in the last bit.
            log_variances = log_variances.reshape(-1)
        deviations = root(log_variances).reshape(-1)
        means = jnp.ones_like(deviations) if means is None else means.reshape(-1)
        times = self.groups if deviations.size > 1 else 1
        return jnp.tile(means, times), jnp.tile(deviations, times)

    def _terms(self, exact: bool) -> list[Term]:
        """Return the terms whose sum is -KL."""
        return self.posterior.terms(jnp, self._given(), exact)


_PARAMETERS = tuple(
    each.name for each in fields(Weight) if each.name != "mean" and not each.metadata
)


@dataclass(frozen=True)
class Fixed:
    """Weights whose variances are 0, such as `to_deterministic` returns."""

    array: Array
    posterior: ClassVar[Additive] = Additive()

    def _mean(self) -> Array:
        return jnp.asarray(self.array)

    def _variances(self) -> Array:
        return jnp.zeros_like(self._mean())


def weight_of(weight: Any, key: Any) -> Any:
    """Return a `Weight`, or an array if there is no key to draw noise, otherwise raise an error."""
    if isinstance(weight, Weight):
        return weight
    if key is None and is_floating(weight):
        return Fixed(weight)
    # nnx.Optimizer fails in its second step if one nnx.Param holds several arrays.
    if isinstance(weight.get_value() if hasattr(weight, "get_value") else None, Weight):
        raise TypeError(
            f"weight must be a Weight that holds parameters, but a {type_name(weight)} "
            "that holds a Weight was given: pass jax.tree.map(nnx.Param, weight)"
        )
    raise TypeError(
        f"weight must be a Weight, but {type_name(weight)} was given: pass "
        "Weight.from_mean(weight), or floats without a key"
    )


def check_scales(weight: Any, axis: int, groups: int) -> None:
    """Raise ValueError if the scales of weights do not fit the inputs of a layer."""
    if not weight.posterior.scaled:
        return
    if weight.input_axis % weight._mean().ndim != axis:
        raise ValueError(
            f"the input units are axis {axis} of the weights, but input_axis={weight.input_axis} "
            f"was given: pass input_axis={axis} to Weight"
        )
    if weight.groups != groups:
        raise ValueError(
            f"the layer has {groups} groups of channels, but the weights have "
            f"groups={weight.groups}: pass groups={groups} to Weight"
        )


def _units(mean: Array, posterior: Additive, input_axis: int, output_axis: int = -1) -> Units:
    """Return the axes of the units, of which the one that the posterior names is checked."""
    axes = {"input": input_axis, "output": output_axis}
    name = "input" if posterior.scaled else posterior.sharing
    if name in axes:
        axes[name] = axis_of(f"{name}_axis", axes[name], mean)
    return Units(**axes)
