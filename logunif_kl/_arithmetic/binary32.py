"""Operations on the bits of float32 arrays, and a fused multiply-add, for a namespace ``xp``.

Each function calls the function of ``xp`` with the same name, if there is one, because ``xp`` may
lack the array operations that are used here, or be faster without them. The integers are int32.
Integer constants must be exact in float32: under vmap, PyTorch's compiler rounds them to float32.
"""

from __future__ import annotations

from typing import Any

Array = Any
Namespace = Any

ONE_BITS = 0x3F800000
MANTISSA_BITS = 23
# The bits of sqrt(1/2), rounded up to a multiple of 2^-16. Subtract them from the bits of x, and
# shift right by 23: the result is the exponent k of x = m 2^k with m from sqrt(1/2) to sqrt(2).
SPLIT_BITS = 0x3F350500


def fma(xp: Namespace, a: Array, b: Array, c: Array) -> Array:
    """Compute a b + c, with one rounding if ``xp`` has a fused multiply-add."""
    found = getattr(xp, "fma", None)
    return a * b + c if found is None else found(a, b, c)


def fused(xp: Namespace, a: Array, b: Array, c: Array) -> Array:
    """Compute a b + c where rounding twice matters, by ``xp.fused`` (one rounding) or `fma`."""
    found = getattr(xp, "fused", None)
    return fma(xp, a, b, c) if found is None else found(a, b, c)


def below(xp: Namespace, x: Array, u: Array, bound: float) -> Array:
    """Return x. The caller ignores x where u >= bound, so ``xp.below`` may return 1 there."""
    found = getattr(xp, "below", None)
    return x if found is None else found(x, u, bound)


def from_bound(xp: Namespace, x: Array, u: Array, bound: float) -> Array:
    """Return x. The caller ignores x where u < bound, so ``xp.from_bound`` may return 1 there."""
    found = getattr(xp, "from_bound", None)
    return x if found is None else found(x, u, bound)


def inverse(xp: Namespace, x: Array) -> Array:
    """Compute 1/x within 1 ulp, where neither x nor 1/x is subnormal."""
    found = getattr(xp, "inverse", None)
    return 1.0 / x if found is None else found(x)


def quotient(xp: Namespace, a: Array, b: Array) -> Array:
    """Compute a/b for a finite a, where neither b nor a/b is subnormal."""
    found = getattr(xp, "quotient", None)
    return a / b if found is None else found(a, b)


def bits(xp: Namespace, x: Array) -> Array:
    found = getattr(xp, "bits", None)
    return x.view(xp.int32) if found is None else found(x)


def unbits(xp: Namespace, n: Array) -> Array:
    found = getattr(xp, "unbits", None)
    return n.view(xp.float32) if found is None else found(n)


def from_integer(xp: Namespace, n: Array) -> Array:
    """Convert a non-negative int32 to the nearest float32."""
    found = getattr(xp, "from_integer", None)
    return n.astype(xp.float32) if found is None else found(n)


def left(xp: Namespace, n: Array, by: int) -> Array:
    """Shift the bits to the left, and drop the bits above the 32nd."""
    found = getattr(xp, "left", None)
    return n << by if found is None else found(n, by)


def right(xp: Namespace, n: Array, by: int) -> Array:
    """Shift the bits of a non-negative int32 to the right."""
    found = getattr(xp, "right", None)
    return n >> by if found is None else found(n, by)


def nearest(xp: Namespace, x: Array, factor: float) -> tuple[Array, Array]:
    """Return the integer n nearest to ``x * factor``: n as a float32, and n + 64 as an int32.

    The int32 is positive. Callers ignore its bits from the 12th up, so ``xp`` may set them.
    """
    found = getattr(xp, "nearest", None)
    if found is not None:
        pair: tuple[Array, Array] = found(x, factor)
        return pair
    # Do not round by adding and subtracting a large number, because XLA would cancel the two.
    n = xp.round(x * factor)
    convert = getattr(xp, "to_integer", None)
    return n, (n.astype(xp.int32) if convert is None else convert(n)) + 64


def split(xp: Namespace, x: Array) -> tuple[Array, Array]:
    """Write x >= 1 as m 2^k, with m between sqrt(1/2) and sqrt(2), and return m - 1 and k.

    Both results are float32. If x is infinite, m is 1 and k is 128.
    """
    pattern = bits(xp, x)
    k = right(xp, pattern - SPLIT_BITS, MANTISSA_BITS)
    m = unbits(xp, pattern - left(xp, k, MANTISSA_BITS))
    return m - 1.0, from_integer(xp, k)


def horner(xp: Namespace, coefficients: tuple[float, ...], x: Array) -> Array:
    """Evaluate a polynomial whose coefficients start with the constant term."""
    s = fma(xp, x, coefficients[-1], coefficients[-2])
    for k in reversed(coefficients[:-2]):
        s = fma(xp, s, x, k)
    return s
