"""Compute what a fit minimises: weighted errors of value and gradient.

A `Family` supplies its value and its slope in x = log alpha, and their Jacobians in the parameters.
A `Quantity` is the error of the value or of the slope. By default the error of -KL is absolute, and
the error of d(-KL)/dx is relative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .. import _api
from .._numpy.memory import check_for_linear_algebra
from ..methods._extrema import HORIZON, local_extrema

Array = np.ndarray

CORE = 12.0


class AtPoints(Protocol):
    """A `Family` at fixed x = log alpha, as a function of its parameters p.

    ``value(p)`` is -KL at every x, and ``slope(p)`` is its derivative in x. The Jacobians are the
    derivatives of both in p, with a column for each parameter.
    """

    def value(self, p: Array) -> Array: ...
    def slope(self, p: Array) -> Array: ...
    def value_jacobian(self, p: Array) -> Array: ...
    def slope_jacobian(self, p: Array) -> Array: ...


class Family(Protocol):
    """A formula for -KL with free parameters."""

    @property
    def size(self) -> int:
        """The number of parameters."""

    @property
    def linear(self) -> bool:
        """Whether the value is linear in the parameters."""

    def at(self, x: Array) -> AtPoints: ...


@dataclass(frozen=True)
class Quantity:
    """The weighted error of the value or of the gradient of a `Family`."""

    name: str
    family: Family
    weight: Callable[[Array], Array] | None = None

    def scale(self, x: Array) -> Array:
        return np.ones_like(x) if self.weight is None else self.weight(x)

    def error(self, p: Array, x: Array) -> Array:
        """Return the weighted error, approximate minus exact, at every x."""
        return self.at(x)[0](p)

    def at(self, x: Array) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """Return the error at every x and its derivatives, as functions of the parameters."""
        family = self.family.at(x)
        if self.name == "value":
            exact, of, jacobian = _api.neg_kl(x), family.value, family.value_jacobian
        else:
            exact, of, jacobian = _api.neg_kl_grad(x), family.slope, family.slope_jacobian
        if self.weight is None:
            return lambda p: np.asarray(of(p) - exact), jacobian
        scale = self.weight(x)
        column = scale[:, None]
        return (
            lambda p: np.asarray((of(p) - exact) * scale),
            lambda p: np.asarray(jacobian(p) * column),
        )

    def noise(self, x: Array) -> float:
        """Bound the rounding error of `error`. Extrema below this bound cannot be made equal."""
        exact = _api.neg_kl(x) if self.name == "value" else _api.neg_kl_grad(x)
        return float(16.0 * np.finfo(np.float64).eps * np.max(np.abs(exact) * self.scale(x)))

    def extrema(self, p: Array, grid: Array) -> tuple[Array, Array]:
        """Find all local maxima of the error's magnitude, including the ends of the grid."""
        return local_extrema(lambda x: self.error(p, x), grid)

    def jacobian(self, p: Array, x: Array) -> Array:
        """Return the derivatives of the error in the parameters, of shape (x.size, p.size)."""
        return self.at(x)[1](p)


@dataclass(frozen=True)
class Problem:
    """The errors that a fit minimises together, and its range of log alpha."""

    family: Family
    quantities: tuple[Quantity, ...]
    low: float
    high: float

    def grid(self, points: int) -> Array:
        """Return points from `low` to `high`, dense within |log alpha| <= 12 and sparse outside.

        Beyond 12, every error is close to its limit as log alpha -> +-inf, so few points suffice.
        """
        low, high = max(self.low, -HORIZON), min(self.high, HORIZON)
        a, b = max(low, -CORE), min(high, CORE)
        if not a < b:
            return np.linspace(low, high, points)
        grid = np.linspace(a, b, points)
        if b < CORE:
            # extrema of a polynomial in alpha cluster at both ends, so add Chebyshev nodes in alpha
            angles = np.linspace(0.0, math.pi, points)[1:-1]
            lowest, highest = math.exp(a), math.exp(b)
            alpha = (lowest + highest) / 2.0 - (highest - lowest) / 2.0 * np.cos(angles)
            grid = np.union1d(grid, np.log(alpha))
        few = 2 + points // 20
        if low < a:
            grid = np.concatenate([np.linspace(low, a, few)[:-1], grid])
        if b < high:
            grid = np.concatenate([grid, np.linspace(b, high, few)[1:]])
        return grid

    def worst(self, p: Array, x: Array) -> float:
        """Return the largest error of all quantities at the points x, or infinity if any is NaN."""
        largest = max(float(np.max(np.abs(q.error(p, x)))) for q in self.quantities)
        return largest if math.isfinite(largest) else math.inf

    def root_mean_square(self, p: Array, nodes: Array, weights: Array) -> float:
        """Return the square root of the sum of the quantities' mean square errors."""
        return math.sqrt(sum(float(weights @ q.error(p, nodes) ** 2) for q in self.quantities))

    def noise(self, x: Array) -> float:
        """Return the largest of the quantities' noise bounds."""
        return max(q.noise(x) for q in self.quantities)


def quantities(
    family: Family, target: str, weight: str | Callable[[Array], Any] | None
) -> tuple[Quantity, ...]:
    """Make the weighted errors that `target` asks for: of the value, the gradient or both."""
    check_for_linear_algebra()
    names: Sequence[str] = ("value", "gradient") if target == "both" else (target,)
    return tuple(Quantity(name, family, _weight(name, weight)) for name in names)


def _weight(
    name: str, weight: str | Callable[[Array], Any] | None
) -> Callable[[Array], Array] | None:
    natural = _over_gradient if name == "gradient" else None
    if weight is None:
        return natural
    if weight == "absolute":
        return None
    if weight == "relative":
        return _over_gradient if name == "gradient" else _over_value
    assert callable(weight)
    return lambda x: _checked(weight, x) * (1.0 if natural is None else natural(x))


def _over_value(x: Array) -> Array:
    return -1.0 / np.asarray(_api.neg_kl(x))


def _over_gradient(x: Array) -> Array:
    return 1.0 / np.asarray(_api.neg_kl_grad(x))


def _checked(weight: Callable[[Array], Any], x: Array) -> Array:
    given = np.asarray(weight(x), dtype=np.float64)
    if given.shape not in ((), x.shape) or not np.all((given > 0.0) & np.isfinite(given)):
        raise ValueError(
            "weight must return one positive finite number for each log_alpha, but it returned "
            f"an array of shape {given.shape} with least entry {given.min(initial=math.inf):g}: "
            "return an array of the shape of its argument"
        )
    return np.broadcast_to(given, x.shape)
