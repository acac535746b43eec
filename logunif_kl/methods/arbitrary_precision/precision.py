"""Evaluation of every method in any number of digits, for the option ``dps=``.

Numbers are read exactly. The computation uses mpmath's raw floats and integers in fixed point, so
``mpmath.mp.dps`` is neither read nor changed. mpmath's exponents are integers of any size, so
nothing overflows or underflows. A lock serialises calls, because mpmath's caches of constants are
not safe for threads.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import mpmath
import numpy as np
from mpmath import libmp

from ..._convention import additive_constant
from ..._errors import shown
from ..._mpmath import LOCK
from .._arguments import integer

Raw = Any
"""mpmath's ``(sign, mantissa, exponent, bits)``."""

OfU = Callable[[Raw, int], Raw]
"""A function of a finite u > 0 and of a number of bits, wp. Its relative error is 2**-wp."""

MAX_DPS = 10_000
_GUARD = 24
_MAX_LOG_BITS = 4096


def neg_kl(gap: OfU, log_alpha: Any, zero_at: Any, log_c: Any, dps: Any) -> Any:
    """Compute constant - F(u), where F is `gap`. If `zero_at` is finite, F gives the constant."""
    wp = _bits(dps)
    additive_constant(zero_at, log_c)  # checks the arguments
    with LOCK:
        constant = _constant(gap, zero_at, log_c, wp)

        def of(u: Raw) -> Raw:
            return libmp.mpf_sub(constant, gap(u, wp), wp, "n")

        return _each(of, log_alpha, wp, at_zero=constant, at_infinity=libmp.fninf)


def neg_kl_grad(slope: OfU, log_alpha: Any, dps: Any) -> Any:
    """Compute u F'(u), where `slope` is a method's function of u."""
    wp = _bits(dps)
    half = libmp.from_man_exp(1, -1)
    with LOCK:
        return _each(lambda u: slope(u, wp), log_alpha, wp, at_zero=libmp.fzero, at_infinity=half)


def fixed(u: Raw, wp: int) -> int:
    """Return u, which must be below 2**wp, as an integer in units of 2**-wp."""
    return int(libmp.to_fixed(u, wp)) if u[2] + u[3] > -wp else 0


def _each(
    of: Callable[[Raw], Raw], log_alpha: Any, wp: int, *, at_zero: Raw, at_infinity: Raw
) -> Any:
    def one(value: Any) -> Any:
        x = _read(value, "log_alpha")
        if x == libmp.fnan:
            raw = x
        elif x == libmp.finf:
            raw = at_zero
        elif x == libmp.fninf:
            raw = at_infinity
        else:
            raw = of(_u(x, wp))
        return mpmath.mp.make_mpf(libmp.mpf_pos(raw, wp - _GUARD, "n"))

    if isinstance(log_alpha, np.ndarray | list | tuple):
        values = np.asarray(log_alpha)
        results = np.empty(values.size, dtype=object)
        for i, value in enumerate(values.ravel().tolist()):
            results[i] = one(value)
        return results.reshape(values.shape)[()]
    return one(log_alpha)


def _u(x: Raw, wp: int) -> Raw:
    if x[1] and x[2] + x[3] > _MAX_LOG_BITS:
        raise OverflowError(
            f"log_alpha is above 2**{_MAX_LOG_BITS} in size: use the limit at infinity"
        )
    return libmp.mpf_shift(libmp.mpf_exp(libmp.mpf_neg(x), wp + 16, "n"), -1)


def _constant(gap: OfU, zero_at: Any, log_c: Any, wp: int) -> Raw:
    if log_c is not None:
        # (log(pi e) - psi(1/2))/2 + log C
        pi = libmp.mpf_log(libmp.mpf_pi(wp + 8), wp + 8, "n")
        half = libmp.mpf_add(libmp.mpf_add(pi, libmp.fone), libmp.mpf_euler(wp + 8, "n"))
        total = libmp.mpf_add(libmp.mpf_shift(half, -1), libmp.mpf_ln2(wp + 8, "n"))
        return libmp.mpf_add(total, _read(log_c, "log_c"), wp + 8, "n")
    alpha = _read(zero_at, "zero_at")
    if alpha == libmp.finf:
        return libmp.fzero
    u = libmp.mpf_shift(libmp.mpf_div(libmp.fone, alpha, wp + 16, "n"), -1)
    return gap(u, wp)


def _read(value: Any, name: str) -> Raw:
    """Return the exact value of a real number."""
    raw = getattr(value, "_mpf_", None)
    if raw is not None:
        return raw
    if isinstance(value, float | np.float16 | np.float32):
        return libmp.from_float(float(value))
    if not isinstance(value, bool) and isinstance(value, Integral):
        return libmp.from_int(int(value))
    given = f"{type(value).__name__} {shown(value)}"
    raise TypeError(
        f"{name} must hold real numbers of at most 64 bits, or mpf, where dps is given, but "
        f"{given} was given: pass a float, an mpf or a NumPy array of them"
    )


def _bits(dps: Any) -> int:
    remedy = "pass dps=50, or leave it out for double precision"
    return int(libmp.dps_to_prec(integer("dps", dps, 1, MAX_DPS, remedy))) + _GUARD
