"""Split -KL into a part for the sign and a part for the magnitude of w (Kingma's Eq. 37)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from .._convention import PROPER_CONSTANT, ZERO_AT_INFINITY, additive_constant
from ._closed_forms import closed_form
from ._density import checked_points
from ._distribution import Standardised, standardised
from ._posterior import from_sides, refuse_above, refuse_mass
from ._quadrature import Side, signed_entropies


class Split(NamedTuple):
    """-KL in parts.

    Attributes
    ----------
    sign_bit : float
        -KL from the posterior of the sign of w to a fair coin. It lies in [-log 2, 0].
    magnitude : float
        -KL from the posterior of log|w|, given the sign, to the prior's constant density c = 2 C.
    total : float
        -KL as `neg_kl_posterior` returns it. It comes from the closed form if there is one, not
        from the sum of the two parts.
    error : float
        A bound on the error of `magnitude`, and on abs(sign_bit + magnitude - total).
    """

    sign_bit: float
    magnitude: float
    total: float
    error: float


def neg_kl_split(
    dist: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    points: Iterable[float] = (),
) -> Split:
    r"""-KL(q || p) in two parts, for the sign of w and for its magnitude.

    With Q the posterior probability of a negative weight ([1]_, Eq. 37 and the equation after it):

    .. math::

        \mathrm{sign\_bit} &= \log\tfrac12 - Q \log Q - (1 - Q) \log(1 - Q) \\
        \mathrm{magnitude} &= \log c - Q\, \mathrm{E}\left[
        \log\frac{q}{Q} + \log\lvert w\rvert \mid w < 0\right] \\
        &\quad - (1 - Q)\, \mathrm{E}\left[
        \log\frac{q}{1 - Q} + \log\lvert w\rvert \mid w > 0\right],
        \qquad c = 2 C

    In the sum of the two parts, the terms in Q cancel, which gives Eq. 38. `sign_bit` is -log 2 if
    all weights have the same sign, and 0 if the posterior is symmetric about 0.

    Parameters
    ----------
    dist, zero_at, log_c, points
        The same as for `neg_kl_posterior`. The constant is part of the magnitude, because the prior
        on the sign is proper.

    Returns
    -------
    Split
        (sign_bit, magnitude, total, error), all float.

    Raises
    ------
    TypeError, ValueError, ArithmeticError
        The same as for `neg_kl_posterior`.

    Notes
    -----
    The magnitude is always computed by quadrature, separately over negative and positive weights.

    References
    ----------
    .. [1] D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local
       Reparameterization Trick" (2015), appendix C.

    Examples
    --------
    >>> from scipy import stats
    >>> from logunif_kl.posteriors import neg_kl_split
    >>> split = neg_kl_split(stats.norm(1.0, 1.0), zero_at=1.0)
    >>> round(split.sign_bit, 10), round(split.magnitude, 10), round(split.total, 10)
    (-0.2557139396, 0.2557139396, 0.0)
    >>> abs(split.sign_bit + split.magnitude - split.total) <= split.error < 1e-11
    True
    """
    constant = additive_constant(zero_at, log_c)
    named = checked_points(points)
    read = standardised(dist, named)
    sides = signed_entropies(read, named)
    value, error, mass = from_sides(read, sides)
    refuse_mass(mass, read)
    known = closed_form(read)
    if known is not None:
        value = known[0]
        error += known[1]
    sign_bit = -math.log(2.0)
    magnitude = math.log(2.0) - PROPER_CONSTANT + constant  # log c
    for side, probability in zip(sides, _signs(read, sides), strict=True):
        if probability > 0.0:
            if read.is_function:
                error += side.mass_error * (1.0 + abs(math.log(probability)))
            conditional = side.entropy / probability + math.log(probability)
            magnitude += probability * conditional
            sign_bit -= probability * math.log(probability)
    value += constant
    error += 2.0**-50 * (1.0 + abs(constant) + abs(value))
    refuse_above(error, value, mass, read)
    return Split(sign_bit, magnitude, value, error)


def _signs(dist: Standardised, sides: tuple[Side, Side]) -> tuple[float, float]:
    """Return the probability of each sign, without computing either as 1 minus the other."""
    if dist.is_function:
        return sides[0].mass, sides[1].mass
    return dist.cdf(dist.zero), dist.sf(dist.zero)
