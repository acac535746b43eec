"""The two families of formulae, and their derivatives in log alpha and in their parameters.

`PolynomialFamily` is Kingma's formula: 1/2 log alpha plus a polynomial in alpha. Its parameters are
the coefficients of alpha T_j(t), where T_j are Chebyshev's polynomials and t is alpha mapped to
[-1, 1]. With powers of alpha instead, a fit would lose about one digit per degree.

`SigmoidFamily` is Molchanov's formula: -1/2 log(1 + 1/alpha) minus a sum of sigmoids.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import mpmath
import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

from .._convention import HALF_GAMMA_LOG_2
from .._mpmath import LOCK
from ._problem import Array

# Other threads may use mpmath, so this module has its own context, and uses it under LOCK.
_MP = mpmath.MPContext()


@dataclass(frozen=True)
class PolynomialFamily:
    """constant + 1/2 x + sum_j p_j alpha T_j(t), x = log alpha. The constant is p_0 if `free`."""

    degree: int
    low: float
    high: float
    free: bool

    linear = True

    @property
    def size(self) -> int:
        return self.degree + self.free

    def at(self, x: Array) -> _PolynomialsAt:
        return _PolynomialsAt(self, x)

    def _t(self, alpha: Array) -> Array:
        return (2.0 * alpha - (self.low + self.high)) / (self.high - self.low)

    def monomials(self, p: Array) -> tuple[float, tuple[float, ...]]:
        """Return the constant and the coefficients of alpha, alpha^2, ..., each rounded once.

        mpmath converts the Chebyshev coefficients, with extra digits because terms nearly cancel.
        """
        constant, rest = (float(p[0]), p[1:]) if self.free else (-HALF_GAMMA_LOG_2, p)
        with LOCK:
            _MP.dps = 30 + 2 * self.degree
            low, high = _MP.mpf(self.low), _MP.mpf(self.high)
            t = [-(low + high) / (high - low), 2 / (high - low)]
            before, now = [_MP.mpf(1)], t
            total = [_MP.mpf(0)] * self.degree
            for weight in rest:
                for power, entry in enumerate(before):
                    total[power] += _MP.mpf(float(weight)) * entry
                before, now = now, _minus([2 * c for c in _times(t, now)], before)
            return constant, tuple(float(c) for c in total)


class _PolynomialsAt:
    def __init__(self, family: PolynomialFamily, x: Array) -> None:
        self._family, self._x = family, x

    def value(self, p: Array) -> Array:
        constant = 0.0 if self._family.free else -HALF_GAMMA_LOG_2
        return np.asarray(0.5 * self._x + constant + self.value_jacobian(p) @ p)

    def slope(self, p: Array) -> Array:
        return np.asarray(0.5 + self.slope_jacobian(p) @ p)

    def value_jacobian(self, p: Array) -> Array:
        """Return the basis functions at x: 1 if the constant is free, then alpha T_j(t)."""
        family, alpha = self._family, np.exp(self._x)
        columns = alpha[:, None] * chebyshev.chebvander(family._t(alpha), family.degree - 1)
        return np.column_stack([np.ones_like(alpha), columns]) if family.free else columns

    def slope_jacobian(self, p: Array) -> Array:
        """Return derivatives of the basis in x: alpha T_j(t) + alpha^2 T_j'(t) dt/dalpha."""
        family, alpha = self._family, np.exp(self._x)
        t, n = family._t(alpha), family.degree
        columns = alpha[:, None] * chebyshev.chebvander(t, n - 1)
        derivatives = chebyshev.chebder(np.eye(n), axis=0)
        inner = chebyshev.chebvander(t, max(n - 2, 0)) @ derivatives[: max(n - 1, 1)]
        columns += (alpha**2 * 2.0 / (family.high - family.low))[:, None] * inner
        return np.column_stack([np.zeros_like(alpha), columns]) if family.free else columns


def _times(one: list, other: list) -> list:
    product = [_MP.mpf(0)] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            product[i + j] += a * b
    return product


def _minus(one: list, other: list) -> list:
    return [a - (other[i] if i < len(other) else 0) for i, a in enumerate(one)]


@dataclass(frozen=True)
class SigmoidFamily:
    """-1/2 softplus(-x) - sum_i k1_i sigmoid(-k2_i - k3_i x).

    The parameters are (k1, k2, k3) of each term in turn. If ``fixed``, the sum of all k1 must be
    (gamma + log 2)/2, so the first k1 is not a parameter.
    """

    terms: int
    fixed: bool

    linear = False

    @property
    def size(self) -> int:
        return 3 * self.terms - self.fixed

    def constants(self, p: Array) -> Array:
        """Return an array with a row (k1, k2, k3) for each term."""
        if not self.fixed:
            return np.asarray(p, dtype=np.float64).reshape(self.terms, 3)
        first = HALF_GAMMA_LOG_2 - math.fsum(p[2::3])
        return np.concatenate([[first], p]).reshape(self.terms, 3)

    def parameters(self, constants: Array) -> Array:
        """Return the parameters that give these constants. This is the inverse of `constants`."""
        flat = np.asarray(constants, dtype=np.float64).reshape(-1)
        return flat[1:] if self.fixed else flat

    def at(self, x: Array) -> _SigmoidsAt:
        return _SigmoidsAt(self, x)


class _SigmoidsAt:
    """What the parameters do not change is computed once, and sigmoids once for equal parameters.

    A search asks for the Jacobian at the parameters whose error it has asked for.
    """

    def __init__(self, family: SigmoidFamily, x: Array) -> None:
        self._family, self._x = family, x
        self._known, self._terms = b"", (x, x, x, x)
        self._rising_of = (b"", x)

    @cached_property
    def _value(self) -> Array:
        return np.asarray(-0.5 * np.logaddexp(0.0, -self._x))

    @cached_property
    def _slope(self) -> Array:
        return np.asarray(0.5 * expit(-self._x))

    def _falling(self, p: Array) -> tuple[Array, Array, Array, Array]:
        """Return k1, k3, z = k2 + k3 x of each term, and sigmoid(-z)."""
        known = p.tobytes()
        if known != self._known:
            k1, k2, k3 = self._family.constants(p).T.copy()
            z = k2 + np.multiply.outer(self._x, k3)
            self._known, self._terms = known, (k1, k3, z, expit(-z))
        return self._terms

    def _rising(self, z: Array) -> Array:
        """Return sigmoid(z) of the z that `_falling` returned last."""
        if self._rising_of[0] != self._known:
            self._rising_of = self._known, expit(z)
        return self._rising_of[1]

    def value(self, p: Array) -> Array:
        k1, _, _, falling = self._falling(p)
        return np.asarray(self._value - falling @ k1)

    def slope(self, p: Array) -> Array:
        k1, k3, z, falling = self._falling(p)
        return np.asarray(self._slope + (self._rising(z) * falling) @ (k1 * k3))

    def value_jacobian(self, p: Array) -> Array:
        k1, _, z, falling = self._falling(p)
        bump = k1 * falling * self._rising(z)
        return self._columns(-falling, bump, bump * self._x[:, None])

    def slope_jacobian(self, p: Array) -> Array:
        k1, k3, z, falling = self._falling(p)
        bump = self._rising(z) * falling
        # with s = sigmoid(z), the derivative of s(1 - s) in z is -s(1 - s) tanh(z/2)
        turn = -k1 * k3 * bump * np.tanh(0.5 * z)
        return self._columns(k3 * bump, turn, k1 * bump + turn * self._x[:, None])

    def _columns(self, *derivatives: Array) -> Array:
        columns = np.empty((self._x.size, self._family.terms, 3))
        for i, derivative in enumerate(derivatives):
            columns[:, :, i] = derivative
        if self._family.fixed:
            columns[:, 1:, 0] -= columns[:, :1, 0]
        flat = columns.reshape(self._x.size, 3 * self._family.terms)
        return flat[:, 1:] if self._family.fixed else flat
