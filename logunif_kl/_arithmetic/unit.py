"""A unit of w in which the logarithm of a variance loses no digits, over a namespace ``xp``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Array = Any
Namespace = Any


def unit(xp: Namespace, rsqrt: Callable[[Array], Array], loc: Array, scale: Array) -> Array:
    """Return the factor by which to multiply ``loc`` and ``scale`` of N(loc, scale^2).

    KL(N(loc, scale^2) || C/|w|) does not depend on the unit of w, but the rounding error of
    2 log(scale) does. The factor is 1/scale where scale is larger than ``|loc|``, and
    1/sqrt(``|loc|`` scale) elsewhere: log(sigma^2) is then small, and neither product leaves the
    range of the type.

    KL does not depend on the factor, so its derivative is not needed: the caller passes detached
    arguments.
    """
    least = float(xp.finfo(loc.dtype).tiny)
    size, spread = (xp.clip(xp.abs(each), least, 1.0 / least) for each in (loc, scale))
    return rsqrt(spread) * rsqrt(xp.maximum(size, spread))


def power_of_two(xp: Namespace, size: Array) -> Array:
    """Return a factor for numbers of which ``size`` is the largest: a product by it is exact.

    It is 1 unless the size is beyond 2^60 or below 2^-60 in float32, or 2^400 and 2^-400 in
    float64, where sums, widths or their quotients could leave the range of the type.
    """
    bound, far = (60, 64) if xp.finfo(size.dtype).bits == 32 else (400, 600)
    one = xp.ones_like(size)
    large = xp.where(size > 2.0**bound, one * 2.0**-far, one)
    return xp.where(size < 2.0**-bound, one * 2.0**far, large)
