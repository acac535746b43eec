"""Choose a unit for the weight w, so that variances and their logarithms lose no digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Array = Any
Namespace = Any


def unit(xp: Namespace, rsqrt: Callable[[Array], Array], loc: Array, scale: Array) -> Array:
    """Return the factor by which to multiply ``loc`` and ``scale`` of N(loc, scale^2).

    KL(N(loc, scale^2) || C/|w|) does not depend on the unit of w, but the rounding error of 2
    log(scale) does. The factor is 1/scale where scale is larger than ``|loc|``, and
    1/sqrt(``|loc|`` scale) elsewhere. The logarithm of the new scale is small, and neither product
    overflows.

    KL does not depend on the factor, so the caller passes arguments without gradients.
    """
    least = float(xp.finfo(loc.dtype).tiny)
    size, spread = (xp.clip(xp.abs(each), least, 1.0 / least) for each in (loc, scale))
    return rsqrt(spread) * rsqrt(xp.maximum(size, spread))


def power_of_two(xp: Namespace, size: Array) -> Array:
    """Return a power of 2 that scales numbers of magnitude up to ``size`` into a safe range.

    The scaling is exact. The factor is 1 for sizes from 2^-60 to 2^60 in float32, and from 2^-400
    to 2^400 in float64. Unscaled numbers of other sizes could overflow in a sum or a quotient.
    """
    bound, far = (60, 64) if xp.finfo(size.dtype).bits == 32 else (400, 600)
    one = xp.ones_like(size)
    large = xp.where(size > 2.0**bound, one * 2.0**-far, one)
    return xp.where(size < 2.0**-bound, one * 2.0**far, large)


def marginals(xp: Namespace, size: Array, diagonal: Array, others: Array) -> tuple[Array, Array]:
    """Return s = sqrt(diagonal^2 + sum of others^2 over the last axis), and log(s/``|diagonal|``).

    For the rows of a Cholesky factor of the covariance S, s holds the standard deviations. The
    logarithms add up to (sum(log S_ii) - log det S)/2. Small terms keep their digits, and no
    square overflows or underflows.

    ``size``, the largest magnitude in a row, has no effect on the results, so the caller passes it
    without a gradient.
    """
    size = xp.clip(size, float(xp.finfo(size.dtype).tiny))
    d, rest = xp.abs(diagonal / size), others / size[..., None]
    squares = (rest * rest).sum(-1)
    total = d * d + squares
    far = d * d < squares
    near = xp.where(far, xp.ones_like(d), d)
    small = 0.5 * xp.log1p(squares / (near * near))
    return size * total**0.5, xp.where(far, 0.5 * xp.log(total) - xp.log(d), small)
