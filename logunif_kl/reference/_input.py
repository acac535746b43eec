"""Read one real number of any Python type, without rounding, as mpmath's raw floats.

A raw float is the tuple ``(sign, mantissa, exponent, bits)`` that mpmath's low-level functions
take. These functions do not use a context, so the caller's precision never changes. Exponents are
integers of any size, so exp(-1e308) neither overflows nor underflows.
"""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from mpmath import libmp

from .._errors import framework, shown, unsupported

Raw = Any
"""mpmath's ``(sign, mantissa, exponent, bits)``."""


@dataclass(frozen=True)
class Number:
    """A number that can be evaluated to any number of bits. `exact` is True for a binary number."""

    exact: bool
    at: Callable[[int], Raw]

    def __call__(self, wp: int) -> Raw:
        """Return the number, rounded to a relative error of 2**-wp if it is not exact."""
        return self.at(wp)


MAX_LOG_BITS = 1 << 12
"""The most bits before the point in an argument of exp. Each of them costs exp an extra bit."""

MAX_DPS = 20_000
"""The most decimal digits. With so many, u = 1e43429, which has the longest sums, takes minutes."""


def read(value: object, name: str) -> Number:
    """Return ``value`` as a function of the precision in bits.

    Floats, ints and mpf are binary and exact. A string, a Decimal or a Fraction means the exact
    decimal or ratio, which the function rounds to the requested precision.
    """
    if hasattr(value, "_mpf_"):
        return _exactly(value._mpf_)
    if isinstance(value, str | decimal.Decimal):
        return _decimal(str(value), name)
    if isinstance(value, float):
        return _exactly(libmp.from_float(value))
    if isinstance(value, numbers.Integral):
        return _exactly(libmp.from_int(int(value)))
    if isinstance(value, numbers.Rational):
        return _ratio(int(value.numerator), int(value.denominator))
    if framework(type(value)) is not None:
        raise unsupported(name, value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return _scalar(value, name)
    shape = getattr(value, "shape", None)
    given = type(value).__name__ + (f" of shape {tuple(shape)}" if shape is not None else "")
    raise TypeError(
        f"{name} must be one real number (float, int, str, mpf or a NumPy scalar), got {given}: "
        "the reference takes one number at a time, so loop over the elements."
    )


def _scalar(value: Any, name: str) -> Number:
    if hasattr(value, "as_integer_ratio"):  # such as numpy.longdouble
        if not isfinite(value):
            return _exactly(libmp.from_float(float(value)))
        return _ratio(*value.as_integer_ratio())
    item = value.item()
    if getattr(item, "shape", None) == ():
        raise TypeError(f"{name} must be one real number, got {type(value).__name__}.")
    return read(item, name)


def _exactly(raw: Raw) -> Number:
    return Number(True, lambda wp: raw)


def _ratio(p: int, q: int) -> Number:
    if q & (q - 1) == 0:
        return _exactly(libmp.from_man_exp(p, 1 - q.bit_length()))
    return Number(False, lambda wp: libmp.from_rational(p, q, wp, "n"))


def _decimal(text: str, name: str) -> Number:
    plain = text.strip().lower().replace("infinity", "inf")
    try:
        raw = libmp.from_str(plain, 53, "n")
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise ValueError(
            f"{name} must be a number, got {shown(text)}: write it like '0.1', '-1e-300' or 'inf'."
        ) from error
    if not raw[1]:
        return _exactly(raw)
    return Number(False, lambda wp: libmp.from_str(plain, wp + 16, "n"))


def digits(dps: object, most: int = MAX_DPS) -> int:
    """Check ``dps`` and return it as an int."""
    if isinstance(dps, bool) or not hasattr(dps, "__index__"):
        raise TypeError(
            f"dps must be an int, the number of decimal digits, got {type(dps).__name__}."
        )
    n = dps.__index__()
    if not 1 <= n <= most:
        raise ValueError(
            f"dps must be between 1 and {most} decimal digits, got {shown(n)}: pass another number."
        )
    return int(n)


def magnitude(raw: Raw) -> int:
    """Return m with 2**(m-1) <= abs(raw) < 2**m, for a number that is finite and not 0."""
    return int(raw[2] + raw[3])


def floor(u: Raw) -> int:
    """Return the integer part of u > 0. For a tiny u, avoid a shift that gmpy2 cannot do."""
    return int(libmp.to_int(u)) if magnitude(u) > 0 else 0


def exp_neg(log_value: Number, wp: int, name: str) -> Raw:
    """Return exp(-log_value) with a relative error of 2**-wp."""
    rough = log_value(53)
    before_point = max(0, magnitude(rough)) if rough[1] else 0
    if before_point > MAX_LOG_BITS:
        raise OverflowError(
            f"{name} must be below 2**{MAX_LOG_BITS} in size, because its exponential needs more "
            f"than {MAX_LOG_BITS} extra bits: for the limit pass math.inf or -math.inf."
        )
    return libmp.mpf_exp(libmp.mpf_neg(log_value(wp + before_point + 8)), wp + 8, "n")
