"""tanh-sinh quadrature of F(u) in any number of digits: the integrals of `_rules`, by mpmath.

Each level halves the step in tau, which about squares the error. Levels are added until two agree
to the last bit asked for, and the second of these is returned. The range of z ends where the
density is below that bit, and the range of tau where t log(t) is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import mpmath

from . import precision
from .precision import Raw

_GUARD = 40  # bits: the sum has thousands of terms, and the bracket below cancels some
_COARSEST, _FINEST = 4, 14  # log2 of the number of steps that a unit of tau is divided into

# A context of this module's own, so the caller's precision is not changed. It is used under the
# lock of `precision` only.
_MP = mpmath.MPContext()

Real = Any
Integrand = Callable[[Real], Real]


def neg_kl(log_alpha: Any, zero_at: Any, log_c: Any, dps: Any) -> Any:
    """-KL in dps digits, as `logunif_kl.methods.quadrature` documents it."""
    return precision.neg_kl(gap, log_alpha, zero_at, log_c, dps)


def gap(u: Raw, wp: int) -> Raw:
    """Return F(u) for a finite u > 0, to a relative 2**-wp."""
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
            t = (r + reach) * q
            return mp.log(t) * (density(t - r) + density(t + r))

        result = (r + reach) * _integral(folded, wp, 1 / (r + reach)) - mean_log
    else:

        def far(q: Real) -> Real:
            z = reach * (2 * q - 1)
            return density(z) * mp.log(1 + z / r)

        # log(r) is larger than the integral
        result = mp.log(r) - mean_log + 2 * reach * _integral(far, wp, 1 / reach)
    return result._mpf_


def _integral(f: Integrand, wp: int, size: Real) -> Real:
    """Integrate over [0, 1], singular ends or not, to 2**-(wp + 8) of itself or of `size`."""
    total, before = _MP.zero, None
    for level in range(_COARSEST, _FINEST + 1):
        total += _MP.fsum(weight * f(q) for q, weight in _nodes(_MP.prec, level))
        now = _MP.ldexp(total, -level)
        if before is not None and abs(now - before) <= _MP.ldexp(max(abs(now), size), -wp - 8):
            return now
        before = now
    raise ArithmeticError(
        f"tanh-sinh quadrature did not settle to {wp} bits with {1 << _FINEST} steps a unit: "
        "ask for fewer digits"
    )


@lru_cache(maxsize=16)
def _nodes(prec: int, level: int) -> list[tuple[Real, Real]]:
    """Return the nodes of [0, 1] that this level adds to those before, with weights / step."""
    mp = _MP
    end = int(mp.ceil(mp.ldexp(mp.asinh(prec * mp.ln2 / mp.pi), level)))
    first = level > _COARSEST
    found = []
    for k in range(-end, end + 1):
        if first and k % 2 == 0:
            continue
        e = mp.exp(mp.ldexp(mp.mpf(k), -level))
        sinh, cosh = (e - 1 / e) / 2, (e + 1 / e) / 2
        small = mp.exp(-mp.pi * abs(sinh))
        share = 1 / (1 + small)
        q = share if k >= 0 else small * share
        found.append((q, mp.pi * cosh * small * share * share))
    return found
