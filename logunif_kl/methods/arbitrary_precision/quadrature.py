"""Compute F(u) by tanh-sinh quadrature with mpmath, as in `_quadrature_rules`.

Each level halves the step in tau and about squares the error. Levels are added until two sums agree
to more than half of the requested bits, and the last sum is returned. The ranges of z and of tau
end where the density and the terms fall below the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import mpmath

from .precision import Raw

# Extra bits are needed because the sum has thousands of terms, powers of exp(step) have as many
# factors, and the bracket in `small` cancels.
_GUARD = 56
_COARSEST, _FINEST = 4, 14  # log2 of the number of steps per unit of tau
_IN_TURN = 3  # stop after this number of successive terms below the last bit
#: The most decimal digits. Each digit needs about 14 nodes with four exponentials, so the time
#: grows with the cube of the number of digits.
MAX_DPS = 1000

# This module has its own context, so that the caller's precision does not change. Use it only while
# holding the lock that `precision` takes.
_MP = mpmath.MPContext()

Real = Any
Integrand = Callable[[Real], Real]


def gap(u: Raw, wp: int) -> Raw:
    """Return F(u) for a finite u > 0, with a relative error of 2**-wp."""
    mp, mp.prec = _MP, wp + _GUARD
    r = mp.sqrt(2 * mp.make_mpf(u))
    reach = mp.sqrt(2 * mp.ln2 * mp.prec)
    root = mp.sqrt(2 * mp.pi)
    mean_log = -(mp.euler + mp.ln2) / 2

    def density(z: Real) -> Real:
        return mp.exp(-z * z / 2) / root

    if r < 1:
        less = mp.expm1(-r * r / 2)

        def small(q: Real) -> Real:
            t = (reach + 1) * q
            e = mp.exp(r * t / 2)
            sinh, cosh = (e - 1 / e) / 2, (e * e + 1 / (e * e)) / 2
            if r * t < 1:
                sinh = mp.sinh(r * t / 2)
            return mp.log(t) * density(t) * (less * cosh + 2 * sinh * sinh)

        result = 2 * (reach + 1) * _integral(small, wp, 0)
    elif r < reach:

        def folded(q: Real) -> Real:
            # Writing the sum of the densities at t - r and t + r in this way saves an exponential.
            t = (r + reach) * q
            e = mp.exp(-r * t)
            return mp.log(t) * density(t - r) * (1 + e * e)

        result = (r + reach) * _integral(folded, wp, 1 / (r + reach)) - mean_log
    else:

        def far(q: Real) -> Real:
            z = reach * (2 * q - 1)
            return density(z) * mp.log(1 + z / r)

        # log(r) exceeds the integral, so a small integral may have a large relative error
        result = mp.log(r) - mean_log + 2 * reach * _integral(far, wp, 1 / reach)
    return result._mpf_


def _integral(f: Integrand, wp: int, size: Real) -> Real:
    """Integrate f over [0, 1] to within 2**-(wp + 8) times the larger of the result and `size`.

    f may be singular at 0 and 1. For step h the error is at most exp(-2 pi d/h) M(d), where M >= 1
    grows with f in the strip |Im tau| < d. The bound for h/2 is at most the square of that for h,
    so a sum is accurate if it agrees with the previous sum to more than half of the bits.
    """
    mp, full = _MP, _MP.prec
    total, before = mp.zero, None
    for level in range(_COARSEST, _FINEST + 1):
        for side in _sides(full, level):
            total += _half(side, f, full, size)
        now = mp.ldexp(total, -level)
        enough = mp.ldexp(max(abs(now), size), -(wp + 8) // 2 - 24)
        if before is not None and abs(now - before) <= enough:
            return now
        before = now
    raise ArithmeticError(
        f"tanh-sinh quadrature did not settle to {wp} bits with {1 << _FINEST} steps a unit: "
        "ask for fewer digits"
    )


def _half(side: _Side, f: Integrand, full: int, size: Real) -> Real:
    """Sum one side from tau = 0 outwards, until the terms fall below the last bit of the sum.

    A node whose weight is 2**-m is evaluated with m fewer bits.
    """
    mp, total, small = _MP, _MP.zero, 0
    try:
        for q, weight in side:
            mp.prec = max(64, full + weight._mpf_[2] + weight._mpf_[3])
            term = weight * f(q)
            mp.prec = full
            total += term
            small = small + 1 if abs(term) <= mp.ldexp(abs(total), -full) else 0
            if small == _IN_TURN:
                break
    finally:
        mp.prec = full
    return total


class _Side:
    """The nodes that a level adds on one side of tau = 0, with weights divided by the step.

    Nodes are computed from tau = 0 outwards, when they are first needed.
    """

    def __init__(self, prec: int, level: int, sign: int) -> None:
        mp = _MP
        self._sign = sign
        self._prec = prec
        stride = 1 if level == _COARSEST else 2
        # At tau = 0 there is one node, which belongs to the right side.
        first = (sign < 0) if level == _COARSEST else 1
        step = mp.ldexp(mp.one, -level)
        self._ratio = mp.exp(stride * step)
        self._end = mp.asinh(prec * mp.ln2 / mp.pi)
        self._stride = stride * step
        # tau, exp(tau) and exp(-tau) of the first node.
        self._first = (first * step, mp.exp(first * step), mp.exp(-first * step))
        self._found: list[tuple[Real, Real, tuple[Real, Real, Real]]] = []

    def __iter__(self) -> Iterator[tuple[Real, Real]]:
        at = 0
        while at < len(self._found) or self._append():
            q, weight, _ = self._found[at]
            yield q, weight
            at += 1

    def _append(self) -> bool:
        # Nodes are kept for later calls. A node is appended when all its numbers are known, so that
        # an interrupt leaves no incomplete node.
        mp = _MP
        tau, e, over = self._found[-1][2] if self._found else self._first
        if tau > self._end:
            return False
        before = mp.prec
        try:
            mp.prec = self._prec
            small = mp.exp(-mp.pi * (e - over) / 2)
            share = 1 / (1 + small)
            q = share if self._sign > 0 else small * share
            weight = mp.pi * (e + over) / 2 * small * share * share
            following = (tau + self._stride, e * self._ratio, over / self._ratio)
        finally:
            mp.prec = before
        self._found.append((q, weight, following))
        return True


@lru_cache(maxsize=16)
def _sides(prec: int, level: int) -> tuple[_Side, _Side]:
    return _Side(prec, level, -1), _Side(prec, level, 1)
