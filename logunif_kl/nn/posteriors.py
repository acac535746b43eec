"""The posteriors of a layer's weights, over the arrays of any framework.

A posterior is a frozen object that holds options, and no arrays. It gives the shapes of a layer's
parameters, and computes from their values, which a layer passes as `Given`. ``xp`` is the
module `torch` or `jax.numpy`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from .._layers import finite, one_of
from .terms import (
    UNITS,
    Array,
    Given,
    Shape,
    Term,
    Units,
    of_groups,
    scales_of,
    shared_shape,
    summed,
)


@dataclass(frozen=True, repr=False)
class Additive:
    r"""Gaussian weights, each with a variance of its own: the default of all layers.

    .. math::

        q(w) = \mathcal N(\mu, \sigma^2)

    This is the posterior of Molchanov et al. (2017), section 4. The KL of each weight is that of
    `logunif_kl.neg_kl_normal`, with alpha = sigma^2/mu^2. Other priors than the log-uniform one may
    replace it. `Additive` is also the base class of all posteriors, for `isinstance` checks.

    Parameters
    ----------
    initial : float, optional
        The initial value of the parameter `log_sigma2`, by default -10 (their section 5).

    Raises
    ------
    TypeError, ValueError
        For every posterior: if an option is not one of its choices, or a number is not finite.

    See Also
    --------
    Grouped : variances that the weights of a unit share.
    Multiplicative : the parameter is alpha.
    Correlated : random scales of the input units, with alpha as the parameter.
    Scaled : random scales of the input units, and weights with noise of their own.

    Notes
    -----
    A posterior is immutable, and compares by its class and its options. To change an option of a
    layer, assign a changed copy: see `logunif_kl.torch.nn.VariationalLayer`. The methods and the
    class attributes serve the layers, and may change.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=-4.0))
    >>> layer.posterior
    Additive(initial=-4.0)
    >>> layer.log_sigma2.shape
    torch.Size([2, 3])
    """

    initial: float = field(default=-10.0, kw_only=True)

    parameters: ClassVar[tuple[str, ...]] = ("log_sigma2",)
    """The names of the parameters other than the means. The first one sets the variances."""
    sharing: ClassVar[str] = "weight"
    """Which weights share an element of the first parameter."""
    max_log_alpha: ClassVar[float | None] = None
    """The upper bound of log alpha, or None."""
    relative: ClassVar[bool] = False
    """Whether the first parameter is log alpha: the variances are relative to squared means."""
    grouped: ClassVar[bool] = False
    """Whether the prior is that of groups of weights, each with one variance."""
    scaled: ClassVar[bool] = False
    """Whether random scales multiply the input units."""
    independent: ClassVar[bool] = True
    """Whether each weight has noise of its own."""
    _sharings: ClassVar[tuple[str, ...]] = ("weight",)

    def __post_init__(self) -> None:
        """Check the options."""
        instead = f"the initial {self.parameters[0]}"
        object.__setattr__(self, "initial", finite("initial", self.initial, instead))
        one_of("sharing", self.sharing, self._sharings)

    def __repr__(self) -> str:
        """Show the options that are not defaults."""
        every = sorted(fields(self), key=lambda each: bool(each.kw_only))
        values = [(each, getattr(self, each.name)) for each in every]
        changed = [f"{each.name}={value!r}" for each, value in values if value != each.default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def shapes(self, weight: Sequence[int], units: Units) -> dict[str, Shape]:
        """Return the shapes of the parameters for weights of the shape `weight`."""
        return {self.parameters[0]: shared_shape(self.sharing, weight, units)}

    def means(self, given: Given) -> Array:
        """Return the means of the weights."""
        return given.mean

    def log_alpha(self, xp: Any, given: Given) -> Array:
        """Return log alpha of every weight."""
        return given.log_variance - 2.0 * xp.log(xp.abs(given.mean))

    def scales(self, given: Given) -> tuple[Array, Array]:
        """Return the means (None for 1) and the log variances of the random scales."""
        raise NotImplementedError

    def terms(self, xp: Any, given: Given, exact: bool) -> list[Term]:
        """Return the terms whose sum is -KL.

        `exact` is True for the exact KL from the log-uniform prior. It is 0 where the mean is 0, so
        it needs no mask.
        """
        kept = 1 if given.mask is None or exact else given.mask
        return [Term((given.mean, given.log_variance), kept)]


@dataclass(frozen=True, repr=False)
class Grouped(Additive):
    r"""Gaussian weights in groups, one for each unit, with one variance and one prior for a group.

    The k weights of an input or an output unit are a vector w:

    .. math::

        q(w) = \mathcal N(\mu, \sigma^2 I), \qquad p(w) = C / \lvert w \rvert^k

    The KL is exact, that of `logunif_kl.neg_kl_vector` with alpha = sigma^2/\|mu\|^2, for k up to
    10000. log alpha of all weights of a group is log(k sigma^2/\|mu\|^2), so that a threshold means
    the same for every k, and prunes whole units. A prior as the `penalty` is one of single weights.

    Parameters
    ----------
    sharing : {"input", "output"}
        Whose weights are a group: those of an input unit, or those of an output unit.
    initial : float, optional
        The initial value of `log_sigma2`, by default -10.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 2, posterior=nn.Grouped("output"))
    >>> layer.log_sigma2.shape
    torch.Size([2, 1])
    """

    sharing: str = "input"  # type: ignore[misc]

    grouped: ClassVar[bool] = True
    _sharings: ClassVar[tuple[str, ...]] = UNITS

    def log_alpha(self, xp: Any, given: Given) -> Array:
        """Return log(k sigma^2/|mu|^2) of the group of every weight."""
        found, size = of_groups(xp, given.mean, given.log_variance)
        return xp.broadcast_to(found + math.log(size), given.mean.shape)

    def terms(self, xp: Any, given: Given, exact: bool) -> list[Term]:
        """Return the terms whose sum is -KL: of groups, or of single weights for another prior."""
        if exact:
            return [Term((given.mean, given.log_variance), grouped=True)]
        every = given._replace(log_variance=xp.broadcast_to(given.log_variance, given.mean.shape))
        return super().terms(xp, every, exact)


@dataclass(frozen=True, repr=False)
class Multiplicative(Additive):
    r"""Gaussian weights whose variances are relative to their squared means.

    .. math::

        q(w) = \mathcal N(\theta, \alpha \theta^2)

    This is variational dropout, type B (Kingma et al. 2015, section 3.1). The parameter is
    log alpha, a ratio of *variances*, which weights may share. The KL is that of
    `logunif_kl.neg_kl` (their Eq. 12). It counts a shared alpha once for each of its weights.

    Parameters
    ----------
    sharing : {"weight", "output", "input", "layer"}
        What has an alpha of its own: each weight, each output unit, each input unit or the layer.
    max_log_alpha : float, optional
        An upper bound of log alpha; 0.0 gives alpha <= 1 as in their section 3.4. Layers use
        ``min(log_alpha, max_log_alpha)``. At or above the bound, a gradient passes only if a
        descent step would decrease log alpha. The gradients of the likelihood and of the KL are
        tested separately: if one of them decreases log alpha, but their sum increases it, log alpha
        stays within two optimizer steps of the bound.
    initial : float, optional
        The initial value of the parameter `log_alpha`: by default -3, a dropout rate
        alpha/(1 + alpha) of 5 %.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> posterior = nn.Multiplicative(sharing="input", max_log_alpha=0.0)
    >>> nn.VariationalLinear(3, 2, posterior=posterior).log_alpha.shape
    torch.Size([1, 3])
    """

    sharing: str = "weight"  # type: ignore[misc]
    max_log_alpha: float | None = None  # type: ignore[misc]
    # With a much smaller alpha, training would take thousands of steps until the noise matters,
    # because the KL's gradient is at most 1/2.
    initial: float = field(default=-3.0, kw_only=True)

    parameters: ClassVar[tuple[str, ...]] = ("log_alpha",)
    relative: ClassVar[bool] = True
    _sharings: ClassVar[tuple[str, ...]] = ("weight", *UNITS, "layer")

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.max_log_alpha is not None:
            instead = "0.0 for alpha <= 1, or None for no bound"
            bound = finite("max_log_alpha", self.max_log_alpha, instead)
            object.__setattr__(self, "max_log_alpha", bound)

    def log_alpha(self, xp: Any, given: Given) -> Array:
        """Return log alpha of every weight."""
        return xp.broadcast_to(given.log_variance, given.mean.shape)

    def terms(self, xp: Any, given: Given, exact: bool) -> list[Term]:
        """Return the term of alpha, which counts once for each weight."""
        log_alpha = given.log_variance
        if given.mask is not None:
            return [Term((log_alpha,), summed(given.mask, log_alpha.shape))]
        weights = math.prod(given.mean.shape)
        return [Term((log_alpha,), weights // max(math.prod(log_alpha.shape), 1))]


@dataclass(frozen=True, repr=False)
class Correlated(Multiplicative):
    r"""Weights that are random only by the scales of their input units.

    .. math::

        w_{ij} = s_i \theta_{ij}, \qquad q(s_i) = \mathcal N(1, \alpha_i)

    This is variational dropout, type A (Kingma et al. 2015, section 3.2 and Eq. 11). The KL is that
    of the scales, `logunif_kl.neg_kl` once for each scale, because the KL of the weights is
    infinite (Hron et al. 2017, section 3).

    Parameters
    ----------
    sharing : {"input", "layer"}
        What has an alpha of its own: each input unit, or the layer.
    max_log_alpha, initial : float, optional
        As for `Multiplicative`.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 2, posterior=nn.Correlated())
    >>> layer.log_alpha.shape
    torch.Size([1, 3])
    """

    sharing: str = "input"  # type: ignore[misc]

    scaled: ClassVar[bool] = True
    independent: ClassVar[bool] = False
    _sharings: ClassVar[tuple[str, ...]] = ("input", "layer")

    def scales(self, given: Given) -> tuple[Array, Array]:
        """Return the means (None for 1) and the log variances of the random scales."""
        return None, given.log_variance

    def terms(self, xp: Any, given: Given, exact: bool) -> list[Term]:
        """Return the term of alpha, which counts once for each scale."""
        log_alpha = given.log_variance
        return [Term((log_alpha,), scales_of(xp, given, log_alpha.shape))]


@dataclass(frozen=True, repr=False)
class Scaled(Additive):
    r"""Gaussian weights times Gaussian scales of the input units, which are pruned as a whole.

    A weight is the product w_ij = z_i v_ij, as in BC-GNJ (Louizos et al. 2017, Eqs. 6 and 8):

    .. math::

        q(z_i) &= \mathcal N(\mathrm{scale}_i, s_i^2), \qquad
        q(v_{ij}) = \mathcal N(\mu_{ij}, \sigma_{ij}^2) \\
        p(z_i) &= C / \lvert z_i \rvert, \qquad p(v_{ij}) = \mathcal N(0, 1) \\
        \mathrm{KL} &= \sum_i \mathrm{KL}\left(q(z_i) \,\Vert\, p(z)\right)
        + \sum_{ij} \tfrac12 \left[\mu_{ij}^2 + \sigma_{ij}^2 - 1 - \log \sigma_{ij}^2\right]

    The first term is exact; they approximate it (``penalty="molchanov"``). The parameters are
    `log_sigma2` of v, `scale` (1 at first) and `scale_log_sigma2`. The mean of w_ij is scale_i
    mu_ij. log alpha of all weights of an input unit is that of its scale, log s_i^2 - 2
    log\|scale_i\|, so that a threshold removes the unit. The authors' `code
    <https://github.com/KarenUllrich/Tutorial_BayesianCompressionForDL>`_ uses thresholds from -5 to
    -2.8, not 3: find one by `threshold_curve`.

    Parameters
    ----------
    initial : float, optional
        The initial value of `log_sigma2` and of `scale_log_sigma2`, by default -10.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 2, posterior=nn.Scaled())
    >>> layer.scale_log_sigma2.data[0, 1] = 5.0  # the scale of the second input is noise
    >>> nn.to_deterministic(layer, threshold=3.0).weight[:, 1].detach()
    tensor([0., 0.])
    """

    parameters: ClassVar[tuple[str, ...]] = ("log_sigma2", "scale", "scale_log_sigma2")
    scaled: ClassVar[bool] = True

    def shapes(self, weight: Sequence[int], units: Units) -> dict[str, Shape]:
        """Return the shapes of the parameters for weights of the shape `weight`."""
        of_inputs = shared_shape("input", weight, units)
        return dict(zip(self.parameters, (tuple(weight), of_inputs, of_inputs), strict=True))

    def means(self, given: Given) -> Array:
        """Return the means of the weights."""
        return given.mean * given.scale

    def log_alpha(self, xp: Any, given: Given) -> Array:
        """Return log alpha of the scale of every weight."""
        found = given.scale_log_sigma2 - 2.0 * xp.log(xp.abs(given.scale))
        return xp.broadcast_to(found, given.mean.shape)

    def scales(self, given: Given) -> tuple[Array, Array]:
        """Return the means and the log variances of the random scales."""
        return given.scale, given.scale_log_sigma2

    def terms(self, xp: Any, given: Given, exact: bool) -> list[Term]:
        """Return the terms of the scales and of v."""
        counts, kept = scales_of(xp, given, given.scale.shape), given.mask
        return [
            Term((given.scale, given.scale_log_sigma2), counts),
            Term((given.mean, given.log_variance), 1 if kept is None else kept, standard=True),
        ]
