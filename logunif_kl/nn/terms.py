"""What posteriors compute with: parameters of weights, and terms of the KL.

``xp`` is the module `torch` or `jax.numpy`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

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
