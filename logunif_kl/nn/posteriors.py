"""The posteriors of a layer's weights, over the arrays of any framework.

A posterior is a frozen object that holds options, and no arrays. It gives the shapes of a layer's
parameters, and computes from their values, which a layer passes as `Given`. ``xp`` is the
module `torch` or `jax.numpy`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from .._layers import finite, one_of

Array = Any
Shape = tuple[int, ...]

UNITS = ("output", "input")


class Units(NamedTuple):
    """The axes of a weight that belong to its input units and to its output units."""

    input: int
    output: int


class Given(NamedTuple):
    """What a module gives of a weight: the parameters of its posterior, and their meaning."""

    mean: Array
    log_variance: Array
    """log sigma^2 or, with its bound, log alpha."""
    scale: Array = None
    scale_log_sigma2: Array = None
    mask: Array = None
    """1 for a kept weight, 0 for a pruned one."""
    units: Units = Units(input=1, output=0)
    groups: int = 1
    """The groups of a convolution."""


class Term(NamedTuple):
    """-KL of weights or scales, each of which counts `count` times.

    The arrays are log alpha, or the means and log sigma^2. With `standard`, the prior is N(0, 1).
    With `grouped`, weights are in groups, and log sigma^2 has length 1 in the axes of a group.
    """

    arrays: tuple[Array, ...]
    count: Any = 1
    standard: bool = False
    grouped: bool = False


@dataclass(frozen=True)
class Additive:
    """w ~ N(mu, sigma^2), each weight with a variance of its own (Molchanov et al. 2017).

    The base of all posteriors. `initial` is the initial log sigma^2 or log alpha.
    """

    # By default as in Molchanov et al. (2017), section 5.
    initial: float = field(default=-10.0, kw_only=True)

    parameters: ClassVar[tuple[str, ...]] = ("log_sigma2",)
    """The names of the parameters other than the means. The first one sets the variances."""
    sharing: ClassVar[str] = "weight"
    """Which weights share an element of the first parameter."""
    max_log_alpha: ClassVar[float | None] = None
    relative: ClassVar[bool] = False
    """Whether the first parameter is log alpha: the variances are relative to squared means."""
    grouped: ClassVar[bool] = False
    """Whether the prior is that of groups of weights, each with one variance."""
    scaled: ClassVar[bool] = False
    """Whether random scales multiply the input units."""
    independent: ClassVar[bool] = True
    """Whether each weight has noise of its own."""

    def __post_init__(self) -> None:
        """Check the initial value."""
        instead = f"the initial {self.parameters[0]}"
        object.__setattr__(self, "initial", finite("initial", self.initial, instead))

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


@dataclass(frozen=True)
class Grouped(Additive):
    """The k weights w of each unit are one group: w ~ N(mu, sigma^2 I), with the prior C/|w|^k."""

    sharing: str = "input"  # type: ignore[misc]

    grouped: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        one_of("sharing", self.sharing, UNITS)

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


@dataclass(frozen=True)
class Multiplicative(Additive):
    """w ~ N(theta, alpha theta^2), and weights may share alpha (Kingma et al. 2015, 3.1)."""

    sharing: str = "weight"  # type: ignore[misc]
    max_log_alpha: float | None = None  # type: ignore[misc]
    # A dropout rate alpha/(1 + alpha) of 5 %. With a much smaller alpha, training would take
    # thousands of steps until the noise matters, because the KL's gradient is at most 1/2.
    initial: float = field(default=-3.0, kw_only=True)

    parameters: ClassVar[tuple[str, ...]] = ("log_alpha",)
    relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        one_of("sharing", self.sharing, ("weight", *UNITS, "layer"))
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


@dataclass(frozen=True)
class Correlated(Multiplicative):
    """w_ij = s_i theta_ij with s_i ~ N(1, alpha_i): inputs have scales (Kingma et al. 2015, 3.2).

    The KL is that of the scales, because that of the weights is infinite (Hron et al. 2017).
    """

    sharing: str = "input"  # type: ignore[misc]

    scaled: ClassVar[bool] = True
    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.sharing not in ("input", "layer"):
            raise ValueError(
                f"correlated noise scales the inputs, but sharing={self.sharing!r} was given: pass "
                "sharing='input' or sharing='layer'"
            )

    def scales(self, given: Given) -> tuple[Array, Array]:
        """Return the means (None for 1) and the log variances of the random scales."""
        return None, given.log_variance

    def terms(self, xp: Any, given: Given, exact: bool) -> list[Term]:
        """Return the term of alpha, which counts once for each scale."""
        log_alpha = given.log_variance
        return [Term((log_alpha,), scales_of(xp, given, log_alpha.shape))]


@dataclass(frozen=True)
class Scaled(Additive):
    """w_ij = s_i v_ij with random s_i, and v_ij with the prior N(0, 1) (Louizos et al. 2017)."""

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


def shared_shape(sharing: str, weight: Sequence[int], units: Units) -> Shape:
    """Return the shape of a parameter that weights share, with as many axes as the weight.

    The parameter is never a scalar, because `torch.distributed.fsdp.fully_shard` refuses scalars.
    """
    if sharing == "weight":
        return tuple(weight)
    kept = getattr(units, sharing, None)
    return tuple([length if axis == kept else 1 for axis, length in enumerate(weight)])


def of_groups(xp: Any, mu: Array, log_sigma2: Array) -> tuple[Array, int]:
    """Return log(sigma^2/|mu|^2) of each group of weights, and the number of weights in a group.

    The axes in which `log_sigma2` has length 1 are those of a group.
    """
    squares = xp.square(mu)
    inside = _inside(mu.shape, log_sigma2.shape)
    if inside:
        squares = squares.sum(inside, keepdims=True)
    none = squares == 0.0
    found = log_sigma2 - xp.log(xp.where(none, 1.0, squares))
    size = math.prod(mu.shape) // max(math.prod(log_sigma2.shape), 1)
    return xp.where(none, math.inf, found), size


def scales_of(xp: Any, given: Given, shape: Sequence[int]) -> Any:
    """Count the scales, or those of a kept weight, that share each element of a parameter."""
    weight = given.mean.shape
    total = weight[given.units.input] * given.groups
    if given.mask is None:
        return total // max(math.prod(shape), 1)
    used = xp.sign(summed(given.mask, shared_shape("input", weight, given.units)))
    return summed(used * (total // max(math.prod(used.shape), 1)), shape)


def summed(x: Array, shape: Sequence[int]) -> Array:
    """Sum an array over the axes in which the shape has length 1."""
    inside = _inside(x.shape, shape)
    return x.sum(inside, keepdims=True) if inside else x


def _inside(shape: Sequence[int], within: Sequence[int]) -> Shape:
    return tuple([axis for axis, length in enumerate(shape) if within[axis] != length])


def without_row(term: Term, row: int, rows: int) -> list[Term]:
    """Leave out a row without noise, unless the counts of a mask leave it out already."""
    if not isinstance(term.count, int):
        return [term]
    if len(term.arrays[0]) != rows:
        return [term._replace(count=term.count // rows * (rows - 1))]
    parts = slice(row), slice(row + 1, None)
    return [term._replace(arrays=tuple([x[part] for x in term.arrays])) for part in parts]
