"""The posterior over an array of weights, as a node of a pytree.

The leaves may be arrays, tracers, or anything that `jax.numpy.asarray` takes, such as a
``flax.nnx.Param`` of one array.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...._display import in_short
from ...._errors import type_name
from ...checks import count
from ...options import check_posterior
from ...posteriors import Additive
from ...terms import Given, Units, shared_shape
from ..arguments import axis_of, broadcasts, is_floating, real_array
from ..noise import largest_log, root, widened
from .bound import bounded

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
        table of embeddings and a convolution kernel with layout HWIO, 1 with layout OIHW. Count
        from the end (-3 for OIHW) for weights that `jax.vmap` stacks.
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
        posterior: Any = self.posterior
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

        def filled(name: str, shape: Any) -> Array:
            value = 1.0 if name == "scale" else posterior.initial
            # Without a shape, the array is sharded as the means are.
            return jnp.full_like(mean, value, shape=None if shape == mean.shape else shape)

        return replace(made, **{name: filled(name, shape) for name, shape in shapes.items()})

    def __repr__(self) -> str:
        return in_short(self)

    def log_alpha_of_weights(self) -> Array:
        """Compute log alpha of each weight; inf where the mean is 0 and alpha is not shared."""
        return parts_of(self, None).log_alpha()

    def _given(self) -> Given:
        """Return the parameters of the posterior, or raise an error if they do not fit it."""
        posterior, mean = self.posterior, real_array("mean", self.mean)
        names = tuple([name for name in _PARAMETERS if getattr(self, name) is not None])
        if names != posterior.parameters:
            raise ValueError(
                f"a Weight with the posterior {posterior} needs {', '.join(posterior.parameters)}, "
                f"but has {', '.join(names) or 'none'}: use Weight.from_mean"
            )
        first, *scales = (real_array(name, getattr(self, name)) for name in names)
        if not broadcasts(first.shape, mean.shape):
            raise ValueError(
                f"{names[0]} of shape {first.shape} does not broadcast to the means' {mean.shape}: "
                "use Weight.from_mean"
            )
        if first.ndim < mean.ndim:
            first = first.reshape((1,) * (mean.ndim - first.ndim) + first.shape)
        bound, units = posterior.max_log_alpha, _units(mean, posterior, self.input_axis)
        if bound is not None:
            first = bounded(first, bound)
        given = Given(mean, first, *scales)._replace(units=units, groups=self.groups)
        if posterior.scaled:
            shapes = {x.shape for x in posterior.scales(given) if x is not None}
            wanted = [shared_shape(each, mean.shape, units) for each in ("input", "layer")]
            if len(shapes) > 1 or not shapes <= set(wanted):
                raise ValueError(
                    f"the scales of the inputs must have shape {wanted[0]} for means of shape "
                    f"{mean.shape}, but have {' and '.join(map(str, sorted(shapes)))}: use "
                    "Weight.from_mean"
                )
        return given


_PARAMETERS = tuple(
    each.name for each in fields(Weight) if each.name != "mean" and not each.metadata
)


class Parts(NamedTuple):
    """The posterior of an array of weights, and its parameters, which fit it."""

    posterior: Additive
    given: Given

    def mean(self) -> Array:
        return self.posterior.means(self.given)

    def log_alpha(self) -> Array:
        """Return log alpha of each weight, in float32 or wider: a half type has no squares."""
        arrays = {name: getattr(self.given, name) for name in Given._fields[:4]}
        wide = {name: widened(each) for name, each in arrays.items() if each is not None}
        return self.posterior.log_alpha(jnp, self.given._replace(**wide))

    def log_variances(self) -> Array:
        """Return log sigma^2 of each weight, or log alpha."""
        if self.posterior.relative:
            return self.given.log_variance
        return jnp.broadcast_to(self.given.log_variance, self.given.mean.shape)

    def deviations(self) -> Array:
        """Return the standard deviations of the weights, or of the weights without their scales."""
        deviations = root(self.log_variances())
        return widened(self.given.mean) * deviations if self.posterior.relative else deviations

    def variances(self) -> Array:
        if self.given.log_variance is None:
            return jnp.zeros_like(self.given.mean)
        if not self.posterior.relative:
            log_variances = widened(self.log_variances())
            return jnp.exp(jnp.minimum(log_variances, largest_log(log_variances.dtype)))
        # Square the deviations, because alpha may overflow where alpha mean^2 does not.
        deviations = self.deviations()
        most = math.exp(0.5 * largest_log(deviations.dtype))
        deviations = deviations.clip(-most, most)
        return deviations * deviations

    def scale_moments(self) -> tuple[Array, Array]:
        """Return the means and standard deviations of the scales, of shape (units,) or (1,)."""
        means, log_variances = self.posterior.scales(self.given)
        if means is None:
            # With the other order, XLA rounds some gradients otherwise in the last bit.
            log_variances = log_variances.reshape(-1)
        deviations = root(log_variances).reshape(-1)
        means = jnp.ones_like(deviations) if means is None else means.reshape(-1)
        times = self.given.groups if deviations.size > 1 else 1
        return jnp.tile(means, times), jnp.tile(deviations, times)

    def check_scales(self, axis: int, groups: int) -> None:
        """Raise ValueError if the scales do not fit the inputs of a layer."""
        if not self.posterior.scaled:
            return
        given = self.given
        if given.units.input != axis:
            raise ValueError(
                f"the input units are axis {axis} of the weights, but axis {given.units.input} of "
                f"the Weight has scales: pass input_axis={axis}"
            )
        if given.groups != groups:
            raise ValueError(
                f"the layer has {groups} groups of channels, but the Weight has "
                f"groups={given.groups}: pass groups={groups}"
            )


def parts_of(weight: Any, key: Any) -> Parts:
    """Return the parts of a `Weight`, or of an array if there is no key to draw noise."""
    if isinstance(weight, Weight):
        return Parts(weight.posterior, weight._given())
    if key is None and is_floating(weight):
        return Parts(Additive(), Given(jnp.asarray(weight), None))
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


def _units(mean: Array, posterior: Additive, input_axis: int, output_axis: int = -1) -> Units:
    """Return the axes of the units, of which the one that the posterior names is checked."""
    axes = {"input": input_axis, "output": output_axis}
    name = "input" if posterior.scaled else posterior.sharing
    if name in axes:
        axes[name] = axis_of(f"{name}_axis", axes[name], mean)
    return Units(**axes)
